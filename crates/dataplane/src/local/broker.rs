//! The broker of an environment's workers: a redis-server that listens on a Unix socket only.
//!
//! Anyone could connect to a port, or take it while the server is down. The socket is in the environment's own
//! directory, and still requires a password.

use std::io;
use std::path::PathBuf;

use podium_airflow::database_url::percent_encoded;
use podium_airflow::settings::{Variables, marker};
use podium_api::DeploymentId;

use super::layout::Place;
use super::program::{Program, ReplaceStrategy};
use super::sockets;
use crate::Secret;

pub(super) const BROKER: &str = "broker";
/// The longest socket path that the kernel accepts, without the terminating zero byte.
const LONGEST: usize = 107;
const NAME: &str = "broker.sock";

/// Socket and password of an environment's broker.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OwnBroker {
    pub(super) socket: PathBuf,
    pub(super) password: Secret,
}

impl OwnBroker {
    pub(super) fn of(place: &Place, user: Option<u32>, password: Secret) -> io::Result<Self> {
        Ok(Self { socket: Self::socket(place, user)?, password })
    }

    /// Its socket: in the environment's own directory, or in a shorter one if that path is too long.
    pub(super) fn socket(place: &Place, user: Option<u32>) -> io::Result<PathBuf> {
        let directory = Self::directory(place, user)?.unwrap_or_else(|| place.temporary());
        Ok(directory.join(NAME))
    }

    /// Removes the socket directory if it is outside the environment's own directory.
    pub(super) fn forget(place: &Place, user: Option<u32>) {
        if let Ok(Some(directory)) = Self::directory(place, user) {
            let _ = std::fs::remove_file(directory.join(NAME));
            let _ = std::fs::remove_dir(directory);
        }
    }

    /// The directory outside the environment's own that its server must be able to write to.
    pub(super) fn directory(place: &Place, user: Option<u32>) -> io::Result<Option<PathBuf>> {
        if place.temporary().join(NAME).as_os_str().len() <= LONGEST {
            return Ok(None);
        }
        sockets::directory_of(&place.root, user, sockets::EVERYBODY).map(Some)
    }

    pub(super) fn url(&self) -> Secret {
        let path = self.socket.display().to_string();
        let path: Vec<String> = path.split('/').map(percent_encoded).collect();
        Secret::new(format!("redis+socket://:{}@{}", self.password.reveal(), path.join("/")))
    }

    /// The server. Its password is neither in a file nor on the command line.
    pub(super) fn program(&self, id: DeploymentId, place: &Place, program: PathBuf) -> Program {
        let mut variables = Variables::new();
        let (name, value) = marker(id);
        variables.insert(name, Secret::new(value));
        variables.insert("PODIUM_BROKER_PASSWORD".into(), self.password.clone());
        let script = "printf 'port 0\\nunixsocket \"%s\"\\nunixsocketperm 700\\nsave \"\"\\nappendonly no\\n\
                      requirepass %s\\n' \"$1\" \"$PODIUM_BROKER_PASSWORD\" | exec \"$0\" -";
        Program {
            name: BROKER.into(),
            arguments: vec![
                "/bin/sh".into(),
                "-c".into(),
                script.into(),
                program.into_os_string(),
                self.socket.clone().into_os_string(),
            ],
            variables,
            directory: place.temporary(),
            log: place.component_log(BROKER),
            strategy: ReplaceStrategy::Restart,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_path_is_the_environments_own_and_never_too_long() {
        let directory = tempfile::tempdir().unwrap();
        let broker =
            |root: PathBuf| OwnBroker::of(&Place { root }, None, Secret::new("password".into())).unwrap();
        let near = directory.path().join("near");
        assert_eq!(broker(near.clone()).socket, near.join("tmp").join(NAME));
        let far = directory.path().join("far/".repeat(30));
        let socket = broker(far.clone()).socket;
        assert!(socket.as_os_str().len() < 60 && socket.parent().unwrap().is_dir(), "{}", socket.display());
        assert_eq!(broker(far.clone()).socket, socket);
        OwnBroker::forget(&Place { root: far }, None);
        assert!(!socket.parent().unwrap().exists());
    }
}
