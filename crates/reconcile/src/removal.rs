//! Has the data plane remove the environments of deleted deployments: in a step, and at the latest when the server stops.
//!
//! What a plane bound to this machine removes is gone, or at least no longer runs, when the server has stopped. What it has
//! not been told to remove would run on unattended until the next start, which may be far away. Nothing is concluded from
//! what is missing: only a pending clean-up, which the deletion left, says that an environment is to go.

use std::collections::BTreeSet;
use std::time::Duration;

use podium_api::DeploymentId;
use podium_dataplane::{Fault, Location, Planes};
use podium_db::Conn;
use podium_domain::operations::RemovalDrain;
use podium_store::operations::{self, OperationRow};
use podium_store::{Steward, deployments, work};

use crate::deployments::Deployments;
use crate::reconciler::Failure;

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
    for (at, operation) in read.await? {
        if planes.of(&at).machine().is_none() {
            continue;
        }
        if let Err(fault) = remove(planes, &at, operation.as_ref()).await {
            tracing::warn!(id = %at.id, %fault, "the removal of an environment waits for the next start");
        }
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
