//! Audit records: who did what, from where, and with what result.

use podium_api::{AuditLogId, OrganizationId, Timestamp};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::columns::Columns;
use crate::{Doorkeeper, Housekeeper, Scope};

statements! {
    INSERT = "INSERT INTO audit_records (organization_id, at, id, record) VALUES ($1, $2, $3, $4)";
    AFTER = "SELECT at, id, record FROM audit_records WHERE organization_id = $1 AND (at, id) > ($2, $3) AND at < $4 \
        ORDER BY at, id LIMIT $5";
    PRUNE = "DELETE FROM audit_records WHERE (organization_id, at, id) IN \
        (SELECT organization_id, at, id FROM audit_records WHERE at < $1 LIMIT $2)";
}

/// The position of an export.
#[derive(Clone, Debug)]
pub struct Cursor {
    at: i64,
    id: String,
}

impl Cursor {
    /// The beginning of an export from this time on.
    pub fn from(start: Timestamp) -> Self {
        Self { at: start.millis() - 1, id: "~".into() }
    }
}

/// Writes a record, a line of JSON.
pub fn insert(
    tx: &Tx,
    _: &Doorkeeper,
    organization_id: Option<OrganizationId>,
    at: Timestamp,
    id: AuditLogId,
    record: &str,
) -> Result<()> {
    let organization_id = organization_id.as_ref().map_or("", OrganizationId::as_str);
    tx.post(&INSERT, params![organization_id, at.millis(), id.as_str(), record])
}

/// Appends the next records before `end` to `into`, a line each, and moves the cursor; returns how many.
pub fn export(
    conn: &Conn,
    scope: &Scope,
    cursor: &mut Cursor,
    end: Timestamp,
    limit: u32,
    into: &mut Vec<u8>,
) -> Result<usize> {
    let params = params![scope.organization(), cursor.at, &cursor.id, end.millis(), limit];
    let rows = conn.query(&AFTER, params, |row| {
        into.extend_from_slice(row.text(2)?.as_bytes());
        into.push(b'\n');
        Ok((row.time(0)?.millis(), row.get::<String>(1)?))
    })?;
    let count = rows.len();
    if let Some((at, id)) = rows.into_iter().next_back() {
        *cursor = Cursor { at, id };
    }
    Ok(count)
}

/// Drops some records from before a time; returns how many.
pub fn prune(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE, params![before.millis(), limit])
}
