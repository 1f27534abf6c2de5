//! Deployments, as far as roles and workspaces refer to them.

use podium_api::Id;
use podium_db::{Conn, Result, Tx, params, statements};
use podium_domain::Scope;

use crate::columns::Columns;

statements! {
    WORKSPACES = "SELECT id, workspace_id FROM deployments WHERE id IN ($1[]) AND organization_id = $2";
    COUNT = "SELECT COUNT(*) FROM deployments WHERE workspace_id = $1 AND organization_id = $2";
    INSERT = "INSERT INTO deployments (id, organization_id, workspace_id) VALUES ($1, $2, $3)";
}

/// The workspaces of those of these deployments that there are.
pub fn workspaces(conn: &Conn, scope: &Scope, ids: &[Id]) -> Result<Vec<(Id, Id)>> {
    let ids: Vec<&str> = ids.iter().map(Id::as_str).collect();
    conn.query(&WORKSPACES, params![&ids, scope.organization()], |row| Ok((row.id(0)?, row.id(1)?)))
}

/// How many deployments a workspace has.
pub fn count(conn: &Conn, scope: &Scope, workspace_id: Id) -> Result<i64> {
    conn.query_one(&COUNT, params![workspace_id.as_str(), scope.organization()], |row| row.get(0))
}

/// Adds a deployment to a workspace.
pub fn insert(tx: &Tx, scope: &Scope, id: Id, workspace_id: Id) -> Result<()> {
    tx.execute(&INSERT, params![id.as_str(), scope.organization(), workspace_id.as_str()])?;
    Ok(())
}
