//! Processes that outlive the control plane.
//!
//! Each leads its own process group and appends to a log file, never to a pipe, which would break with its reader. It
//! is held by a pidfd, so that its exit is noticed immediately, even if it is not a child of this process.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::time::Duration;

use podium_airflow::lines;
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process_group, pidfd_getfd, pidfd_open, pidfd_send_signal,
};
use tokio::io::unix::AsyncFd;
use tokio::process::Command;

use super::identity::{Identity, Stat};
use super::isolation::Isolation;
use super::orphans::COMPONENT;
use super::program::Program;
#[cfg(test)]
use super::program::ReplaceStrategy;
use crate::Secret;
use crate::blocking::{assert_may_block, blocking};

/// How long the members of a killed group may take to exit.
const VANISHING: Duration = Duration::from_secs(10);

/// How often to look for what a process brings about.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A running process, started by this or an earlier control plane.
pub(super) struct Process {
    pub(super) identity: Identity,
    descriptor: AsyncFd<OwnedFd>,
}

impl Process {
    /// Starts a program; a web server gets its listening socket as standard input.
    pub(super) fn start(
        program: &Program,
        isolation: &Isolation,
        socket: Option<OwnedFd>,
    ) -> io::Result<Self> {
        assert_may_block();
        let log = open_log(&program.log)?;
        let mut variables = program.variables.clone();
        variables.insert(COMPONENT.into(), Secret::new(program.name.clone()));
        let mut command = isolation.command(&program.arguments, &variables);
        command
            .current_dir(&program.directory)
            .stdin(socket.map_or_else(std::process::Stdio::null, std::process::Stdio::from))
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        Self::spawn(command)
    }

    /// Starts a command, which leads a process group of its own.
    pub(super) fn spawn(command: std::process::Command) -> io::Result<Self> {
        let mut child = Command::from(command).spawn()?;
        let pid = child.id().ok_or(ErrorKind::NotFound)?.cast_signed();
        let held = Identity::of(pid).and_then(Self::hold);
        if held.is_err() {
            let _ = child.start_kill();
        }
        // The parent has to reap the process.
        tokio::spawn(async move { child.wait().await });
        held
    }

    pub(super) fn adopt(identity: Identity) -> io::Result<Self> {
        let held = Self::hold(identity)?;
        // Checked after opening the pidfd: from now on a reused pid would be noticed.
        if held.identity.is_alive() { Ok(held) } else { Err(ErrorKind::NotFound.into()) }
    }

    fn hold(identity: Identity) -> io::Result<Self> {
        let pid = Pid::from_raw(identity.pid).ok_or(ErrorKind::NotFound)?;
        #[expect(deprecated, reason = "its successor is unsafe; what is registered here owns its descriptor")]
        let descriptor = AsyncFd::new(pidfd_open(pid, PidfdFlags::NONBLOCK)?)?;
        Ok(Self { identity, descriptor })
    }

    /// A copy of one of its open descriptors.
    pub(super) fn descriptor(&self, number: i32) -> io::Result<OwnedFd> {
        let copied = pidfd_getfd(self.descriptor.get_ref(), number, PidfdGetfdFlags::empty())?;
        // If it is still alive, the descriptor was its own.
        if self.identity.is_alive() { Ok(copied) } else { Err(ErrorKind::NotFound.into()) }
    }

    pub(super) fn terminate(&self) {
        // Through the pidfd, so that no other process is ever hit.
        let _ = pidfd_send_signal(self.descriptor.get_ref(), Signal::TERM);
    }

    /// Waits until it exits.
    pub(super) async fn ended(&self) {
        // A pidfd becomes readable once the process has exited, and stays so.
        let _ = self.descriptor.readable().await;
    }

    /// Waits for what it brings about; `None` if it exits before.
    pub(super) async fn until<T>(&self, what: impl Fn() -> Option<T>) -> Option<T> {
        loop {
            if let Some(found) = what() {
                return Some(found);
            }
            tokio::select! {
                () = self.ended() => return None,
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }

    /// Sends SIGTERM, waits, and kills what is left of its group.
    pub(super) async fn stop(&self, grace: Duration) {
        self.terminate();
        let _ = tokio::time::timeout(grace, self.ended()).await;
        self.kill().await;
    }

    /// Kills it and its group, without waiting.
    pub(super) fn kill_now(&self) {
        if let Some(group) = Pid::from_raw(self.identity.pid).filter(|_| !self.identity.is_taken_by_another())
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Kills it and its group, and waits until they are gone.
    pub(super) async fn kill(&self) {
        let Some(group) = Pid::from_raw(self.identity.pid) else { return };
        let gone = async {
            // While any member lives the group id cannot be reused; afterwards it can.
            loop {
                let identity = self.identity.clone();
                let is_left = blocking(move || {
                    !identity.is_taken_by_another()
                        && group_has_members(identity.pid)
                        && kill_process_group(group, Signal::KILL).is_ok()
                });
                if !is_left.await {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(VANISHING, gone).await.is_err() {
            tracing::warn!(pid = self.identity.pid, "a killed process group has not exited");
        }
    }
}

/// Wraps arguments so that their user can have at most this many processes. Shells name that limit differently.
pub(super) fn with_process_limit(arguments: &[OsString], most: u64) -> Vec<OsString> {
    let script = format!(
        "if (ulimit -u {most}) 2>/dev/null; then ulimit -u {most}; else ulimit -p {most}; fi; exec \"$0\" \"$@\""
    );
    ["/bin/sh".into(), "-c".into(), script.into()].into_iter().chain(arguments.iter().cloned()).collect()
}

fn open_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Whether a process group has members other than zombies.
fn group_has_members(group: i32) -> bool {
    pids().any(|pid| group_of(pid) == Some(group))
}

/// The process group of a process; `None` if it does not exist or is a zombie.
pub(super) fn group_of(pid: i32) -> Option<i32> {
    Stat::of(pid).ok().filter(|stat| !stat.is_dead).map(|stat| stat.group)
}

/// How much the processes of a group have worked: the time that they had a processor, and that they waited for one. It
/// goes down when one of them exits.
pub(super) fn work_of_group(group: i32) -> Duration {
    let work = |pid: i32| {
        let stat = Stat::of(pid).ok().filter(|stat| !stat.is_dead && stat.group == group)?;
        let waited = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap_or_default();
        let waited = waited.split(' ').nth(1).and_then(|nanos| nanos.parse().ok()).unwrap_or(0);
        Some(stat.worked + Duration::from_nanos(waited))
    };
    pids().filter_map(work).sum()
}

pub(super) fn pids() -> impl Iterator<Item = i32> {
    assert_may_block();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Why a program failed, according to its log since its start: the last line that names an error, or else the last
/// line.
pub(super) fn last_error_line(log: &Path, since: u64) -> Option<String> {
    const WINDOW: u64 = 16 * 1024;
    assert_may_block();
    let file = File::open(log).ok()?;
    let length = file.metadata().ok()?.len();
    let from = length.saturating_sub(WINDOW).max(since.min(length));
    let mut text = vec![0; usize::try_from(length - from).ok()?];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut text, from).ok()?;
    let text = String::from_utf8_lossy(&text);
    let said: Vec<String> =
        text.lines().rev().filter_map(lines::of_component).map(|line| line.text).collect();
    let error = said.iter().find(|line| is_exception_line(line)).or(said.first())?;
    Some(error.chars().take(300).collect())
}

/// Whether a line is the last one of a traceback: an exception, usually with its message.
fn is_exception_line(line: &str) -> bool {
    let name = line.split([':', ' ']).next().unwrap_or_default();
    name.ends_with("Error") || name.ends_with("Exception")
}

pub(super) fn log_length(log: &Path) -> u64 {
    assert_may_block();
    fs::metadata(log).map_or(0, |metadata| metadata.len())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::blocking::allow_blocking;
    use crate::local::tests::eventually;

    fn shell(directory: &Path, script: &str) -> Program {
        Program {
            name: "test".into(),
            arguments: vec!["/bin/sh".into(), "-c".into(), script.into()],
            variables: BTreeMap::from([("PODIUM_MARK".into(), Secret::new(directory.display().to_string()))]),
            directory: directory.to_owned(),
            log: directory.join("log"),
            strategy: ReplaceStrategy::Restart,
        }
    }

    fn start(program: &Program) -> io::Result<Process> {
        allow_blocking(|| Process::start(program, &Isolation::NONE, None))
    }

    #[tokio::test]
    async fn output_of_a_process_is_appended_and_its_exit_is_noticed() {
        let directory = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let process = start(&shell(directory.path(), "echo one; echo two >&2")).unwrap();
            process.ended().await;
        }
        let log = fs::read_to_string(directory.path().join("log")).unwrap();
        assert_eq!(log, "one\ntwo\none\ntwo\n");
        let log = directory.path().join("log");
        assert_eq!(allow_blocking(|| last_error_line(&log, 0)).as_deref(), Some("two"));
        assert_eq!(allow_blocking(|| last_error_line(&log, log_length(&log))), None, "it said nothing since");
        fs::write(&log, "ValueError: not enough values\nshutting down\n").unwrap();
        assert_eq!(
            allow_blocking(|| last_error_line(&log, 0)).as_deref(),
            Some("ValueError: not enough values")
        );
    }

    #[tokio::test]
    async fn a_process_that_ignores_sigterm_is_killed_with_its_group() {
        let directory = tempfile::tempdir().unwrap();
        let script = "trap '' TERM; sh -c 'trap \"\" TERM; echo up; while :; do sleep 1; done'";
        let process = start(&shell(directory.path(), script)).unwrap();
        eventually(|| fs::read_to_string(directory.path().join("log")).is_ok_and(|text| text == "up\n"))
            .await;
        let group = process.identity.pid;
        process.stop(Duration::from_millis(10)).await;
        assert!(!allow_blocking(|| group_has_members(group)));
    }

    #[tokio::test]
    async fn an_adopted_process_is_watched_like_a_child_and_a_dead_one_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let process = start(&shell(directory.path(), "exec sleep 1000")).unwrap();
        let again = Process::adopt(process.identity.clone()).unwrap();
        process.kill().await;
        again.ended().await;
        assert!(Process::adopt(again.identity.clone()).is_err());
    }
}
