//! What a rollout is doing, as a data plane reports it.

use crate::UserText;

pub use podium_api::enums::DeployStep as RolloutStep;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutProgress {
    pub step: RolloutStep,
    /// How much of the step is done, and of how much, where that is known: packages, files, components.
    pub done: Option<(u64, u64)>,
    pub message: Option<UserText>,
    /// The task instances that a drain waits for, as `dag/run/task`, at most twenty.
    pub waits_for: Vec<String>,
}
