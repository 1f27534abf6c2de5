//! The data planes, for whatever answers requests: it takes the proof that the caller's scope has found a deployment to
//! reach its environment.

use std::net::SocketAddr;
use std::time::Duration;

use podium_api::deployment_processes::{DeploymentProcess, DeploymentProcesses};
use podium_api::enums::PlaneKind;
use podium_app::observer::{InScope, Observer, Observing, RunningTasks};
use podium_dataplane::{
    ComponentMetrics, EnvironmentMetrics, Fault, Location, NOT_IN_TIME, Planes, WebServer,
};
use podium_domain::UserText;

/// How long a data plane may take to say how a web server is reached.
const SHOWN: Duration = Duration::from_secs(5);
/// How long a data plane may take to tell.
const PATIENCE: Duration = Duration::from_secs(3);

/// The planes of a server, behind that proof; clones share them.
#[derive(Clone)]
pub(crate) struct PlanesInScope(Planes);

impl PlanesInScope {
    pub(crate) const fn new(planes: Planes) -> Self {
        Self(planes)
    }

    /// How an environment's web server is reached; `None` if it has none, or not yet.
    pub(crate) async fn web_server(&self, at: &InScope<Location>) -> Result<Option<WebServer>, Fault> {
        let asked = tokio::time::timeout(SHOWN, self.0.of(at.get()).web_server(at.get())).await;
        asked.unwrap_or_else(|_| Err(Fault::Unreachable(NOT_IN_TIME.into())))
    }

    pub(crate) fn simulates(&self) -> bool {
        self.0.own().kind() == PlaneKind::Simulated
    }

    /// Whether the other end of a connection is a process of an environment.
    pub(crate) async fn run_peer(&self, peer: SocketAddr, own: Option<SocketAddr>) -> bool {
        self.0.run_peer(peer, own).await
    }

    /// Resource usage of this machine's environments, for its operator.
    pub(crate) async fn vitals(&self) -> Vec<EnvironmentMetrics> {
        let Some(machine) = self.0.machine() else { return Vec::new() };
        machine.all_metrics().await.unwrap_or_else(|fault| {
            tracing::warn!(%fault, "the environments of this machine cannot be measured");
            Vec::new()
        })
    }
}

impl Observer for PlanesInScope {
    fn processes<'a>(
        &'a self,
        of: &'a [InScope<Location>],
    ) -> Observing<'a, (Vec<DeploymentProcesses>, Option<UserText>)> {
        Box::pin(async {
            let of: Vec<Location> = of.iter().map(|at| at.get().clone()).collect();
            let (observed, problem) = self.0.metrics(&of, PATIENCE).await;
            let problem = problem.as_ref().map(told);
            Ok((observed.into_iter().map(processes).collect(), problem))
        })
    }

    fn running_tasks<'a>(&'a self, at: &'a InScope<Location>) -> Observing<'a, Option<RunningTasks>> {
        Box::pin(async {
            let observed = in_time(self.0.of(at.get()).running_tasks(at.get())).await?;
            Ok(observed.map(|tasks| RunningTasks { names: tasks.names, count: tasks.count }))
        })
    }

    fn runs_images(&self, plane: Option<PlaneKind>) -> bool {
        self.0.of_kind(plane).runs_images()
    }
}

async fn in_time<T>(observing: impl Future<Output = Result<T, Fault>>) -> Result<T, UserText> {
    match tokio::time::timeout(PATIENCE, observing).await {
        Ok(observed) => observed.map_err(|fault| told(&fault)),
        Err(_) => Err(NOT_IN_TIME.into()),
    }
}

fn told(fault: &Fault) -> UserText {
    tracing::debug!(%fault, "an environment cannot be observed");
    fault.reason().user_text().clone()
}

fn processes(environment: EnvironmentMetrics) -> DeploymentProcesses {
    let EnvironmentMetrics { id, components, disk } = environment;
    let memory = components.iter().filter_map(|component| component.memory);
    DeploymentProcesses {
        deployment_id: id,
        memory_bytes: components.iter().any(|component| component.memory.is_some()).then(|| memory.sum()),
        processes: components.into_iter().map(process).collect(),
        disk_bytes: disk,
        reason: None,
    }
}

fn process(component: ComponentMetrics) -> DeploymentProcess {
    let ComponentMetrics { name, is_up, problem, restarts, memory, started_at, heartbeat_at } = component;
    DeploymentProcess {
        name,
        is_up,
        reason: problem.map(|problem| problem.to_string()),
        restarts: restarts.unwrap_or_default(),
        memory_bytes: memory,
        started_at,
        heartbeat_at,
    }
}
