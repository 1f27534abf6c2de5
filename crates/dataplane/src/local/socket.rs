//! The listening socket of an environment's web server, and directories for sockets of other servers.
//!
//! The web server's is opened here and passed to the process that serves, so that its port is never free while that process
//! restarts, and no other process can take it. After a restart of the control plane it is recovered from the process that has
//! it. A path of a socket has at most 107 bytes, and a data directory may be anywhere: so the directories have short paths.

use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::{fs, io};

use aws_lc_rs::digest::{SHA256, digest};
use rustix::net::sockopt::socket_acceptconn;

use super::process::Process;

/// The descriptor number of a web server's socket, where the launcher puts it.
const HELD_AT: i32 = 100;

/// A listening socket.
#[derive(Debug)]
pub(super) struct Socket(TcpListener);

impl Socket {
    /// Listens on the first free loopback port of these.
    pub(super) fn open(ports: impl Iterator<Item = u16>) -> io::Result<Self> {
        let mut why = io::ErrorKind::AddrNotAvailable.into();
        for port in ports {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
                Ok(listener) => return Ok(Self(listener)),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// Recovers the socket of a running web server.
    pub(super) fn of(process: &Process, port: u16) -> io::Result<Self> {
        let listener = TcpListener::from(process.descriptor(HELD_AT)?);
        let is_it =
            socket_acceptconn(&listener)? && listener.local_addr()? == (Ipv4Addr::LOCALHOST, port).into();
        if is_it { Ok(Self(listener)) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    pub(super) fn port(&self) -> io::Result<u16> {
        self.0.local_addr().map(|address| address.port())
    }

    /// A duplicate for a process.
    pub(super) fn lend(&self) -> io::Result<OwnedFd> {
        self.0.try_clone().map(OwnedFd::from)
    }
}

/// How many names are tried if others own the first ones.
const NAMES: u8 = 16;

/// The socket directory that belongs to another directory. It is named after that one, so that later starts find it
/// again, and created if it is missing: the machine may clean up such places.
pub(super) fn directory_of(directory: &Path, user: Option<u32>) -> io::Result<PathBuf> {
    find(directory, user, 0o711)
}

/// The same, passable for its owner only.
pub(super) fn closed_directory_of(directory: &Path, user: u32) -> io::Result<PathBuf> {
    find(directory, Some(user), 0o700)
}

fn find(directory: &Path, user: Option<u32>, mode: u32) -> io::Result<PathBuf> {
    let hash = digest(&SHA256, directory.as_os_str().as_encoded_bytes());
    let hash = podium_api::hex(&hash.as_ref()[..6]);
    let is_root = rustix::process::geteuid().is_root();
    // Not /tmp: confined environments have a private one.
    let places = if is_root { ["/run", "/var/tmp"] } else { ["/var/tmp", "/dev/shm"] };
    // A service manager provides a directory that outlives this process, and may deny access to the others.
    let given =
        std::env::var_os("RUNTIME_DIRECTORY").map(PathBuf::from).filter(|given| is_root && given.is_dir());
    let place = places.into_iter().map(PathBuf::from).find(|place| place.is_dir());
    let above = given.or(place).unwrap_or_else(|| "/tmp".into());
    let owner = user.unwrap_or_else(|| rustix::process::geteuid().as_raw());
    for number in 0..NAMES {
        let name = if number == 0 { format!("podium-{hash}") } else { format!("podium-{hash}-{number}") };
        let path = above.join(name);
        if is_ours(&path, owner, mode)? {
            return Ok(path);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::AlreadyExists,
        format!("{}/podium-{hash} is somebody else's", above.display()),
    ))
}

/// Creates the directory; returns whether it belongs to the owner.
fn is_ours(path: &Path, owner: u32, mode: u32) -> io::Result<bool> {
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => chown(path, Some(owner), Some(owner))?,
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
    }
    let metadata = fs::symlink_metadata(path)?;
    let is_owners = metadata.is_dir() && metadata.uid() == owner;
    // Created by root, and interrupted before the owner was changed.
    if metadata.is_dir() && metadata.uid() == 0 && owner != 0 && rustix::process::geteuid().is_root() {
        chown(path, Some(owner), Some(owner))?;
    } else if !is_owners {
        return Ok(false);
    }
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_stable_and_short_and_is_recreated() {
        let me = rustix::process::geteuid().as_raw();
        let cluster = tempfile::tempdir().unwrap();
        let first = directory_of(cluster.path(), None).unwrap();
        assert!(
            first.as_os_str().len() < 40,
            "a path of a socket has at most 107 bytes: {}",
            first.display()
        );
        assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o711);
        assert_eq!(fs::metadata(&first).unwrap().uid(), me);
        fs::remove_dir(&first).unwrap();
        assert_eq!(directory_of(cluster.path(), None).unwrap(), first);
        fs::remove_dir(&first).unwrap();
    }

    #[test]
    fn a_directory_of_another_owner_is_not_used() {
        let cluster = tempfile::tempdir().unwrap();
        let first = directory_of(cluster.path(), None).unwrap();
        fs::remove_dir(&first).unwrap();
        std::os::unix::fs::symlink("/etc", &first).unwrap();
        let other = directory_of(cluster.path(), None).unwrap();
        assert_ne!(other, first);
        fs::remove_file(&first).unwrap();
        fs::remove_dir(&other).unwrap();
    }
}
