//! Plans of changes that wait to be applied.

use podium_api::{PlanId, SubjectId, Timestamp};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::record::record;
use crate::{Housekeeper, Scope};

record! {
    pub struct PlanRow as columns! {
        /// What is planned, or the response to applying it; sealed.
        pub document: Vec<u8> = get "document",
        /// Until when it can be applied, or its response is repeated.
        pub expires_at: Timestamp = time "expires_at",
        pub applied_at: Option<Timestamp> = time_opt "applied_at",
    }
}

statements! {
    GET = concat!("SELECT ", columns!(), " FROM plans WHERE id = $1 AND organization_id = $2 AND subject_id = $3");
    COUNT = "SELECT COUNT(*) FROM plans
             WHERE organization_id = $1 AND subject_id = $2 AND expires_at > $3 AND applied_at IS NULL";
    INSERT = "INSERT INTO plans (id, organization_id, subject_id, document, expires_at) VALUES ($1, $2, $3, $4, $5)";
    TAKE = "UPDATE plans SET applied_at = $3 WHERE id = $1 AND organization_id = $2 AND applied_at IS NULL";
    KEEP = "UPDATE plans SET document = $3, expires_at = $4 WHERE id = $1 AND organization_id = $2";
    PRUNE = "DELETE FROM plans WHERE id IN (SELECT id FROM plans WHERE expires_at <= $1 LIMIT $2)";
}

pub fn get(conn: &Conn, scope: &Scope, id: PlanId, subject_id: SubjectId) -> Result<Option<PlanRow>> {
    conn.query_opt(&GET, params![id.as_str(), scope.organization(), subject_id.as_str()], PlanRow::read)
}

/// How many plans of a subject wait to be applied.
pub fn count(conn: &Conn, scope: &Scope, subject_id: SubjectId, now: Timestamp) -> Result<u64> {
    let params = params![scope.organization(), subject_id.as_str(), now.millis()];
    conn.query_one(&COUNT, params, |row| row.get::<i64>(0)).map(i64::cast_unsigned)
}

pub fn insert(tx: &Tx, scope: &Scope, id: PlanId, subject_id: SubjectId, plan: &PlanRow) -> Result<()> {
    let values = params![
        id.as_str(),
        scope.organization(),
        subject_id.as_str(),
        plan.document.as_slice(),
        plan.expires_at.millis()
    ];
    tx.run(&INSERT, values)
}

/// Marks a plan as applied; returns false if it already was.
pub fn take(tx: &Tx, scope: &Scope, id: PlanId, now: Timestamp) -> Result<bool> {
    Ok(tx.execute(&TAKE, params![id.as_str(), scope.organization(), now.millis()])? > 0)
}

/// Keeps the response to applying a plan in the place of its calls.
pub fn keep_response(tx: &Tx, scope: &Scope, id: PlanId, sealed: &[u8], expires_at: Timestamp) -> Result<()> {
    tx.run(&KEEP, params![id.as_str(), scope.organization(), sealed, expires_at.millis()])
}

/// Deletes plans that have expired, up to a limit.
pub fn prune(tx: &Tx, _: &Housekeeper, now: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE, params![now.millis(), i64::from(limit)])
}
