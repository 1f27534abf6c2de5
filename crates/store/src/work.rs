//! Work for the loops: which things to look at, and when. Written in the transaction that causes it.
//!
//! A row names a thing, never what to do with it. Whoever works on it holds it until its lease ends; asking again
//! meanwhile is remembered by the signal, so that nothing asked for is ever forgotten.

use podium_api::{Id, Timestamp};
use podium_db::{Change, Conn, Result, Row, Tx, params, statements};

use crate::columns::Columns;

/// The kind of the announcement that there is work.
pub const KIND: &str = "work";

statements! {
    ENQUEUE = "INSERT INTO work (kind, id, due_at, since, signal, attempts, reason, holder) \
        VALUES ($1, $2, $3, $4, 1, 0, '', '') ON CONFLICT (kind, id) DO UPDATE SET signal = work.signal + 1, \
        due_at = CASE WHEN work.holder = '' AND excluded.due_at < work.due_at THEN excluded.due_at ELSE work.due_at END";
    CLAIM = "UPDATE work SET holder = $1, due_at = $2, attempts = attempts + 1 WHERE (kind, id) IN \
        (SELECT kind, id FROM work WHERE due_at <= $3 ORDER BY due_at LIMIT $4 SKIPLOCKED) \
        RETURNING kind, id, signal, attempts, since";
    SETTLE = "DELETE FROM work WHERE kind = $1 AND id = $2 AND holder = $3 AND signal = $4";
    AGAIN = "UPDATE work SET holder = '', due_at = CASE WHEN signal = $4 THEN $5 ELSE $6 END, \
        attempts = CASE WHEN signal = $4 THEN $7 ELSE 0 END, reason = $8 \
        WHERE kind = $1 AND id = $2 AND holder = $3";
    RELEASE = "UPDATE work SET holder = '', due_at = $2 WHERE holder = $1";
    RELEASE_ALL = "UPDATE work SET holder = '', due_at = $1 WHERE holder <> ''";
    FORGET = "DELETE FROM work WHERE kind = $1 AND id = $2";
    NEXT_DUE = "SELECT due_at FROM work ORDER BY due_at LIMIT 1";
    PENDING = "SELECT kind, id, due_at, since, attempts, reason, holder FROM work ORDER BY due_at LIMIT $1";
    COUNT = "SELECT kind, COUNT(*), SUM(CASE WHEN due_at <= $1 THEN 1 ELSE 0 END), \
        SUM(CASE WHEN attempts > 1 THEN 1 ELSE 0 END) FROM work GROUP BY kind ORDER BY kind";
}

/// Work that somebody holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What kind of thing to look at.
    pub kind: String,
    /// The thing.
    pub id: Id,
    /// How often it was asked for when it was claimed.
    pub signal: i64,
    /// How often it has been tried since it last got anywhere, this time included.
    pub attempts: i64,
    /// Since when it has been asked for.
    pub since: Timestamp,
}

/// Work as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// What kind of thing is to be looked at.
    pub kind: String,
    /// The thing.
    pub id: Id,
    /// When it is due, or when its lease ends.
    pub due_at: Timestamp,
    /// Since when it has been asked for.
    pub since: Timestamp,
    /// How often it has been tried.
    pub attempts: i64,
    /// Why it is not settled yet.
    pub reason: String,
    /// Who works on it; empty where nobody does.
    pub holder: String,
}

/// How much work of a kind there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backlog {
    /// The kind.
    pub kind: String,
    /// All of it.
    pub pending: i64,
    /// What is due already.
    pub due: i64,
    /// What has been tried more than once.
    pub retried: i64,
}

/// Asks the loops to look at a thing when it is time.
pub fn enqueue(tx: &Tx, kind: &'static str, id: Id, due_at: Timestamp, now: Timestamp) -> Result<()> {
    tx.execute(&ENQUEUE, params![kind, id.as_str(), due_at.millis(), now.millis()])?;
    announce(tx, id);
    Ok(())
}

/// Tells this process that there is work.
pub(crate) fn announce(tx: &Tx, id: Id) {
    let (organization_id, workspace_id, deployment_id) = (None, None, None);
    let id = id.to_string();
    tx.announce(Change { kind: KIND, id, organization_id, workspace_id, deployment_id, version: 0 });
}

/// Takes some of what is due, until the lease ends.
pub fn claim(tx: &Tx, holder: &str, lease_ends: Timestamp, now: Timestamp, limit: u32) -> Result<Vec<Claim>> {
    tx.query(&CLAIM, params![holder, lease_ends.millis(), now.millis(), limit], |row| {
        Ok(Claim {
            kind: row.get(0)?,
            id: row.id(1)?,
            signal: row.get(2)?,
            attempts: row.get(3)?,
            since: row.time(4)?,
        })
    })
}

/// Forgets work that is done, unless it was asked for again meanwhile; says whether it is gone.
pub fn settle(tx: &Tx, holder: &str, claim: &Claim) -> Result<bool> {
    Ok(tx.execute(&SETTLE, params![&claim.kind, claim.id.as_str(), holder, claim.signal])? == 1)
}

/// Puts work back: due at `due_at`, or now where it was asked for again meanwhile.
pub fn again(
    tx: &Tx,
    holder: &str,
    claim: &Claim,
    due_at: Timestamp,
    now: Timestamp,
    attempts: i64,
    reason: &str,
) -> Result<()> {
    let (due_at, now) = (due_at.millis(), now.millis());
    let id = claim.id.as_str();
    tx.execute(&AGAIN, params![&claim.kind, id, holder, claim.signal, due_at, now, attempts, reason])?;
    announce(tx, claim.id);
    Ok(())
}

/// Lets go of everything that a holder holds.
pub fn release(tx: &Tx, holder: &str, now: Timestamp) -> Result<u64> {
    tx.execute(&RELEASE, params![holder, now.millis()])
}

/// Lets go of everything that anybody holds: for the start of the only process.
pub fn release_all(tx: &Tx, now: Timestamp) -> Result<u64> {
    tx.execute(&RELEASE_ALL, params![now.millis()])
}

/// Forgets work, whoever holds it.
pub fn forget(tx: &Tx, kind: &str, id: Id) -> Result<u64> {
    tx.execute(&FORGET, params![kind, id.as_str()])
}

/// When the next work is due, or the next lease ends.
pub fn next_due(conn: &Conn) -> Result<Option<Timestamp>> {
    conn.query_opt(&NEXT_DUE, &[], |row| row.time(0))
}

/// What is pending and why, the most urgent first.
pub fn pending(conn: &Conn, limit: u32) -> Result<Vec<Pending>> {
    conn.query(&PENDING, params![limit], read)
}

/// How much is pending.
pub fn backlog(conn: &Conn, now: Timestamp) -> Result<Vec<Backlog>> {
    conn.query(&COUNT, params![now.millis()], |row| {
        Ok(Backlog { kind: row.get(0)?, pending: row.get(1)?, due: row.get(2)?, retried: row.get(3)? })
    })
}

fn read(row: &Row<'_>) -> Result<Pending> {
    Ok(Pending {
        kind: row.get(0)?,
        id: row.id(1)?,
        due_at: row.time(2)?,
        since: row.time(3)?,
        attempts: row.get(4)?,
        reason: row.get(5)?,
        holder: row.get(6)?,
    })
}
