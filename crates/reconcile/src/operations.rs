//! Advances the operation of a resource together with its status.

use podium_api::Timestamp;
use podium_api::enums::{OperationCause, OperationKind};
use podium_db::{Result, Tx};
use podium_domain::deployments::plan::{Cause, Observation, Rollout};
use podium_domain::deployments::rollout::RolloutProgress;
use podium_domain::operations::{self, Course, Details, Seen};
use podium_domain::{Reason, UserText};
use podium_store::Steward;
use podium_store::deployments::{self, DeploymentRow};
use podium_store::operations::{self as stored, NewOperation, OperationRow, OperationTarget};

use crate::deployments::Deployments;
use crate::reconciler::{Effect, Failure};

/// How far the rollout of a deployment is, for its operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase<'a> {
    /// Nothing has begun, or nothing is known.
    Waiting,
    /// The data plane works on it.
    Underway(Option<&'a RolloutProgress>),
    Done,
    /// The same, and what came of its operation.
    DoneWith(&'a UserText),
    /// The data plane has stopped waiting for it.
    Failed,
    /// It is as it was wanted, but its operation has failed for this reason.
    FailedFor(&'a Reason),
}

impl<'a> Phase<'a> {
    /// The phase of a deployment whose desired state has been applied and is not reached.
    pub(crate) fn of(observation: &'a Observation) -> Self {
        match observation {
            Observation::Present(observed) if observed.rollout == Rollout::Done => Self::Failed,
            Observation::Present(observed) => Self::Underway(observed.progress.as_ref()),
            Observation::Absent | Observation::Unreachable(_) => Self::Waiting,
        }
    }
}

#[derive(Clone)]
pub(crate) struct Advanced(OperationRow, Course);

impl Advanced {
    /// What is to be written of an operation, if anything.
    pub(crate) fn of(operation: Option<&OperationRow>, seen: &Seen<'_>, now: Timestamp) -> Option<Self> {
        let operation = operation?;
        let course = operations::advance(&operation.course, seen, now)?;
        Some(Self(operation.clone(), course))
    }

    /// Writes it, unless another operation has taken its place.
    pub(crate) fn write(&self, tx: &Tx, system: &Steward) -> Result<()> {
        stored::advance(tx, system, &self.0, &self.1).map(drop)
    }

    /// The same as the only effect of a step.
    pub(crate) fn effect(self, system: Steward) -> Effect {
        Box::new(move |tx| self.write(tx, &system))
    }
}

impl Deployments {
    /// Starts the operation of a schedule before it is applied, once; returns `false` if the deployment has changed.
    pub(crate) async fn begin_scheduled(
        &self,
        row: &DeploymentRow,
        cause: Cause,
        under_way: Option<&OperationRow>,
        now: Timestamp,
    ) -> std::result::Result<bool, Failure> {
        let kind = match cause {
            Cause::Hibernate => OperationKind::Hibernate,
            Cause::Wake => OperationKind::Wake,
            Cause::Create | Cause::Update => return Ok(true),
        };
        let is_this = |course: &Course| course.kind == kind && course.cause == OperationCause::Schedule;
        if under_way.is_some_and(|operation| is_this(&operation.course)) {
            return Ok(true);
        }
        let operation = self.scheduled(row, kind, now);
        let (system, id, generation) = (self.system, row.id, row.generation);
        let scope = system.scope(row.organization_id);
        let begun = self.app.db(&self.system).write(None, move |tx| {
            let holds = deployments::lock_generation(tx, &system, id, generation)?;
            if holds {
                stored::supersede(tx, &scope, &operation)?;
            }
            Ok::<_, podium_db::Error>(holds)
        });
        Ok(begun.await?)
    }

    /// An operation of a schedule, not begun yet.
    pub(crate) fn scheduled(&self, row: &DeploymentRow, kind: OperationKind, now: Timestamp) -> NewOperation {
        NewOperation {
            id: self.app.world.id(),
            kind,
            cause: OperationCause::Schedule,
            target: OperationTarget::Deployment(row.id, row.workspace_id, row.name.clone()),
            subject_id: None,
            undo: None,
            details: Details::default(),
            created_at: now,
        }
    }
}
