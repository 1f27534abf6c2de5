//! Server processes that a command needs for a while, and that must not outlive it.
//!
//! Each runs under a small shell that holds the reading end of a pipe. When this program closes the other end, because
//! it is done, was interrupted or was killed, the shell stops the server and removes its directory. It runs in its own
//! process group, so that Ctrl-C in a terminal does not reach it first.
//!
//! Only killing that shell too leaves something behind; [`sweep`] removes it at the next start.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::outcome::{Outcome, While};
use crate::probe::status;
use crate::processes;
use crate::system::free_port;
use crate::workspace::{must, target};

/// The directory for servers. Short, because a Unix socket's path may have about a hundred characters.
const BASE: &str = "/tmp";
const PREFIX: &str = "podium-test-";

/// `$0` is the directory, `$1` the signal, the rest the server. A server that ignores
/// the signal is killed after half a minute, counted in seconds so that no long sleep is left over.
const SCRIPT: &str = r#"
directory=$0 signal=$1; shift
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
(
    read -r _
    kill -s "$signal" $server
    seconds=30
    while [ $seconds -gt 0 ] && kill -s 0 $server; do seconds=$((seconds - 1)); sleep 1; done
    kill -s KILL $server
) <&3 >/dev/null 2>&1 &
reader=$!
wait $server
code=$?
kill $reader 2>/dev/null
rm -rf -- "$directory"
exit $code
"#;

/// Another account to run as: user and group id.
pub(crate) type Account = (u32, u32);

/// A directory for a server, named after this process.
pub(crate) fn directory(name: &str, owner: Option<Account>) -> Outcome<PathBuf> {
    let path = Path::new(BASE).join(format!("{PREFIX}{}-{name}", std::process::id()));
    let doing = format!("making {}", path.display());
    fs::create_dir_all(&path).doing(&doing)?;
    if let Some((user, group)) = owner {
        chown(&path, Some(user), Some(group)).doing(&doing)?;
    }
    Ok(path)
}

/// The command line of a server with a simulated data plane, and more that it is told.
pub(crate) fn podium(program: &str, port: u16, more: &str) -> Vec<String> {
    let told = format!("serve --listen 127.0.0.1:{port} --data-plane simulated {more}");
    [program].into_iter().chain(told.split_whitespace()).map(str::to_owned).collect()
}

/// The program that was built for developers, served with an empty data directory.
pub(crate) struct Served {
    process: ServerProcess,
    pub(crate) port: u16,
    pub(crate) token: String,
}

impl Served {
    /// Starts it, with more that it is told, and waits until it is ready.
    pub(crate) fn start(name: &str, scratch: &Path, more: &str) -> Outcome<Self> {
        let program = target()?.join("debug/podium").display().to_string();
        let (directory, port) = (directory(name, None)?, free_port()?);
        let data = directory.join("data");
        let line = podium(&program, port, &format!("--data-dir {} {more}", data.display()));
        let log = scratch.join(format!("{name}.log"));
        let mut process = ServerProcess::start(&line, &directory, None, log, "TERM")?;
        process
            .wait_until(Duration::from_secs(30), || status(port, "/readyz", "").is_ok_and(|s| s == 200))?;
        let token = fs::read_to_string(data.join("owner-token")).doing("reading the owner's token")?;
        Ok(Self { process, port, token: token.trim().to_owned() })
    }

    /// Runs something against it; a failure shows the end of its log.
    pub(crate) fn must(&self, command: &mut Command) -> Outcome {
        must(command).map_err(|failure| format!("{failure}\n{}", self.process.log_tail()))
    }

    /// Stops it, which it has to do in good order.
    pub(crate) fn stop(self) -> Outcome {
        let ended = self.process.stop()?;
        if ended.success() {
            Ok(())
        } else {
            Err(format!("the server did not stop cleanly on SIGTERM: {ended}"))
        }
    }
}

/// Removes the remains of earlier runs that were killed together with their shells.
pub(crate) fn sweep() {
    for entry in fs::read_dir(BASE).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse().ok());
        let Some(owner) = owner else { continue };
        if processes::command_line(owner).is_some_and(|line| line.contains("xtask")) {
            continue;
        }
        if let Some(postmaster) = postmaster(&entry.path()) {
            processes::signal(postmaster, "QUIT");
        }
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// The PostgreSQL server that still runs in a directory.
fn postmaster(directory: &Path) -> Option<u32> {
    let data = directory.join("data");
    let pid = fs::read_to_string(data.join("postmaster.pid")).ok()?.lines().next()?.parse().ok()?;
    processes::command_line(pid)?.contains(data.to_str()?).then_some(pid)
}

pub(crate) struct ServerProcess {
    shell: Child,
    log: PathBuf,
}

impl ServerProcess {
    /// Starts a server in its directory. Its output goes to `log`; `signal` stops it.
    pub(crate) fn start(
        server: &[impl AsRef<OsStr>],
        directory: &Path,
        account: Option<Account>,
        log: PathBuf,
        signal: &str,
    ) -> Outcome<Self> {
        let output = File::create(&log).doing(&format!("making {}", log.display()))?;
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).arg(directory).arg(signal).args(server);
        command.current_dir(directory).process_group(0);
        command.stdin(Stdio::piped()).stdout(output.try_clone().doing("opening a log")?).stderr(output);
        if let Some((user, group)) = account {
            command.uid(user).gid(group);
        }
        Ok(Self { shell: command.spawn().doing("starting a shell")?, log })
    }

    /// Waits until `ready` returns true, the server exits or the time is over.
    pub(crate) fn wait_until(&mut self, time: Duration, ready: impl Fn() -> bool) -> Outcome {
        let start = Instant::now();
        while !ready() {
            if let Some(status) = self.shell.try_wait().doing("waiting for a server")? {
                return Err(format!("the server ended ({status}). {}", self.log_tail()));
            }
            if start.elapsed() > time {
                return Err(format!("the server was not ready after {time:?}. {}", self.log_tail()));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    pub(crate) fn server(&self) -> Outcome<u32> {
        let shell = self.shell.id();
        let children =
            fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).doing("reading /proc")?;
        children.split(' ').next().and_then(|pid| pid.parse().ok()).ok_or("the server has no process".into())
    }

    pub(crate) fn stop(mut self) -> Outcome<ExitStatus> {
        drop(self.shell.stdin.take());
        self.shell.wait().doing("waiting for a server to stop")
    }

    pub(crate) fn log_tail(&self) -> String {
        let text =
            fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let end = lines[lines.len().saturating_sub(20)..].join("\n  ");
        format!("The end of {}:\n  {end}", self.log.display())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start_script(name: &str, script: &str) -> (ServerProcess, PathBuf) {
        let directory = directory(name, None).unwrap();
        let log = std::env::temp_dir().join(format!("xtask-{}-{name}.log", std::process::id()));
        let process = ServerProcess::start(&["sh", "-c", script], &directory, None, log, "TERM").unwrap();
        (process, directory)
    }

    #[test]
    fn stops_the_server_and_removes_its_directory() {
        let (mut process, directory) =
            start_script("stops", "trap 'exit 7' TERM; echo up > ready; while :; do sleep 0.05; done");
        process.wait_until(Duration::from_secs(10), || directory.join("ready").exists()).unwrap();
        let log = process.log.clone();
        assert_eq!(process.stop().unwrap().code(), Some(7));
        assert!(!directory.exists());
        let _ = fs::remove_file(log);
    }

    #[test]
    fn says_why_a_server_ended_early() {
        let (mut process, directory) = start_script("ends", "echo no such disk >&2; exit 3");
        let message = process.wait_until(Duration::from_secs(10), || false).unwrap_err();
        assert!(message.contains("exit status: 3") && message.contains("no such disk"), "{message}");
        assert!(!directory.exists());
        let _ = fs::remove_file(&process.log);
    }

    #[test]
    fn sweeps_what_a_dead_run_left() {
        let left = Path::new(BASE).join(format!("{PREFIX}4194999-postgres"));
        fs::create_dir_all(&left).unwrap();
        sweep();
        assert!(!left.exists());
    }
}
