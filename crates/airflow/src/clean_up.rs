//! Cleaning up the history of an environment.

use podium_api::{OperationId, Timestamp};
use podium_domain::{Reason, UserText};

/// A clean-up of an environment's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanUp {
    /// The operation that it belongs to.
    pub id: OperationId,
    /// What is removed: DAG runs, their tasks and the logs of these from before this time.
    pub before: Timestamp,
}

/// How far a clean-up is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CleanUpState {
    /// It has not ended; a change is announced when it has.
    Underway,
    /// It has ended, and what came of it.
    Done(UserText),
    /// It has failed, and why.
    Failed(Reason),
}
