//! A private PostgreSQL server for one run of the tests or the benchmark.
//!
//! It listens on a free port of the loopback address and keeps its data in a directory that goes away with it. For the
//! tests it trades durability for speed. PostgreSQL refuses to run as root, so root runs it as another user.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::outcome::{Outcome, While};
use crate::server_process::{self, Account, ServerProcess};
use crate::system;
use crate::workspace::{must, scratch};

/// The variable that tells the tests where their server is. If it is set already, that server is used.
pub(crate) const VARIABLE: &str = "PODIUM_TEST_POSTGRES";

const SETTINGS: &[&str] = &["listen_addresses=127.0.0.1", "max_connections=400", "log_min_messages=log"];

/// What the tests can do without.
const HASTE: &[&str] = &["fsync=off", "synchronous_commit=off", "full_page_writes=off"];

/// A running server; it stops when this goes away.
pub(crate) struct Postgres {
    pub(crate) url: String,
    process: ServerProcess,
}

/// Runs a command with a PostgreSQL server: the one that the environment names, or a private one.
pub(crate) fn must_with_postgres(command: &mut Command) -> Outcome {
    if std::env::var_os(VARIABLE).is_some() {
        return must(command);
    }
    let postgres = Postgres::start(&scratch()?)?;
    must(command.env(VARIABLE, &postgres.url))
}

impl Postgres {
    /// Makes a new database cluster and starts its server, which forgets everything when the machine fails.
    pub(crate) fn start(scratch: &Path) -> Outcome<Self> {
        Self::start_with(scratch, HASTE)
    }

    /// The same, with a server that loses nothing, as an operator's does.
    pub(crate) fn start_durable(scratch: &Path) -> Outcome<Self> {
        Self::start_with(scratch, &[])
    }

    /// The process of the server; those of its connections are its children.
    pub(crate) fn process(&self) -> Outcome<u32> {
        self.process.server()
    }

    fn start_with(scratch: &Path, settings: &[&str]) -> Outcome<Self> {
        server_process::sweep();
        let programs = programs()?;
        let account = if system::is_root() {
            Some(
                system::account(&["postgres", "nobody"])
                    .ok_or("no user to run PostgreSQL as; root cannot")?,
            )
        } else {
            None
        };
        let mut attempts = 3;
        loop {
            attempts -= 1;
            match attempt(&programs, account, scratch, settings) {
                Err(_) if attempts > 0 => {} // Most likely somebody took the port in between.
                result => return result,
            }
        }
    }
}

/// The directory of PostgreSQL's server programs; installs them if there are none.
fn programs() -> Outcome<PathBuf> {
    if let Some(found) = find() {
        return Ok(found);
    }
    system::install("PostgreSQL", &["postgresql"])?;
    find().ok_or("PostgreSQL was installed, but its program initdb is nowhere to be found".into())
}

fn find() -> Option<PathBuf> {
    let children = |parent: &str| {
        let mut found: Vec<PathBuf> =
            fs::read_dir(parent).into_iter().flatten().flatten().map(|e| e.path()).collect();
        found.sort_by_key(|path| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok()));
        found.into_iter().rev().map(|path| path.join("bin")).collect::<Vec<_>>()
    };
    let mut places = children("/usr/lib/postgresql");
    places.extend(["/usr/local/bin".into(), "/usr/local/pgsql/bin".into()]);
    let others = ["/opt/homebrew/opt", "/usr/local/opt"].into_iter().flat_map(children);
    places.extend(others.filter(|place| place.to_string_lossy().contains("postgresql")));
    system::directory_of("initdb", &places)
}

fn attempt(
    programs: &Path,
    account: Option<Account>,
    scratch: &Path,
    settings: &[&str],
) -> Outcome<Postgres> {
    let directory = server_process::directory("postgres", account)?;
    let data = directory.join("data");
    if let Err(failure) = initdb(programs, account, &directory, &data) {
        let _ = fs::remove_dir_all(&directory);
        return Err(failure);
    }
    let port = system::free_port()?;
    let server = programs.join("postgres").display().to_string();
    let (shown_data, shown_port) = (data.display().to_string(), port.to_string());
    let socket = format!("unix_socket_directories={}", directory.display());
    let mut line = vec![server.as_str(), "-D", &shown_data, "-p", &shown_port, "-c", &socket];
    line.extend(SETTINGS.iter().chain(settings).flat_map(|setting| ["-c", setting]));
    let mut process = ServerProcess::start(&line, &directory, account, scratch.join("postgres.log"), "INT")?;
    process.wait_until(Duration::from_secs(60), || is_ready(&data)).doing("PostgreSQL")?;
    Ok(Postgres { url: format!("postgres://podium@127.0.0.1:{port}/postgres"), process })
}

/// Makes the cluster. Its default collation is linguistic where the build has one, which is what an operator's server
/// is likely to have: text that must sort bytewise has to say so in the schema, and a test notices if it does not.
fn initdb(programs: &Path, account: Option<Account>, directory: &Path, data: &Path) -> Outcome {
    let program = programs.join("initdb");
    let help = Command::new(&program).arg("--help").output().doing("initdb")?;
    let mut command = Command::new(&program);
    command.arg("-D").arg(data).current_dir(directory);
    command.args(["-U", "podium", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
    if String::from_utf8_lossy(&help.stdout).contains("--icu-locale") {
        command.args(["--locale-provider=icu", "--icu-locale=en"]);
    }
    if let Some((user, group)) = account {
        command.uid(user).gid(group);
    }
    let output = command.output().doing("initdb")?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("initdb failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// Whether the server says in its pid file that it takes connections; the eighth line is its state.
fn is_ready(data: &Path) -> bool {
    let file = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    file.lines().nth(7).is_some_and(|state| state.trim() == "ready")
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn starts_and_leaves_nothing_behind() {
        if find().is_none() {
            return; // `cargo xtask test` installs it first; a bare `cargo test` does without.
        }
        let scratch = server_process::directory("log", None).unwrap();
        let server = Postgres::start(&scratch).unwrap();
        let address = server.url.split(['@', '/']).nth(3).unwrap().to_owned();
        TcpStream::connect(&address).unwrap();
        drop(server);
        assert!(TcpStream::connect(&address).is_err());
        assert!(!scratch.with_file_name(format!("podium-test-{}-postgres", std::process::id())).exists());
        fs::remove_dir_all(scratch).unwrap();
    }
}
