//! The plane's own PostgreSQL server, for the metadata databases of environments.
//!
//! It is available if a server program is installed. Its cluster is below the plane's directory, it runs as its own
//! user if the control plane runs as root, and it listens on a Unix socket only. Like the environments it outlives the
//! control plane; the next start takes it over.

mod create;
#[cfg(test)]
pub(super) mod tests;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use podium_domain::{Reason, UserText};
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;

pub(super) use self::create::Programs;
use super::identity::Identity;
use super::layout::missing_is_none;
use super::process::Process;
use super::sockets;
use super::timing::Timing;
use crate::Secret;
use crate::blocking::{assert_may_block, blocking};

/// The administrator role of the cluster.
const ADMIN: &str = "podium";
/// The connection limit of the server: an idle environment has about five, a busy one a few dozen.
const CONNECTIONS: u32 = 800;
pub(super) const SOCKET: &str = ".s.PGSQL.5432";
/// How long a start may take: after a crash the write-ahead log is replayed.
const STARTING: Duration = Duration::from_secs(120);
/// How often to check whether the server is ready.
const LOOK: Duration = Duration::from_millis(100);
const LONGEST_LOG: u64 = 16 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
enum ServerStatus {
    Starting,
    Up,
    Down(Reason),
}

pub(super) struct Cluster {
    /// The directory of the cluster and its other files.
    directory: PathBuf,
    /// The user that it runs as, if it differs from the control plane's.
    user: Option<u32>,
    password: Secret,
    timing: Timing,
    status: watch::Sender<ServerStatus>,
    supervisor: Mutex<Option<AbortHandle>>,
    /// Held while it is started or stopped.
    turn: AsyncMutex<()>,
}

impl Cluster {
    /// The cluster in a directory, not started.
    pub(super) fn new(directory: PathBuf, user: Option<u32>, password: Secret, timing: Timing) -> Arc<Self> {
        Arc::new(Self {
            directory,
            user,
            password,
            timing,
            status: watch::Sender::new(ServerStatus::Starting),
            supervisor: Mutex::default(),
            turn: AsyncMutex::default(),
        })
    }

    /// Why this machine cannot run one; `None` if it can.
    pub(super) fn why_not(plane: &Path) -> Option<Reason> {
        if Programs::find().is_empty() {
            return Some("no PostgreSQL server is installed".into());
        }
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        // It never runs as root, so another user has to reach the cluster. The data directory itself is made passable
        // when it is created.
        let above = plane.parent().and_then(Path::parent).unwrap_or(plane);
        let above = fs::canonicalize(above).unwrap_or_else(|_| above.to_owned());
        let is_closed = |path: &&Path| fs::metadata(path).is_ok_and(|metadata| metadata.mode() & 0o1 == 0);
        let closed = above.ancestors().find(is_closed)?;
        let told = "PostgreSQL does not run as root, and other users cannot enter the directory";
        Some(Reason::new(told, closed.display()))
    }

    /// Starts it if needed and returns its administrator's URL once it is up; an error says why it is not.
    pub(super) async fn ensure(self: &Arc<Self>) -> Result<Secret, Reason> {
        let mut status = self.status.subscribe();
        {
            let _turn = self.turn.lock().await;
            let mut supervisor = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner);
            if supervisor.as_ref().is_none_or(AbortHandle::is_finished) {
                self.status.send_replace(ServerStatus::Starting);
                *supervisor = Some(tokio::spawn(supervise(Arc::clone(self))).abort_handle());
            }
        }
        let settled = status.wait_for(|status| *status != ServerStatus::Starting);
        let settled = tokio::time::timeout(STARTING, settled).await;
        match settled.map(|status| status.map(|status| status.clone())) {
            Ok(Ok(ServerStatus::Down(why))) => Err(why),
            Ok(Ok(_)) => self.url().await,
            _ => Err("the database server does not start".into()),
        }
    }

    /// Why it is down; `None` while it is up or not needed.
    pub(super) fn failure(&self) -> Option<Reason> {
        match &*self.status.borrow() {
            ServerStatus::Down(why) => Some(why.clone()),
            ServerStatus::Starting | ServerStatus::Up => None,
        }
    }

    /// Stops it unless it is needed, which is checked while it cannot be started.
    pub(super) async fn stop_unless(self: &Arc<Self>, is_needed: impl Future<Output = bool>) {
        let _turn = self.turn.lock().await;
        if is_needed.await {
            return;
        }
        self.stop_supervising();
        if let Some(process) = self.blocking(Self::running).await {
            process.stop(self.timing.grace).await;
        }
    }

    /// Whether a server is running on the cluster, whoever started it.
    pub(super) fn is_running(&self) -> bool {
        self.running().is_some()
    }

    #[cfg(test)]
    pub(super) fn forget_socket(&self) {
        let socket = crate::blocking::allow_blocking(|| self.socket_directory()).unwrap();
        fs::remove_dir_all(socket).unwrap();
    }

    /// Ends supervision without stopping the server.
    pub(super) fn stop_supervising(&self) {
        if let Some(supervisor) = self.supervisor.lock().unwrap_or_else(PoisonError::into_inner).take() {
            supervisor.abort();
        }
        self.status.send_replace(ServerStatus::Starting);
    }

    /// Programs of the version that the cluster was created with, or of the newest for a new one.
    pub(super) async fn programs(&self) -> Result<Programs, Reason> {
        let data = self.data();
        blocking(move || programs_for(&data)).await
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }

    /// The directory of its socket, created if it is missing: where a running server has it, or where the next one will.
    pub(super) fn socket_directory(&self) -> io::Result<PathBuf> {
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let named = file.lines().nth(4).map(PathBuf::from).filter(|at| has_socket(at));
        match named.filter(|_| self.is_running()) {
            Some(at) => Ok(at),
            None => self.own_directory(),
        }
    }

    /// Where this version puts the socket. If the server has its own user, that one's alone: environments reach it
    /// through relays.
    fn own_directory(&self) -> io::Result<PathBuf> {
        match self.user {
            Some(_) => sockets::directory_of(&self.data(), self.user, sockets::ITS_OWNER),
            None => sockets::directory_of(&self.directory, None, sockets::EVERYBODY),
        }
    }

    /// How relays reach it: the user that may, and the socket, also of a server that an earlier version has started.
    /// `None` if there are none, because environments run as the same user.
    pub(super) fn behind_relays(&self) -> io::Result<Option<(u32, Vec<PathBuf>)>> {
        let Some(user) = self.user else { return Ok(None) };
        let directories =
            [self.own_directory()?, sockets::directory_of(&self.directory, self.user, sockets::EVERYBODY)?];
        Ok(Some((user, directories.map(|at| at.join(SOCKET)).into())))
    }

    async fn url(self: &Arc<Self>) -> Result<Secret, Reason> {
        let socket = self.find_socket().await?;
        let password = self.password.reveal();
        Ok(Secret::new(format!("postgresql://{ADMIN}:{password}@/postgres?host={}", socket.display())))
    }

    /// Runs work on this cluster that blocks.
    async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> T {
        let cluster = Arc::clone(self);
        blocking(move || work(&cluster)).await
    }

    /// The directory of its socket, created if it is missing.
    async fn find_socket(self: &Arc<Self>) -> Result<PathBuf, Reason> {
        let found = self.blocking(Self::socket_directory).await;
        found.map_err(|error| Reason::of_io("there is no directory for the database server's socket", &error))
    }

    /// The server that runs on the cluster, whoever started it.
    fn running(&self) -> Option<Process> {
        assert_may_block();
        let data = fs::canonicalize(self.data()).ok()?;
        let file = fs::read_to_string(data.join("postmaster.pid")).ok()?;
        let pid: i32 = file.lines().next()?.trim().parse().ok()?;
        let identity = Identity::of(pid).ok()?;
        // The working directory of a server is its cluster. The pid alone may have been reused.
        let works_there = |pid: i32| fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|at| at == data);
        let process = Process::adopt(identity).ok()?;
        works_there(pid).then_some(process)
    }

    /// Whether the server reports that it accepts connections.
    fn is_ready(&self) -> bool {
        assert_may_block();
        let file = fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        file.lines().nth(7).is_some_and(|status| status.trim() == "ready")
    }

    /// Takes over a running server or starts one; returns once it accepts connections.
    async fn bring_up(self: &Arc<Self>) -> Result<Process, Reason> {
        let programs = self.programs().await?;
        let _turn = self.turn.lock().await;
        self.make(&programs).await?;
        let socket = self.find_socket().await?;
        let look = || {
            let socket = socket.clone();
            self.blocking(move |cluster| (cluster.is_ready(), has_socket(&socket)))
        };
        let process = match (self.blocking(Self::running).await, look().await) {
            (Some(process), (is_ready, has_socket)) if has_socket || !is_ready => process,
            (other, _) => {
                if let Some(unreachable) = other {
                    unreachable.stop(self.timing.short_grace).await;
                }
                let (socket, programs) = (socket.clone(), programs.clone());
                let started = self.blocking(move |cluster| cluster.start(&programs, &socket)).await;
                started.map_err(|error| Reason::of_io("the database server cannot be started", &error))?
            }
        };
        let ready = async {
            while look().await != (true, true) {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            () = process.ended() => Err(self.last_error_line().await),
            ready = tokio::time::timeout(STARTING, ready) => match ready {
                Ok(()) => {
                    self.close_to_environments(&programs).await;
                    Ok(process)
                }
                Err(_) => Err("the database server does not start".into()),
            },
        }
    }

    fn start(&self, programs: &Programs, socket: &Path) -> io::Result<Process> {
        // Left by an earlier server, which no longer runs; its pid may have been reused.
        missing_is_none(fs::remove_file(self.data().join("postmaster.pid")))?;
        let log = self.open_log()?;
        let mut command = self.command(&programs.program("postgres"), self.user);
        command.arg("-D").arg(self.data());
        for setting in settings(socket) {
            command.arg("-c").arg(setting);
        }
        command.stdout(log.try_clone()?).stderr(log).process_group(0);
        Process::spawn(command)
    }

    /// A command that runs as a user, without this process's environment variables.
    fn command(&self, program: &Path, user: Option<u32>) -> std::process::Command {
        let mut command = std::process::Command::new(program);
        command.env_clear().envs([("PATH", "/usr/bin:/bin"), ("LC_ALL", "C"), ("TZ", "UTC")]);
        command.current_dir(&self.directory).stdin(Stdio::null());
        if let Some(user) = user {
            command.gid(user).uid(user);
        }
        command
    }

    fn open_log(&self) -> io::Result<File> {
        OpenOptions::new().append(true).create(true).mode(0o600).open(self.log())
    }

    /// Truncates a long log; its writer appends to the new end.
    fn bound_log(&self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(self.log())?;
        if file.metadata()?.len() > LONGEST_LOG { file.set_len(0) } else { Ok(()) }
    }

    async fn last_error_line(&self) -> Reason {
        let log = self.log();
        let words = blocking(move || super::process::last_error_line(&log, 0)).await;
        Reason::new("the database server exited", words.as_deref().unwrap_or("it logged no reason"))
    }
}

/// Programs of the version that a cluster was created with, or of the newest for a new one.
fn programs_for(data: &Path) -> Result<Programs, Reason> {
    let found = Programs::find();
    match fs::read_to_string(data.join("PG_VERSION")) {
        Ok(version) => {
            let wrong = |_| Reason::new("the metadata database cluster has no readable version", data.display());
            Programs::of(version.trim().parse().map_err(wrong)?, &found)
        }
        Err(_) => found.first().cloned().ok_or_else(|| {
            let told = "no PostgreSQL server is installed: install postgresql, or start with --airflow-database sqlite";
            told.into()
        }),
    }
}

fn has_socket(directory: &Path) -> bool {
    directory.join(SOCKET).exists()
}

/// Settings of the server: small, durable, and reachable only from this machine.
fn settings(socket: &Path) -> Vec<OsString> {
    let mut at = OsString::from("unix_socket_directories=");
    at.push(socket);
    let connections = format!("max_connections={CONNECTIONS}");
    let others = [
        "listen_addresses=",
        "port=5432",
        "unix_socket_permissions=0777",
        "fsync=on",
        "shared_buffers=64MB",
        "max_wal_size=256MB",
        "jit=off",
        "password_encryption=scram-sha-256",
        "logging_collector=off",
        "log_checkpoints=off",
        "log_destination=stderr",
        connections.as_str(),
    ];
    others.iter().map(OsString::from).chain([at]).collect()
}

/// Supervises the server: restarts it whenever it exits, with growing pauses.
async fn supervise(cluster: Arc<Cluster>) {
    let mut times = 0;
    loop {
        let why = match cluster.bring_up().await {
            Ok(process) => {
                let since = Instant::now();
                cluster.status.send_replace(ServerStatus::Up);
                let why = watch_process(&cluster, &process).await;
                if since.elapsed() > cluster.timing.stable_after {
                    times = 0;
                }
                why
            }
            Err(why) => why,
        };
        let pause = cluster.timing.pause(times);
        times += 1;
        tracing::warn!(%why, "the environments' database server is not running and will be restarted");
        let later = UserText::filled("; restarting after {} s", &[&pause.as_secs_f32()]);
        cluster.status.send_replace(ServerStatus::Down(why.followed_by(&later)));
        tokio::time::sleep(pause).await;
    }
}

/// Waits until the server has exited or cannot be reached any more, and returns the reason.
async fn watch_process(cluster: &Arc<Cluster>, process: &Process) -> Reason {
    loop {
        tokio::select! {
            () = process.ended() => return cluster.last_error_line().await,
            () = tokio::time::sleep(cluster.timing.steady_poll) => {}
        }
        let is_there = cluster.blocking(|cluster| {
            let _ = cluster.bound_log();
            cluster.socket_directory().is_ok_and(|at| has_socket(&at))
        });
        if !is_there.await {
            return "the database server's socket was removed".into();
        }
    }
}
