//! Runs the package installer: as a user of its own or confined by the kernel, within limits, with the network but
//! without anything of the control plane or of an environment.
//!
//! It runs no code of authors: it reads their requirements, and downloads and unpacks wheels. Still, what it reads comes
//! from outside.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::Secret;
use crate::blocking::{assert_may_block, blocking};
use crate::local::isolation::Isolation;
use crate::local::settings::Variables;
use crate::local::trees::Walk;

/// How long a job may take.
const LONGEST: Duration = Duration::from_mins(30);
/// How much disk a job may use, with everything that it downloads.
pub(super) const MOST_BYTES: u64 = 8 << 30;
/// How often its disk usage is checked.
const MEASURED_EVERY: Duration = Duration::from_secs(1);
/// How much memory a process of it may use, in KiB.
const MOST_MEMORY: u64 = 4 << 20;
/// How much of the end of its output is kept.
const KEPT_OUTPUT: usize = 16 * 1024;

/// Variables of the control plane that the installer gets: the operator's indexes, proxies and certificates.
const PASSED_ON: &[&str] = &[
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "UV_DEFAULT_INDEX",
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_HTTP_TIMEOUT",
    "UV_INDEX",
    "UV_INDEX_STRATEGY",
    "UV_INDEX_URL",
    "UV_INSECURE_HOST",
    "UV_NATIVE_TLS",
    "UV_SYSTEM_CERTS",
    "all_proxy",
    "http_proxy",
    "https_proxy",
    "no_proxy",
];
/// Credentials of named indexes.
const CREDENTIALS: &str = "UV_INDEX_";

/// Why a job failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum JobError {
    #[error("it cannot be run: {0}")]
    NotRun(#[from] io::Error),
    #[error("it took more than {} minutes", LONGEST.as_secs() / 60)]
    TooLong,
    #[error("it used more than {} GiB of disk", MOST_BYTES >> 30)]
    TooLarge,
    #[error("the disk is full")]
    DiskFull,
    /// It failed, with the end of its output.
    #[error("{said} ({status})")]
    Failed { said: String, status: ExitStatus },
}

/// The installer in a directory of its own.
pub(super) struct Job<'a> {
    pub(super) isolation: &'a Isolation,
    pub(super) directory: &'a Path,
    /// How many bytes to keep free on the disk.
    pub(super) reserve: u64,
}

impl Job<'_> {
    /// Runs a command to completion. Dropping the future ends it.
    pub(super) async fn run(&self, arguments: &[OsString]) -> Result<(), JobError> {
        let mut command = self.isolation.command(&limited(arguments), &variables(self.directory));
        command.current_dir(self.directory).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.process_group(0);
        let mut command = tokio::process::Command::from(command);
        let mut child = command.kill_on_drop(true).spawn()?;
        let group = Group(child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())));
        let mut output = child.stderr.take().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
        let deadline = Instant::now() + LONGEST;
        let mut measuring = interval(MEASURED_EVERY);
        measuring.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut tail, mut buffer, mut is_open) = (Tail::default(), [0; 4096], true);
        let status = loop {
            tokio::select! {
                read = output.read(&mut buffer), if is_open => match read? {
                    0 => is_open = false,
                    count => tail.add(&buffer[..count]),
                },
                status = child.wait() => break status?,
                _ = measuring.tick() => self.check_disk().await?,
                () = sleep_until(deadline) => return Err(JobError::TooLong),
            }
        };
        // Nothing of it holds the output open any more.
        drop(group);
        while is_open {
            match output.read(&mut buffer).await? {
                0 => is_open = false,
                count => tail.add(&buffer[..count]),
            }
        }
        self.check_disk().await?;
        if status.success() { Ok(()) } else { Err(JobError::Failed { said: tail.text(), status }) }
    }

    async fn check_disk(&self) -> Result<(), JobError> {
        let (directory, reserve) = (self.directory.to_owned(), self.reserve);
        blocking(move || {
            let disk = rustix::fs::statvfs(&directory).map_err(io::Error::from)?;
            if disk.f_bavail.saturating_mul(disk.f_frsize) < reserve {
                return Err(JobError::DiskFull);
            }
            if size(&directory)? > MOST_BYTES { Err(JobError::TooLarge) } else { Ok(()) }
        })
        .await
    }
}

/// The disk usage of everything in a directory, in bytes.
fn size(directory: &Path) -> io::Result<u64> {
    assert_may_block();
    let mut bytes = 0_u64;
    Walk::new(directory)?.advance(usize::MAX, |entry| {
        bytes += u64::try_from(entry.stat.st_blocks).unwrap_or_default() * 512;
        Ok(())
    })?;
    Ok(bytes)
}

/// A command line with limits on memory, and on the size of a file in blocks of 512 bytes.
fn limited(arguments: &[OsString]) -> Vec<OsString> {
    let script =
        format!("ulimit -d {MOST_MEMORY}; ulimit -f {}; ulimit -c 0; exec \"$0\" \"$@\"", MOST_BYTES / 512);
    ["/bin/sh".into(), "-c".into(), script.into()].into_iter().chain(arguments.iter().cloned()).collect()
}

/// The variables of the installer, all of them.
fn variables(directory: &Path) -> Variables {
    let text = |path: &Path| Secret::new(path.display().to_string());
    let passed = std::env::vars()
        .filter(|(name, _)| PASSED_ON.contains(&name.as_str()) || name.starts_with(CREDENTIALS));
    let mut all: Variables = passed.map(|(name, value)| (name, Secret::new(value))).collect();
    for (name, value) in [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("LANG", "C.UTF-8"),
        ("NO_COLOR", "1"),
        ("UV_NO_PROGRESS", "1"),
        ("UV_PYTHON_DOWNLOADS", "never"),
        ("UV_LINK_MODE", "copy"),
    ] {
        all.insert(name.into(), Secret::new(value.into()));
    }
    all.insert("HOME".into(), text(directory));
    all.insert("TMPDIR".into(), text(&directory.join("tmp")));
    all.insert("UV_CACHE_DIR".into(), text(&directory.join("cache")));
    all
}

/// The files that the operator's variables name, which the installer has to read.
pub(super) fn certificates() -> Vec<std::path::PathBuf> {
    ["SSL_CERT_DIR", "SSL_CERT_FILE", "UV_FIND_LINKS"]
        .iter()
        .filter_map(std::env::var_os)
        .map(Into::into)
        .collect()
}

/// A process group that is killed when it is dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The end of an output.
#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let over = self.0.len().saturating_sub(KEPT_OUTPUT);
        self.0.drain(..over);
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(script: &str) -> Result<(), JobError> {
        let directory = tempfile::tempdir().unwrap();
        let job = Job { isolation: &Isolation::NONE, directory: directory.path(), reserve: 0 };
        job.run(&["/bin/sh".into(), "-c".into(), script.into()]).await
    }

    #[tokio::test]
    async fn a_job_fails_with_the_end_of_what_it_said() {
        run("true").await.unwrap();
        let script = "seq 100000 >&2; echo the-end >&2; exit 3";
        let Err(JobError::Failed { said, status }) = run(script).await else { panic!("it succeeded") };
        assert!(said.len() <= KEPT_OUTPUT && said.ends_with("100000\nthe-end\n"));
        assert_eq!(status.code(), Some(3));
    }

    #[tokio::test]
    async fn what_a_job_leaves_running_is_ended_with_it() {
        // It would hold the output open for ever.
        run("sleep 100000 & exit 0").await.unwrap();
    }

    #[tokio::test]
    async fn a_job_gets_no_variables_of_the_control_plane_except_those_of_the_operators_indexes() {
        let said = match run("env | cut -d= -f1 | sort >&2; exit 1").await {
            Err(JobError::Failed { said, .. }) => said,
            other => panic!("{other:?}"),
        };
        let ours = ["HOME", "LANG", "NO_COLOR", "PATH", "PWD", "TMPDIR", "_", "OLDPWD", "SHLVL"];
        for name in said.lines() {
            let is_known = ours.contains(&name) || name.starts_with("UV_") || PASSED_ON.contains(&name);
            assert!(is_known, "{name}");
        }
    }
}
