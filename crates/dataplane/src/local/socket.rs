//! The listening socket of an environment's web server.
//!
//! It is made here and lent to whichever process serves, so that its port is never free while that process restarts, and
//! nobody else on the machine can take it meanwhile. After a restart of the control plane it is taken back from the
//! process that has it.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::OwnedFd;

use rustix::net::sockopt::socket_acceptconn;

use super::process::Process;

/// Where a web server holds its socket. The launcher puts it there.
const HELD_AT: i32 = 100;

/// A socket that somebody listens on.
#[derive(Debug)]
pub(super) struct Socket(TcpListener);

impl Socket {
    /// Listens on the first of these ports of loopback that is free.
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

    /// Takes the socket of a web server that serves already.
    pub(super) fn of(process: &Process, port: u16) -> io::Result<Self> {
        let listener = TcpListener::from(process.descriptor(HELD_AT)?);
        let is_it =
            socket_acceptconn(&listener)? && listener.local_addr()? == (Ipv4Addr::LOCALHOST, port).into();
        if is_it { Ok(Self(listener)) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    pub(super) fn port(&self) -> io::Result<u16> {
        self.0.local_addr().map(|address| address.port())
    }

    /// A copy for a process.
    pub(super) fn lend(&self) -> io::Result<OwnedFd> {
        self.0.try_clone().map(OwnedFd::from)
    }
}
