//! Ports of environments without a host name: allocated on first use, stored, and released with the deployment.
//!
//! A port is an origin. Pages of an environment that was deleted may still be open in a browser, and would belong to the
//! origin of the next environment with its port, where they act with the pass of whoever opens that one. So a port that was
//! used rests, and the one that has rested longest is used first.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};

use podium_api::DeploymentId;
use podium_domain::Refusal;
use podium_store::front_door;
use tokio::sync::{mpsc, oneshot};

use super::db;
use super::system;
use crate::App;
use crate::error::{Error, Result};
use crate::front_door::Environments;

/// How many ports in use by other programs are tried.
const ATTEMPTS: usize = 32;

/// A port to listen on, and where to report the result.
pub type ListenRequest = (u16, oneshot::Sender<std::io::Result<()>>);

/// Listeners on the environments' ports; none until a server attaches.
#[derive(Default)]
pub struct Listeners {
    ear: Mutex<Option<mpsc::Sender<ListenRequest>>>,
    /// Ports that other programs on this machine use.
    unusable: Mutex<BTreeSet<u16>>,
}

impl Listeners {
    /// Sets the server that listens on ports from now on.
    pub fn attach(&self, ear: mpsc::Sender<ListenRequest>) {
        *self.ear.lock().unwrap_or_else(PoisonError::into_inner) = Some(ear);
    }

    /// Makes sure that a port is listened on.
    async fn listen(&self, port: u16) -> std::io::Result<()> {
        let ear = self.ear.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(ear) = ear else { return Ok(()) };
        let (answer, heard) = oneshot::channel();
        if ear.send((port, answer)).await.is_err() {
            return Ok(());
        }
        heard.await.unwrap_or(Ok(()))
    }
}

impl App {
    /// Every port that belongs to a deployment; none where environments have host names.
    pub async fn environment_ports(&self) -> Result<Vec<u16>> {
        if let Environments::Domain(_) = self.config.environments {
            return Ok(Vec::new());
        }
        let system = system(self);
        db(self).scan(None, move |conn| Ok(front_door::ports(conn, &system)?)).await
    }

    /// The port of a deployment, allocated now if it has none, and listened on.
    pub(super) async fn environment_port(&self, deployment_id: DeploymentId) -> Result<u16> {
        let system = system(self);
        for _ in 0..ATTEMPTS {
            let port = match db(self)
                .read(None, move |conn| front_door::port_of(conn, &system, deployment_id))
                .await?
            {
                Some(port) => port,
                None => self.take_port(deployment_id).await?,
            };
            let Err(why) = self.listeners.listen(port).await else { return Ok(port) };
            // A port is an origin that people have links to: it changes only for a reason that stays.
            if !is_for_good(why.kind()) {
                return Err(Error::Internal(format!(
                    "the port {port} of an environment cannot be opened: {why}"
                )));
            }
            tracing::warn!(port, %why, "an environment's port cannot be used; trying another one");
            self.listeners.unusable.lock().unwrap_or_else(PoisonError::into_inner).insert(port);
            let now = self.world.now();
            db(self)
                .write(None, move |tx| front_door::free_port(tx, &system, (deployment_id, port), now))
                .await?;
        }
        Err(none_free())
    }

    async fn take_port(&self, deployment_id: DeploymentId) -> Result<u16> {
        let Environments::Ports(range) = self.config.environments.clone() else { return Err(none_free()) };
        let unusable = self.listeners.unusable.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let system = system(self);
        let take = move |tx: &podium_db::Tx| {
            if let Some(port) = front_door::port_of(tx, &system, deployment_id)? {
                return Ok((port, None));
            }
            let taken: BTreeSet<u16> = front_door::ports(tx, &system)?.into_iter().collect();
            let rested = front_door::resting_ports(tx, &system)?;
            let is_usable =
                |port: &u16| range.contains(port) && !taken.contains(port) && !unusable.contains(port);
            let is_new = |port: &u16| is_usable(port) && !rested.iter().any(|(known, _)| known == port);
            let new = range.clone().find(is_new).map(|port| (port, None));
            let longest =
                || rested.iter().find(|(port, _)| is_usable(port)).map(|(port, at)| (*port, Some(*at)));
            let (port, released_at) = new.or_else(longest).ok_or_else(none_free)?;
            // The port was taken concurrently: try again.
            front_door::take_port(tx, &system, port, deployment_id).map_err(|error| match error {
                podium_db::Error::Unique(_) => podium_db::Error::Lost,
                other => other,
            })?;
            Ok::<_, Error>((port, released_at))
        };
        let (port, released_at) = db(self).write(None, take).await?;
        if released_at.is_some_and(|at| self.world.now() < at + self.config.session) {
            tracing::warn!(
                port,
                "an environment gets a port that another one had until recently, because every other one was used since: \
                 widen --environment-ports, or use --environments-domain"
            );
        }
        Ok(port)
    }
}

/// Whether a port that cannot be listened on for this reason cannot be listened on later either.
fn is_for_good(why: ErrorKind) -> bool {
    matches!(why, ErrorKind::AddrInUse | ErrorKind::AddrNotAvailable | ErrorKind::PermissionDenied)
}

fn none_free() -> Error {
    let message = "Every port for environments is taken: ask the operator for a wider `--environment-ports`, or for host \
                   names with `--environments-domain`.";
    Refusal::Conflict(message.into()).into()
}
