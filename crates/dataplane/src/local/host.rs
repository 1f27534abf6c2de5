//! What this machine offers for running environments: interpreters, isolation and networks.

use std::path::PathBuf;

use podium_domain::Reason;

use super::isolation::{FileAccess, HostIsolation, Mode};
use super::layout::Layout;
use super::network::{self, Network};
use super::options::{AirflowDatabase, Options};
use super::python::{Python, find};
use crate::blocking::blocking;

/// The capabilities of this machine.
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
    /// Which network they use.
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
        let pythons = find(options.python.as_deref()).await?;
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

/// One line.
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
}
