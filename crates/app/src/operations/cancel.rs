//! Cancelling: what was wanted before is wanted again, in the transaction that ends the operation.
//!
//! That takes time too, so it is an operation of its own, which the response names.

use podium_api::enums::{DeploymentStatus, OperationKind, OperationState};
use podium_api::operations::{self as api, Operation};
use podium_api::{DeployId, One, OperationId};
use podium_db::Tx;
use podium_domain::deployments::hibernation;
use podium_domain::operations as rules;
use podium_domain::{Permission, Target, UserText, names};
use podium_store::operations::OperationRow;
use podium_store::{Scope, deployments, deploys, operations};

use super::{answer, begin, find, of_deployment};
use crate::cx::{Call, Cx};
use crate::deployments::{changed, find as find_deployment, hold_rights, remove};
use crate::error::{Error, OrConflict, Result};

const DELETE: Permission = Permission::known("deployment.delete");
const DEPLOY: Permission = Permission::known("deployment.deploys.create");

/// Cancels an operation, and goes back to what was wanted before.
pub async fn cancel(cx: Cx<Scope>, call: Call<api::Cancel>) -> Result<One<Operation>> {
    let id = call.path.operation_id;
    let found = cx.read(move |cx, conn| find(cx, conn, id)).await?;
    let may = move |cx: &Cx<Scope>, tx: &Tx| find_to_cancel(cx, tx, id).map(drop);
    let effect = move |cx: &Cx<Scope>, tx: &Tx| cancel_in(cx, tx, id);
    // Only a creation is undone by a removal, which takes rights away.
    match found.course.kind {
        OperationKind::Create => cx.change_rights_where(may, effect).await,
        _ => cx.mutate_where(may, effect).await,
    }
}

fn cancel_in(cx: &Cx<Scope>, tx: &Tx, id: OperationId) -> Result<One<Operation>> {
    let mut row = find_to_cancel(cx, tx, id)?;
    if row.course.kind == OperationKind::Create {
        hold_rights(cx, tx)?;
    }
    cx.expect_version(row.version)?;
    if row.course.state == OperationState::Cancelled {
        return Ok(answer(cx, &row));
    }
    rules::refuse_unless_cancellable(&row.course)?;
    if let Some((id, _)) = row.target.deployment() {
        // First the target, then its operation: the same order as in other calls and the loops, which avoids deadlocks.
        deploys::lock_deployment(tx, cx.scope(), id)?;
    }
    let undo = operations::undo(tx, cx.scope(), id)?;
    row.course.details.close(cx.now());
    operations::cancel(tx, cx.scope(), &row, &row.course.details, cx.now())?;
    restore(cx, tx, &row, undo)?;
    cx.event(tx, row.about())?;
    row.version += 1;
    row.course.state = OperationState::Cancelled;
    row.course.ended_at = Some(cx.now());
    Ok(answer(cx, &row))
}

/// An operation that the caller may see and cancel. Who may only create deploys may cancel its own.
fn find_to_cancel(cx: &Cx<Scope>, tx: &Tx, id: OperationId) -> Result<OperationRow> {
    let row = find(cx, tx, id)?;
    let (permission, target) = rules::permission_to_cancel(row.course.kind, row.target.deployment());
    let is_own = row.subject.as_ref().is_some_and(|subject| subject.id == cx.subject_id());
    let makes_deploys =
        row.course.kind == OperationKind::Deploy || row.course.kind == OperationKind::RuntimeUpgrade;
    if row.course.kind == OperationKind::Create
        && !is_own
        && let Some((id, workspace_id)) = row.target.deployment()
    {
        // Cancelling a creation deletes what somebody else has created.
        cx.require(DELETE, Target::Deployment { id, workspace_id })?;
    }
    match cx.require(permission, target) {
        Err(Error::Refused(refusal)) if is_own && makes_deploys => {
            cx.require(DEPLOY, target).map_err(|_| Error::from(refusal))?;
        }
        required => required?,
    }
    Ok(row)
}

/// Makes a deployment want what it wanted before the operation.
fn restore(cx: &Cx<Scope>, tx: &Tx, row: &OperationRow, undo: Option<rules::Undo>) -> Result<()> {
    let Some((id, _)) = row.target.deployment() else {
        return Err(Error::Internal("an operation of a cluster was cancelled".into()));
    };
    if row.course.kind == OperationKind::Create {
        return remove(cx, tx, &find_deployment(tx, cx.scope(), id)?, None);
    }
    let undo = undo.ok_or_else(|| Error::Internal("the operation cannot be undone".into()))?;
    let mut deployment = changed(cx, find_deployment(tx, cx.scope(), id)?);
    if deployment.status == DeploymentStatus::Deploying {
        deployment.status_reason = UserText::new("A cancelled change is being undone.");
    }
    let kind = match row.course.kind {
        OperationKind::Deploy | OperationKind::Rollback | OperationKind::RuntimeUpgrade => {
            if let Some(deploy_id) = deployment.spec.release.deploy_id {
                fail_deploy(cx, tx, row, deploy_id)?;
            }
            OperationKind::Rollback
        }
        OperationKind::Hibernate | OperationKind::Wake => {
            let spec = &undo.spec;
            match hibernation::state(&spec.hibernation, spec.is_development_mode, cx.now()).is_hibernating {
                true => OperationKind::Hibernate,
                false => OperationKind::Wake,
            }
        }
        _ => OperationKind::Update,
    };
    (deployment.name, deployment.spec) = (undo.name, undo.spec);
    deployments::update(tx, cx.scope(), &deployment, &names::fold(&deployment.name)).or_conflict(|| {
        let name = &deployment.name;
        format!(
            "The deployment was named `{name}` before, which is another deployment's name now: rename that one first."
        )
    })?;
    cx.logged(tx, deployments::KIND, id.id(), deployment.stamp.version)?;
    begin(cx, tx, kind, of_deployment(&deployment), None)
}

/// Fails the deploy whose rollout is cancelled.
fn fail_deploy(cx: &Cx<Scope>, tx: &Tx, row: &OperationRow, deploy_id: DeployId) -> Result<()> {
    let Some(place @ (deployment_id, _)) = row.target.deployment() else { return Ok(()) };
    let by = (cx.subject_id(), cx.now());
    if deploys::cancel(tx, cx.scope(), deployment_id, deploy_id, by)? {
        deploys::unmark_rolled_back(tx, cx.scope(), deployment_id, deploy_id)?;
        let deploy = deploys::get(tx, cx.scope(), deployment_id, deploy_id)?;
        let version = deploy.map_or(0, |deploy| deploy.stamp.version);
        cx.logged(tx, deploys::KIND, deploy_id.id(), version)?;
        deploys::append_failed(tx, cx.scope(), deploy_id, place, cx.now())?;
    }
    Ok(())
}
