//! Operations: what takes time, listed, read, followed and cancelled.

mod cancel;
mod follow;
mod force;

use podium_api::enums::{OperationCause, OperationKind};
use podium_api::operations::{self as api, Operation, OperationTarget as Target, OperationsPaginated};
use podium_api::{Many, Named, One, OperationId};
use podium_db::{Conn, Tx};
use podium_domain::operations::{self as rules, Details, Undo};
use podium_domain::{Refusal, dag_viewers};
use podium_store::deployments::DeploymentRow;
use podium_store::operations::{
    self, ListFilter, NewOperation, OperationReach, OperationRow, OperationTarget,
};
use podium_store::{Paging, Scope};

use crate::cx::{Call, Cx};
use crate::error::Result;
use crate::plans;

pub(crate) use self::follow::OperationNotifier;
pub use self::follow::{OperationEvents, follow};
pub use cancel::cancel;
pub use force::force;

/// Lists the operations of the deployments and clusters that the caller may see.
pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<OperationsPaginated>> {
    let query = call.query;
    let paging = Paging::from(&query.page);
    let (limit, offset) = (paging.limit, paging.offset);
    let mut target_ids = query.target_ids;
    target_ids.retain(Named::is_given);
    let page = move |cx: &Cx<Scope>, conn: &Conn| {
        let (reach, caller) = (reach(cx), Named::from(cx.subject_id()));
        let subject_id = match &query.subject_id {
            Some(named) if named.as_str() == "self" => Some(&caller),
            other => other.as_ref().filter(|named| named.is_given()),
        };
        let listed = ListFilter {
            reach: &reach,
            target_ids: &target_ids,
            kinds: &query.kinds,
            states: &query.states,
            subject_id,
            since: query.since,
        };
        let (rows, total) = operations::list(conn, cx.scope(), &listed, &paging)?;
        Ok((rows.iter().map(|row| shown(cx, row)).collect(), total))
    };
    let (operations, total_count) = cx.scan(page).await?;
    Ok(Many(OperationsPaginated { operations, limit, offset, total_count }))
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<Operation>> {
    cx.read(move |cx, conn| Ok(answer(cx, &find(cx, conn, call.path.operation_id)?))).await
}

/// Starts an operation of a call; a newer one takes the place of the one that is under way.
pub(crate) fn begin(
    cx: &Cx<Scope>,
    tx: &Tx,
    kind: OperationKind,
    target: OperationTarget,
    undo: Option<Undo>,
) -> Result<()> {
    begin_with(cx, tx, kind, target, undo, Details::default())
}

/// The same with what is known of how it is to proceed.
pub(crate) fn begin_with(
    cx: &Cx<Scope>,
    tx: &Tx,
    kind: OperationKind,
    target: OperationTarget,
    undo: Option<Undo>,
    details: Details,
) -> Result<()> {
    let operation = NewOperation {
        id: cx.new_id(),
        kind,
        cause: OperationCause::Call,
        target,
        subject_id: Some(cx.subject_id()),
        undo,
        details,
        created_at: cx.now(),
    };
    match kind {
        OperationKind::Create => operations::begin(tx, cx.scope(), &operation)?,
        _ => operations::supersede(tx, cx.scope(), &operation)?,
    }
    cx.note_operation(Some(operation.id));
    plans::note_begun(kind, operation.cause, &operation.target);
    Ok(())
}

pub(crate) fn of_deployment(row: &DeploymentRow) -> OperationTarget {
    OperationTarget::Deployment(row.id, row.workspace_id, row.name.clone())
}

/// What a deployment is to be, for an operation that changes it.
pub(crate) fn undo_to(row: &DeploymentRow) -> Undo {
    Undo { name: row.name.clone(), spec: row.spec.clone() }
}

/// An operation that the caller may see.
pub(crate) fn find(cx: &Cx<Scope>, conn: &Conn, id: OperationId) -> Result<OperationRow> {
    let found = operations::get(conn, cx.scope(), &reach(cx), id)?;
    found.ok_or_else(|| Refusal::not_found("operation").into())
}

/// Which operations the caller may see: those of what it may see.
fn reach(cx: &Cx<Scope>) -> OperationReach {
    let grants = cx.grants();
    OperationReach { deployments: grants.visible_deployments(), clusters: grants.visible_workspaces() }
}

fn answer(cx: &Cx<Scope>, row: &OperationRow) -> One<Operation> {
    One { version: row.version, body: shown(cx, row) }
}

/// An operation as the caller sees it.
pub(crate) fn shown(cx: &Cx<Scope>, row: &OperationRow) -> Operation {
    let mut operation = of_row(row);
    dag_viewers::narrow_operation(cx.grants(), &mut operation);
    operation
}

fn of_row(row: &OperationRow) -> Operation {
    let OperationRow { target, course, .. } = row;
    let deployment = target.deployment();
    let mut details = course.details.clone();
    if let Some(ended_at) = course.ended_at {
        details.close(ended_at);
    }
    Operation {
        id: row.id,
        kind: course.kind,
        target: Target {
            target_type: target.target_type(),
            id: target.id(),
            name: target.name().to_owned(),
            workspace_id: deployment.map(|(_, workspace_id)| workspace_id),
            deployment_id: deployment.map(|(id, _)| id),
        },
        subject: row.subject.clone(),
        cause: course.cause,
        state: course.state,
        steps: details.steps,
        progress: details.progress,
        failure: details.failure,
        summary: details.summary,
        forced_at: details.forced_at,
        is_cancellable: rules::may_cancel(course).is_ok(),
        point_of_no_return: rules::point_of_no_return(course.kind, target.target_type())
            .describe()
            .to_owned(),
        superseded_by_id: row.superseded_by,
        created_at: row.created_at,
        started_at: course.started_at,
        ended_at: course.ended_at,
    }
}
