//! The network of an environment, where environments have their own: made before anything starts in it, and found again
//! after a restart.

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
/// How long a network and the way out of it may take: fractions of a second on a machine that works.
const PATIENCE: Duration = Duration::from_secs(30);

/// What people are told where it cannot be made; operators are told why.
const UNMADE: &str = "its network cannot be created";

impl Supervisor {
    /// Makes the environment's own network unless it is there, with a way out, and has everything that starts from now on
    /// start in it. The answer is what makes it; nothing where environments share the machine's.
    pub(super) async fn ensure_network(&mut self) -> Result<Vec<Program>, Reason> {
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
            // Whatever runs in an older one keeps that until it ends.
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

    /// The bounds with the network that is there. Where there is none they are such that nothing starts: never in the
    /// machine's own.
    pub(super) fn in_own_network(&self, isolation: Isolation, network: &Network) -> Isolation {
        match network {
            Network::Shared(_) | Network::Filtered(..) => isolation,
            Network::Own(_) => {
                let holder = self.holder().unwrap_or_default();
                isolation.in_network(holder, number_of(&holder.to_string()).unwrap_or_default())
            }
        }
    }

    /// Forgets what a filter knows of it.
    pub(super) async fn remove_from_filter(&self) {
        let Ok(host) = self.plane.host().await else { return };
        if let (Network::Filtered(filter, _), Some(user)) = (&host.network, self.isolation.user()) {
            let filter = Arc::clone(filter);
            if let Err(error) = blocking(move || filter.forget(user)).await {
                tracing::warn!(id = %self.id, %error, "the loopback packet filter cannot be updated");
            }
        }
    }

    /// Whether its network has to be made again.
    pub(super) fn has_lost_network(&self) -> bool {
        self.isolation.holder().is_some() && self.holder() != self.isolation.holder()
    }

    /// How the way out does.
    pub(super) fn check_uplink(&self) -> Result<(), Reason> {
        match self.isolation.holder() {
            Some(holder) if !has_uplink(holder) => Err("its network has no uplink yet".into()),
            _ => Ok(()),
        }
    }

    /// What a program is started with, its bounds included. What makes networks is in no bounds but its own.
    pub(super) fn fingerprint(&self, program: &Program) -> String {
        let bounds: &[OsString] = if is_network(&program.name) { &[] } else { self.isolation.bounds() };
        program.fingerprint(&self.plane.key(self.id, "fingerprint"), bounds)
    }

    fn holder(&self) -> Option<i32> {
        self.processes.get(HOLDER).map(|kept| kept.process.identity.pid)
    }

    /// Waits until something is so that a component makes so.
    async fn until<T>(&self, program: &Program, what: impl Fn() -> Option<T>) -> Result<T, Reason> {
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
