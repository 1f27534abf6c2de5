//! Whether an operation waits for running tasks, which is a wait that can be ended.

use podium_api::enums::OperationStepName;

use super::{Course, is_final};
use crate::refusal::{Refusal, Result};

/// Whether an operation waits for running tasks.
pub fn is_draining(course: &Course) -> bool {
    let is_drain = |step: &podium_api::operations::OperationStep| {
        step.name == OperationStepName::Drain && step.ended_at.is_none()
    };
    !is_final(course.state) && course.details.steps.iter().any(is_drain)
}

/// Refuses to end a wait that there is not.
pub fn refuse_unless_draining(course: &Course) -> Result<()> {
    if is_draining(course) {
        return Ok(());
    }
    let state = course.state;
    Err(Refusal::Conflict(if is_final(state) {
        format!("The operation is {state}: it waits for nothing.")
    } else {
        "The operation is not in its step DRAIN: only the wait for running tasks can be ended.".into()
    }))
}
