//! What environments do at the moment, which the database does not know.

use std::pin::Pin;

use podium_api::deployment_processes::DeploymentProcesses;
use podium_domain::UserText;
use podium_domain::planes::Location;

/// What an observer was asked for, or why it cannot tell.
pub type Observing<'a, T> = Pin<Box<dyn Future<Output = Result<T, UserText>> + Send + 'a>>;

/// Observes environments. Implemented where the data plane is known; every answer comes in bounded time.
pub trait Observer: Send + Sync {
    /// The processes of these environments, as far as they can be observed, and why others cannot.
    fn processes<'a>(
        &'a self,
        of: &'a [Location],
    ) -> Observing<'a, (Vec<DeploymentProcesses>, Option<UserText>)>;
    /// The task instances that an environment runs; `None` if it is not up.
    fn running_tasks<'a>(&'a self, at: &'a Location) -> Observing<'a, Option<RunningTasks>>;
    /// Whether images are run where an environment is.
    fn runs_images(&self, at: &Location) -> bool;
}

/// The task instances that an environment runs.
#[derive(Clone, Debug)]
pub struct RunningTasks {
    /// The names of some of them.
    pub names: Vec<String>,
    /// How many there are.
    pub count: u64,
}
