//! The own network of an environment: nothing outside can connect to what it listens on, and it reaches only selected
//! addresses on the machine's loopback interface.
//!
//! An idle holder process keeps the namespace, with the sockets in it that other processes serve. A second process, the
//! uplink, connects it to the outside: a user-mode network stack (pasta) that opens ordinary connections of this
//! machine on behalf of the environment, and a relay to the loopback addresses that environments may reach. Both
//! outlive the control plane, and the uplink can be restarted at any time.

mod filter;
mod holder;
mod probe;
mod relay;

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use podium_airflow::settings;
use podium_api::DeploymentId;

use self::filter::Filter;
pub use self::holder::{NetworkHolder, Uplink};
pub(super) use self::holder::{join, made};
pub(super) use self::probe::find;
pub use self::relay::DatabaseRelay;
use super::command::searched;
use super::layout::Place;
use super::options::{AirflowDatabase, Broker, Options};
use super::program::{Program, ReplaceStrategy};
use super::sockets::loopback;
use super::users::NETWORK_SLOT;
use crate::Secret;

/// The component that holds the namespace.
pub(super) const HOLDER: &str = "network";
/// Name prefix of uplink components; the inode number of the namespace follows.
const UPLINK: &str = "uplink-";
/// The component that passes an environment's connections on to the plane's own database server.
pub(super) const RELAY: &str = "database-relay";
/// The name of the uplink's interface inside the namespace.
const INTERFACE: &str = "podium0";

#[derive(Clone, Debug)]
pub(super) enum Network {
    /// The machine's, with the reason unless it was requested.
    Shared(Option<String>),
    /// The machine's, with a packet filter on loopback, and the reason why they do not have their own.
    Filtered(Arc<Filter>, String),
    /// One for each environment.
    Own(OwnNetworks),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnNetworks {
    launcher: PathBuf,
    pasta: PathBuf,
    /// The user that helpers run as. It is not an environment's user: it owns all their namespaces.
    user: Option<u32>,
    /// What environments can reach on the machine's loopback interface.
    forwards: Vec<Forward>,
}

/// An address on the machine's loopback interface that environments reach at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Forward {
    pub is_datagram: bool,
    pub address: SocketAddr,
}

impl fmt::Display for Forward {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", if self.is_datagram { "udp" } else { "tcp" }, self.address)
    }
}

/// Why there is no network or packet filter, for operators.
pub(super) type NetworkError = Box<dyn std::error::Error + Send + Sync>;

/// A text that is not an address to forward.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is neither tcp:ADDRESS:PORT nor udp:ADDRESS:PORT")]
pub struct BadForward(String);

impl FromStr for Forward {
    type Err = BadForward;

    fn from_str(text: &str) -> Result<Self, BadForward> {
        let wrong = || BadForward(text.to_owned());
        let (kind, address) = text.split_once(':').ok_or_else(wrong)?;
        let is_datagram = match kind {
            "tcp" => false,
            "udp" => true,
            _ => return Err(wrong()),
        };
        Ok(Self { is_datagram, address: address.parse().map_err(|_| wrong())? })
    }
}

impl OwnNetworks {
    /// Own networks, if the required programs are installed; otherwise the reason.
    fn new(options: &Options, first_user: u32, is_taken: bool) -> Result<Self, NetworkError> {
        let launcher = options.launcher.clone().ok_or("there is no launcher")?;
        let pasta = program("pasta").ok_or("pasta is not installed (package passt)")?;
        if is_taken {
            return Err(
                "an existing environment already has the user that is reserved for network helpers".into()
            );
        }
        let user = rustix::process::geteuid().is_root().then_some(first_user + NETWORK_SLOT);
        let resolvers = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        Ok(Self { launcher, pasta, user, forwards: forwards(options, &resolvers) })
    }

    /// The holder program of an environment's network, whose web server listens on this port.
    pub(super) fn holder(&self, id: DeploymentId, place: &Place, web_port: u16) -> Program {
        let mut arguments = self.command("hold");
        arguments.extend([
            "--listen".into(),
            SocketAddr::from((Ipv4Addr::LOCALHOST, web_port)).to_string().into(),
        ]);
        of_environment(id, HOLDER.into(), arguments, place.component_log(HOLDER))
    }

    /// The uplink program of the network of a holder process.
    pub(super) fn uplink(&self, id: DeploymentId, place: &Place, holder: i32, number: u64) -> Program {
        let mut arguments = self.command("uplink");
        arguments.extend(["--holder".into(), holder.to_string().into(), "--pasta".into()]);
        arguments.push(self.pasta.clone().into());
        of_environment(id, format!("{UPLINK}{number}"), arguments, place.component_log("uplink"))
    }

    fn command(&self, what: &str) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![self.launcher.clone().into(), "network".into(), what.into()];
        if let Some(user) = self.user {
            arguments.extend(["--user".into(), user.to_string().into()]);
        }
        for forward in &self.forwards {
            arguments.extend(["--forward".into(), forward.to_string().into()]);
        }
        arguments
    }
}

pub(super) fn of_environment(
    id: DeploymentId,
    name: String,
    arguments: Vec<OsString>,
    log: PathBuf,
) -> Program {
    let (mark, value) = settings::marker(id);
    let told = [(mark, value), ("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into())];
    let variables = told.map(|(name, value)| (name, Secret::new(value))).into();
    Program { name, arguments, variables, directory: "/".into(), log, strategy: ReplaceStrategy::Restart }
}

/// Whether a component is a network helper: holder, uplink or relay.
pub(super) fn is_network(component: &str) -> bool {
    component == HOLDER || component == RELAY || is_uplink(component)
}

pub(super) fn is_uplink(component: &str) -> bool {
    component.starts_with(UPLINK) || component == UPLINK.trim_end_matches('-')
}

/// The inode number of a process's network namespace.
pub(super) fn number_of(process: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{process}/ns/net")).ok().map(|name_space| name_space.ino())
}

pub(super) fn has_uplink(holder: i32) -> bool {
    let is_way = |line: &str| line.starts_with(INTERFACE);
    ["route", "ipv6_route"].iter().any(|table| {
        let routes = fs::read_to_string(format!("/proc/{holder}/net/{table}")).unwrap_or_default();
        // The interface is the first field, or the last one.
        routes.lines().any(|line| is_way(line) || line.trim_end().ends_with(INTERFACE))
    })
}

/// Finds a program in `PATH` and the usual directories.
fn program(name: &str) -> Option<PathBuf> {
    let usual = ["/usr/bin", "/usr/local/bin", "/usr/sbin"].map(PathBuf::from);
    let mut places = searched().chain(usual).map(|place| place.join(name));
    places.find(|path| Path::is_file(path))
}

/// What environments can reach on the machine's loopback interface: name servers, the configured database and broker,
/// and what the operator allows.
fn forwards(options: &Options, resolvers: &str) -> Vec<Forward> {
    let mut all = Vec::new();
    for address in nameservers(resolvers).into_iter().filter(IpAddr::is_loopback) {
        let address = SocketAddr::new(address, 53);
        all.extend([true, false].map(|is_datagram| Forward { is_datagram, address }));
    }
    let mut addresses: Vec<SocketAddr> =
        options.loopback_ports.iter().map(|port| (Ipv4Addr::LOCALHOST, *port).into()).collect();
    if let AirflowDatabase::Server(url) = &options.database {
        addresses.extend(loopback(url.reveal(), 5432));
    }
    if let Broker::Given(url) = &options.broker {
        addresses.extend(loopback(url.reveal(), 6379));
    }
    all.extend(addresses.into_iter().map(|address| Forward { is_datagram: false, address }));
    all.sort_unstable();
    all.dedup();
    all
}

/// The name servers, as the system's resolver reads its file: at most three, and localhost if none is listed.
fn nameservers(resolvers: &str) -> Vec<IpAddr> {
    let named = resolvers.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == "nameserver").then(|| words.next()?.parse().ok())?
    });
    let named: Vec<IpAddr> = named.take(3).collect();
    if named.is_empty() { vec![Ipv4Addr::LOCALHOST.into()] } else { named }
}

#[cfg(test)]
mod tests;
