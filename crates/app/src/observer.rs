//! What environments do at the moment, which the database does not know.
//!
//! Only what a scope has found can be asked about:
//!
//! ```
//! # use podium_app::observer::{InScope, Observer};
//! # use podium_domain::planes::Location;
//! fn ask(observer: &dyn Observer, at: &InScope<Location>) {
//!     let _ = observer.running_tasks(at);
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use podium_app::observer::Observer;
//! # use podium_domain::planes::Location;
//! fn ask(observer: &dyn Observer, at: &Location) {
//!     let _ = observer.running_tasks(at);
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use podium_app::observer::Observer;
//! # use podium_domain::planes::Location;
//! fn ask(observer: &dyn Observer, of: &[Location]) {
//!     let _ = observer.processes(of);
//! }
//! ```
//!
//! Nor is somebody at the door of a deployment who has not been admitted:
//!
//! ```compile_fail,E0308
//! # use podium_app::front_door::{AdmittedCaller, DeploymentRef};
//! fn pass(caller: AdmittedCaller, other: DeploymentRef) -> AdmittedCaller {
//!     AdmittedCaller { at: other, ..caller }
//! }
//! ```

use std::pin::Pin;

use podium_api::deployment_processes::DeploymentProcesses;
use podium_api::enums::PlaneKind;
use podium_domain::UserText;
use podium_domain::planes::Location;
pub use podium_store::InScope;

/// What an observer was asked for, or why it cannot tell.
pub type Observing<'a, T> = Pin<Box<dyn Future<Output = Result<T, UserText>> + Send + 'a>>;

/// Observes environments. Implemented where the data plane is known; every answer comes in bounded time.
pub trait Observer: Send + Sync {
    /// The processes of these environments, as far as they can be observed, and why others cannot.
    fn processes<'a>(
        &'a self,
        of: &'a [InScope<Location>],
    ) -> Observing<'a, (Vec<DeploymentProcesses>, Option<UserText>)>;
    /// The task instances that an environment runs; `None` if it is not up.
    fn running_tasks<'a>(&'a self, at: &'a InScope<Location>) -> Observing<'a, Option<RunningTasks>>;
    /// Whether images are run on a plane; `None` is that of the server's own infrastructure.
    fn runs_images(&self, plane: Option<PlaneKind>) -> bool;
}

/// The task instances that an environment runs.
#[derive(Clone, Debug)]
pub struct RunningTasks {
    pub names: Vec<String>,
    pub count: u64,
}
