//! Has the data plane remove the environments of deleted deployments: in a step, and at the latest when the server
//! stops.
//!
//! What a plane bound to this machine removes is gone, or at least no longer runs, when the server has stopped. What it
//! has not been told to remove would run on unattended until the next start, which may be far away. Nothing is
//! concluded from what is missing: only a pending clean-up, which the deletion left, says that an environment is to go.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::try_join_all;
use podium_api::DeploymentId;
use podium_dataplane::{Fault, Location, Planes};
use podium_db::Conn;
use podium_domain::operations::RemovalDrain;
use podium_store::operations::{self, OperationRow};
use podium_store::{Steward, deployments, work};

use crate::deployments::Deployments;
use crate::reconciler::Failure;

/// How long a stop waits for removals to begin to drain, and how often it looks.
const BEGINNING: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Has an environment removed, after its running tasks have finished if that was asked for.
pub(crate) async fn remove(
    planes: &Planes,
    at: &Location,
    operation: Option<&OperationRow>,
) -> Result<(), Fault> {
    let drain = operation.and_then(|operation| operation.course.details.removal_drain.as_ref());
    match drain {
        None => planes.of(at).remove(at).await,
        Some(RemovalDrain { grace_seconds }) => {
            let grace = grace_seconds.map(|seconds| Duration::from_secs(seconds.into()));
            planes.of(at).drain_and_remove(at, grace).await
        }
    }
}

/// Has the environments on this machine removed whose deployments were deleted. The work stays pending: the next start
/// sees to what is left.
pub(crate) async fn hand_over(reconciler: &Deployments) -> Result<(), Failure> {
    let Deployments { app, system, planes } = reconciler;
    let system = *system;
    let Some(machine) = planes.machine() else { return Ok(()) };
    let here: BTreeSet<DeploymentId> = machine.environments().into_iter().collect();
    let node = app.node().map(|node| node.id.to_string()).unwrap_or_default();
    let read = app.db(&system).scan(None, move |conn| deleted_with_operations(conn, system, &node, &here));
    let mut told = Vec::new();
    for (at, operation) in read.await? {
        if planes.of(&at).machine().is_none() {
            continue;
        }
        match remove(planes, &at, operation.as_ref()).await {
            Ok(()) => told.push((at, operation)),
            Err(fault) => {
                tracing::warn!(id = %at.id, %fault, "the removal of an environment waits for the next start");
            }
        }
    }
    // Workers that were not told to finish would go on to the next task while nobody looks after them.
    let all_drain =
        try_join_all(told.iter().map(|(at, operation)| until_it_drains(reconciler, at, operation.as_ref())));
    match tokio::time::timeout(BEGINNING, all_drain).await {
        Ok(done) => done.map(drop),
        Err(_) => {
            tracing::warn!("not every removal that waits for running tasks has begun to");
            Ok(())
        }
    }
}

/// Waits until the plane drains an environment that is removed with a drain; or no longer, if somebody has ended that.
async fn until_it_drains(
    reconciler: &Deployments,
    at: &Location,
    operation: Option<&OperationRow>,
) -> Result<(), Failure> {
    let Some(details) = operation.map(|operation| &operation.course.details) else { return Ok(()) };
    let (drains, is_ended) = (details.removal_drain.is_some(), details.forced_at.is_some());
    while drains && reconciler.drains(at, operation).await? == Some(is_ended) {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

/// Those of the environments on this machine whose deployments were deleted, with the operations that do it.
fn deleted_with_operations(
    conn: &Conn,
    system: Steward,
    node: &str,
    here: &BTreeSet<DeploymentId>,
) -> podium_db::Result<Vec<(Location, Option<OperationRow>)>> {
    let deleted = work::of_deleted_deployments(conn, &system, node)?;
    let deleted = deleted.into_iter().filter(|id| here.contains(id));
    deleted
        .map(|id| {
            let operation = operations::under_way(conn, &system, id.id())?;
            Ok((deployments::location_of(conn, &system, id)?, operation))
        })
        .collect()
}
