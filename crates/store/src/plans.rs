//! Plans of changes that wait to be applied.

use podium_api::{PlanId, SubjectId, Timestamp};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::columns::Columns;
use crate::{Scope, System};

statements! {
    GET = "SELECT document, expires_at FROM plans WHERE id = $1 AND organization_id = $2";
    COUNT = "SELECT COUNT(*) FROM plans WHERE organization_id = $1 AND subject_id = $2 AND expires_at > $3";
    INSERT = "INSERT INTO plans (id, organization_id, subject_id, document, expires_at) VALUES ($1, $2, $3, $4, $5)";
    DELETE = "DELETE FROM plans WHERE id = $1 AND organization_id = $2";
    PRUNE = "DELETE FROM plans WHERE id IN (SELECT id FROM plans WHERE expires_at <= $1 LIMIT $2)";
}

/// A stored plan.
pub struct PlanRow {
    /// What is planned, sealed.
    pub document: Vec<u8>,
    /// Until when it can be applied.
    pub expires_at: Timestamp,
}

/// Finds a plan.
pub fn get(conn: &Conn, scope: &Scope, id: PlanId) -> Result<Option<PlanRow>> {
    conn.query_opt(&GET, params![id.as_str(), scope.organization()], |row| {
        Ok(PlanRow { document: row.get(0)?, expires_at: row.time(1)? })
    })
}

/// How many plans of a subject can be applied.
pub fn count(conn: &Conn, scope: &Scope, subject_id: SubjectId, now: Timestamp) -> Result<u64> {
    let params = params![scope.organization(), subject_id.as_str(), now.millis()];
    conn.query_one(&COUNT, params, |row| row.get::<i64>(0)).map(i64::cast_unsigned)
}

/// Adds a plan.
pub fn insert(tx: &Tx, scope: &Scope, id: PlanId, subject_id: SubjectId, plan: &PlanRow) -> Result<()> {
    tx.execute(
        &INSERT,
        params![
            id.as_str(),
            scope.organization(),
            subject_id.as_str(),
            plan.document.as_slice(),
            plan.expires_at.millis()
        ],
    )
    .map(drop)
}

/// Deletes a plan; returns whether it was there.
pub fn delete(tx: &Tx, scope: &Scope, id: PlanId) -> Result<bool> {
    Ok(tx.execute(&DELETE, params![id.as_str(), scope.organization()])? > 0)
}

/// Deletes plans that have expired, up to a limit.
pub fn prune(tx: &Tx, _: &System, now: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE, params![now.millis(), i64::from(limit)])
}
