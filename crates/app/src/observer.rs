//! What environments do at the moment, which the database does not know.

use std::pin::Pin;

use podium_api::DeploymentId;
use podium_api::deployment_processes::DeploymentProcesses;
use podium_domain::UserText;

/// What an observer was asked for, or why it cannot tell.
pub type Observing<'a, T> = Pin<Box<dyn Future<Output = Result<T, UserText>> + Send + 'a>>;

/// Observes environments. Implemented where the data plane is known; every answer comes in bounded time.
pub trait Observer: Send + Sync {
    /// The processes of the environments of this machine.
    fn processes(&self) -> Observing<'_, Vec<DeploymentProcesses>>;
    /// The task instances that an environment runs; `None` if it is not up.
    fn running_tasks(&self, id: DeploymentId) -> Observing<'_, Option<RunningTasks>>;
}

/// The task instances that an environment runs.
#[derive(Clone, Debug)]
pub struct RunningTasks {
    /// The names of some of them.
    pub names: Vec<String>,
    /// How many there are.
    pub count: u64,
}
