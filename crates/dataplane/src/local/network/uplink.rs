//! The uplink of a network: the network stack, and the relay to the machine's loopback interface.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, set_no_new_privs};
use tokio::process::Command;

use super::holder::{held, hold};
use super::relay::relay;
use super::{Forward, INTERFACE};
use crate::local::privileges::{become_user, drop_capabilities, unshare};

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

/// An uplink.
#[derive(Clone, Debug)]
pub struct Uplink {
    /// The user to become.
    pub user: Option<u32>,
    /// The process that holds the network.
    pub holder: i32,
    /// What can be reached on the machine's loopback interface.
    pub forwards: Vec<Forward>,
    /// The network stack.
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
            let mut stack = Command::new(&self.pasta);
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
