//! Data planes: the interface that deployments run on, and its implementations.
//!
//! A plane is given the desired state and reports the observed state. It makes no decisions about deployments:
//! `podium-domain` decides what follows from an observation, and the loops decide when to observe. It does not know the
//! database, and its own files are not needed to rebuild it: everything can be applied again.

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "most blocking code is there only"))]
mod blocking;
mod changes;
mod clean_up;
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
use std::time::Duration;

use podium_api::deploy_reports::RolloutReport;
use podium_api::{ClusterId, DeploymentId};

pub use changes::{ChangeNotifier, Changed, Changes};
pub use clean_up::{CleanUp, CleanUpState};
pub use clusters::{Cluster, ObservedCluster};
pub use environment::{Environment, Identity, Objects, Setting};
pub use fault::Fault;
pub use log_line::LogLine;
pub use podium_domain::airflow::Line;
pub use podium_domain::clusters::plan::Progress;
pub use podium_domain::deployments::plan::{Component, Health, Observed, Rollout};
pub use secret::Secret;
pub use web_server::WebServer;

pub use metrics::{ComponentMetrics, EnvironmentMetrics, RunningTasks};

/// The future of a data plane call.
pub type PlaneFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// Runs environments and clusters.
///
/// Every call returns quickly and may be repeated: it records what is wanted, and the work continues in the background.
/// `observe` reports the progress. A cancelled call may still take effect, so callers must observe again.
pub trait DataPlane: Send + Sync {
    /// Applies the desired state of an environment. An older generation than the one applied last changes nothing: its
    /// sender was overtaken.
    fn apply<'a>(&'a self, environment: &'a Environment) -> PlaneFuture<'a, ()>;

    /// Observes an environment; `None` if nothing is left of it.
    fn observe(&self, id: DeploymentId) -> PlaneFuture<'_, Option<Observed>>;

    /// The findings about an environment's last rollout that ended, with its generation; `None` if the plane has none.
    fn rollout_report(&self, _: DeploymentId) -> PlaneFuture<'_, Option<(i64, RolloutReport)>> {
        Box::pin(async { Ok(None) })
    }

    /// Removes an environment and all its data; removing one that does not exist succeeds.
    fn remove(&self, id: DeploymentId) -> PlaneFuture<'_, ()>;

    /// Removes an environment once its running tasks have finished, after this long at most; a plane that runs no tasks
    /// removes it at once.
    fn drain_and_remove(&self, id: DeploymentId, _: Option<Duration>) -> PlaneFuture<'_, ()> {
        self.remove(id)
    }

    /// Ends the wait for running tasks that an environment of this generation is in, if it is.
    fn end_drain(&self, _: DeploymentId, _: i64) -> PlaneFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Cleans up the history of a running environment, once for each id, and reports how far that is. One that is not known
    /// to the plane begins, also after a restart. A plane that keeps no history has nothing to do.
    fn clean_up(&self, _: DeploymentId, _: CleanUp) -> PlaneFuture<'_, CleanUpState> {
        Box::pin(async { Ok(CleanUpState::Done(podium_domain::UserText::EMPTY)) })
    }

    /// Applies the desired state of a cluster.
    fn apply_cluster<'a>(&'a self, cluster: &'a Cluster) -> PlaneFuture<'a, ()>;

    /// Observes a cluster; `None` if nothing is left of it.
    fn observe_cluster(&self, id: ClusterId) -> PlaneFuture<'_, Option<ObservedCluster>>;

    /// Removes a cluster; removing one that does not exist succeeds.
    fn remove_cluster(&self, id: ClusterId) -> PlaneFuture<'_, ()>;

    /// Address and key of an environment's web server; `None` if it has none, or not yet.
    fn web_server(&self, id: DeploymentId) -> PlaneFuture<'_, Option<WebServer>>;

    /// The users of this machine that environments run as, if they run on this machine with users of their own. A
    /// browser cookie that such a process presents is not its own.
    fn environment_users(&self) -> Option<std::ops::Range<u32>> {
        None
    }

    /// Subscribes to changes from now on; the first one is `Everything`, see [`Changes`].
    fn changes(&self) -> Changes;

    /// Whether environments run on the same machine as this process, so that no other replica can manage them.
    fn is_bound_to_machine(&self) -> bool {
        false
    }

    /// The environments on this machine, for a plane that is bound to a machine.
    fn local_environments(&self) -> Vec<DeploymentId> {
        Vec::new()
    }

    /// Resource metrics of the components of local environments, for operators; empty if the plane does not measure.
    fn metrics(&self) -> PlaneFuture<'_, Vec<EnvironmentMetrics>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// The task instances that an environment runs; `None` if it cannot run any, because it is not up.
    fn running_tasks(&self, _: DeploymentId) -> PlaneFuture<'_, Option<RunningTasks>> {
        Box::pin(async { Ok(None) })
    }

    /// Stops an environment that another machine now runs. Its data is moved to where nothing starts it again, for an
    /// operator to inspect or delete.
    fn set_aside(&self, id: DeploymentId) -> PlaneFuture<'_, ()> {
        self.remove(id)
    }
}
