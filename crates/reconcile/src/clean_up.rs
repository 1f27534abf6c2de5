//! Cleans up the history of environments on their schedules: an operation that changes nothing that is wanted, and gives
//! way to every change.

use std::time::Duration;

use podium_api::Timestamp;
use podium_api::enums::OperationKind;
use podium_dataplane::{CleanUp, CleanUpState};
use podium_domain::deployments::clean_up;
use podium_domain::deployments::plan::Desired;
use podium_domain::{Reason, UserText};
use podium_store::clean_ups;
use podium_store::deployments::{self, DeploymentRow};
use podium_store::operations::{self, OperationRow};

use crate::deployments::Deployments;
use crate::operations::Phase;
use crate::reconciler::{Failure, Next};

/// How long to wait for the data plane to announce the end before asking again.
const ASK_AGAIN: Duration = Duration::from_secs(30);

/// How long it is waited for; an environment that is not healthy is not cleaned up.
const LONGEST: Duration = Duration::from_hours(6);

/// How far the history of a deployment is cleaned up.
pub(crate) enum History {
    /// Nothing is to be done, until this time.
    Clean(Option<Timestamp>),
    Underway,
    /// It was cleaned up, and what came of it.
    Cleaned(UserText),
    /// It could not be cleaned up, and why.
    Failed(Reason),
}

impl History {
    /// The phase of the operation that is under way in a deployment which is as it was wanted.
    pub(crate) fn phase(&self) -> Phase<'_> {
        match self {
            Self::Clean(_) => Phase::Done,
            Self::Underway => Phase::Underway(None),
            Self::Cleaned(summary) => Phase::DoneWith(summary),
            Self::Failed(why) => Phase::FailedFor(why),
        }
    }

    /// When to reconcile again.
    pub(crate) fn next(&self, hibernation: Option<Timestamp>, now: Timestamp) -> Next {
        let (clean_up, reason) = match self {
            Self::Clean(at) => (*at, "The history is cleaned up next."),
            Self::Underway => (Some(now + ASK_AGAIN), "The history is being cleaned up."),
            // The operation ends with this step; what comes next is decided by another one.
            Self::Cleaned(_) | Self::Failed(_) => (Some(now), "The history was cleaned up."),
        };
        match (clean_up, hibernation) {
            (Some(at), None) => Next::At { at, reason: reason.into() },
            (Some(at), Some(event)) if at < event => Next::At { at, reason: reason.into() },
            (_, Some(at)) => Next::At { at, reason: "The next hibernation event.".into() },
            (None, None) => Next::Settled,
        }
    }
}

pub(crate) fn is_clean_up(operation: &OperationRow) -> bool {
    operation.course.kind == OperationKind::CleanUp
}

impl Deployments {
    /// Goes on with the clean-up that is under way in a deployment which is as it was wanted, or begins one that is due;
    /// `None` if one was begun, or the deployment has changed.
    pub(crate) async fn clean_up_history(
        &self,
        row: &DeploymentRow,
        desired: &Desired,
        operation: Option<&OperationRow>,
        now: Timestamp,
    ) -> Result<Option<History>, Failure> {
        match operation {
            Some(operation) if is_clean_up(operation) => {
                let Some(before) = clean_up::cutoff(&row.spec, operation.created_at) else {
                    return Ok(Some(History::Cleaned(UserText::EMPTY)));
                };
                let (at, asked) = (row.location(), CleanUp { id: operation.id, before });
                let asked = self.planes.of(&at).clean_up(&at, asked).await;
                let state = asked.unwrap_or_else(|fault| {
                    tracing::warn!(id = %row.id, %fault, "a clean-up cannot be asked for");
                    CleanUpState::Underway
                });
                Ok(Some(match state {
                    CleanUpState::Underway if now > operation.created_at + LONGEST => {
                        History::Failed("the history could not be cleaned up in time".into())
                    }
                    CleanUpState::Underway => History::Underway,
                    CleanUpState::Done(summary) => History::Cleaned(summary),
                    CleanUpState::Failed(why) => {
                        tracing::warn!(id = %row.id, namespace = row.namespace, %why, "a clean-up failed");
                        History::Failed(why)
                    }
                }))
            }
            _ if desired.is_hibernating || clean_up::cutoff(&row.spec, now).is_none() => {
                Ok(Some(History::Clean(None)))
            }
            _ => {
                let (system, id) = (self.system, row.id);
                let last = self
                    .app
                    .db(&self.system)
                    .read(None, move |conn| clean_ups::last(conn, &system, id))
                    .await?;
                match clean_up::next(&row.spec, last) {
                    // Another operation ends first.
                    Some(at) if at <= now && operation.is_none() => {
                        self.begin_clean_up(row, now).await?;
                        Ok(None)
                    }
                    next => Ok(Some(History::Clean(next))),
                }
            }
        }
    }

    /// Starts the operation of a clean-up, unless the deployment has changed or something else is under way.
    async fn begin_clean_up(&self, row: &DeploymentRow, now: Timestamp) -> Result<(), Failure> {
        let operation = self.scheduled(row, OperationKind::CleanUp, now);
        let (system, id, generation) = (self.system, row.id, row.generation);
        let scope = system.scope(row.organization_id);
        let begun = self.app.db(&self.system).write(None, move |tx| {
            let is_same = deployments::lock_generation(tx, &system, id, generation)?;
            if is_same && operations::under_way(tx, &system, id.id())?.is_none() {
                operations::begin(tx, &scope, &operation)?;
                clean_ups::begin(tx, &system, id, now)?;
            }
            Ok::<_, podium_db::Error>(())
        });
        Ok(begun.await?)
    }
}
