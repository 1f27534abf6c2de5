//! Observes environments for the application, with the data plane.

use std::sync::Arc;
use std::time::Duration;

use podium_api::DeploymentId;
use podium_api::deployment_processes::{DeploymentProcess, DeploymentProcesses};
use podium_app::observer::{Observer, Observing, RunningTasks};
use podium_dataplane::{ComponentMetrics, DataPlane, EnvironmentMetrics, PlaneFuture};
use podium_domain::UserText;

/// How long a data plane may take to tell.
const PATIENCE: Duration = Duration::from_secs(3);

/// Observes environments of a data plane.
pub(crate) struct PlaneObserver {
    plane: Arc<dyn DataPlane>,
    /// Held by whoever observes processes: that looks at all of the machine, so one at a time does.
    turn: tokio::sync::Mutex<()>,
}

impl PlaneObserver {
    pub(crate) fn new(plane: Arc<dyn DataPlane>) -> Self {
        Self { plane, turn: tokio::sync::Mutex::default() }
    }
}

impl Observer for PlaneObserver {
    fn processes(&self) -> Observing<'_, Vec<DeploymentProcesses>> {
        Box::pin(async {
            let observing = async {
                let _turn = self.turn.lock().await;
                self.plane.metrics().await
            };
            let observed = in_time(Box::pin(observing)).await?;
            Ok(observed.into_iter().map(processes).collect())
        })
    }

    fn running_tasks(&self, id: DeploymentId) -> Observing<'_, Option<RunningTasks>> {
        Box::pin(async move {
            let observed = in_time(self.plane.running_tasks(id)).await?;
            Ok(observed.map(|tasks| RunningTasks { names: tasks.names, count: tasks.count }))
        })
    }
}

async fn in_time<T>(observing: PlaneFuture<'_, T>) -> Result<T, UserText> {
    match tokio::time::timeout(PATIENCE, observing).await {
        Ok(Ok(observed)) => Ok(observed),
        Ok(Err(fault)) => {
            tracing::debug!(%fault, "an environment cannot be observed");
            Err(fault.reason().user_text().clone())
        }
        Err(_) => Err("it does not answer in time".into()),
    }
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
