//! What the loop of a deployment does next, given the desired state and what the data plane reports.
//!
//! It only decides: the loop performs the step, observes again and calls it again. The status that callers read always
//! comes from here, or is DEPLOYING, set by the call that requested a change.

use podium_api::Timestamp;
use podium_api::enums::DeploymentStatus;

use super::spec::Running;
use crate::{Reason, UserText};

/// What is wanted of a deployment, and what was last recorded of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Desired {
    /// Advanced by every change of what is wanted.
    pub generation: i64,
    /// Whether it is to be scaled to zero now.
    pub is_hibernating: bool,
    /// The status that callers read.
    pub status: DeploymentStatus,
}

/// What the data plane says of an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Observation {
    /// There is no such environment.
    Absent,
    /// The data plane does not respond, and why.
    Unreachable(Reason),
    /// It is there.
    Present(Observed),
}

/// What a data plane shows of an environment that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The generation that was last applied.
    pub generation: i64,
    /// Whether it was last asked to scale to zero.
    pub is_hibernating: bool,
    /// How far that got.
    pub rollout: Rollout,
    /// Its components; none while it is scaled to zero.
    pub components: Vec<Component>,
    /// What runs.
    pub running: Running,
    /// What a person should know of it although it works.
    pub note: Option<UserText>,
    /// When looking again is worth it, where the data plane knows.
    pub look_again_at: Option<Timestamp>,
}

/// How far a rollout got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// Not done yet.
    Underway,
    /// What was applied has come up, or the data plane has given up waiting for it.
    Done,
}

/// A part of an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Its name, such as `scheduler`.
    pub name: String,
    /// How it does.
    pub health: Health,
}

/// How a component does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It works.
    Up,
    /// It does not, and why.
    Down(Reason),
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make the environment as it is wanted.
    Apply(Cause),
    /// Advance what is wanted beyond this generation: the data plane has seen more than the database remembers, which
    /// is what a database restored from a backup looks like.
    RaiseGeneration(i64),
    /// Remove the environment.
    Remove,
    /// Nothing is wanted and nothing is left.
    Forget,
    /// Record this; nothing happens until something changes.
    Record(Verdict),
    /// Record this, and look again.
    Watch(Verdict),
}

/// Why an environment is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It is not there.
    Create,
    /// Something else is wanted by now.
    Update,
    /// It is to scale to zero.
    Hibernate,
    /// It is to come back.
    Wake,
}

/// What is recorded of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its status.
    pub status: DeploymentStatus,
    /// Why, in words that a person can act on; empty where there is nothing to say. Users read one half of it.
    pub reason: Reason,
    /// What runs; `None` where that is not known better than before.
    pub running: Option<Running>,
}

/// Decides the next step; nothing is wanted of a deployment that was deleted.
pub fn plan(desired: Option<&Desired>, observation: &Observation) -> Step {
    let Some(desired) = desired else {
        return if *observation == Observation::Absent { Step::Forget } else { Step::Remove };
    };
    match observation {
        Observation::Absent => Step::Apply(Cause::Create),
        Observation::Unreachable(why) => Step::Watch(when_unreachable(desired, why)),
        Observation::Present(observed) => compare(desired, observed),
    }
}

/// What is recorded when applying failed although the data plane answers.
pub fn not_applied(desired: &Desired, cause: Cause, why: &Reason) -> Verdict {
    use DeploymentStatus::{Creating, Deploying, Unhealthy};
    let status = match (desired.status, cause) {
        (Creating, _) => Creating,
        (status, Cause::Hibernate) => status,
        (Deploying, _) | (_, Cause::Update | Cause::Wake) => Deploying,
        (_, Cause::Create) => Unhealthy,
    };
    let what = match cause {
        Cause::Create => "Creating the environment failed and will be retried",
        Cause::Update => "Rolling out the change failed and will be retried",
        Cause::Hibernate => "Hibernating failed and will be retried",
        Cause::Wake => "Waking up failed and will be retried",
    };
    Verdict { status, reason: why.clone().within(what).sentence(), running: None }
}

/// What is recorded while the data plane does not answer. What never came up is still being made.
pub fn when_unreachable(desired: &Desired, why: &Reason) -> Verdict {
    let status = match desired.status {
        DeploymentStatus::Creating => DeploymentStatus::Creating,
        _ => DeploymentStatus::Unknown,
    };
    let reason = why.clone().within("The data plane does not respond").sentence();
    Verdict { status, reason, running: None }
}

fn compare(desired: &Desired, observed: &Observed) -> Step {
    if observed.generation > desired.generation {
        return Step::RaiseGeneration(observed.generation);
    }
    if observed.generation < desired.generation {
        return Step::Apply(Cause::Update);
    }
    match (desired.is_hibernating, observed.is_hibernating) {
        (true, false) => return Step::Apply(Cause::Hibernate),
        (false, true) => return Step::Apply(Cause::Wake),
        _ => {}
    }
    let (status, reason) = judge(desired, observed);
    let verdict = Verdict { status, reason, running: Some(observed.running.clone()) };
    match status {
        DeploymentStatus::Healthy | DeploymentStatus::Hibernating if observed.rollout == Rollout::Done => {
            Step::Record(verdict)
        }
        _ => Step::Watch(verdict),
    }
}

/// The status of an environment that was applied as it is wanted.
fn judge(desired: &Desired, observed: &Observed) -> (DeploymentStatus, Reason) {
    use DeploymentStatus::{Creating, Deploying, Healthy, Hibernating, Unhealthy};
    match (observed.rollout, desired.is_hibernating) {
        (Rollout::Underway, is_hibernating) => {
            let status = match desired.status {
                Creating => Creating,
                // It works, or does not, until it is asleep.
                status @ (Healthy | Unhealthy) if is_hibernating => status,
                _ => Deploying,
            };
            (status, what_is_down(observed).map(|down| down.within("Waiting for")).unwrap_or_default())
        }
        (Rollout::Done, true) => (Hibernating, Reason::default()),
        (Rollout::Done, false) if observed.components.is_empty() => {
            (Unhealthy, "No component is running.".into())
        }
        (Rollout::Done, false) => match what_is_down(observed) {
            None => (Healthy, observed.note.clone().unwrap_or_default().into()),
            Some(down) => (Unhealthy, down.within("Not working")),
        },
    }
}

/// The components that do not work, each with its reason; a sentence, or nothing.
fn what_is_down(observed: &Observed) -> Option<Reason> {
    let down = observed.components.iter().filter_map(|component| match &component.health {
        Health::Up => None,
        Health::Down(why) => Some((component.name.as_str(), why)),
    });
    Reason::of_all(down)
}

#[cfg(test)]
mod tests;
