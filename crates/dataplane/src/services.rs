//! Services that the control plane provides to planes.

use std::io::Read;
use std::sync::Arc;

use podium_api::{DeploymentId, Timestamp};
use podium_domain::events::{SpoolBatch, SpoolState};

use crate::{LogLine, PlaneFuture, Secret};

pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

pub type LogSink = Arc<dyn Fn(Vec<LogLine>) + Send + Sync>;

pub type Archive = Box<dyn Read + Send>;

/// Provides the code of deployments.
pub trait Archives: Send + Sync {
    /// Opens the gzip tar of a version of a deployment's DAGs or bundles; `None` if there is none.
    fn open<'a>(&'a self, deployment_id: DeploymentId, version: &'a str) -> PlaneFuture<'a, Option<Archive>>;
}

pub trait Logs: Send + Sync {
    /// Appends lines; they are stored once it returns.
    fn append(&self, lines: Vec<LogLine>) -> PlaneFuture<'_, ()>;
}

/// Stores what environments say about their DAG runs. It is not trusted: the deployment is the one whose spool it was in.
pub trait Claims: Send + Sync {
    /// How far the spool of an environment was read.
    fn state(&self, deployment_id: DeploymentId) -> PlaneFuture<'_, SpoolState>;

    /// Stores what was read, and how far. `None` if somebody else has read it, or the deployment is gone.
    fn record(&self, deployment_id: DeploymentId, batch: SpoolBatch) -> PlaneFuture<'_, Option<SpoolState>>;
}

/// Derives the keys of an environment: deterministic for an environment and purpose, and independent of each other.
pub type Keys = Arc<dyn Fn(DeploymentId, &str) -> Secret + Send + Sync>;

/// The services that a plane needs to run environments.
#[derive(Clone)]
pub struct Services {
    pub archives: Arc<dyn Archives>,
    pub logs: Arc<dyn Logs>,
    /// Where events of environments go.
    pub claims: Arc<dyn Claims>,
    pub keys: Keys,
    pub clock: Clock,
}
