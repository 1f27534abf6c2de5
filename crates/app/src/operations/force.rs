//! Ending the wait for running tasks: it is written in the operation, and the loop tells the data plane.

use podium_api::One;
use podium_api::OperationId;
use podium_api::operations::{self as api, Operation};
use podium_db::Tx;
use podium_domain::operations as rules;
use podium_store::{Scope, operations};

use super::answer;
use super::cancel::find_to_cancel;
use crate::cx::{Call, Cx};
use crate::error::Result;

/// Ends the wait of an operation for running tasks. Who may cancel an operation may do it.
pub async fn force(cx: Cx<Scope>, call: Call<api::Force>) -> Result<One<Operation>> {
    let id = call.path.operation_id;
    let may = move |cx: &Cx<Scope>, tx: &Tx| find_to_cancel(cx, tx, id).map(drop);
    cx.mutate_where(may, move |cx, tx| force_in(cx, tx, id)).await
}

fn force_in(cx: &Cx<Scope>, tx: &Tx, id: OperationId) -> Result<One<Operation>> {
    let mut row = find_to_cancel(cx, tx, id)?;
    cx.expect_version(row.version)?;
    if row.course.details.forced_at.is_some() {
        return Ok(answer(&row));
    }
    rules::refuse_unless_draining(&row.course)?;
    row.course.details.forced_at = Some(cx.now());
    operations::force(tx, cx.scope(), &row, &row.course.details, cx.now())?;
    row.version += 1;
    cx.event(tx, row.about())?;
    Ok(answer(&row))
}
