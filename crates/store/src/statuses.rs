//! Statuses of deployments, for metrics: of all organizations, or of one.

use podium_api::enums::DeploymentStatus;
use podium_api::{DeploymentId, OrganizationId, WorkspaceId};
use podium_db::{Conn, Result, Row, params, statements};

use crate::System;
use crate::columns::Columns;

statements! {
    ALL = "SELECT id, workspace_id, namespace, status FROM deployments ORDER BY id LIMIT $1";
    OF_ORGANIZATION = "SELECT id, workspace_id, namespace, status FROM deployments WHERE organization_id = $2 \
        ORDER BY created_at, id LIMIT $1";
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

/// What some deployments are doing.
pub fn some(
    conn: &Conn,
    _: &System,
    organization_id: Option<OrganizationId>,
    limit: u32,
) -> Result<Vec<Status>> {
    let read = |row: &Row<'_>| {
        Ok(Status { id: row.id(0)?, workspace_id: row.id(1)?, namespace: row.get(2)?, status: row.word(3)? })
    };
    match organization_id {
        Some(id) => conn.query(&OF_ORGANIZATION, params![limit, id.as_str()], read),
        None => conn.query(&ALL, params![limit], read),
    }
}
