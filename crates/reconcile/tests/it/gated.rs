//! A simulated plane that can be paused in the middle of a call, and that records what it was given.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use podium_api::{ClusterId, DeploymentId};
use podium_dataplane::simulated::Simulated;
use podium_dataplane::{
    Changes, Cluster, DataPlane, Environment, Observed, ObservedCluster, PlaneFuture, WebServer,
};
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
        let plane: Arc<dyn DataPlane> = Arc::<Self>::clone(self);
        Loops::new(&app.app, app.system, &plane, options)
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

    fn observe(&self, id: DeploymentId) -> PlaneFuture<'_, Option<Observed>> {
        self.inner.observe(id)
    }

    fn remove(&self, id: DeploymentId) -> PlaneFuture<'_, ()> {
        self.inner.remove(id)
    }

    fn apply_cluster<'a>(&'a self, cluster: &'a Cluster) -> PlaneFuture<'a, ()> {
        self.inner.apply_cluster(cluster)
    }

    fn observe_cluster(&self, id: ClusterId) -> PlaneFuture<'_, Option<ObservedCluster>> {
        self.inner.observe_cluster(id)
    }

    fn remove_cluster(&self, id: ClusterId) -> PlaneFuture<'_, ()> {
        self.inner.remove_cluster(id)
    }

    fn web_server(&self, id: DeploymentId) -> PlaneFuture<'_, Option<WebServer>> {
        self.inner.web_server(id)
    }

    fn changes(&self) -> Changes {
        self.inner.changes()
    }
}
