//! Tests whether environments can have their own networks before any gets one.
//!
//! A network is created as for an environment, and an isolated process in it has to reach this machine at a
//! non-loopback address, and the internet if the machine itself reaches it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use podium_airflow::settings::Variables;
use podium_api::{DeploymentId, Id};
use rustix::io::Errno;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::process::Command;

use super::filter::Filter;
use super::holder::made;
use super::{Network, NetworkError, OwnNetworks, has_uplink, program};
use crate::blocking::blocking;
use crate::local::isolation::{FileAccess, HostIsolation, Isolation, Mode, is_transient};
use crate::local::layout::{Layout, Place};
use crate::local::options::{NetworkChoice, Options};
use crate::local::process::{Process, last_error_line};
use crate::local::program::Program;
use crate::local::sockets;
use crate::local::state::State;
use crate::local::users::{NETWORK_SLOT, has_slot};

/// A host on the internet, from which runtimes are installed by default.
const WORLD: (&str, u16) = ("pypi.org", 443);
/// Long enough that only a broken network exceeds it.
const PATIENCE: Duration = Duration::from_secs(60);
/// The reply of a host that was reached.
const WORD: &str = "reached";

/// Prints what it receives at two addresses, and whether it can connect to a third by name.
const SCRIPT: &str = "
import os, socket, sys, threading

answers = {}

def ask(what, host, port, length):
    try:
        with socket.create_connection((host, int(port)), timeout=10) as one:
            answers[what] = one.recv(length).decode() if length else 'reached'
    except OSError:
        pass

address, port, local, name, known = sys.argv[1:]
asked = {'machine': (address, port, 7), 'loopback': ('127.0.0.1', local, 7), 'world': (name, known, 0)}
asking = [threading.Thread(target=ask, args=(what, *whom), daemon=True) for what, whom in asked.items()]
for one in asking:
    one.start()
for one in asking:
    one.join(15)
for what in asked:
    print(what, answers.get(what, 'nothing'), flush=True)
os._exit(0)
";

#[derive(Debug, PartialEq)]
struct Reached {
    machine: bool,
    loopback: bool,
    world: bool,
}

/// Decides which network environments use. An error says why that could not be tested, or why the requested kind is not
/// possible.
pub(in crate::local) async fn find(
    options: &Options,
    layout: &Layout,
    isolation: &HostIsolation,
    python: &Path,
    read: &[PathBuf],
) -> Result<Network, NetworkError> {
    let not_own = async |why: NetworkError| match options.network {
        NetworkChoice::Own => Err(NetworkError::from(format!(
            "environments cannot have their own networks, which --environment-network requires: {why}"
        ))),
        _ => {
            let (options, layout, isolation) = (options.clone(), layout.clone(), isolation.clone());
            Ok(match blocking(move || filtered(&options, &layout, &isolation)).await {
                Ok(filter) => Network::Filtered(Arc::new(filter), why.to_string()),
                Err(neither) => Network::Shared(Some(format!("{why}; and {neither}"))),
            })
        }
    };
    match options.network {
        NetworkChoice::Shared => {
            forget_filter(layout).await;
            return Ok(Network::Shared(None));
        }
        NetworkChoice::Auto if options.task_ports.is_some() => {
            return not_own(
                "--task-ports is set, and nothing outside can connect to tasks in their own network".into(),
            )
            .await;
        }
        NetworkChoice::Auto | NetworkChoice::Own => {}
    }
    let known = layout.clone();
    let is_taken = blocking(move || has_slot(&known, NETWORK_SLOT)).await?;
    let own = match OwnNetworks::new(options, layout.users.start, is_taken) {
        Ok(own) => own,
        Err(why) => return not_own(why).await,
    };
    let directory = options.directory.clone();
    let directory = blocking(move || fs::canonicalize(directory)).await?;
    let place = Place { root: directory.join("network-proof") };
    let probe = Probe { own: &own, isolation, python, read, place };
    let tried = tokio::time::timeout(PATIENCE, probe.run()).await;
    let root = probe.place.root.clone();
    let _ = blocking(move || fs::remove_dir_all(root)).await;
    match tried {
        Ok(Ok(())) => {
            forget_filter(layout).await;
            Ok(Network::Own(own))
        }
        Ok(Err(why)) if is_transient_failure(&why.to_string()) => Err(untried(&why)),
        // A machine that is temporarily busy must not count as unsupported: authors can make it busy.
        Err(_) if options.network == NetworkChoice::Auto => {
            let why =
                "it took too long and will be tried again; `--environment-network shared` avoids the test";
            Err(untried(&why.into()))
        }
        Ok(Err(why)) => not_own(why).await,
        Err(_) => not_own("the test took too long".into()).await,
    }
}

/// Removes the filter of an earlier start if this one uses none.
async fn forget_filter(layout: &Layout) {
    let Some(nft) = program("nft").filter(|_| rustix::process::geteuid().is_root()) else { return };
    let users = layout.users.clone();
    blocking(move || Filter::forget_table(nft, users)).await;
}

fn untried(why: &NetworkError) -> NetworkError {
    format!("whether environments can have their own networks could not be tested: {why}").into()
}

/// Whether a failure is a temporary shortage of resources. If the kernel allows no network namespaces, it is never
/// temporary.
fn is_transient_failure(why: &str) -> bool {
    let most = fs::read_to_string("/proc/sys/user/max_net_namespaces").unwrap_or_default();
    let is_busy = [Errno::ADDRINUSE, Errno::ADDRNOTAVAIL]
        .into_iter()
        .any(|error| why.contains(&io::Error::from(error).to_string()));
    most.trim() != "0" && (is_busy || is_transient(why))
}

/// A filter for the existing environments, or why there cannot be one.
fn filtered(options: &Options, layout: &Layout, isolation: &HostIsolation) -> Result<Filter, NetworkError> {
    if !matches!(isolation.mode, Mode::Users { .. }) {
        return Err("they have no users of their own that a filter could tell apart".into());
    }
    let program = program("nft").ok_or("nft is not installed (package nftables)")?;
    let known = layout.known()?;
    let remembered = known.into_iter().filter_map(|id| State::read(&layout.environment(id).state()).ok()?);
    let has_port = remembered.filter(|state| state.web_port != 0);
    let ports = has_port.filter_map(|state| Some((isolation.user_of(state.slot)?, state.web_port))).collect();
    let console = sockets::loopback_port(&options.public_url, 80);
    let closed = console.filter(|port| !options.loopback_ports.contains(port)).into_iter().collect();
    Filter::new(program, layout.users.clone(), closed, ports)
}

struct Probe<'a> {
    own: &'a OwnNetworks,
    isolation: &'a HostIsolation,
    python: &'a Path,
    read: &'a [PathBuf],
    place: Place,
}

/// A helper process that is killed on drop.
struct Helper(Process);

impl Drop for Helper {
    fn drop(&mut self) {
        self.0.kill_now();
    }
}

impl Probe<'_> {
    async fn run(&self) -> Result<(), NetworkError> {
        let address = outward().ok_or("this machine has no network")?;
        let place = self.place.clone();
        blocking(move || make(&place)).await?;
        let id = DeploymentId::from_raw(Id::from_parts(0, 0, 0));
        let port = sockets::candidates(0, 0, None).next().unwrap_or(1024);
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let holder = self.own.holder(id, &self.place, port);
        let held = start(&holder).await?;
        let pid = held.0.identity.pid;
        let number = until(&held, &holder, || made(pid, listen).ok().flatten()).await?;
        let uplink = self.own.uplink(id, &self.place, pid, number);
        let leading = start(&uplink).await?;
        until(&leading, &uplink, || has_uplink(pid).then_some(())).await?;
        let (machine, machine_port) = responder(address).await?;
        let (loopback, loopback_port) = responder(Ipv4Addr::LOCALHOST.into()).await?;
        let (machine, loopback) = (tokio::spawn(machine), tokio::spawn(loopback));
        let temporary = self.place.temporary();
        let access = FileAccess { read: self.read.to_vec(), write: vec![temporary.clone()], temporary };
        let shared = self.isolation.of_environment(0, &access);
        let inside = shared.clone().in_network(pid, number);
        let arguments = [
            self.python.as_os_str().to_owned(),
            "-c".into(),
            SCRIPT.into(),
            address.to_string().into(),
            machine_port.to_string().into(),
            loopback_port.to_string().into(),
            WORLD.0.into(),
            WORLD.1.to_string().into(),
        ];
        let verdict = async {
            let (heard, outside) =
                tokio::join!(run_script(&inside, &arguments), run_script(&shared, &arguments));
            let heard = heard?;
            if !heard.machine {
                return Err("this machine cannot be reached from inside such a network".into());
            }
            if heard.loopback {
                return Err(
                    "services on this machine's loopback interface can be reached from inside such a network"
                        .into(),
                );
            }
            if !heard.world && outside?.world {
                let why = format!(
                    "{} can be reached from this machine, but not from inside such a network",
                    WORLD.0
                );
                return Err(why.into());
            }
            Ok(())
        };
        let verdict = verdict.await;
        machine.abort();
        loopback.abort();
        verdict
    }
}

fn make(place: &Place) -> io::Result<()> {
    for (directory, mode) in [(place.logs(), 0o700), (place.temporary(), 0o777)] {
        fs::create_dir_all(&directory)?;
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode))?;
    }
    fs::set_permissions(&place.root, fs::Permissions::from_mode(0o711))
}

/// The address of this machine on its default route.
fn outward() -> Option<IpAddr> {
    // Nothing is sent to these documentation addresses: connecting only selects the route.
    let examples: [(IpAddr, SocketAddr); 2] = [
        (Ipv4Addr::UNSPECIFIED.into(), ([198, 51, 100, 1], 9).into()),
        (Ipv6Addr::UNSPECIFIED.into(), (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 9).into()),
    ];
    let of = |(any, example): (IpAddr, SocketAddr)| {
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(example).ok()?;
        socket.local_addr().ok().map(|address| address.ip())
    };
    examples.into_iter().filter_map(of).find(|address| !address.is_loopback() && !address.is_unspecified())
}

/// A server that replies to every connection, and its port.
async fn responder(address: IpAddr) -> io::Result<(impl Future<Output = ()> + use<>, u16)> {
    let listener = TcpListener::bind((address, 0)).await?;
    let port = listener.local_addr()?.port();
    let answer = async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(WORD.as_bytes()).await;
        }
    };
    Ok((answer, port))
}

async fn start(program: &Program) -> Result<Helper, NetworkError> {
    let program = program.clone();
    Ok(blocking(move || Process::start(&program, &Isolation::NONE, None)).await.map(Helper)?)
}

/// Waits for a condition, or until the helper exits.
async fn until<T>(
    helper: &Helper,
    program: &Program,
    what: impl Fn() -> Option<T>,
) -> Result<T, NetworkError> {
    if let Some(found) = helper.0.until(what).await {
        return Ok(found);
    }
    let log = program.log.clone();
    let said = blocking(move || last_error_line(&log, 0)).await;
    Err(said.unwrap_or_else(|| format!("{} exited", program.name)).into())
}

async fn run_script(
    isolation: &Isolation,
    arguments: &[std::ffi::OsString],
) -> Result<Reached, NetworkError> {
    let variables = Variables::from([("PATH".into(), crate::Secret::new("/usr/bin:/bin".into()))]);
    let mut command = Command::from(isolation.command(arguments, &variables));
    let output = command.current_dir("/").stdin(Stdio::null()).kill_on_drop(true).output().await;
    let output = output?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().into());
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let is = |what: &str| said.lines().any(|line| line == format!("{what} {WORD}"));
    Ok(Reached { machine: is("machine"), loopback: is("loopback"), world: is("world") })
}
