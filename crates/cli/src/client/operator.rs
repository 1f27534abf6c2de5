//! The socket of a server on this machine: whoever may open it, and read the key next to it, is the server's operator.

use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use podium_client::Socket;
use podium_server::{OPERATOR_KEY, SOCKET};

use super::ending::{Exit, Failed, Outcome};

/// The host of requests over the socket, which nothing resolves.
pub(crate) const BASE: &str = "http://localhost";

pub(crate) fn directory() -> PathBuf {
    let named = std::env::var_os("PODIUM_DATA_DIR").filter(|name| !name.is_empty());
    named.map_or_else(|| PathBuf::from("./podium-data"), PathBuf::from)
}

/// The socket in a data directory that is this user's or root's; none if there is none.
pub(crate) fn socket_in(directory: &Path) -> Outcome<Option<Socket>> {
    let (path, key) = (directory.join(SOCKET), directory.join(OPERATOR_KEY));
    let found = match std::fs::symlink_metadata(&path) {
        Ok(found) if found.file_type().is_socket() => found,
        _ => return Ok(None),
    };
    // Somebody else's directory may lie about which server it is.
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own && found.uid() != 0 {
        let message = format!("{} belongs to another user", path.display());
        return Err(Failed::new(Exit::Refused, message)
            .hint("Run the command as that user, or sign in: podium login URL."));
    }
    match std::fs::read_to_string(&key) {
        Ok(text) => Ok(Some(Socket { path, key: text.trim().to_owned(), key_file: key })),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let message = format!("{} cannot be read: {error}", key.display());
            Err(Failed::new(Exit::Refused, message).hint(
                "Only the user that runs the server is its operator. Others sign in: podium login URL.",
            ))
        }
    }
}

/// There is no server to be the operator of.
pub(crate) fn absent(directory: &Path) -> Failed {
    let message = format!("no server runs with its data in {}", directory.display());
    Failed::new(Exit::Unreachable, message)
        .hint(format!("Start it: podium serve --data-dir {}", directory.display()))
}
