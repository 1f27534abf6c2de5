//! What deployments run on: one interface, and the planes behind it.
//!
//! A plane is told what is wanted and shows what is there. It decides nothing about deployments: what follows from what
//! it shows is `podium-domain`'s to say, when to look is the loops'. It does not know the database, and nothing that it
//! keeps is needed to rebuild it: everything can be applied again.

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "most of what waits is there only"))]
mod blocking;
mod changes;
mod clusters;
#[cfg(test)]
mod conformance;
mod environment;
mod fault;
#[cfg(target_os = "linux")]
pub mod local;
mod log_line;
mod metrics;
mod secret;
pub mod simulated;
mod web_server;

use std::pin::Pin;

use podium_api::{ClusterId, DeploymentId};

pub use changes::{ChangeNotifier, Changed, Changes};
pub use clusters::{Cluster, ObservedCluster};
pub use environment::{Environment, Identity, Objects, Setting};
pub use fault::Fault;
pub use log_line::LogLine;
pub use podium_domain::airflow::Line;
pub use podium_domain::clusters::plan::Progress;
pub use podium_domain::deployments::plan::{Component, Health, Observed, Rollout};
pub use secret::Secret;
pub use web_server::WebServer;

pub use metrics::{ComponentMetrics, EnvironmentMetrics};

/// What a plane answers, some time.
pub type PlaneFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// What environments and clusters run on.
///
/// Every call answers soon and may be repeated: it takes note of what is wanted, and the work goes on behind it.
/// `observe` shows how far it got. A call may be cut off and may take effect nevertheless, so whoever calls looks again.
pub trait DataPlane: Send + Sync {
    /// Makes an environment as described. One of an older generation than was applied before changes nothing: it comes
    /// from somebody who was overtaken.
    fn apply<'a>(&'a self, environment: &'a Environment) -> PlaneFuture<'a, ()>;

    /// Shows an environment; `None` where nothing is left of it.
    fn observe(&self, id: DeploymentId) -> PlaneFuture<'_, Option<Observed>>;

    /// Removes an environment and everything that it kept; one that is not there is removed already.
    fn remove(&self, id: DeploymentId) -> PlaneFuture<'_, ()>;

    /// Makes a cluster as described.
    fn apply_cluster<'a>(&'a self, cluster: &'a Cluster) -> PlaneFuture<'a, ()>;

    /// Shows a cluster; `None` where nothing is left of it.
    fn observe_cluster(&self, id: ClusterId) -> PlaneFuture<'_, Option<ObservedCluster>>;

    /// Removes a cluster; one that is not there is removed already.
    fn remove_cluster(&self, id: ClusterId) -> PlaneFuture<'_, ()>;

    /// The way to an environment's web server; `None` where there is none, or none yet.
    fn web_server(&self, id: DeploymentId) -> PlaneFuture<'_, Option<WebServer>>;

    /// The users of this machine that environments run under, if it is this machine and they are told apart by users.
    /// What such a process has of a browser's is not its own.
    fn environment_users(&self) -> Option<std::ops::Range<u32>> {
        None
    }

    /// What changes by itself from now on. Whoever listens looks at everything first: see [`Changes`].
    fn changes(&self) -> Changes;

    /// Whether environments run on the machine that this process runs on, so that no other replica can look after them.
    fn is_bound_to_machine(&self) -> bool {
        false
    }

    /// The environments that are on this machine, for a plane that is bound to one.
    fn local_environments(&self) -> Vec<DeploymentId> {
        Vec::new()
    }

    /// What the components of the environments here take, for the operator's numbers; nothing where nobody measures.
    fn metrics(&self) -> PlaneFuture<'_, Vec<EnvironmentMetrics>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Ends an environment that another machine runs by now. What it kept is put where nothing starts it again, for an
    /// operator to look at or to delete.
    fn set_aside(&self, id: DeploymentId) -> PlaneFuture<'_, ()> {
        self.remove(id)
    }
}
