//! The environment's ways to what is outside of it: its own network, if it has one, and the relay to the plane's own
//! database server, if its database is there. They are made before anything else starts, and found again after a
//! restart.

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use podium_api::DeploymentId;
use podium_domain::Reason;

use super::Supervisor;
use crate::blocking::blocking;
use crate::local::database::{Kind, MAX_CONNECTIONS_PER_ENVIRONMENT};
use crate::local::host::Host;
use crate::local::isolation::Isolation;
use crate::local::layout::Place;
use crate::local::network::{
    HOLDER, Network, RELAY, has_uplink, is_network, made, number_of, of_environment,
};
use crate::local::postgres::{Cluster, SOCKET};
use crate::local::process::{last_error_line, log_length};
use crate::local::program::Program;
use crate::local::sockets;

/// How long creating a network with its uplink may take: normally fractions of a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// The text for users if it cannot be created; operators see the reason.
const UNMADE: &str = "its network cannot be created";

/// The text for users if there is no relay; operators see the reason.
const NO_RELAY: &str = "its way to the database server cannot be opened";

/// How many connections a relay passes on: a few more than the role may have, so that an environment with too many is told
/// so by the server.
const MOST: u32 = MAX_CONNECTIONS_PER_ENVIRONMENT + 10;

impl Supervisor {
    /// Creates the environment's ways to what is outside of it unless they exist: to its database server and to the
    /// network. Returns their programs.
    pub(super) async fn ensure_network(&mut self) -> Result<Vec<Program>, Reason> {
        let mut programs = Vec::from_iter(self.ensure_relay().await?);
        programs.extend(self.ensure_own_network().await?);
        Ok(programs)
    }

    /// Creates the environment's own network and its uplink unless they exist, and makes everything that starts from
    /// now on use it. Returns the programs of the network; none if environments share the machine's network.
    async fn ensure_own_network(&mut self) -> Result<Vec<Program>, Reason> {
        let plane = Arc::clone(&self.plane);
        let host = plane.host().await?;
        let own = match &host.network {
            Network::Own(own) => own,
            Network::Shared(_) => return Ok(Vec::new()),
            Network::Filtered(filter, _) => {
                let (filter, port) = (Arc::clone(filter), self.state.web_port);
                let Some(user) = self.isolation.user else { return Ok(Vec::new()) };
                let admitted = blocking(move || filter.admit(user, port)).await;
                let why = "the loopback packet filter cannot be updated";
                return admitted.map(|()| Vec::new()).map_err(|error| Reason::new(why, error));
            }
        };
        let holder = own.holder(self.id, &self.place, self.state.web_port);
        let wanted = self.fingerprint(&holder);
        if self.processes.get(HOLDER).is_none_or(|kept| kept.fingerprint != wanted) {
            // Processes in the old network keep it until they exit.
            self.stop_components(vec![HOLDER.into()]).await;
            self.start_program(&holder).await.map_err(|error| Reason::of_io(UNMADE, &error))?;
        }
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, self.state.web_port));
        let pid = self.holder().ok_or(Reason::from("its network has no holder process"))?;
        let number = self.until(&holder, || made(pid, listen).ok().flatten()).await?;
        self.isolation = self.isolation_on(host).await?.in_network(pid, number);
        let uplink = own.uplink(self.id, &self.place, pid, number);
        if !self.processes.contains_key(&uplink.name) {
            self.start_program(&uplink).await.map_err(|error| Reason::of_io(UNMADE, &error))?;
        }
        self.until(&uplink, || has_uplink(pid).then_some(())).await?;
        Ok(vec![holder, uplink])
    }

    /// The isolation with the existing network. Without one nothing can start: never in the machine's own network.
    pub(super) fn in_own_network(&self, isolation: Isolation, network: &Network) -> Isolation {
        match network {
            Network::Shared(_) | Network::Filtered(..) => isolation,
            Network::Own(_) => {
                let holder = self.holder().unwrap_or_default();
                isolation.in_network(holder, number_of(&holder.to_string()).unwrap_or_default())
            }
        }
    }

    pub(super) async fn remove_from_filter(&self) {
        let Ok(host) = self.plane.host().await else { return };
        if let (Network::Filtered(filter, _), Some(user)) = (&host.network, self.isolation.user) {
            let filter = Arc::clone(filter);
            if let Err(error) = blocking(move || filter.forget(user)).await {
                tracing::warn!(id = %self.id, %error, "the loopback packet filter cannot be updated");
            }
        }
    }

    /// Whether its network has to be created again.
    pub(super) fn has_lost_network(&self) -> bool {
        self.isolation.holder.is_some() && self.holder() != self.isolation.holder
    }

    pub(super) fn check_uplink(&self) -> Result<(), Reason> {
        match self.isolation.holder {
            Some(holder) if !has_uplink(holder) => Err("its network has no uplink yet".into()),
            _ => Ok(()),
        }
    }

    /// The fingerprint of a program, including its isolation. Network helpers are not isolated.
    pub(super) fn fingerprint(&self, program: &Program) -> String {
        let bounds: &[OsString] = if is_network(&program.name) { &[] } else { self.isolation.bounds() };
        program.fingerprint(&self.plane.key(self.id, "fingerprint"), bounds)
    }

    fn holder(&self) -> Option<i32> {
        self.processes.get(HOLDER).map(|kept| kept.process.identity.pid)
    }

    /// Waits for a condition that a component brings about.
    pub(super) async fn until<T>(
        &self,
        program: &Program,
        what: impl Fn() -> Option<T>,
    ) -> Result<T, Reason> {
        let kept = self.processes.get(&program.name).ok_or(Reason::from("its network is not started yet"))?;
        match tokio::time::timeout(PATIENCE, kept.process.until(what)).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => {
                let (log, start) = (program.log.clone(), kept.log_start);
                let said = blocking(move || last_error_line(&log, start.min(log_length(&log)))).await;
                Err(Reason::new(UNMADE, said.unwrap_or_else(|| "it exited".into())))
            }
            Err(_) => Err(Reason::new(UNMADE, "it took too long")),
        }
    }

    pub(super) async fn relay(&self, host: &Host) -> Result<Option<Relay>, Reason> {
        if self.plane.databases.kind_of(&self.state) != Kind::Private {
            return Ok(None);
        }
        let own = rustix::process::geteuid().as_raw();
        let client = host.isolation.user_of(self.state.slot).unwrap_or(own);
        let (plane, place) = (Arc::clone(&self.plane), self.place.clone());
        let found = blocking(move || {
            Relay::of(&plane.databases.cluster, &place, plane.options.launcher.as_deref(), client)
        });
        found.await.map_err(|error| Reason::of_io(NO_RELAY, &error))
    }

    /// Starts the relay unless it is running. Returns its program.
    pub(super) async fn ensure_relay(&mut self) -> Result<Option<Program>, Reason> {
        let plane = Arc::clone(&self.plane);
        let Some(relay) = self.relay(plane.host().await?).await? else { return Ok(None) };
        let program = relay.program(self.id, &self.place);
        if !self.processes.contains_key(RELAY) {
            self.start_program(&program).await.map_err(|error| Reason::of_io(NO_RELAY, &error))?;
        }
        self.until(&program, || relay.is_up().then_some(())).await?;
        Ok(Some(program))
    }

    /// Removes what the relay of a removed environment has left.
    pub(super) async fn forget_relay(&self) {
        let Ok(host) = self.plane.host().await else { return };
        if let Ok(Some(relay)) = self.relay(host).await {
            blocking(move || relay.forget()).await;
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Relay {
    pub(super) directory: PathBuf,
    arguments: Vec<OsString>,
}

impl Relay {
    /// The relay for the user of an environment; `None` if that one reaches the server itself.
    pub(super) fn of(
        cluster: &Cluster,
        place: &Place,
        launcher: Option<&Path>,
        client: u32,
    ) -> io::Result<Option<Self>> {
        let (Some((user, sockets)), Some(launcher)) = (cluster.behind_relays()?, launcher) else {
            return Ok(None);
        };
        let directory = sockets::directory_of(&place.database(), Some(user), sockets::EVERYBODY)?;
        let mut arguments: Vec<OsString> = vec![launcher.into(), "network".into(), "database".into()];
        let mut tell = |flag: &str, value: OsString| arguments.extend([flag.into(), value]);
        tell("--user", user.to_string().into());
        tell("--client", client.to_string().into());
        tell("--most", MOST.to_string().into());
        tell("--listen", directory.join(SOCKET).into());
        sockets.into_iter().for_each(|socket| tell("--to", socket.into()));
        Ok(Some(Self { directory, arguments }))
    }

    pub(super) fn program(&self, id: DeploymentId, place: &Place) -> Program {
        of_environment(id, RELAY.into(), self.arguments.clone(), place.component_log(RELAY))
    }

    pub(super) fn is_up(&self) -> bool {
        std::os::unix::net::UnixStream::connect(self.directory.join(SOCKET)).is_ok()
    }

    /// Removes its socket and the directory.
    pub(super) fn forget(&self) {
        let _ = std::fs::remove_file(self.directory.join(SOCKET));
        let _ = std::fs::remove_dir(&self.directory);
    }
}
