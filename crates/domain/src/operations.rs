//! Operations: how a change that takes time proceeds, and until when it can be cancelled.
//!
//! An operation follows the status of its target and never decides it: the loops report what they see, and [`advance`]
//! says what to write, if anything.

mod cancel;
mod force;
mod hints;

use podium_api::Timestamp;
use podium_api::enums::{
    OperationCause, OperationKind, OperationState, OperationStepName, OperationTargetType,
};
use podium_api::operations::{OperationFailure, OperationProgress, OperationStep};
use serde::{Deserialize, Serialize};

pub use cancel::{
    NotCancellable, PointOfNoReturn, may_cancel, permission_to_cancel, point_of_no_return,
    refuse_unless_cancellable,
};
pub use force::{is_draining, refuse_unless_draining};

use crate::UserText;
use crate::deployments::rollout::{RolloutProgress, RolloutStep};
use crate::deployments::spec::Spec;

/// How many task instances are named that a drain waits for.
const MOST_WAITED_FOR: usize = 20;
/// The longest that is shown of one of them.
const LONGEST_WAITED_FOR: usize = 500;

/// An operation as the rules see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Course {
    pub kind: OperationKind,
    pub target_type: OperationTargetType,
    pub cause: OperationCause,
    /// How far it has come.
    pub state: OperationState,
    /// Whether what was wanted before is known.
    pub can_undo: bool,
    pub details: Details,
    pub started_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

/// What an operation has done: a document, stored next to its columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// Its steps, each at most once, in the order in which they first began.
    pub steps: Vec<OperationStep>,
    pub progress: Option<OperationProgress>,
    pub failure: Option<OperationFailure>,
    /// What came of it, where there is something to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// When somebody ended its wait for running tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced_at: Option<Timestamp>,
    /// How a removal lets running tasks finish, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removal_drain: Option<RemovalDrain>,
}

/// How a removal lets running tasks finish.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemovalDrain {
    /// For how long at most, if the deployment set it.
    pub grace_seconds: Option<u32>,
}

/// What a deployment was to be before an operation: a document that is kept until the operation has ended. Secrets in it
/// are encrypted, as they are in the deployment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Undo {
    pub name: String,
    pub spec: Spec,
}

/// What a loop sees of an operation's target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen<'a> {
    /// Nothing has begun, or nothing is known, and why.
    Waiting(&'a UserText),
    /// The data plane works on it: what it reports, and what its target waits for.
    Underway(Option<&'a RolloutProgress>, &'a UserText),
    /// The data plane removes it.
    Removing,
    Done,
    /// The same, and what came of it.
    DoneWith(&'a UserText),
    /// It cannot be made so, and why.
    Failed(&'a UserText),
}

pub const fn is_final(state: OperationState) -> bool {
    !matches!(state, OperationState::Pending | OperationState::Running)
}

/// The operation after a loop has looked at its target; `None` if nothing has changed.
pub fn advance(before: &Course, seen: &Seen<'_>, now: Timestamp) -> Option<Course> {
    if is_final(before.state) {
        return None;
    }
    let mut after = before.clone();
    match seen {
        Seen::Waiting(why) => after.details.progress = progress(None, why),
        Seen::Underway(reported, why) => {
            let step = match reported {
                Some(reported) => Some(name(reported.step)),
                None => after.details.steps.is_empty().then_some(first_step(before.kind)),
            };
            after.run(step, now);
            after.details.progress = progress(*reported, why);
        }
        Seen::Removing => {
            after.run(Some(OperationStepName::Remove), now);
            after.details.progress = None;
        }
        Seen::Done => after.end(OperationState::Succeeded, now),
        Seen::DoneWith(summary) => {
            after.end(OperationState::Succeeded, now);
            after.details.summary = (!summary.is_empty()).then(|| summary.to_string());
        }
        Seen::Failed(why) => {
            after.end(OperationState::Failed, now);
            let hint = hints::after_failure(before.kind, before.target_type).to_owned();
            after.details.failure = Some(OperationFailure { reason: why.to_string(), hint });
        }
    }
    (after != *before).then_some(after)
}

impl Course {
    /// Goes on with a step, or with the one that is under way.
    fn run(&mut self, step: Option<OperationStepName>, now: Timestamp) {
        self.state = OperationState::Running;
        self.started_at.get_or_insert(now);
        let Some(step) = step else { return };
        let steps = &mut self.details.steps;
        for other in steps.iter_mut().filter(|other| other.name != step) {
            other.ended_at.get_or_insert(now);
        }
        match steps.iter_mut().find(|known| known.name == step) {
            // After a restart or a failed attempt a step is taken again.
            Some(known) => known.ended_at = None,
            None => steps.push(OperationStep { name: step, started_at: now, ended_at: None }),
        }
    }

    fn end(&mut self, state: OperationState, now: Timestamp) {
        self.state = state;
        self.started_at.get_or_insert(now);
        self.ended_at = Some(now);
        self.can_undo = false;
        self.details.close(now);
    }
}

impl Details {
    /// The same of an operation that has ended.
    pub fn close(&mut self, now: Timestamp) {
        self.progress = None;
        for step in &mut self.steps {
            step.ended_at.get_or_insert(now);
        }
    }
}

/// What is shown of a report; the status of the target stands in for a message.
fn progress(reported: Option<&RolloutProgress>, why: &UserText) -> Option<OperationProgress> {
    let said = reported.and_then(|reported| reported.message.as_ref()).unwrap_or(why);
    let done = reported.and_then(|reported| reported.done);
    let waits_for = reported.map(|reported| reported.waits_for.as_slice()).unwrap_or_default();
    let shown =
        |task: &String| task.chars().filter(|c| !c.is_control()).take(LONGEST_WAITED_FOR).collect::<String>();
    let progress = OperationProgress {
        done: done.map(|(done, _)| done),
        total: done.map(|(_, total)| total),
        message: (!said.is_empty()).then(|| said.to_string()),
        waits_for: waits_for.iter().take(MOST_WAITED_FOR).map(shown).collect(),
    };
    (progress != OperationProgress::default()).then_some(progress)
}

/// The step of an operation while the data plane reports none.
const fn first_step(kind: OperationKind) -> OperationStepName {
    match kind {
        OperationKind::CleanUp => OperationStepName::CleanUp,
        _ => OperationStepName::Apply,
    }
}

const fn name(step: RolloutStep) -> OperationStepName {
    match step {
        RolloutStep::Runtime => OperationStepName::Runtime,
        RolloutStep::Database => OperationStepName::Database,
        RolloutStep::Unpack => OperationStepName::Unpack,
        RolloutStep::Packages => OperationStepName::Packages,
        RolloutStep::Check => OperationStepName::Check,
        RolloutStep::Drain => OperationStepName::Drain,
        RolloutStep::Start => OperationStepName::Start,
        RolloutStep::Parse => OperationStepName::Parse,
    }
}

#[cfg(test)]
mod tests;
