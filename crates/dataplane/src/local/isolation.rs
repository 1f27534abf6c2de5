//! Isolates the code of one environment from everything that is not its own.
//!
//! DAG code is untrusted. If the control plane runs as root, every environment runs as its own user; otherwise the
//! kernel (Landlock) restricts its processes to their own directory, the runtime and the system's programs. If neither
//! works, all authors are trusted, and the start-up log says so. In every case a launcher makes sure that no program
//! gains privileges through exec, and, if the kernel supports it, that none listens on a port where clients expect one
//! of our services.

mod confinement;
mod grants;
mod probe;

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::RangeInclusive;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use self::confinement::Confinement;
pub(super) use self::confinement::MOUNTED;
pub(super) use self::probe::is_transient;
use podium_airflow::settings::Variables;

use self::probe::{Mounts, ProbeResult};
use super::options::Options;

const SHELL: &str = "/bin/sh";

/// Prefix of variables that are passed through the launcher, so that they affect neither it nor its loader.
const VARIABLE_PREFIX: &str = "PODIUM_SET_";

/// Prelude of every program of an environment, independent of the control plane's own settings: an ordinary umask, and
/// an open file limit as is usual for servers.
const PRELUDE: &str = "umask 022; limit=$(ulimit -H -n); [ \"$limit\" -le 65536 ] 2>/dev/null || limit=65536; \
                        ulimit -S -n \"$limit\"; exec \"$0\" \"$@\"";

/// How environments of this machine are isolated.
#[derive(Clone, Debug)]
pub(super) struct HostIsolation {
    pub(super) mode: Mode,
    launcher: Option<Launcher>,
    /// What a test has shown.
    probed: ProbeResult,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Each runs as its own user.
    Users {
        /// The first user id; the slot of an environment is added to it.
        first: u32,
    },
    /// The kernel confines each to its own files.
    Landlock,
    /// They are not, and why.
    Trusted(String),
}

/// The program that confines itself and then executes another: this one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Launcher {
    program: PathBuf,
    /// Paths that no environment may read.
    protected: Vec<PathBuf>,
    /// The ports that tasks may listen on, in addition to ephemeral ones.
    ports: Option<RangeInclusive<u16>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileAccess {
    pub(super) write: Vec<PathBuf>,
    /// What it reads, in addition to that and the system.
    pub(super) read: Vec<PathBuf>,
    /// What it sees as `/tmp`, if the kernel allows it.
    pub(super) temporary: PathBuf,
}

/// How the processes of one environment are isolated from the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Isolation {
    /// The user that its processes run as, if it differs from the control plane's.
    pub(super) user: Option<u32>,
    /// The launcher and its arguments.
    launch: Option<(PathBuf, Vec<OsString>)>,
    /// The holder process of its own network, if it has one; without it nothing starts.
    pub(super) holder: Option<i32>,
    /// The control groups that it joins before it executes the program.
    groups: Vec<PathBuf>,
}

impl HostIsolation {
    /// Detects what this machine supports, with an interpreter that environments must be able to run. An error says why
    /// it could not be tested: a temporary shortage must not count as lack of support.
    pub(super) fn detect(
        python: &Path,
        access: &FileAccess,
        options: &Options,
        first: u32,
    ) -> io::Result<Self> {
        let untried = |error: io::Error| {
            io::Error::other(format!("environment isolation could not be tested: {error}"))
        };
        let launcher = options.launcher.as_ref().map(|program| Launcher {
            program: program.clone(),
            protected: options.protected.iter().map(|path| real(path)).collect(),
            ports: options.task_ports.clone(),
        });
        let mut apart = Self { mode: Mode::Landlock, launcher, probed: ProbeResult::default() };
        match users_work(python, &options.directory, first).map_err(untried)? {
            None => apart.mode = Mode::Users { first },
            Some(why) if apart.launcher.is_none() || !confinement::confines_files().map_err(untried)? => {
                apart.mode = Mode::Trusted(format!("{why}; and the kernel does not support Landlock"));
            }
            Some(_) => {}
        }
        if apart.launcher.is_some() {
            apart.probed = apart.probe(access, &options.directory).map_err(untried)?;
            if let (Mode::Landlock, [first, ..]) = (&apart.mode, apart.probed.readable.as_slice()) {
                apart.mode = Mode::Trusted(format!("a confined process can still read {}", first.display()));
            }
            apart.probed.own_port = confinement::open_port(&options.public_url);
        }
        Ok(apart)
    }

    /// A description for the operator at start-up.
    pub(super) fn describe(&self) -> String {
        let apart = match &self.mode {
            Mode::Users { .. } => "environments are isolated: each runs as its own user",
            Mode::Landlock => "environments are isolated: the kernel confines each to its own files",
            Mode::Trusted(why) => {
                return format!(
                    "environments are NOT isolated, so every DAG author is trusted with everything that this user can read: {why}"
                );
            }
        };
        if self.launcher.is_none() {
            return format!(
                "{apart}. However, programs can gain privileges and take ports, because there is no launcher"
            );
        }
        let apart = format!("{apart}{}", self.probed.own());
        let but = self.probed.limitations(matches!(self.mode, Mode::Landlock));
        if but.is_empty() { apart } else { format!("{apart}. However, {}", but.join("; ")) }
    }

    /// The user of an environment, if each has its own.
    pub(super) fn user_of(&self, slot: u32) -> Option<u32> {
        if let Mode::Users { first } = self.mode { Some(first + slot) } else { None }
    }

    pub(super) fn of_environment(&self, slot: u32, access: &FileAccess) -> Isolation {
        let user = self.user_of(slot);
        let launch = self.launcher.as_ref().map(|launcher| self.launch(launcher, user, access));
        Isolation { user, launch, holder: None, groups: Vec::new() }
    }

    fn launch(
        &self,
        launcher: &Launcher,
        user: Option<u32>,
        access: &FileAccess,
    ) -> (PathBuf, Vec<OsString>) {
        let mut told: Vec<OsString> = vec!["confine".into()];
        let mut tell = |flag: &str, value: OsString| told.extend([flag.into(), value]);
        if self.probed.mounts == Mounts::Own {
            tell("--temporary", access.temporary.clone().into());
        }
        for (flag, paths) in
            [("--write", &access.write), ("--read", &access.read), ("--kept", &launcher.protected)]
        {
            paths.iter().for_each(|path| tell(flag, path.into()));
        }
        if let Some(ports) = &launcher.ports {
            tell("--ports", format!("{}-{}", ports.start(), ports.end()).into());
        }
        if let Some(user) = user {
            tell("--user", user.to_string().into());
        }
        if self.mode != Mode::Landlock {
            told.push("--any-file".into());
        }
        (launcher.program.clone(), told)
    }
}

impl Isolation {
    /// No isolation.
    pub(super) const NONE: Self = Self { user: None, launch: None, holder: None, groups: Vec::new() };

    /// Only its own user.
    #[cfg(test)]
    pub(super) fn of_user(user: u32) -> Self {
        Self { user: Some(user), launch: None, holder: None, groups: Vec::new() }
    }

    /// The same within its own network, given by its holder process and the inode number of its namespace. The holder
    /// is not part of the fingerprint.
    pub(super) fn in_network(mut self, holder: i32, number: u64) -> Self {
        if let Some((_, told)) = &mut self.launch {
            told.extend(["--network".into(), number.to_string().into()]);
        }
        self.holder = Some(holder);
        self
    }

    /// The same within control groups, which the launcher joins itself: a program that is moved later could start
    /// others before.
    pub(super) fn in_groups(mut self, groups: Vec<PathBuf>) -> Self {
        self.groups = groups;
        self
    }

    /// The launcher's arguments: a process that was started with other arguments has another isolation.
    pub(super) fn bounds(&self) -> &[OsString] {
        self.launch.as_ref().map_or(&[], |(_, told)| told)
    }

    /// Whether its processes run as the control plane's own user and are isolated by the kernel alone.
    pub(super) fn shares_user(&self) -> bool {
        self.user.is_none() && self.launch.is_some()
    }

    /// A command that runs these arguments isolated, with these variables and no others.
    pub(super) fn command(&self, arguments: &[OsString], variables: &Variables) -> Command {
        let told = variables.iter().map(|(name, value)| (name.as_str(), value.reveal()));
        let mut command = if let Some((launcher, flags)) = &self.launch {
            let mut command = Command::new(launcher);
            // The launcher is not confined yet: variables of an author must not affect it.
            command.env_clear().envs(told.map(|(name, value)| (format!("{VARIABLE_PREFIX}{name}"), value)));
            command.args(flags);
            for group in &self.groups {
                command.arg("--group").arg(group);
            }
            if let Some(holder) = self.holder {
                command.arg("--holder").arg(holder.to_string());
            }
            command.arg("--").args([SHELL, "-c", PRELUDE]);
            command
        } else {
            let mut command = Command::new(SHELL);
            command.env_clear().envs(told);
            if let Some(user) = self.user {
                // The standard library drops supplementary groups together with the user.
                command.gid(user).uid(user);
            }
            // Other users may not join by themselves: without a launcher the process is moved later.
            let groups = self.groups.iter().filter(|_| self.user.is_none());
            let join = |group: &PathBuf| format!("echo 0 > '{}/cgroup.procs' || exit 1; ", group.display());
            let joining: String = groups.map(join).collect();
            command.args(["-c", &format!("{joining}{PRELUDE}")]);
            command
        };
        command.args(arguments);
        command
    }

    /// Makes the environment the owner of a file or directory.
    pub(super) fn give(&self, path: &Path) -> io::Result<()> {
        self.user.map_or(Ok(()), |user| chown(path, Some(user), Some(user)))
    }

    /// Lets the environment read a directory that the control plane owns.
    pub(super) fn admit(&self, path: &Path) -> io::Result<()> {
        self.user.map_or(Ok(()), |user| chown(path, Some(0), Some(user)))
    }
}

/// The canonical form of a path that may not exist yet.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (fs::canonicalize(&path), path.parent(), path.file_name()) {
        (Ok(real), ..) => real,
        (Err(_), Some(above), Some(name)) => real(above).join(name),
        (Err(_), ..) => path,
    }
}

/// Why processes cannot run as other users here and reach what they need; `None` if they can. An error says why it
/// could not be tested.
fn users_work(python: &Path, directory: &Path, user: u32) -> io::Result<Option<String>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(Some(
            "the control plane does not run as root, so it cannot run processes as other users".into(),
        ));
    }
    // The data directory itself is made passable when it is created.
    let above_data = directory.parent().and_then(Path::parent).unwrap_or(directory);
    for path in [python, above_data] {
        let real = fs::canonicalize(path).map_err(|error| failed(path, &error))?;
        let is_closed = |above: &&Path| fs::metadata(above).is_ok_and(|metadata| metadata.mode() & 0o1 == 0);
        if let Some(closed) = real.ancestors().find(is_closed) {
            return Ok(Some(format!("other users cannot enter {}", closed.display())));
        }
    }
    let works = Command::new(python)
        .args(["-c", ""])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .gid(user)
        .uid(user)
        .status();
    let refused = format!("other users cannot run {}", python.display());
    match works {
        Ok(status) if status.success() => Ok(None),
        Ok(status) if status.code().is_some() => Ok(Some(refused)),
        Ok(status) => Err(failed(python, &status)),
        // Setting the user is not permitted, or there are no other users.
        Err(error) if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidInput) => {
            Ok(Some(refused))
        }
        Err(error) => Err(failed(python, &error)),
    }
}

fn failed(path: &Path, why: &dyn std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {why}", path.display()))
}

#[cfg(test)]
mod tests;
