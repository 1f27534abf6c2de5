//! A simulated plane that can be paused in the middle of a call, and that records what it was given.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use podium_api::enums::PlaneKind;
use podium_dataplane::simulated::Simulated;
use podium_dataplane::{
    Changes, Cluster, ClusterLocation, DataPlane, Environment, EnvironmentMetrics, Location, Machine,
    Observed, ObservedCluster, PlaneFuture, Planes, WebServer,
};
use podium_domain::UserText;
use podium_reconcile::{Loops, Options};
use podium_testkit::TestApp;
use tokio::sync::oneshot;

/// A plane with a gate behind each of its next calls of `apply`.
pub(crate) struct Gated {
    inner: Arc<Simulated>,
    gates: Mutex<VecDeque<(oneshot::Sender<()>, oneshot::Receiver<()>)>>,
    applied: Mutex<Vec<Environment>>,
}

/// Somebody waits behind it once `reached` resolves, until it is opened or dropped.
pub(crate) struct Gate {
    pub(crate) reached: oneshot::Receiver<()>,
    pub(crate) open: oneshot::Sender<()>,
}

impl Gated {
    pub(crate) fn new(app: &TestApp) -> Arc<Self> {
        let inner = Arc::clone(&app.plane);
        Arc::new(Self { inner, gates: Mutex::default(), applied: Mutex::default() })
    }

    /// Loops that work on this plane.
    pub(crate) fn loops(self: &Arc<Self>, app: &TestApp) -> Loops {
        self.loops_with(app, Options::default())
    }

    pub(crate) fn loops_with(self: &Arc<Self>, app: &TestApp, options: Options) -> Loops {
        Loops::new(&app.app, app.system.steward(), &Planes::only(Arc::<Self>::clone(self)), options)
    }

    /// Stops the next `apply` that is not stopped yet, after it has taken effect.
    pub(crate) fn stop_next_apply(&self) -> Gate {
        let ((here, reached), (open, opened)) = (oneshot::channel(), oneshot::channel());
        self.gates.lock().unwrap().push_back((here, opened));
        Gate { reached, open }
    }

    /// What was applied so far.
    pub(crate) fn applied(&self) -> Vec<Environment> {
        std::mem::take(&mut *self.applied.lock().unwrap())
    }
}

impl DataPlane for Gated {
    fn kind(&self) -> PlaneKind {
        self.inner.kind()
    }

    fn accepts(&self, cluster: &Cluster) -> Result<(), UserText> {
        self.inner.accepts(cluster)
    }

    fn apply<'a>(&'a self, environment: &'a Environment) -> PlaneFuture<'a, ()> {
        Box::pin(async move {
            let answer = self.inner.apply(environment).await;
            self.applied.lock().unwrap().push(environment.clone());
            let gate = self.gates.lock().unwrap().pop_front();
            if let Some((here, opened)) = gate {
                let _ = here.send(());
                let _ = opened.await;
            }
            answer
        })
    }

    fn observe<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, Option<Observed>> {
        self.inner.observe(at)
    }

    fn remove<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, ()> {
        self.inner.remove(at)
    }

    fn apply_cluster<'a>(&'a self, cluster: &'a Cluster) -> PlaneFuture<'a, ()> {
        self.inner.apply_cluster(cluster)
    }

    fn observe_cluster(&self, at: ClusterLocation) -> PlaneFuture<'_, Option<ObservedCluster>> {
        self.inner.observe_cluster(at)
    }

    fn remove_cluster(&self, at: ClusterLocation) -> PlaneFuture<'_, ()> {
        self.inner.remove_cluster(at)
    }

    fn web_server<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, Option<WebServer>> {
        self.inner.web_server(at)
    }

    fn metrics<'a>(&'a self, of: &'a [Location]) -> PlaneFuture<'a, Vec<EnvironmentMetrics>> {
        self.inner.metrics(of)
    }

    fn machine(&self) -> Option<&dyn Machine> {
        self.inner.machine()
    }

    fn changes(&self) -> Changes {
        self.inner.changes()
    }
}
