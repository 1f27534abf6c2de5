//! Data planes: the interface that deployments run on, and its implementations.
//!
//! A plane is given the desired state and reports the observed state. It makes no decisions about deployments:
//! `podium-domain` decides what follows from an observation, and the loops decide when to observe. It does not know the
//! database, and its own files are not needed to rebuild it: everything can be applied again.

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "most blocking code is there only"))]
mod blocking;
mod changes;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod fault;
#[cfg(target_os = "linux")]
pub mod local;
mod observed;
mod planes;
mod services;
pub mod simulated;
mod socket_owners;

use std::ops::RangeInclusive;
use std::pin::Pin;
use std::time::Duration;

use podium_api::deploy_reports::RolloutReport;
use podium_api::enums::PlaneKind;
use podium_domain::UserText;

pub use changes::{ChangeNotifier, Changed, Changes};
pub use fault::Fault;
pub use observed::{
    Cluster, ComponentMetrics, EnvironmentMetrics, LogLine, Machine, ObservedCluster, Upstream, UpstreamTls,
    WebServer,
};
pub use planes::{NOT_IN_TIME, Planes};
pub use podium_airflow::{CleanUp, CleanUpState, Environment, Objects, RunningTasks, Secret, Setting};
pub use podium_domain::airflow::Line;
pub use podium_domain::clusters::plan::Progress;
pub use podium_domain::deployments::plan::{Component, Health, Observed, Rollout};
pub use podium_domain::planes::{ClusterLocation, Location};
pub use services::{Archive, Archives, Claims, Clock, Keys, LogSink, Logs, Services};

pub type PlaneFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send + 'a>>;

/// Runs environments and clusters.
///
/// Every call returns quickly and may be repeated: it records what is wanted, and the work continues in the background.
/// `observe` reports the progress. A cancelled call may still take effect, so callers must observe again.
pub trait DataPlane: Send + Sync {
    fn kind(&self) -> PlaneKind;

    /// Whether it makes or connects a new cluster; if it does not, why.
    fn accepts(&self, cluster: &Cluster) -> Result<(), UserText>;

    /// Whether it runs images. A plane that does not uses runtimes that are installed where it runs.
    fn runs_images(&self) -> bool {
        true
    }

    /// Applies the desired state of an environment. An older generation than the one applied last changes nothing: its
    /// sender was overtaken.
    fn apply<'a>(&'a self, environment: &'a Environment) -> PlaneFuture<'a, ()>;

    /// Observes an environment; `None` if nothing is left of it.
    fn observe<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, Option<Observed>>;

    /// The findings about an environment's last rollout that ended, with its generation; `None` if the plane has none.
    fn rollout_report<'a>(&'a self, _: &'a Location) -> PlaneFuture<'a, Option<(i64, RolloutReport)>> {
        Box::pin(async { Ok(None) })
    }

    /// Removes an environment and all its data; removing one that does not exist succeeds.
    fn remove<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, ()>;

    /// Removes an environment once its running tasks have finished, after this long at most; a plane that runs no tasks
    /// removes it at once.
    fn drain_and_remove<'a>(&'a self, at: &'a Location, _: Option<Duration>) -> PlaneFuture<'a, ()> {
        self.remove(at)
    }

    /// Ends the wait for running tasks that an environment of this generation is in, if it is.
    fn end_drain<'a>(&'a self, _: &'a Location, _: i64) -> PlaneFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Cleans up the history of a running environment, once for each id, and reports how far that is. One that is not known
    /// to the plane begins, also after a restart. A plane that keeps no history has nothing to do.
    fn clean_up<'a>(&'a self, _: &'a Location, _: CleanUp) -> PlaneFuture<'a, CleanUpState> {
        Box::pin(async { Ok(CleanUpState::Done(UserText::EMPTY)) })
    }

    fn apply_cluster<'a>(&'a self, cluster: &'a Cluster) -> PlaneFuture<'a, ()>;

    /// Observes a cluster; `None` if nothing is left of it.
    fn observe_cluster(&self, at: ClusterLocation) -> PlaneFuture<'_, Option<ObservedCluster>>;

    /// Removes a cluster; removing one that does not exist succeeds.
    fn remove_cluster(&self, at: ClusterLocation) -> PlaneFuture<'_, ()>;

    /// How an environment's web server is reached; `None` if it has none, or not yet.
    fn web_server<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, Option<WebServer>>;

    /// Subscribes to changes from now on; the first one is `Everything`, see [`Changes`].
    fn changes(&self) -> Changes;

    /// Resource metrics of the components of these environments; those that it does not measure are left out.
    fn metrics<'a>(&'a self, of: &'a [Location]) -> PlaneFuture<'a, Vec<EnvironmentMetrics>>;

    /// The task instances that an environment runs; `None` if it cannot run any, because it is not up.
    fn running_tasks<'a>(&'a self, _: &'a Location) -> PlaneFuture<'a, Option<RunningTasks>> {
        Box::pin(async { Ok(None) })
    }

    /// The machine of this process, if its environments run there.
    fn machine(&self) -> Option<&dyn Machine> {
        None
    }
}

/// Two ports and those between them, as people write them.
pub fn ports(text: &str) -> Result<RangeInclusive<u16>, &'static str> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse::<u16>(), last.trim().parse::<u16>()) {
        (Ok(first), Ok(last)) if first > 0 && first <= last => Ok(first..=last),
        _ => Err("give two ports such as 18000-18999, the lower one first"),
    }
}
