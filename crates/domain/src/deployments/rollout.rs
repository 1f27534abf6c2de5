//! What a rollout is doing, as a data plane reports it.

use crate::UserText;

/// A step of a rollout, in the order in which they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RolloutStep {
    /// Installing the runtime.
    Runtime,
    /// Creating or migrating the metadata database.
    Database,
    /// Unpacking the uploaded archives.
    Unpack,
    /// Resolving and installing the project's packages.
    Packages,
    /// Parsing the DAGs of a strict deploy before they are live.
    Check,
    /// Waiting for running tasks to finish.
    Drain,
    /// Starting the components that changed.
    Start,
    /// Waiting until every DAG is parsed at the new version.
    Parse,
}

/// How far a rollout is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutProgress {
    /// The step that it is in.
    pub step: RolloutStep,
    /// How much of the step is done, and of how much, where that is known: packages, files, components.
    pub done: Option<(u64, u64)>,
    /// What it is doing, for users.
    pub message: Option<UserText>,
    /// The task instances that a drain waits for, as `dag/run/task`, at most twenty.
    pub waits_for: Vec<String>,
}
