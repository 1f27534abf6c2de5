//! Ending the wait for running tasks: it is written in the operation, and the loop tells the data plane.

use podium_api::enums::OperationKind;
use podium_api::operations::{self as api, Operation};
use podium_api::{One, OperationId};
use podium_db::Tx;
use podium_domain::operations as rules;
use podium_domain::{Permission, Target};
use podium_store::operations::OperationRow;
use podium_store::{Scope, operations};

use super::{answer, find};
use crate::cx::{Call, Cx};
use crate::error::Result;

const UPDATE: Permission = Permission::known("deployment.update");

/// Ends the wait of an operation for running tasks. That kills tasks of everybody, so it takes the right to change the
/// deployment (or to delete it, where it is being deleted), also for one's own deploys.
pub async fn force(cx: Cx<Scope>, call: Call<api::Force>) -> Result<One<Operation>> {
    let id = call.path.operation_id;
    let may = move |cx: &Cx<Scope>, tx: &Tx| find_to_force(cx, tx, id).map(drop);
    cx.mutate_where(may, move |cx, tx| force_in(cx, tx, id)).await
}

fn force_in(cx: &Cx<Scope>, tx: &Tx, id: OperationId) -> Result<One<Operation>> {
    let mut row = find_to_force(cx, tx, id)?;
    cx.expect_version(row.version)?;
    if row.course.details.forced_at.is_some() {
        return Ok(answer(cx, &row));
    }
    rules::refuse_unless_draining(&row.course)?;
    row.course.details.forced_at = Some(cx.now());
    operations::force(tx, cx.scope(), &row, &row.course.details, cx.now())?;
    row.version += 1;
    cx.event(tx, row.about())?;
    Ok(answer(cx, &row))
}

fn find_to_force(cx: &Cx<Scope>, tx: &Tx, id: OperationId) -> Result<OperationRow> {
    let row = find(cx, tx, id)?;
    let (permission, target) = match (row.course.kind, row.target.deployment()) {
        (OperationKind::Delete, deployment) => rules::permission_to_cancel(OperationKind::Delete, deployment),
        (_, Some((id, workspace_id))) => (UPDATE, Target::Deployment { id, workspace_id }),
        (kind, None) => rules::permission_to_cancel(kind, None),
    };
    cx.require(permission, target)?;
    Ok(row)
}
