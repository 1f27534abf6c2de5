//! What this machine offers for running environments: interpreters, the program that installs packages, isolation and
//! networks.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use podium_domain::Reason;
use tokio::process::Command;

use super::command::searched;
use super::isolation::{FileAccess, HostIsolation, Mode};
use super::layout::Layout;
use super::network::{self, Network};
use super::options::{AirflowDatabase, Options};
use crate::blocking::blocking;

#[derive(Debug)]
pub(super) struct Host {
    /// The interpreter for all runtimes.
    pub(super) python: Python,
    /// All interpreters found: any of them can download the installer.
    pub(super) pythons: Vec<Python>,
    /// What every environment reads: runtimes, the support modules, and the interpreter's library.
    pub(super) read: Vec<PathBuf>,
    /// How environments are isolated from each other.
    pub(super) isolation: HostIsolation,
    pub(super) network: Network,
    /// Whether their connections to the private database server are bounded together only.
    pub(super) shares_connections: bool,
}

/// What is said if one environment can take the connections of all.
const SHARED_CONNECTIONS: &str = ". Databases: one environment can take all connections of the private database server, because only environments with users of their own have a relay to it; --airflow-database names another server";

impl Host {
    /// A description for the operator at start-up.
    pub(super) fn describe(&self) -> String {
        describe(&self.isolation.describe(), &self.network, self.shares_connections)
    }

    /// Detects them; an error says what to install.
    pub(super) async fn find(options: &Options, layout: &Layout) -> Result<Self, Reason> {
        let pythons = find_pythons(options.python.as_deref()).await?;
        let read = |python: &Python| vec![layout.runtimes(), layout.support(), python.home.clone()];
        let isolation = |python: &Python| {
            let access = FileAccess { read: read(python), ..FileAccess::default() };
            let (path, options, first) = (python.path.clone(), options.clone(), layout.users.start);
            blocking(move || HostIsolation::detect(&path, &access, &options, first))
        };
        // The first one that gives the best isolation.
        let mut best = None;
        for python in &pythons {
            let isolation = isolation(python)
                .await
                .map_err(|error| Reason::new("environment isolation could not be tested", error))?;
            let is_best = matches!(isolation.mode, Mode::Users { .. });
            if is_best || best.is_none() {
                best = Some((python.clone(), isolation));
            }
            if is_best {
                break;
            }
        }
        let (python, isolation) = best.ok_or(Reason::from("no Python was found"))?;
        let read = read(&python);
        let network = network::find(options, layout, &isolation, &python.path, &read)
            .await
            .map_err(|error| Reason::new("the network for environments cannot be set up", error))?;
        let shares_connections = shares_connections(&isolation.mode, &options.database);
        Ok(Self { isolation, network, read, pythons, python, shares_connections })
    }
}

fn describe(isolation: &str, network: &Network, shares_connections: bool) -> String {
    let network = match network {
        Network::Own(_) => "each has its own network".to_owned(),
        Network::Filtered(_, why) => format!(
            "they share this machine's network, and a packet filter keeps them from reaching each other on its loopback interface: {why}"
        ),
        Network::Shared(None) => "they share this machine's network".to_owned(),
        Network::Shared(Some(why)) => format!(
            "they share this machine's network, so each can connect to anything that listens on its loopback interface: {why}"
        ),
    };
    let databases = if shares_connections { SHARED_CONNECTIONS } else { "" };
    format!("{isolation}. Networks: {network}{databases}")
}

/// Whether one environment can take the connections of all: whoever has the server's user can pass by a relay.
fn shares_connections(mode: &Mode, database: &AirflowDatabase) -> bool {
    *database == AirflowDatabase::Private && !matches!(mode, Mode::Users { .. })
}

/// Names of interpreters, starting with those that most packages are built for.
const NAMES: &[&str] = &["python3.12", "python3.11", "python3.13", "python3.10", "python3"];

/// Directories to search before `PATH`.
const PLACES: &[&str] = &["/usr/local/bin", "/usr/bin"];

/// The advice if there is none.
const WANTED: &str = "running deployments on this machine needs Python 3.10 to 3.13 with pip: install it (on Debian and \
                      Ubuntu: apt install python3 python3-pip), or name one with --python, or use --data-plane simulated";

/// Prints version, path and prefix of an interpreter.
const QUESTION: &str =
    "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.executable); print(sys.base_prefix)";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Python {
    pub(super) path: PathBuf,
    pub(super) version: (u32, u32),
    /// Its prefix, which contains its library.
    pub(super) home: PathBuf,
}

/// The interpreters of this machine that can run Airflow; only the requested one, if there is one.
async fn find_pythons(asked: Option<&Path>) -> Result<Vec<Python>, Reason> {
    let places = PLACES.iter().map(PathBuf::from).chain(searched());
    let candidates: Vec<PathBuf> = match asked {
        Some(path) => vec![path.to_owned()],
        None => places.flat_map(|place| NAMES.iter().map(move |name| place.join(name))).collect(),
    };
    let mut found: Vec<Python> = Vec::new();
    for candidate in candidates {
        if let Some(python) = ask(&candidate).await
            && !found.contains(&python)
        {
            found.push(python);
        }
    }
    if found.is_empty() { Err(WANTED.into()) } else { Ok(found) }
}

/// The requested interpreter cannot run Airflow.
#[derive(Debug, thiserror::Error)]
#[error("--python {} is not a usable Python 3.10 to 3.13: name another interpreter, or omit --python to have one found", .0.display())]
pub struct NoPython(PathBuf);

/// Checks that the requested interpreter can run Airflow.
pub async fn check_python(path: &Path) -> Result<(), NoPython> {
    ask(path).await.map(drop).ok_or_else(|| NoPython(path.to_owned()))
}

async fn ask(candidate: &Path) -> Option<Python> {
    let output =
        Command::new(candidate).args(["-I", "-c", QUESTION]).stdin(Stdio::null()).output().await.ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    let mut lines = text.lines();
    let (major, minor) = lines.next()?.split_once('.')?;
    let version = (major.parse().ok()?, minor.parse().ok()?);
    let path = PathBuf::from(lines.next()?);
    let home = lines.next().map(PathBuf::from).or_else(|| path.parent().map(Path::to_owned))?;
    ((3, 10)..=(3, 13)).contains(&version).then_some(Python { path, version, home })
}

/// The program that installs packages (uv); it is installed below `tools` if the machine has none.
pub(super) async fn installer(tools: &Path, pythons: &[Python]) -> Result<PathBuf, Reason> {
    let own = tools.join("uv/bin/uv");
    let of_machine = searched().map(|place| place.join("uv"));
    for known in std::iter::once(own.clone()).chain(of_machine) {
        if answers(&known, ["--version"]).await {
            return Ok(known);
        }
    }
    let mut why = Reason::from(WANTED);
    for python in pythons {
        if !answers(&python.path, ["-m", "pip", "--version"]).await {
            continue;
        }
        let target = tools.join("uv");
        let installed = Command::new(&python.path)
            .args("-m pip install --quiet --no-input --disable-pip-version-check --target".split(' '))
            .arg(&target)
            .arg("uv")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|error| Reason::of_io("pip cannot be run", &error))?;
        if installed.status.success() && answers(&own, ["--version"]).await {
            return Ok(own);
        }
        let said = String::from_utf8_lossy(&installed.stderr);
        let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
        why = Reason::new("the installer (uv) cannot be downloaded from PyPI", last.trim());
    }
    Err(why)
}

async fn answers<const N: usize>(program: &Path, arguments: [&str; N]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().await.is_ok_and(|status| status.success())
}

/// A command whose files are world-readable, whatever this process's umask is.
pub(super) fn readable_by_all(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "umask 022; exec \"$0\" \"$@\""]).arg(program);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_says_if_one_environment_can_take_the_connections_of_all() {
        let users = Mode::Users { first: 1 };
        assert!(!shares_connections(&users, &AirflowDatabase::Private));
        assert!(!shares_connections(&Mode::Landlock, &AirflowDatabase::Sqlite));
        assert!(shares_connections(&Mode::Landlock, &AirflowDatabase::Private));
        assert!(shares_connections(&Mode::Trusted("it is old".into()), &AirflowDatabase::Private));
        let said = describe("environments are isolated", &Network::Shared(None), true);
        assert!(said.contains("network. Databases: one environment can take all connections"), "{said}");
        let said = describe("environments are isolated", &Network::Shared(None), false);
        assert_eq!(said, "environments are isolated. Networks: they share this machine's network");
    }

    #[tokio::test]
    async fn an_unusable_interpreter_is_rejected_with_advice() {
        let none = find_pythons(Some(Path::new("/bin/false"))).await;
        assert_eq!(*none.unwrap_err().user_text(), WANTED);
        assert!(WANTED.contains("apt install python3"));
    }
}
