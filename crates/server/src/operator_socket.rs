//! The socket in the data directory, over which the operator of this machine calls the server without an account.
//!
//! A lock says which server it belongs to: a socket that a dead server left behind is replaced, one of a living server
//! never is. The socket and its key get their names only once they are private and in use.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use podium_app::App;
use podium_app::operator::Operator;
use podium_http::{OperatorGate, Server, serve_operator};
use podium_store::System;

use super::data_dir::{OPERATOR_KEY, SOCKET, replace_private};
use crate::failure::Failure;

const LOCK: &str = "podium.sock.lock";
const UNNAMED: &str = ".podium.sock";
/// How long to wait before the lock of another server is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// A socket that is this process's; its files go with it.
struct OwnSocket {
    directory: PathBuf,
    listener: Option<UnixListener>,
    key: String,
    _lock: File,
}

/// Serves the operator, if need be once another server on the same data directory has ended. Returns once the socket is
/// there, or another server has it.
pub(crate) async fn start(
    server: Server,
    app: App,
    system: &System,
    directory: &Path,
) -> Option<tokio::task::JoinHandle<()>> {
    let operator = Operator::new(app.clone(), system);
    let directory = directory.to_owned();
    let first = attempt(&app, &directory).await;
    match first {
        Err(error) => {
            tracing::warn!(%error, "the operator's socket cannot be used; the server runs without it");
            None
        }
        Ok(first) => Some(tokio::spawn(async move {
            let (mut found, mut stopping, mut has_warned) = (first, server.stopping(), false);
            while found.is_none() {
                tokio::select! {
                    _ = stopping.wait_for(|stops| *stops) => return,
                    () = tokio::time::sleep(PAUSE) => {}
                }
                found = attempt(&app, &directory).await.unwrap_or_else(|error| {
                    if !has_warned {
                        tracing::warn!(%error, "the operator's socket cannot be taken over yet");
                    }
                    has_warned = true;
                    None
                });
            }
            if let Some(socket) = found {
                socket.serve(server, operator).await;
            }
        })),
    }
}

/// Whether a server runs on a data directory.
pub(crate) fn is_served(directory: &Path) -> bool {
    File::open(directory.join(LOCK))
        .is_ok_and(|lock| matches!(lock.try_lock(), Err(TryLockError::WouldBlock)))
}

async fn attempt(app: &App, directory: &Path) -> Result<Option<OwnSocket>, Failure> {
    let (key, directory) = (app.world.secret(), directory.to_owned());
    let opened = tokio::task::spawn_blocking(move || OwnSocket::open(directory, key)).await;
    opened.map_err(|error| error.to_string())?
}

impl OwnSocket {
    /// Takes over the socket of a data directory; none while another server has it.
    fn open(directory: PathBuf, key: String) -> Result<Option<Self>, Failure> {
        let failed = |error: std::io::Error| format!("{}: {error}", directory.join(SOCKET).display());
        let lock = File::create(directory.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(failed(error).into()),
        }
        let unnamed = directory.join(UNNAMED);
        match fs::remove_file(&unnamed) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error).into()),
            _ => {}
        }
        let listener = UnixListener::bind(&unnamed).map_err(failed)?;
        fs::set_permissions(&unnamed, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        replace_private(&directory.join(OPERATOR_KEY), &key)?;
        fs::rename(&unnamed, directory.join(SOCKET)).map_err(failed)?;
        Ok(Some(Self { directory, listener: Some(listener), key, _lock: lock }))
    }

    async fn serve(mut self, server: Server, operator: Operator) {
        let Some(listener) = self.listener.take() else { return };
        let gate = OperatorGate::new(operator, &self.key, rustix::process::geteuid().as_raw());
        match tokio::net::UnixListener::from_std(listener) {
            Ok(listener) => serve_operator(server, listener, gate).await,
            Err(error) => tracing::warn!(%error, "the operator's socket cannot be used"),
        }
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        for name in [SOCKET, OPERATOR_KEY] {
            let _ = fs::remove_file(self.directory.join(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(directory: &Path, key: &str) -> Option<OwnSocket> {
        OwnSocket::open(directory.to_owned(), key.into()).unwrap()
    }

    #[test]
    fn a_socket_is_private_and_goes_with_its_server() {
        let directory = tempfile::tempdir().unwrap();
        let socket = open(directory.path(), "one").unwrap();
        for name in [SOCKET, OPERATOR_KEY] {
            let mode = fs::metadata(directory.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name}");
        }
        drop(socket);
        assert!(!directory.path().join(SOCKET).exists() && !directory.path().join(OPERATOR_KEY).exists());
    }

    #[test]
    fn a_stale_socket_is_replaced_and_a_living_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        drop(UnixListener::bind(directory.path().join(SOCKET)).unwrap());
        drop(UnixListener::bind(directory.path().join(UNNAMED)).unwrap());
        let first = open(directory.path(), "one").unwrap();
        assert!(open(directory.path(), "two").is_none());
        assert_eq!(fs::read_to_string(directory.path().join(OPERATOR_KEY)).unwrap(), "one");
        std::os::unix::net::UnixStream::connect(directory.path().join(SOCKET)).unwrap();
        drop(first);
        assert!(open(directory.path(), "two").is_some());
    }

    #[test]
    fn a_path_that_is_too_long_is_an_error_and_no_panic() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("x".repeat(200));
        fs::create_dir(&deep).unwrap();
        assert!(OwnSocket::open(deep, "one".into()).is_err());
    }
}
