//! Observes environments for the application, with the data plane.

use std::time::Duration;

use podium_api::deployment_processes::{DeploymentProcess, DeploymentProcesses};
use podium_app::observer::{Observer, Observing, RunningTasks};
use podium_dataplane::{ComponentMetrics, EnvironmentMetrics, Fault, Location, Planes};
use podium_domain::UserText;

/// How long a data plane may take to tell.
const PATIENCE: Duration = Duration::from_secs(3);

/// Observes environments of data planes.
pub(crate) struct PlaneObserver(pub(crate) Planes);

impl Observer for PlaneObserver {
    fn processes<'a>(
        &'a self,
        of: &'a [Location],
    ) -> Observing<'a, (Vec<DeploymentProcesses>, Option<UserText>)> {
        Box::pin(async {
            let (observed, problem) = in_time(async { Ok(self.0.metrics(of).await) }).await?;
            let problem = problem.as_ref().map(told);
            Ok((observed.into_iter().map(processes).collect(), problem))
        })
    }

    fn running_tasks<'a>(&'a self, at: &'a Location) -> Observing<'a, Option<RunningTasks>> {
        Box::pin(async {
            let observed = in_time(self.0.of(at).running_tasks(at)).await?;
            Ok(observed.map(|tasks| RunningTasks { names: tasks.names, count: tasks.count }))
        })
    }

    fn runs_images(&self, at: &Location) -> bool {
        self.0.of(at).runs_images()
    }
}

async fn in_time<T>(observing: impl Future<Output = Result<T, Fault>>) -> Result<T, UserText> {
    match tokio::time::timeout(PATIENCE, observing).await {
        Ok(observed) => observed.map_err(|fault| told(&fault)),
        Err(_) => Err("it does not answer in time".into()),
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
