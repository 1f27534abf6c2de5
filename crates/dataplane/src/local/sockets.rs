//! Where servers listen: the ports of environments' web servers and their sockets, directories for sockets of other
//! servers, and the loopback addresses of servers that URLs name.
//!
//! Tasks may listen on ephemeral ports. A task could wait for any of those to become free, so ours are outside that
//! range. The web server's socket is opened here and passed to the process that serves, so that its port is never free
//! while that process restarts, and no other process can take it. After a restart of the control plane it is recovered
//! from the process that has it. A path of a socket has at most 107 bytes, and a data directory may be anywhere: so the
//! directories have short paths.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs as _};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::{fs, io};

use aws_lc_rs::digest::{SHA256, digest};
use podium_airflow::database_url;
use rustix::net::sockopt::socket_acceptconn;

use super::process::Process;

/// The descriptor number of a web server's socket, where the launcher puts it.
const HELD_AT: i32 = 100;

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

    pub(super) fn lend(&self) -> io::Result<OwnedFd> {
        self.0.try_clone().map(OwnedFd::from)
    }
}

/// How many names are tried if others own the first ones.
const NAMES: u8 = 16;

/// Who may pass through a socket directory.
pub(super) const EVERYBODY: u32 = 0o711;
pub(super) const ITS_OWNER: u32 = 0o700;

/// The socket directory that belongs to another directory. It is named after that one, so that later starts find it
/// again, and created if it is missing: the machine may clean up such places.
pub(super) fn directory_of(directory: &Path, user: Option<u32>, mode: u32) -> io::Result<PathBuf> {
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

/// Below the default ephemeral range, and away from commonly used ports.
const OUR_RANGE: RangeInclusive<u16> = 24_576..=28_671;
/// The kernel's ephemeral port range.
const EPHEMERAL_RANGE_FILE: &str = "/proc/sys/net/ipv4/ip_local_port_range";

/// Whether a port is in our range and not in the ephemeral range.
pub(super) fn is_in_our_range(port: u16) -> bool {
    OUR_RANGE.contains(&port) && !ephemeral_range().is_some_and(|ephemeral| ephemeral.contains(&port))
}

/// Ports to try for an environment, in order: the one that it has, then those of our range, and finally any port.
pub(super) fn candidates(
    known: u16,
    slot: u32,
    avoided: Option<&RangeInclusive<u16>>,
) -> impl Iterator<Item = u16> {
    let ephemeral = ephemeral_range();
    let is_free = move |port: &u16, avoided: Option<&RangeInclusive<u16>>| {
        !ephemeral.as_ref().is_some_and(|ephemeral| ephemeral.contains(port))
            && !avoided.is_some_and(|avoided| avoided.contains(port))
    };
    let mut ours: Vec<u16> = OUR_RANGE.filter(|port| is_free(port, avoided)).collect();
    if !ours.is_empty() {
        // Each environment starts at another port, so that the first attempt usually succeeds.
        let first = usize::try_from(slot).unwrap_or(0) % ours.len();
        ours.rotate_left(first);
    }
    std::iter::once(known).filter(|known| *known != 0).chain(ours).chain([0])
}

pub(super) fn ephemeral_range() -> Option<RangeInclusive<u16>> {
    let text = fs::read_to_string(EPHEMERAL_RANGE_FILE).ok()?;
    let mut numbers = text.split_whitespace().map(str::parse);
    Some(numbers.next()?.ok()?..=numbers.next()?.ok()?)
}

/// The port of a URL whose host is this machine's loopback address; any URL with a host will do.
pub(super) fn loopback_port(url: &str, usual: u16) -> Option<u16> {
    loopback(url, usual).first().map(SocketAddr::port)
}

/// The loopback addresses of a URL's host. A name is resolved once.
pub(super) fn loopback(url: &str, usual: u16) -> Vec<SocketAddr> {
    let Some((named, port)) = database_url::address(url) else { return Vec::new() };
    let port = port.unwrap_or(usual);
    let mut found: Vec<SocketAddr> = match named.parse::<IpAddr>() {
        Ok(address) => vec![(address, port).into()],
        // Clients that try IPv6 first are refused there and fall back.
        Err(_) if named.eq_ignore_ascii_case("localhost") => vec![(Ipv4Addr::LOCALHOST, port).into()],
        Err(_) => (named, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default(),
    };
    found.retain(|address| address.ip().is_loopback());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_is_stable_and_short_and_is_recreated() {
        let me = rustix::process::geteuid().as_raw();
        let cluster = tempfile::tempdir().unwrap();
        let first = directory_of(cluster.path(), None, EVERYBODY).unwrap();
        assert!(
            first.as_os_str().len() < 40,
            "a path of a socket has at most 107 bytes: {}",
            first.display()
        );
        assert_eq!(fs::metadata(&first).unwrap().permissions().mode() & 0o777, 0o711);
        assert_eq!(fs::metadata(&first).unwrap().uid(), me);
        fs::remove_dir(&first).unwrap();
        assert_eq!(directory_of(cluster.path(), None, EVERYBODY).unwrap(), first);
        fs::remove_dir(&first).unwrap();
    }

    #[test]
    fn a_directory_of_another_owner_is_not_used() {
        let cluster = tempfile::tempdir().unwrap();
        let first = directory_of(cluster.path(), None, EVERYBODY).unwrap();
        fs::remove_dir(&first).unwrap();
        std::os::unix::fs::symlink("/etc", &first).unwrap();
        let other = directory_of(cluster.path(), None, EVERYBODY).unwrap();
        assert_ne!(other, first);
        fs::remove_file(&first).unwrap();
        fs::remove_dir(&other).unwrap();
    }

    #[test]
    fn ports_are_outside_the_ephemeral_range() {
        let ephemeral = ephemeral_range().unwrap();
        let all: Vec<u16> = candidates(0, 7, None).collect();
        let (last, ours) = all.split_last().unwrap();
        assert_eq!(*last, 0, "the last resort");
        assert!(ours.iter().all(|port| !ephemeral.contains(port)));
        assert!(ours.iter().all(|port| is_in_our_range(*port)));
        assert_eq!(candidates(4000, 7, None).next(), Some(4000), "it stays where it is");
        let avoided: Vec<u16> = candidates(0, 7, Some(&(1..=u16::MAX))).collect();
        assert_eq!(avoided, [0], "those are for tasks");
        if !ephemeral.contains(OUR_RANGE.start()) {
            assert_eq!(candidates(0, 2, None).next(), Some(OUR_RANGE.start() + 2));
        }
    }

    #[test]
    fn the_port_of_a_server_on_loopback_is_recognised() {
        let port = |url: &str| loopback_port(url, 5432);
        assert_eq!(port("postgres://a:b@127.0.0.1:5433/postgres"), Some(5433));
        assert_eq!(port("postgres://a@localhost/postgres?sslmode=disable"), Some(5432));
        assert_eq!(port("postgres://a@[::1]:5434/postgres"), Some(5434));
        assert_eq!(port("postgres:///postgres?host=127.0.0.1&port=5435"), Some(5435));
        assert_eq!(port("redis://:pw@127.0.0.1"), Some(5432));
        for elsewhere in
            ["postgres://a@db.example.com/p", "postgres:///p?host=/run/postgresql", "redis://10.0.0.1:6379/0"]
        {
            assert_eq!(port(elsewhere), None, "{elsewhere}");
        }
    }
}
