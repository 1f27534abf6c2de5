//! The planes of a server: a cluster decides on which one its deployments run.
//!
//! Nothing moves by accident: what was made on one plane is asked of that plane for as long as it exists. If the server
//! was started without it, it does not answer, and the deployments there are UNKNOWN.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use podium_api::enums::PlaneKind;
use podium_domain::planes::{ClusterLocation, Location};
use podium_domain::{Given, UserText};

use crate::{
    ChangeNotifier, Changes, Cluster, DataPlane, Environment, EnvironmentMetrics, Fault, Machine, Observed,
    ObservedCluster, PlaneFuture, WebServer,
};

/// What is said of a plane that takes too long to answer.
pub const NOT_IN_TIME: &str = "it does not answer in time";

/// The planes of a server; clones share them.
#[derive(Clone)]
pub struct Planes {
    /// That of the server's own infrastructure first.
    planes: Arc<[Arc<dyn DataPlane>]>,
    missing: Arc<[Arc<dyn DataPlane>]>,
}

impl Planes {
    /// The plane of the server's own infrastructure, and further ones for clusters. Each is of another kind.
    pub fn new(own: Arc<dyn DataPlane>, further: impl IntoIterator<Item = Arc<dyn DataPlane>>) -> Self {
        let planes: Arc<[Arc<dyn DataPlane>]> = std::iter::once(own).chain(further).collect();
        let has = |kind| planes.iter().any(|plane| plane.kind() == kind);
        let missing = PlaneKind::ALL.iter().copied().filter(|kind| !has(*kind));
        let missing = missing.map(|kind| Arc::new(Missing(kind)) as Arc<dyn DataPlane>).collect();
        Self { planes, missing }
    }

    /// A server with a single plane.
    pub fn only(own: Arc<dyn DataPlane>) -> Self {
        Self::new(own, [])
    }

    /// The plane of the server's own infrastructure.
    pub fn own(&self) -> &Arc<dyn DataPlane> {
        &self.planes[0]
    }

    /// The plane that an environment is on.
    pub fn of(&self, location: &Location) -> &Arc<dyn DataPlane> {
        self.of_kind(location.plane())
    }

    pub fn of_cluster(&self, location: ClusterLocation) -> &Arc<dyn DataPlane> {
        self.of_kind(location.plane)
    }

    /// The plane of a kind; `None` is that of the server's own infrastructure.
    pub fn of_kind(&self, kind: Option<PlaneKind>) -> &Arc<dyn DataPlane> {
        let Some(kind) = kind else { return self.own() };
        let mut all = self.planes.iter().chain(self.missing.iter());
        all.find(|plane| plane.kind() == kind).unwrap_or_else(|| self.own())
    }

    /// The plane that makes or connects a new cluster, or why none does.
    pub fn for_new(&self, cluster: &Cluster) -> Result<PlaneKind, UserText> {
        let mut refused = None;
        for plane in self.planes.iter() {
            match plane.accepts(cluster) {
                Ok(()) => return Ok(plane.kind()),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        Err(refused.unwrap_or_default())
    }

    /// The machine that a plane of this server is bound to.
    pub fn machine(&self) -> Option<&dyn Machine> {
        self.planes.iter().find_map(|plane| plane.machine())
    }

    /// Whether the other end of a connection is a process of an environment.
    pub async fn run_peer(&self, peer: SocketAddr, own: Option<SocketAddr>) -> bool {
        let Some(machine) = self.machine() else { return false };
        machine.runs_peer(peer, own).await.unwrap_or(true)
    }

    /// The resource metrics of environments, as far as their planes measure them in time. What keeps one plane from answering
    /// is returned beside what others know.
    pub async fn metrics(
        &self,
        of: &[Location],
        patience: Duration,
    ) -> (Vec<EnvironmentMetrics>, Option<Fault>) {
        let asking = self.planes.iter().chain(self.missing.iter()).map(|plane| {
            let there = |location: &&Location| Arc::ptr_eq(self.of(location), plane);
            let there: Vec<Location> = of.iter().filter(there).cloned().collect();
            async move {
                if there.is_empty() {
                    return Ok(Vec::new());
                }
                let measured = tokio::time::timeout(patience, plane.metrics(&there)).await;
                measured.unwrap_or_else(|_| Err(Fault::Unreachable(NOT_IN_TIME.into())))
            }
        });
        let (mut metrics, mut problem) = (Vec::new(), None);
        for told in join_all(asking).await {
            match told {
                Ok(told) => metrics.extend(told),
                Err(fault) => problem = problem.or(Some(fault)),
            }
        }
        (metrics, problem)
    }

    pub fn changes(&self) -> Changes {
        Changes::merged(self.planes.iter().map(|plane| plane.changes()))
    }
}

/// A plane that is not part of this server.
pub(super) struct Missing(pub(super) PlaneKind);

impl Missing {
    fn answer<T>(&self) -> PlaneFuture<'_, T> {
        Box::pin(async { Err(Fault::Unreachable(self.why().into())) })
    }

    fn why(&self) -> UserText {
        let name = self.0.as_str().to_lowercase();
        let told = "It was made on the data plane {}, which this server was started without.";
        UserText::filled(told, &[&Given::word(&name)])
    }
}

impl DataPlane for Missing {
    fn kind(&self) -> PlaneKind {
        self.0
    }

    fn accepts(&self, _: &Cluster) -> Result<(), UserText> {
        Err(self.why())
    }

    fn apply<'a>(&'a self, _: &'a Environment) -> PlaneFuture<'a, ()> {
        self.answer()
    }

    fn observe<'a>(&'a self, _: &'a Location) -> PlaneFuture<'a, Option<Observed>> {
        self.answer()
    }

    fn remove<'a>(&'a self, _: &'a Location) -> PlaneFuture<'a, ()> {
        self.answer()
    }

    fn apply_cluster<'a>(&'a self, _: &'a Cluster) -> PlaneFuture<'a, ()> {
        self.answer()
    }

    fn observe_cluster(&self, _: ClusterLocation) -> PlaneFuture<'_, Option<ObservedCluster>> {
        self.answer()
    }

    fn remove_cluster(&self, _: ClusterLocation) -> PlaneFuture<'_, ()> {
        self.answer()
    }

    fn web_server<'a>(&'a self, _: &'a Location) -> PlaneFuture<'a, Option<WebServer>> {
        self.answer()
    }

    fn metrics<'a>(&'a self, _: &'a [Location]) -> PlaneFuture<'a, Vec<EnvironmentMetrics>> {
        self.answer()
    }

    fn changes(&self) -> Changes {
        ChangeNotifier::default().subscribe()
    }
}

#[cfg(test)]
mod tests;
