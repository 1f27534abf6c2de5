//! When the history of each environment was last cleaned up: begun, in the transaction that starts the operation.

use podium_api::{DeploymentId, Timestamp};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::columns::Columns;
use crate::{Scope, Steward};

statements! {
    LAST = "SELECT began_at FROM clean_ups WHERE deployment_id = $1";
    BEGIN = "INSERT INTO clean_ups (deployment_id, began_at) VALUES ($1, $2) \
        ON CONFLICT (deployment_id) DO UPDATE SET began_at = excluded.began_at";
    DELETE_OF_DEPLOYMENT = "DELETE FROM clean_ups WHERE deployment_id IN \
        (SELECT id FROM deployments WHERE id = $1 AND organization_id = $2)";
}

/// When the last one began; `None` if there was none.
pub fn last(conn: &Conn, _: &Steward, id: DeploymentId) -> Result<Option<Timestamp>> {
    conn.query_opt(&LAST, params![id.as_str()], |row| row.time(0))
}

pub fn begin(tx: &Tx, _: &Steward, id: DeploymentId, now: Timestamp) -> Result<()> {
    tx.run(&BEGIN, params![id.as_str(), now.millis()])
}

/// Forgets a deployment that is being deleted.
pub fn delete_of_deployment(tx: &Tx, scope: &Scope, id: DeploymentId) -> Result<()> {
    tx.run(&DELETE_OF_DEPLOYMENT, params![id.as_str(), scope.organization_id().as_str()])
}
