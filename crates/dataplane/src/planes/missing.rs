//! A plane that this server was started without: it answers nothing, and says how to get it back.

use podium_api::enums::PlaneKind;
use podium_domain::planes::{ClusterLocation, Location};
use podium_domain::{Given, UserText};

use crate::{
    ChangeNotifier, Changes, Cluster, DataPlane, Environment, EnvironmentMetrics, Fault, Observed,
    ObservedCluster, PlaneFuture, WebServer,
};

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
