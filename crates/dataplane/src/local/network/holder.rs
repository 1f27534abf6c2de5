//! The holder process of a network: it creates the network, opens the sockets in it, and sleeps.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{AddressFamily, SendFlags, SocketType, netlink};
use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities, set_keep_capabilities, set_no_new_privs,
    set_thread_groups, set_thread_res_gid, set_thread_res_uid,
};

use super::Forward;

const SLEEP: &str = "sleep";
/// The number of the loopback interface in every network.
const LOOPBACK: u32 = 1;

/// A network to create and hold.
#[derive(Clone, Debug)]
pub struct NetworkHolder {
    /// The user to become.
    pub user: Option<u32>,
    /// The address of its web server in it.
    pub listen: SocketAddr,
    /// The addresses in it for the relay to the outside.
    pub forwards: Vec<Forward>,
}

impl NetworkHolder {
    /// Creates the network and holds it. Returns only if that fails, and says why. It must be called while this process
    /// has a single thread.
    pub fn hold(&self) -> String {
        match self.make() {
            Ok(()) => format!("{SLEEP} cannot be run: {}", Command::new(SLEEP).arg("infinity").exec()),
            Err(error) => format!("a private network cannot be created: {error}"),
        }
    }

    fn make(&self) -> io::Result<()> {
        become_user(self.user, true)?;
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        #[expect(deprecated, reason = "its successor is unsafe because of flags that are not used here")]
        rustix::thread::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET)?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
        raise_loopback()?;
        for Forward { is_datagram, address } in &self.forwards {
            if *is_datagram {
                keep(UdpSocket::bind(address)?)?;
            } else {
                keep(TcpListener::bind(address)?)?;
            }
        }
        // The last one: once it exists, all of them do.
        keep(TcpListener::bind(self.listen)?)?;
        set_no_new_privs(true)?;
        Ok(drop_capabilities()?)
    }
}

/// Keeps a socket open across exec.
fn keep(socket: impl AsFd + IntoRawFd) -> io::Result<()> {
    fcntl_setfd(&socket, FdFlags::empty())?;
    let _ = socket.into_raw_fd();
    Ok(())
}

/// Switches to another user without supplementary groups; optionally keeps the capability to create namespaces, which
/// some systems reserve for root.
pub(super) fn become_user(user: Option<u32>, may_make: bool) -> io::Result<()> {
    let Some(number) = user else { return Ok(()) };
    let (user, group) = (Uid::from_raw(number), Gid::from_raw(number));
    set_keep_capabilities(may_make)?;
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    if may_make {
        let making = CapabilitySet::SYS_ADMIN;
        let raised =
            CapabilitySets { effective: making, permitted: making, inheritable: CapabilitySet::empty() };
        // It may not be needed.
        let _ = set_capabilities(None, raised);
        set_keep_capabilities(false)?;
    }
    // Makes the process the owner of its own /proc files again.
    Ok(rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable)?)
}

pub(super) fn drop_capabilities() -> rustix::io::Result<()> {
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })
}

/// Brings up the loopback interface of a new network, through netlink.
pub(super) fn raise_loopback() -> io::Result<()> {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ACKNOWLEDGE: u16 = 0x01 | 0x04;
    const UP: u32 = 1;
    const LENGTH: u32 = 32;
    let mut message = Vec::new();
    message.extend(LENGTH.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_AND_ACKNOWLEDGE.to_ne_bytes());
    // Sequence number and sender, which are not used.
    message.extend([0; 8]);
    // Address family and type of the interface, which do not matter.
    message.extend([0; 4]);
    message.extend(LOOPBACK.to_ne_bytes());
    // The new flags, and the mask of flags to change.
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    // Protocol 0 is the routing protocol family.
    let socket = rustix::net::socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    rustix::net::connect(&socket, &netlink::SocketAddrNetlink::new(0, 0))?;
    rustix::net::send(&socket, &message, SendFlags::empty())?;
    let mut answer = [0; 64];
    let (_, length) = rustix::net::recv(&socket, &mut answer, rustix::net::RecvFlags::empty())?;
    // After the header: the negative error code, or 0.
    let code = answer.get(16..20).filter(|_| length >= 20).and_then(|code| code.try_into().ok());
    match code.map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}
