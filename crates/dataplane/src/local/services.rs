//! What the plane is given by whoever opens it.

use std::io::Read;
use std::sync::Arc;

use podium_api::DeploymentId;

use crate::simulated::Clock;
use crate::{Fault, LogLine, PlaneFuture, Secret};

/// Reads an archive from its beginning.
pub type Archive = Box<dyn Read + Send>;

/// Where the code of deployments comes from.
pub trait Archives: Send + Sync {
    /// Opens the gzip tar of a version of a deployment's DAGs or bundles; `None` where there is none.
    fn open<'a>(&'a self, deployment_id: DeploymentId, version: &'a str) -> PlaneFuture<'a, Option<Archive>>;
}

/// Where lines of logs go.
pub trait Logs: Send + Sync {
    /// Takes lines; once it answers they are kept.
    fn append(&self, lines: Vec<LogLine>) -> PlaneFuture<'_, ()>;
}

/// Makes the keys of an environment: the same for the same environment and purpose, and of no use for guessing others.
pub type Keys = Arc<dyn Fn(DeploymentId, &str) -> Secret + Send + Sync>;

/// Has no code, and keeps no lines.
struct Nothing;

impl Archives for Nothing {
    fn open<'a>(&'a self, _: DeploymentId, _: &'a str) -> PlaneFuture<'a, Option<Archive>> {
        Box::pin(async { Ok(None) })
    }
}

impl Logs for Nothing {
    fn append(&self, _: Vec<LogLine>) -> PlaneFuture<'_, ()> {
        Box::pin(async { Err(Fault::Failed("logs are not stored here".into())) })
    }
}

impl Services {
    /// What it takes to look after databases, and no more.
    pub fn of_keys(keys: Keys, clock: Clock) -> Self {
        Self { archives: Arc::new(Nothing), logs: Arc::new(Nothing), keys, clock }
    }
}

/// What the plane needs to run environments.
#[derive(Clone)]
pub struct Services {
    /// Where code comes from.
    pub archives: Arc<dyn Archives>,
    /// Where logs go.
    pub logs: Arc<dyn Logs>,
    /// Where keys come from.
    pub keys: Keys,
    /// Where the time comes from.
    pub clock: Clock,
}
