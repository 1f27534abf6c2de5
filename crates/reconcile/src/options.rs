//! How the loops work, and what they need from others.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use podium_api::Id;
use podium_dataplane::Objects;
use podium_store::deployments::DeploymentRow;

type Later<T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;

/// Removes what else was kept of a deployment that is gone from the data plane; it may be called more than once.
pub type Cleanup = Arc<dyn Fn(Id) -> Later<()> + Send + Sync>;

/// Finds what environment objects give a deployment, with secrets open.
pub type ObjectsOf = Arc<dyn Fn(&DeploymentRow) -> Later<Objects> + Send + Sync>;

/// How the loops work.
#[derive(Clone)]
pub struct Options {
    /// Steps of each kind at once. Kinds do not share: one that is slow keeps no other waiting.
    pub concurrency: usize,
    /// How long work is held; after that another replica takes it over.
    pub lease: Duration,
    /// How long a step may take before it is cut off; shorter than the lease.
    pub step_time: Duration,
    /// The longest sleep where other replicas bring work too: a wake-up of theirs may get lost.
    pub longest_sleep: Duration,
    /// What else goes with a deployment.
    pub cleanups: Vec<Cleanup>,
    /// What environment objects give a deployment.
    pub objects: ObjectsOf,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 64,
            lease: Duration::from_secs(30),
            step_time: Duration::from_secs(20),
            longest_sleep: Duration::from_secs(30),
            cleanups: Vec::new(),
            objects: Arc::new(|_| Box::pin(async { Ok(Objects::default()) })),
        }
    }
}
