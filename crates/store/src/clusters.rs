//! Clusters, as far as workspaces refer to them.

use podium_api::Id;
use podium_db::{Conn, Result, Tx, params, statements};
use podium_domain::Scope;

statements! {
    ADMITS = "SELECT (NOT EXISTS (SELECT 1 FROM cluster_workspaces w WHERE w.cluster_id = c.id)) \
        OR EXISTS (SELECT 1 FROM cluster_workspaces w WHERE w.cluster_id = c.id AND w.workspace_id = $3) \
        FROM clusters c WHERE c.id = $1 AND c.organization_id = $2";
    LEAVE = "DELETE FROM cluster_workspaces WHERE workspace_id = $1";
}

/// Whether a cluster takes deployments of a workspace; `None` where there is no such cluster.
pub fn admits(conn: &Conn, scope: &Scope, id: Id, workspace_id: Id) -> Result<Option<bool>> {
    let params = params![id.as_str(), scope.organization(), workspace_id.as_str()];
    conn.query_opt(&ADMITS, params, |row| row.get(0))
}

/// Takes a workspace off every cluster's list.
pub fn forget_workspace(tx: &Tx, workspace_id: Id) -> Result<()> {
    tx.execute(&LEAVE, params![workspace_id.as_str()])?;
    Ok(())
}
