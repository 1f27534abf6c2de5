//! The broker of an environment's own workers: a redis-server that listens on a socket in a file system and nowhere else.
//!
//! A port would be anybody's to speak to, and anybody's to take while the server is away. The socket is in a directory
//! of the environment's own, and asks for a password all the same.

use std::io;
use std::path::PathBuf;

use super::layout::Place;
use super::program::{Program, ReplaceStrategy};
use super::settings::{self, SettingsContext, Variables, percent_encoded};
use super::socket_directory;
use crate::Secret;

/// The longest path of a socket that a kernel takes, without its end.
const LONGEST: usize = 107;
const NAME: &str = "broker.sock";

/// Where a broker of an environment's own listens, and what it asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OwnBroker {
    pub(super) socket: PathBuf,
    pub(super) password: Secret,
}

impl OwnBroker {
    /// In a directory of the environment's own; in a shorter one where that has too long a name.
    pub(super) fn of(place: &Place, user: Option<u32>, password: Secret) -> io::Result<Self> {
        let directory = Self::directory(place, user)?.unwrap_or_else(|| place.temporary());
        Ok(Self { socket: directory.join(NAME), password })
    }

    /// Clears away what is not in the environment's own directory.
    pub(super) fn forget(place: &Place, user: Option<u32>) {
        if let Ok(Some(directory)) = Self::directory(place, user) {
            let _ = std::fs::remove_file(directory.join(NAME));
            let _ = std::fs::remove_dir(directory);
        }
    }

    /// The directory that its server has to be able to write to beside the environment's own.
    pub(super) fn directory(place: &Place, user: Option<u32>) -> io::Result<Option<PathBuf>> {
        if is_short(place) { Ok(None) } else { socket_directory::of(&place.root, user).map(Some) }
    }

    /// What Celery is told.
    pub(super) fn url(&self) -> Secret {
        let path = self.socket.display().to_string();
        let path: Vec<String> = path.split('/').map(percent_encoded).collect();
        Secret::new(format!("redis+socket://:{}@{}", self.password.reveal(), path.join("/")))
    }

    /// The server. Its password is in no file and not on the command line.
    pub(super) fn program(&self, context: &SettingsContext<'_>, program: PathBuf) -> Program {
        let mut variables = Variables::new();
        let (name, value) = settings::marker(context.environment.id);
        variables.insert(name, Secret::new(value));
        variables.insert("PODIUM_BROKER_PASSWORD".into(), self.password.clone());
        let script = "printf 'port 0\\nunixsocket \"%s\"\\nunixsocketperm 700\\nsave \"\"\\nappendonly no\\n\
                      requirepass %s\\n' \"$1\" \"$PODIUM_BROKER_PASSWORD\" | exec \"$0\" -";
        Program {
            name: "broker".into(),
            arguments: vec![
                "/bin/sh".into(),
                "-c".into(),
                script.into(),
                program.into_os_string(),
                self.socket.clone().into_os_string(),
            ],
            variables,
            directory: context.place.temporary(),
            log: context.place.component_log("broker"),
            strategy: ReplaceStrategy::Restart,
        }
    }
}

fn is_short(place: &Place) -> bool {
    place.temporary().join(NAME).as_os_str().len() <= LONGEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_the_environments_own_and_never_too_long() {
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
