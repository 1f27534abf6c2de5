//! The processes of a network. Its holder creates it, opens the sockets in it, and sleeps; others enter its network,
//! and find the sockets that it holds. The uplink runs the network stack, and the relay to the machine's loopback
//! interface.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::net::{AddressFamily, SendFlags, SocketType, getsockname, netlink};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces, set_no_new_privs};

use super::relay::relay;
use super::{Forward, INTERFACE, number_of};
use crate::local::privileges::{become_user, drop_capabilities, unshare, unshare_as_user};

const SLEEP: &str = "sleep";
/// The number of the loopback interface in every network.
const LOOPBACK: u32 = 1;

#[derive(Clone, Debug, Args)]
pub struct NetworkHolder {
    /// Id of the user to run as.
    #[arg(long)]
    pub user: Option<u32>,
    /// Address to listen on in it.
    #[arg(long)]
    pub listen: SocketAddr,
    /// Address to listen on in it for the relay, such as tcp:127.0.0.1:5432; may be repeated.
    #[arg(long = "forward")]
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
        unshare_as_user(|| unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNET))?;
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
        drop_capabilities()
    }
}

/// Keeps a socket open across exec.
fn keep(socket: impl AsFd + IntoRawFd) -> io::Result<()> {
    fcntl_setfd(&socket, FdFlags::empty())?;
    let _ = socket.into_raw_fd();
    Ok(())
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

/// Address and gateway inside the network; both have no meaning outside. With the machine's own address the environment
/// could not reach the machine.
const ADDRESS: &str = "169.254.77.2";
const GATEWAY: &str = "169.254.77.1";
const MASK: &str = "30";

/// Arguments of the network stack: outgoing connections only. The machine's loopback interface cannot be reached at any
/// address, and nothing that listens inside can be reached from outside.
const TOLD: &[&str] = &[
    "--foreground --quiet --config-net --no-map-gw --no-dhcp --no-dhcpv6 --no-ndp --no-ra",
    "--tcp-ports none --udp-ports none --tcp-ns none --udp-ns none",
    // Tasks may outlive the process that made their network.
    "--no-netns-quit",
];

/// Where the network stack finds the device that its interface is made with.
const DEVICE: &str = "/dev/net/tun";
const DEVICE_DIRECTORY: &str = "/dev/net";

#[derive(Clone, Debug, Args)]
pub struct Uplink {
    /// Id of the user to run as.
    #[arg(long)]
    pub user: Option<u32>,
    /// Holder process of the network.
    #[arg(long)]
    pub holder: i32,
    /// Address on this machine's loopback interface to forward to, such as tcp:127.0.0.1:5432; may be repeated.
    #[arg(long = "forward")]
    pub forwards: Vec<Forward>,
    #[arg(long)]
    pub pasta: PathBuf,
}

impl Uplink {
    /// Runs the uplink as long as the network stack runs. Returns why it ended. It must be called while this process
    /// has a single thread.
    pub fn run(self) -> String {
        self.lead_out().unwrap_or_else(|error| format!("the network's uplink failed: {error}"))
    }

    fn lead_out(self) -> io::Result<String> {
        if self.user.is_some() {
            let hint = |error| {
                format!("only root can open {DEVICE} (`chmod 666` helps), and a copy failed: {error}")
            };
            own_device().map_err(|error| io::Error::other(hint(error)))?;
        }
        become_user(self.user, false)?;
        set_no_new_privs(true)?;
        if self.user.is_some() {
            drop_capabilities()?;
        }
        let holder = hold(self.holder)?;
        let sockets: Vec<(OwnedFd, Forward)> = self
            .forwards
            .iter()
            .map(|forward| Ok((held(holder.as_fd(), *forward)?, *forward)))
            .collect::<io::Result<_>>()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            for (socket, forward) in sockets {
                tokio::spawn(relay(socket, forward));
            }
            let mut stack = tokio::process::Command::new(&self.pasta);
            stack.args(TOLD.iter().flat_map(|told| told.split(' '))).args(["--ns-ifname", INTERFACE]);
            stack.args(["--address", ADDRESS, "--netmask", MASK, "--gateway", GATEWAY]);
            let mut stack = stack.arg(self.holder.to_string()).kill_on_drop(true).spawn()?;
            let status = stack.wait().await?;
            Ok(format!("{} exited: {status}", self.pasta.display()))
        })
    }
}

/// Gives this process a device of its own if only root can open the machine's, as on systems without udev. That it can be
/// opened allows nothing: to make an interface takes the capability in the network.
fn own_device() -> io::Result<()> {
    const EVERYONE: u32 = 0o666;
    let machines = match fs::metadata(DEVICE) {
        Ok(device) if device.mode() & EVERYONE != EVERYONE => device,
        // The network stack says what is wrong with it.
        _ => return Ok(()),
    };
    unshare(UnshareFlags::NEWNS)?;
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
    mount("tmpfs", DEVICE_DIRECTORY, "tmpfs", MountFlags::NOSUID | MountFlags::NOEXEC, c"mode=755,size=4k")?;
    mknodat(CWD, DEVICE, FileType::CharacterDevice, Mode::empty(), machines.rdev())?;
    fs::set_permissions(DEVICE, fs::Permissions::from_mode(EVERYONE))
}
