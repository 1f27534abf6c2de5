//! Until when an operation can be cancelled, and who may do it.

use podium_api::DeploymentId;
use podium_api::WorkspaceId;
use podium_api::enums::{OperationCause, OperationKind, OperationStepName, OperationTargetType};

use super::{Course, is_final};
use crate::authorize::Target;
use crate::permissions::Permission;
use crate::refusal::{Refusal, Result};

/// What an operation cannot be cancelled after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointOfNoReturn {
    /// It cannot be cancelled at all.
    Beginning,
    /// The beginning of the step in which running components are replaced.
    Start,
    /// The beginning of the step in which the metadata database is migrated. While the data plane has not reported a step
    /// before it, it counts as passed.
    Database,
    End,
}

impl PointOfNoReturn {
    /// What happens then, in words that can stand after "once".
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Beginning => "it has begun",
            Self::Start => "changed components start",
            Self::Database => "the metadata database is migrated",
            Self::End => "it has ended",
        }
    }
}

/// The point of no return of each kind.
pub const fn point_of_no_return(kind: OperationKind, target_type: OperationTargetType) -> PointOfNoReturn {
    match (target_type, kind) {
        (
            OperationTargetType::Deployment,
            OperationKind::Create | OperationKind::Hibernate | OperationKind::Wake,
        ) => PointOfNoReturn::End,
        (OperationTargetType::Deployment, OperationKind::Update | OperationKind::Deploy) => {
            PointOfNoReturn::Start
        }
        (OperationTargetType::Deployment, OperationKind::Rollback | OperationKind::RuntimeUpgrade) => {
            PointOfNoReturn::Database
        }
        // While a cluster is being changed its states allow no other change.
        (OperationTargetType::Deployment | OperationTargetType::Cluster, _) => PointOfNoReturn::Beginning,
    }
}

/// Why an operation cannot be cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotCancellable {
    Ended,
    /// A schedule, an environment object or the server started it.
    NoCall(OperationCause),
    /// It undoes what another operation did.
    Undoes,
    /// Its point of no return has passed.
    Passed(PointOfNoReturn),
}

/// Whether an operation can be cancelled now.
pub fn may_cancel(course: &Course) -> std::result::Result<(), NotCancellable> {
    let point = point_of_no_return(course.kind, course.target_type);
    if is_final(course.state) {
        return Err(NotCancellable::Ended);
    }
    if course.cause != OperationCause::Call {
        return Err(NotCancellable::NoCall(course.cause));
    }
    if has_passed(course, point) {
        return Err(NotCancellable::Passed(point));
    }
    let can_undo = course.can_undo || course.kind == OperationKind::Create;
    if can_undo { Ok(()) } else { Err(NotCancellable::Undoes) }
}

fn has_passed(course: &Course, point: PointOfNoReturn) -> bool {
    use OperationStepName::{Apply, Parse, Runtime, Start};
    let steps = || course.details.steps.iter().map(|step| step.name);
    match point {
        PointOfNoReturn::Beginning => true,
        PointOfNoReturn::End => false,
        PointOfNoReturn::Start => steps().any(|step| matches!(step, Start | Parse)),
        PointOfNoReturn::Database => {
            let is_early = |step| matches!(step, Apply | Runtime);
            course.started_at.is_some() && !(steps().all(is_early) && steps().any(|step| step == Runtime))
        }
    }
}

impl NotCancellable {
    /// What the caller is told.
    pub fn refusal(self, course: &Course) -> Refusal {
        let state = course.state;
        Refusal::Conflict(match self {
            Self::Ended => format!("The operation is {state}: there is nothing left to cancel."),
            Self::NoCall(OperationCause::Schedule) if course.kind == OperationKind::CleanUp => {
                "The operation follows the deployment's `cleanUpCron`: it cannot be cancelled.".into()
            }
            Self::NoCall(OperationCause::Schedule) => {
                "The operation follows a schedule: override the deployment's hibernation instead.".into()
            }
            Self::NoCall(OperationCause::EnvironmentObject) => {
                "The operation follows a change of an environment object: change the object back instead."
                    .into()
            }
            Self::NoCall(_) => "The server started the operation: it cannot be cancelled.".into(),
            Self::Undoes => "The operation undoes a cancelled one: repeat the change instead.".into(),
            Self::Passed(PointOfNoReturn::Beginning) => {
                let kind = course.kind;
                format!(
                    "An operation of kind {kind} cannot be cancelled once it has begun: wait until it has ended."
                )
            }
            Self::Passed(point) => format!(
                "The operation cannot be cancelled any more once {}: wait until it has ended, then change the deployment \
                 back.",
                point.describe()
            ),
        })
    }
}

/// The permission that cancelling takes, and on what: that of the change which started the operation.
pub fn permission_to_cancel(
    kind: OperationKind,
    deployment: Option<(DeploymentId, WorkspaceId)>,
) -> (Permission, Target) {
    const CLUSTER_CREATE: Permission = Permission::known("organization.clusters.create");
    const CLUSTER_UPDATE: Permission = Permission::known("organization.clusters.update");
    const CLUSTER_DELETE: Permission = Permission::known("organization.clusters.delete");
    const CREATE: Permission = Permission::known("workspace.deployments.create");
    const UPDATE: Permission = Permission::known("deployment.update");
    const DELETE: Permission = Permission::known("deployment.delete");
    const DEPLOY: Permission = Permission::known("deployment.deploys.update");
    let Some((id, workspace_id)) = deployment else {
        let permission = match kind {
            OperationKind::Create => CLUSTER_CREATE,
            OperationKind::Delete => CLUSTER_DELETE,
            _ => CLUSTER_UPDATE,
        };
        return (permission, Target::Organization);
    };
    let on_it = Target::Deployment { id, workspace_id };
    match kind {
        OperationKind::Create => (CREATE, Target::Workspace(workspace_id)),
        OperationKind::Deploy | OperationKind::Rollback | OperationKind::RuntimeUpgrade => (DEPLOY, on_it),
        OperationKind::Delete => (DELETE, on_it),
        OperationKind::Update
        | OperationKind::Hibernate
        | OperationKind::Wake
        | OperationKind::Transfer
        | OperationKind::Failover
        | OperationKind::Failback
        | OperationKind::CleanUp => (UPDATE, on_it),
    }
}

/// The answer to a caller who wants to cancel an operation.
pub fn refuse_unless_cancellable(course: &Course) -> Result<()> {
    may_cancel(course).map_err(|why| why.refusal(course))
}
