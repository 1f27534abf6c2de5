//! The listening socket of an environment's web server.
//!
//! It is opened here and passed to the process that serves, so that its port is never free while that process restarts,
//! and no other process can take it. After a restart of the control plane it is recovered from the process that has it.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

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
