//! Enters the network of a holder process, and finds the sockets that it holds.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, BorrowedFd, IntoRawFd as _, OwnedFd};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::net::{SocketType, getsockname};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use rustix::thread::{ThreadNameSpaceType, move_into_thread_name_spaces};

use super::{Forward, number_of};

/// The descriptor numbers of a holder's sockets.
const HELD_AT: std::ops::Range<i32> = 3..256;

/// Enters the network of a holder process, if it has the expected inode number. A web server, whose outside socket is
/// its standard input, also gets the socket inside: the descriptor is returned.
pub(in crate::local) fn join(holder: i32, number: u64) -> io::Result<Option<i32>> {
    let holder = hold(holder)?;
    let served = match socket_acceptconn(io::stdin()) {
        Ok(true) => Some(SocketAddr::try_from(getsockname(io::stdin())?)?),
        _ => None,
    };
    let inner =
        served.map(|address| held(holder.as_fd(), Forward { is_datagram: false, address })).transpose()?;
    // Root may enter any namespace; other users also have to enter the owning user namespace.
    let all = if rustix::process::geteuid().is_root() {
        ThreadNameSpaceType::NETWORK
    } else {
        ThreadNameSpaceType::USER | ThreadNameSpaceType::NETWORK
    };
    move_into_thread_name_spaces(holder.as_fd(), all)?;
    // The pid may have been reused.
    if number_of("self") != Some(number) {
        return Err(io::Error::new(ErrorKind::NotFound, "its network is gone"));
    }
    let Some(inner) = inner else { return Ok(None) };
    fcntl_setfd(&inner, FdFlags::empty())?;
    Ok(Some(inner.into_raw_fd()))
}

/// A pidfd of a process.
pub(super) fn hold(process: i32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(process).ok_or(ErrorKind::NotFound)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// A copy of a process's socket with this address.
pub(super) fn held(holder: BorrowedFd<'_>, wanted: Forward) -> io::Result<OwnedFd> {
    for number in HELD_AT {
        let socket = match pidfd_getfd(holder, number, PidfdGetfdFlags::empty()) {
            Ok(socket) => socket,
            Err(rustix::io::Errno::BADF) => continue,
            Err(error) => return Err(error.into()),
        };
        if is_it(&socket, wanted).unwrap_or(false) {
            return Ok(socket);
        }
    }
    Err(io::Error::new(ErrorKind::NotFound, format!("nothing listens on {wanted} in its network")))
}

fn is_it(socket: &OwnedFd, wanted: Forward) -> io::Result<bool> {
    let kind = socket_type(socket)?;
    let is_kind = match wanted.is_datagram {
        true => kind == SocketType::DGRAM,
        false => kind == SocketType::STREAM && socket_acceptconn(socket)?,
    };
    Ok(is_kind && SocketAddr::try_from(getsockname(socket)?)? == wanted.address)
}

/// The inode number of a holder's network, once all its sockets exist.
pub(in crate::local) fn made(holder: i32, listen: SocketAddr) -> io::Result<Option<u64>> {
    let process = hold(holder)?;
    let is_ready = match held(process.as_fd(), Forward { is_datagram: false, address: listen }) {
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    let number = number_of(&holder.to_string()).filter(|number| Some(*number) != number_of("self"));
    // If it still exists, all answers were about the same process.
    fs::metadata(format!("/proc/{holder}"))?;
    Ok(number.filter(|_| is_ready))
}
