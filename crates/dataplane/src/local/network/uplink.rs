//! The way out of a network: the network stack, and the relay to the machine's loopback beside it.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;

use rustix::thread::set_no_new_privs;
use tokio::process::Command;

use super::holder::{become_user, drop_capabilities};
use super::join::{held, hold};
use super::relay::relay;
use super::{Forward, INTERFACE};

/// What the environment is inside, and whom it sends to; both mean nothing outside. With the machine's own address it
/// could not reach the machine.
const ADDRESS: &str = "169.254.77.2";
const GATEWAY: &str = "169.254.77.1";
const MASK: &str = "30";

/// What the network stack is told: outgoing connections alone. Nothing of the machine's loopback is reached by whatever
/// address, and nothing that listens inside is reached from outside.
const TOLD: &[&str] = &[
    "--foreground",
    "--quiet",
    // Tasks may outlive the process that made their network.
    "--no-netns-quit",
    "--config-net",
    "--ns-ifname",
    INTERFACE,
    "--address",
    ADDRESS,
    "--netmask",
    MASK,
    "--gateway",
    GATEWAY,
    "--no-map-gw",
    "--tcp-ports",
    "none",
    "--udp-ports",
    "none",
    "--tcp-ns",
    "none",
    "--udp-ns",
    "none",
    "--no-dhcp",
    "--no-dhcpv6",
    "--no-ndp",
    "--no-ra",
];

/// A way out.
#[derive(Clone, Debug)]
pub struct Uplink {
    /// The user to become.
    pub user: Option<u32>,
    /// The process that holds the network.
    pub holder: i32,
    /// What is reached of the machine's loopback.
    pub forwards: Vec<Forward>,
    /// The network stack.
    pub pasta: PathBuf,
}

impl Uplink {
    /// Leads out of the network for as long as the network stack runs. Returns why it does not any more. It must be
    /// called before this process has other threads.
    pub fn run(self) -> String {
        self.lead_out().unwrap_or_else(|error| format!("the network's uplink failed: {error}"))
    }

    fn lead_out(self) -> io::Result<String> {
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
            let mut stack = stack.args(TOLD).arg(self.holder.to_string()).kill_on_drop(true).spawn()?;
            let status = stack.wait().await?;
            Ok(format!("{} exited: {status}", self.pasta.display()))
        })
    }
}
