//! What only a plane can do that runs environments on the machine of this process.

use std::net::SocketAddr;

use podium_api::DeploymentId;

use crate::{EnvironmentMetrics, PlaneFuture};

/// The machine that a plane is bound to. No other replica can manage what runs there.
pub trait Machine: Send + Sync {
    /// The environments on this machine.
    fn environments(&self) -> Vec<DeploymentId>;

    /// Whether the process at the other end of a connection, whose own end is the second address, belongs to an
    /// environment. Where that cannot be determined, a process of this machine counts as one.
    fn runs_peer(&self, peer: SocketAddr, own: Option<SocketAddr>) -> PlaneFuture<'_, bool>;

    /// Resource metrics of the components of all environments on this machine, for operators.
    fn all_metrics(&self) -> PlaneFuture<'_, Vec<EnvironmentMetrics>>;

    /// Stops an environment that another machine now runs. Its data is moved to where nothing starts it again, for an
    /// operator to inspect or delete.
    fn set_aside(&self, id: DeploymentId) -> PlaneFuture<'_, ()>;

    /// Called when the server has stopped: ends what runs of environments that are being removed, and leaves the others
    /// running for the next start. The plane manages none of them any more.
    fn end(&self) -> PlaneFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}
