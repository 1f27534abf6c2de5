//! The states of a cluster: what may be done in each, and what comes of it.
//!
//! | from | event | to |
//! |---|---|---|
//! | – | create | CREATING, then CREATED or CREATE_FAILED |
//! | CREATED, UPDATE_FAILED | update | UPDATING, then CREATED or UPDATE_FAILED |
//! | CREATED, FAILOVER_FAILED | fail over or back | FAILING_OVER, then CREATED or FAILOVER_FAILED |
//! | whatever is not under way | delete | gone |

use podium_api::enums::ClusterStatus;

use crate::refusal::{Refusal, Result};

pub const FIRST: ClusterStatus = ClusterStatus::Creating;

/// What a caller requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Other settings.
    Update,
    /// Its deployments are to run in the other region (`true`) or in its own.
    FailOver(bool),
    Delete,
}

/// What came of the work on a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    /// It cannot be made so.
    Failed,
}

pub const fn is_under_way(status: ClusterStatus) -> bool {
    use ClusterStatus::{Creating, FailingOver, Updating};
    matches!(status, Creating | Updating | FailingOver)
}

/// The state that an event leads to; none after a removal.
pub fn after(status: ClusterStatus, event: Event) -> Result<Option<ClusterStatus>> {
    use ClusterStatus::{Created, FailingOver, FailoverFailed, UpdateFailed, Updating};
    if is_under_way(status) {
        let message = format!("The cluster is {status}: wait until that has finished, then try again.");
        return Err(Refusal::Conflict(message));
    }
    match (event, status) {
        (Event::Delete, _) => Ok(None),
        (Event::Update, Created | UpdateFailed) => Ok(Some(Updating)),
        (Event::FailOver(_), Created | FailoverFailed) => Ok(Some(FailingOver)),
        (Event::Update | Event::FailOver(_), _) => Err(Refusal::Precondition(instead(status))),
    }
}

/// The state after the work has ended; `None` if no work was in progress.
pub const fn settled(status: ClusterStatus, outcome: Outcome) -> Option<ClusterStatus> {
    use ClusterStatus::{
        CreateFailed, Created, Creating, FailingOver, FailoverFailed, UpdateFailed, Updating,
    };
    match (status, outcome) {
        (Creating | Updating | FailingOver, Outcome::Done) => Some(Created),
        (Creating, Outcome::Failed) => Some(CreateFailed),
        (Updating, Outcome::Failed) => Some(UpdateFailed),
        (FailingOver, Outcome::Failed) => Some(FailoverFailed),
        _ => None,
    }
}

/// What can be done about a cluster that cannot be changed.
fn instead(status: ClusterStatus) -> String {
    format!("The cluster is {status} and cannot be changed this way: {}.", way_to_created(status))
}

/// What brings a cluster to CREATED, or another instead of it.
pub const fn way_to_created(status: ClusterStatus) -> &'static str {
    match status {
        ClusterStatus::CreateFailed => "delete it and create another",
        ClusterStatus::FailoverFailed => "first send `isFailedOver` to fail over or back once more",
        ClusterStatus::UpdateFailed => "first repeat the update",
        ClusterStatus::AccessDenied => "first restore the access to it",
        _ => "wait until it is CREATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_in_every_state() {
        let table = [
            ("CREATING", "409", "409", "409"),
            ("CREATED", "UPDATING", "FAILING_OVER", "gone"),
            ("CREATE_FAILED", "412", "412", "gone"),
            ("UPDATE_FAILED", "UPDATING", "412", "gone"),
            ("UPDATING", "409", "409", "409"),
            ("ACCESS_DENIED", "412", "412", "gone"),
            ("UPGRADE_PENDING", "412", "412", "gone"),
            ("FAILING_OVER", "409", "409", "409"),
            ("FAILOVER_FAILED", "412", "FAILING_OVER", "gone"),
        ];
        assert_eq!(
            table.map(|row| row.0),
            *ClusterStatus::ALL.iter().map(|s| s.as_str()).collect::<Vec<_>>()
        );
        for (status, update, fail_over, delete) in table {
            let status: ClusterStatus = status.parse().unwrap();
            let go = |event| match after(status, event) {
                Ok(next) => next.map_or("gone".to_owned(), |next| next.to_string()),
                Err(refusal) => refusal.status().to_string(),
            };
            assert_eq!(go(Event::Update), update, "update a cluster that is {status}");
            assert_eq!(go(Event::FailOver(true)), fail_over, "fail over a cluster that is {status}");
            assert_eq!(go(Event::FailOver(false)), fail_over, "fail back a cluster that is {status}");
            assert_eq!(go(Event::Delete), delete, "delete a cluster that is {status}");
        }
    }

    #[test]
    fn every_outcome_in_every_state() {
        for status in ClusterStatus::ALL {
            let expected = match status.as_str() {
                "CREATING" => [Some("CREATED"), Some("CREATE_FAILED")],
                "UPDATING" => [Some("CREATED"), Some("UPDATE_FAILED")],
                "FAILING_OVER" => [Some("CREATED"), Some("FAILOVER_FAILED")],
                _ => [None, None],
            };
            let got = [Outcome::Done, Outcome::Failed].map(|outcome| settled(*status, outcome));
            assert_eq!(got.map(|next| next.map(ClusterStatus::as_str)), expected, "{status}");
            assert_eq!(is_under_way(*status), expected[0].is_some());
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let message = |status| after(status, Event::Update).unwrap_err().message();
        assert_eq!(
            message(ClusterStatus::Updating),
            "The cluster is UPDATING: wait until that has finished, then try again."
        );
        assert_eq!(
            message(ClusterStatus::CreateFailed),
            "The cluster is CREATE_FAILED and cannot be changed this way: delete it and create another."
        );
    }
}
