//! What the loop of a cluster does next, given the desired state and what the data plane reports.
//!
//! It only decides: the loop performs the step and then calls it again.

use podium_api::clusters::{ClusterHealthStatus, ClusterHealthStatusDetail, ClusterMetadata};
use podium_api::enums::{ClusterStatus, HealthValue};

use super::states::{self, Outcome};
use crate::{Reason, UserText};

/// The desired state of a cluster, and its last recorded state.
#[derive(Clone, Debug)]
pub struct Desired {
    pub status: ClusterStatus,
    /// Advanced by every change of the desired state.
    pub generation: i64,
    /// Whether its deployments are to run in the other region.
    pub wants_failed_over: bool,
    pub is_failed_over: bool,
    /// Why it is in that state.
    pub reason: UserText,
    /// Its health when it was last checked.
    pub health: ClusterHealthStatus,
    pub metadata: ClusterMetadata,
}

/// What the data plane reports of a cluster.
#[derive(Clone, Debug)]
pub enum Observed {
    /// There is no such cluster.
    Absent,
    /// The data plane does not respond, with the reason.
    Unreachable(Reason),
    Present {
        generation: i64,
        /// How far that rollout is.
        progress: Progress,
        metadata: ClusterMetadata,
    },
}

/// How far applying a cluster got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not done yet.
    Working,
    /// It is as requested, and healthy or not.
    Ready(ClusterHealthStatus),
    /// It cannot be made so, and why.
    Failed(Reason),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make it as it is wanted.
    Apply,
    Remove,
    Settle(Settled),
    /// Look again soon.
    Wait,
    /// Everything is as desired: check again some time.
    Watch,
    /// Nothing is left to do.
    Done,
}

/// The status to record for a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    pub status: ClusterStatus,
    pub reason: UserText,
    /// Whether its deployments run in the other region.
    pub is_failed_over: bool,
    pub health: ClusterHealthStatus,
    pub metadata: ClusterMetadata,
}

/// Decides the next step; `None` is a deleted cluster.
pub fn plan(desired: Option<&Desired>, observed: &Observed) -> Step {
    let Some(desired) = desired else {
        return match observed {
            Observed::Absent => Step::Done,
            Observed::Unreachable(_) => Step::Wait,
            Observed::Present { .. } => Step::Remove,
        };
    };
    if states::is_under_way(desired.status) { finish(desired, observed) } else { watch(desired, observed) }
}

/// Completes the work in progress.
fn finish(desired: &Desired, observed: &Observed) -> Step {
    let Observed::Present { generation, progress, metadata } = observed else {
        return if matches!(observed, Observed::Absent) { Step::Apply } else { Step::Wait };
    };
    if *generation < desired.generation {
        return Step::Apply;
    }
    let (outcome, reason, health) = match progress {
        Progress::Working => return Step::Wait,
        Progress::Ready(health) => (Outcome::Done, UserText::EMPTY, health.clone()),
        Progress::Failed(reason) => (Outcome::Failed, reason.user_text().clone(), broken(reason)),
    };
    Step::Settle(Settled {
        status: states::settled(desired.status, outcome).unwrap_or(desired.status),
        reason,
        is_failed_over: match outcome {
            Outcome::Done => desired.wants_failed_over,
            Outcome::Failed => desired.is_failed_over,
        },
        health,
        metadata: metadata.clone(),
    })
}

/// Keeps a settled cluster as it is, and records its health.
fn watch(desired: &Desired, observed: &Observed) -> Step {
    let (health, metadata) = match observed {
        // A cluster that was made and is gone is made again; one that never was is left alone.
        Observed::Absent if desired.status == ClusterStatus::CreateFailed => return Step::Watch,
        Observed::Absent => return Step::Apply,
        Observed::Unreachable(reason) => (unknown(reason), &desired.metadata),
        Observed::Present { progress: Progress::Ready(health), metadata, .. } => (health.clone(), metadata),
        Observed::Present { progress: Progress::Failed(reason), metadata, .. } => (broken(reason), metadata),
        Observed::Present { progress: Progress::Working, .. } => return Step::Wait,
    };
    if health == desired.health && *metadata == desired.metadata {
        return Step::Watch;
    }
    Step::Settle(Settled {
        status: desired.status,
        reason: desired.reason.clone(),
        is_failed_over: desired.is_failed_over,
        health,
        metadata: metadata.clone(),
    })
}

fn broken(reason: &Reason) -> ClusterHealthStatus {
    detailed(HealthValue::Unhealthy, "failed", reason)
}

fn unknown(reason: &Reason) -> ClusterHealthStatus {
    detailed(HealthValue::Unknown, "silent", reason)
}

fn detailed(value: HealthValue, code: &str, reason: &Reason) -> ClusterHealthStatus {
    let detail = ClusterHealthStatusDetail {
        code: code.into(),
        description: reason.user_text().to_string(),
        severity: "critical".into(),
        component: None,
    };
    ClusterHealthStatus { value, details: vec![detail] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ClusterStatus::{
        CreateFailed, Created, Creating, FailingOver, FailoverFailed, UpdateFailed, Updating,
    };

    fn desired(status: ClusterStatus) -> Desired {
        let health = match status {
            Creating => ClusterHealthStatus::default(),
            CreateFailed | UpdateFailed | FailoverFailed => broken(&"no room".into()),
            _ => healthy(),
        };
        let (reason, metadata) = (UserText::EMPTY, ClusterMetadata::default());
        let (wants_failed_over, is_failed_over) = (matches!(status, FailingOver | FailoverFailed), false);
        Desired { status, generation: 2, wants_failed_over, is_failed_over, reason, health, metadata }
    }

    fn healthy() -> ClusterHealthStatus {
        ClusterHealthStatus { value: HealthValue::Healthy, details: Vec::new() }
    }

    fn present(generation: i64, progress: Progress) -> Observed {
        Observed::Present { generation, progress, metadata: ClusterMetadata::default() }
    }

    fn word(step: Step) -> String {
        match step {
            Step::Settle(Settled { status, is_failed_over, health, .. }) => {
                let place = if is_failed_over { " elsewhere" } else { "" };
                format!("{status} {}{place}", health.value)
            }
            other => format!("{other:?}").to_lowercase(),
        }
    }

    #[test]
    fn every_state_against_every_observation() {
        let seen = [
            Observed::Absent,
            Observed::Unreachable("no answer".into()),
            present(1, Progress::Ready(healthy())),
            present(2, Progress::Working),
            present(2, Progress::Ready(healthy())),
            present(2, Progress::Failed("no room".into())),
        ];
        let table = [
            (None, "done, wait, remove, remove, remove, remove"),
            (Some(Creating), "apply, wait, apply, wait, CREATED HEALTHY, CREATE_FAILED UNHEALTHY"),
            (Some(Updating), "apply, wait, apply, wait, CREATED HEALTHY, UPDATE_FAILED UNHEALTHY"),
            (
                Some(FailingOver),
                "apply, wait, apply, wait, CREATED HEALTHY elsewhere, FAILOVER_FAILED UNHEALTHY",
            ),
            (Some(Created), "apply, CREATED UNKNOWN, watch, wait, watch, CREATED UNHEALTHY"),
            (
                Some(CreateFailed),
                "watch, CREATE_FAILED UNKNOWN, CREATE_FAILED HEALTHY, wait, CREATE_FAILED HEALTHY, watch",
            ),
            (
                Some(UpdateFailed),
                "apply, UPDATE_FAILED UNKNOWN, UPDATE_FAILED HEALTHY, wait, UPDATE_FAILED HEALTHY, watch",
            ),
            (
                Some(FailoverFailed),
                "apply, FAILOVER_FAILED UNKNOWN, FAILOVER_FAILED HEALTHY, wait, FAILOVER_FAILED HEALTHY, watch",
            ),
        ];
        for (status, steps) in table {
            for (observed, expected) in seen.iter().zip(steps.split(", ")) {
                let step = plan(status.map(desired).as_ref(), observed);
                assert_eq!(word(step), expected, "{status:?} {observed:?}");
            }
        }
    }

    #[test]
    fn what_is_recorded_says_why() {
        let failed = present(2, Progress::Failed("The account has no room for it.".into()));
        let Step::Settle(settled) = plan(Some(&desired(Creating)), &failed) else { panic!() };
        assert_eq!(settled.reason, "The account has no room for it.");
        assert_eq!(settled.health.details[0].description, settled.reason.as_str());
        let after = Desired {
            status: settled.status,
            reason: settled.reason.clone(),
            health: settled.health,
            ..desired(Creating)
        };
        assert_eq!(plan(Some(&after), &failed), Step::Watch, "once is enough");
        let Step::Settle(later) = plan(Some(&after), &Observed::Unreachable("away".into())) else { panic!() };
        assert_eq!(later.reason, settled.reason);
    }

    #[test]
    fn a_reverted_failover_ends_in_the_first_region() {
        let mut back = desired(FailingOver);
        back.wants_failed_over = false;
        back.is_failed_over = true;
        assert_eq!(word(plan(Some(&back), &present(2, Progress::Ready(healthy())))), "CREATED HEALTHY");
        let failed = present(2, Progress::Failed("no room".into()));
        assert_eq!(word(plan(Some(&back), &failed)), "FAILOVER_FAILED UNHEALTHY elsewhere");
    }
}
