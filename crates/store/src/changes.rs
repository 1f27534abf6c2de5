//! The change log: every change, in order, written in the transaction that made it.

use podium_api::Timestamp;
use podium_db::{Change, Conn, Result, Tx, params, statements};

use crate::columns::Columns;
use crate::{Doorkeeper, Housekeeper, Scope, Steward};

statements! {
    APPEND = "INSERT INTO changes (at, kind, id, organization_id, workspace_id, deployment_id, version) \
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    AFTER = "SELECT transaction_id, sequence, kind, id, organization_id, workspace_id, deployment_id, version, at \
        FROM changes WHERE SUCCEEDS(transaction_id, sequence, $1, $2) AND SETTLED(transaction_id) \
        ORDER BY transaction_id, sequence LIMIT $3";
    LATEST = "SELECT transaction_id, sequence FROM changes WHERE SETTLED(transaction_id) \
        ORDER BY transaction_id DESC, sequence DESC LIMIT 1";
    PRUNE = "DELETE FROM changes WHERE sequence IN (SELECT sequence FROM changes WHERE at < $1 LIMIT $2)";
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    transaction_id: i64,
    sequence: i64,
}

#[derive(Clone, Debug)]
pub struct LoggedChange {
    pub position: Position,
    pub kind: String,
    pub id: String,
    pub organization_id: Option<String>,
    pub workspace_id: Option<String>,
    pub deployment_id: Option<String>,
    pub version: i64,
    pub at: Timestamp,
}

/// Appends a change in the organization, and tells those who follow this process.
pub fn append(tx: &Tx, scope: &Scope, at: Timestamp, change: Change) -> Result<()> {
    note(tx, at, Change { organization_id: Some(scope.organization().to_owned()), ..change })
}

/// Appends a change of no organization or of any.
pub fn append_any(tx: &Tx, _: &Doorkeeper, at: Timestamp, change: Change) -> Result<()> {
    note(tx, at, change)
}

pub(crate) fn note(tx: &Tx, at: Timestamp, change: Change) -> Result<()> {
    let Change { kind, id, organization_id, workspace_id, deployment_id, version } = &change;
    tx.post(
        &APPEND,
        params![at.millis(), *kind, id, organization_id, workspace_id, deployment_id, *version],
    )?;
    tx.announce(change);
    Ok(())
}

/// The changes after a position, oldest first; only those that no earlier one can still precede.
pub fn after(conn: &Conn, _: &Steward, position: Position, limit: u32) -> Result<Vec<LoggedChange>> {
    conn.query(&AFTER, params![position.transaction_id, position.sequence, limit], |row| {
        Ok(LoggedChange {
            position: Position { transaction_id: row.get(0)?, sequence: row.get(1)? },
            kind: row.get(2)?,
            id: row.get(3)?,
            organization_id: row.get(4)?,
            workspace_id: row.get(5)?,
            deployment_id: row.get(6)?,
            version: row.get(7)?,
            at: row.time(8)?,
        })
    })
}

pub fn latest(conn: &Conn, _: &Steward) -> Result<Position> {
    let latest = conn
        .query_opt(&LATEST, &[], |row| Ok(Position { transaction_id: row.get(0)?, sequence: row.get(1)? }))?;
    Ok(latest.unwrap_or_default())
}

/// Drops some changes from before a time; returns how many.
pub fn prune(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE, params![before.millis(), limit])
}
