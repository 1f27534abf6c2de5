//! The environment's own network, if it has one: created before anything starts in it, and found again after a restart.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use podium_domain::Reason;

use super::Supervisor;
use crate::blocking::blocking;
use crate::local::isolation::Isolation;
use crate::local::network::{HOLDER, Network, has_uplink, is_network, made, number_of};
use crate::local::process::{last_error_line, log_length};
use crate::local::program::Program;

const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How long creating a network with its uplink may take: normally fractions of a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// The text for users if it cannot be created; operators see the reason.
const UNMADE: &str = "its network cannot be created";

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
                let Some(user) = self.isolation.user() else { return Ok(Vec::new()) };
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

    /// Removes the environment from the packet filter.
    pub(super) async fn remove_from_filter(&self) {
        let Ok(host) = self.plane.host().await else { return };
        if let (Network::Filtered(filter, _), Some(user)) = (&host.network, self.isolation.user()) {
            let filter = Arc::clone(filter);
            if let Err(error) = blocking(move || filter.forget(user)).await {
                tracing::warn!(id = %self.id, %error, "the loopback packet filter cannot be updated");
            }
        }
    }

    /// Whether its network has to be created again.
    pub(super) fn has_lost_network(&self) -> bool {
        self.isolation.holder().is_some() && self.holder() != self.isolation.holder()
    }

    /// The health of the uplink.
    pub(super) fn check_uplink(&self) -> Result<(), Reason> {
        match self.isolation.holder() {
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
        let waiting = async {
            loop {
                if let Some(found) = what() {
                    return Ok(found);
                }
                tokio::select! {
                    () = kept.process.ended() => {
                        let (log, start) = (program.log.clone(), kept.log_start);
                        let said = blocking(move || last_error_line(&log, start.min(log_length(&log)))).await;
                        return Err(Reason::new(UNMADE, said.unwrap_or_else(|| "it exited".into())));
                    }
                    () = tokio::time::sleep(LOOK_AGAIN) => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .unwrap_or_else(|_| Err(Reason::new(UNMADE, "it took too long")))
    }
}
