//! Statuses of deployments, for metrics: of all organizations, or of one.

use podium_api::enums::DeploymentStatus;
use podium_api::{DeploymentId, WorkspaceId};
use podium_db::{Conn, Result, Row, params, statements};
use podium_domain::DeploymentReach;

use crate::columns::{Columns, texts};
use crate::{Scope, Steward};

statements! {
    ALL = "SELECT id, workspace_id, namespace, status FROM deployments ORDER BY id LIMIT $1";
    OF_ORGANIZATION = "SELECT id, workspace_id, namespace, status FROM deployments WHERE organization_id = $2 \
        ORDER BY created_at, id LIMIT $1";
    REACHED = "SELECT id, workspace_id, namespace, status FROM deployments WHERE organization_id = $2 \
        AND (workspace_id IN ($3[]) OR id IN ($4[])) ORDER BY created_at, id LIMIT $1";
}

/// What the operator's numbers say of a deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The deployment.
    pub id: DeploymentId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Its name in the data plane.
    pub namespace: String,
    /// Its status.
    pub status: DeploymentStatus,
}

/// The statuses of deployments of all organizations, up to a limit.
pub fn of_all(conn: &Conn, _: &Steward, limit: u32) -> Result<Vec<Status>> {
    conn.query(&ALL, params![limit], read)
}

/// The statuses of the deployments that a caller may see, up to a limit.
pub fn reached(conn: &Conn, scope: &Scope, reach: &DeploymentReach, limit: u32) -> Result<Vec<Status>> {
    match reach {
        DeploymentReach::All => conn.query(&OF_ORGANIZATION, params![limit, scope.organization()], read),
        DeploymentReach::Only { workspaces, deployments } => {
            let (workspaces, deployments) = (texts(workspaces), texts(deployments));
            conn.query(&REACHED, params![limit, scope.organization(), &workspaces, &deployments], read)
        }
    }
}

fn read(row: &Row<'_>) -> Result<Status> {
    Ok(Status { id: row.id(0)?, workspace_id: row.id(1)?, namespace: row.get(2)?, status: row.word(3)? })
}
