//! Statuses of deployments, for metrics: of all organizations, or of one.

use podium_api::enums::DeploymentStatus;
use podium_api::{DeploymentId, WorkspaceId};
use podium_db::{Conn, Result, params, statements};
use podium_domain::DeploymentReach;

use crate::columns::texts;
use crate::record::record;
use crate::{Scope, Steward};

record! {
    /// What the operator's numbers say of a deployment.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Status as columns! {
        pub id: DeploymentId = id "id",
        pub workspace_id: WorkspaceId = id "workspace_id",
        /// Its name in the data plane.
        pub namespace: String = get "namespace",
        pub status: DeploymentStatus = word "status",
    }
}

statements! {
    ALL = concat!("SELECT ", columns!(), " FROM deployments ORDER BY id LIMIT $1");
    OF_ORGANIZATION = concat!("SELECT ", columns!(), " FROM deployments WHERE organization_id = $2 \
        ORDER BY created_at, id LIMIT $1");
    REACHED = concat!("SELECT ", columns!(), " FROM deployments WHERE organization_id = $2 \
        AND (workspace_id IN ($3[]) OR id IN ($4[])) ORDER BY created_at, id LIMIT $1");
}

/// The statuses of deployments of all organizations, up to a limit.
pub fn of_all(conn: &Conn, _: &Steward, limit: u32) -> Result<Vec<Status>> {
    conn.query(&ALL, params![limit], Status::read)
}

/// The statuses of the deployments that a caller may see, up to a limit.
pub fn reached(conn: &Conn, scope: &Scope, reach: &DeploymentReach, limit: u32) -> Result<Vec<Status>> {
    match reach {
        DeploymentReach::All => {
            conn.query(&OF_ORGANIZATION, params![limit, scope.organization()], Status::read)
        }
        DeploymentReach::Only { workspaces, deployments } => {
            let (workspaces, deployments) = (texts(workspaces), texts(deployments));
            conn.query(
                &REACHED,
                params![limit, scope.organization(), &workspaces, &deployments],
                Status::read,
            )
        }
    }
}
