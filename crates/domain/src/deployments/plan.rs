//! What the loop of a deployment does next, given the desired state and what the data plane reports.
//!
//! It only decides: the loop performs the step, observes again and calls it again. The status that callers read always
//! comes from here, or is DEPLOYING, set by the call that requested a change.

use podium_api::Timestamp;
use podium_api::enums::DeploymentStatus;

use super::rollout::RolloutProgress;
use super::spec::Running;
use crate::{Reason, UserText};

/// The desired state of a deployment, and its last recorded status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Desired {
    /// Advanced by every change of the desired state.
    pub generation: i64,
    /// Whether it is to be scaled to zero now.
    pub is_hibernating: bool,
    /// The status that callers read.
    pub status: DeploymentStatus,
}

/// What the data plane reports of an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a step makes one and keeps none")]
pub enum Observation {
    /// There is no such environment.
    Absent,
    /// The data plane does not respond, with the reason.
    Unreachable(Reason),
    Present(Observed),
}

/// What a data plane reports of an existing environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    pub generation: i64,
    /// Whether it was last applied as scaled to zero.
    pub is_hibernating: bool,
    pub rollout: Rollout,
    /// Its components; none while it is scaled to zero.
    pub components: Vec<Component>,
    pub running: Running,
    /// A note for users although it works.
    pub note: Option<UserText>,
    /// When to observe again, if the data plane knows.
    pub look_again_at: Option<Timestamp>,
    /// What the rollout is doing, while it is under way.
    pub progress: Option<RolloutProgress>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// Not done yet.
    Underway,
    /// The applied state is up, or the data plane has stopped waiting for it.
    Done,
    /// The applied release cannot go live, and why; what ran before still serves.
    Refused(Reason),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Component {
    /// Its name, such as `scheduler`.
    pub name: String,
    pub health: Health,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    Up,
    /// It does not, and why.
    Down(Reason),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Apply the desired state to the environment.
    Apply(Cause),
    /// Raise the desired generation above this one: the data plane has seen a later generation than the database has,
    /// which is what a database restored from a backup looks like.
    RaiseGeneration(i64),
    Remove,
    /// The deployment is deleted and nothing is left.
    Forget,
    /// The release cannot go live, with the reason: fail its deploy, and want again what serves.
    Revert(Reason),
    /// Record this, and wait for the next change.
    Record(Verdict),
    /// Record this, and observe again.
    Watch(Verdict),
}

/// Why an environment is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It does not exist.
    Create,
    /// The desired state has changed.
    Update,
    /// It must scale to zero.
    Hibernate,
    /// It must scale up again.
    Wake,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub status: DeploymentStatus,
    /// The reason; empty if there is none. Users read only its text for users.
    pub reason: Reason,
    /// What runs; `None` if there is nothing new to record.
    pub running: Option<Running>,
}

/// Decides the next step; `None` is a deleted deployment.
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

/// The status to record when applying failed although the data plane responds.
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

/// The status to record if a release cannot go live although it is the one that last ran: there is nothing to go back to.
pub fn nothing_to_revert_to(desired: &Desired, why: &Reason, running: Running) -> Verdict {
    let status = match desired.status {
        DeploymentStatus::Creating => DeploymentStatus::Creating,
        _ => DeploymentStatus::Deploying,
    };
    let reason = why.clone().within("The release cannot go live, and is retried").sentence();
    Verdict { status, reason, running: Some(running) }
}

/// The status to record while the data plane does not respond. A deployment that was never up is still being created.
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
    if let Rollout::Refused(why) = &observed.rollout {
        return Step::Revert(why.clone());
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

/// The status of an environment whose desired state has been applied.
fn judge(desired: &Desired, observed: &Observed) -> (DeploymentStatus, Reason) {
    use DeploymentStatus::{Creating, Deploying, Healthy, Hibernating, Unhealthy};
    match (&observed.rollout, desired.is_hibernating) {
        (Rollout::Underway | Rollout::Refused(_), is_hibernating) => {
            let status = match desired.status {
                Creating => Creating,
                // It keeps its health until it is asleep.
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

/// The components that are down, each with its reason; a sentence, or `None`.
fn what_is_down(observed: &Observed) -> Option<Reason> {
    let down = observed.components.iter().filter_map(|component| match &component.health {
        Health::Up => None,
        Health::Down(why) => Some((component.name.as_str(), why)),
    });
    Reason::of_all(down)
}

#[cfg(test)]
mod tests;
