//! The way of an environment to its database on the plane's own server: a relay with a limit.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use podium_api::DeploymentId;

use super::database::MAX_CONNECTIONS_PER_ENVIRONMENT;
use super::layout::Place;
use super::network::{RELAY, of_environment};
use super::postgres::{Cluster, SOCKET};
use super::program::Program;
use super::socket_directory;

/// How many connections a relay passes on: a few more than the role may have, so that an environment with too many is told
/// so by the server.
const MOST: u32 = MAX_CONNECTIONS_PER_ENVIRONMENT + 10;

/// The relay of one environment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Relay {
    /// The directory of its socket.
    pub(super) directory: PathBuf,
    arguments: Vec<OsString>,
}

impl Relay {
    /// The relay for the user of an environment; `None` if that one reaches the server itself.
    pub(super) fn of(
        cluster: &Cluster,
        place: &Place,
        launcher: Option<&Path>,
        client: u32,
    ) -> io::Result<Option<Self>> {
        let (Some((user, sockets)), Some(launcher)) = (cluster.behind_relays()?, launcher) else {
            return Ok(None);
        };
        let directory = socket_directory::of(&place.database(), Some(user))?;
        let mut arguments: Vec<OsString> = vec![launcher.into(), "network".into(), "database".into()];
        let mut tell = |flag: &str, value: OsString| arguments.extend([flag.into(), value]);
        tell("--user", user.to_string().into());
        tell("--client", client.to_string().into());
        tell("--most", MOST.to_string().into());
        tell("--listen", directory.join(SOCKET).into());
        sockets.into_iter().for_each(|socket| tell("--to", socket.into()));
        Ok(Some(Self { directory, arguments }))
    }

    pub(super) fn program(&self, id: DeploymentId, place: &Place) -> Program {
        of_environment(id, RELAY.into(), self.arguments.clone(), place.component_log(RELAY))
    }

    /// Whether it accepts connections.
    pub(super) fn is_up(&self) -> bool {
        std::os::unix::net::UnixStream::connect(self.directory.join(SOCKET)).is_ok()
    }

    /// Removes its socket and the directory.
    pub(super) fn forget(&self) {
        let _ = std::fs::remove_file(self.directory.join(SOCKET));
        let _ = std::fs::remove_dir(&self.directory);
    }
}
