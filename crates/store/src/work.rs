//! Work for the loops: which things to look at, and when. Written in the transaction that causes it.
//!
//! A row names a thing, never what to do with it. Whoever works on it holds it until its lease ends, which is when the
//! row is due again. Asking while it is held advances its signal; whoever holds it then finds another signal than it
//! claimed and leaves the row behind, due at once. So nothing that was asked for is forgotten, and nobody waits for a
//! row that somebody else works on.
//!
//! Work on a deployment that runs on a node is that node's: nobody else claims it. All other work names no node.

use podium_api::{Id, Timestamp};
use podium_db::{Change, Conn, Result, Row, Tx, params, statements};

use crate::System;
use crate::columns::Columns;

/// The kind of the announcement that there is work.
pub const KIND: &str = "work";
/// The node of work that anybody may do.
pub const ANYBODY: &str = "";

/// What asking again does to a row: it is due no later than before, and counts as new unless somebody works on it.
macro_rules! asked_again {
    () => {
        " ON CONFLICT (kind, id) DO UPDATE SET signal = work.signal + 1, \
          due_at = CASE WHEN work.holder = '' AND excluded.due_at < work.due_at THEN excluded.due_at ELSE work.due_at END, \
          since = CASE WHEN excluded.since < work.since THEN excluded.since ELSE work.since END, \
          attempts = CASE WHEN work.holder = '' THEN 0 ELSE work.attempts END, \
          node_id = excluded.node_id"
    };
}

macro_rules! pending_columns {
    () => {
        "SELECT kind, id, due_at, since, attempts, reason, holder FROM work"
    };
}

statements! {
    ENQUEUE = concat!(
        "INSERT INTO work (kind, id, due_at, since, signal, attempts, reason, holder, node_id) \
         VALUES ($1, $2, $3, $4, 1, 0, '', '', \
         COALESCE((SELECT p.node_id FROM placements p WHERE p.deployment_id = $2), ''))",
        asked_again!()
    );
    ENQUEUE_DEPLOYMENTS = concat!(
        "INSERT INTO work (kind, id, due_at, since, signal, attempts, reason, holder, node_id) \
         SELECT $1, d.id, $2, $2, 1, 0, '', '', COALESCE(p.node_id, '') \
         FROM deployments d LEFT JOIN placements p ON p.deployment_id = d.id WHERE 1 = 1",
        asked_again!()
    );
    ENQUEUE_CLUSTERS = concat!(
        "INSERT INTO work (kind, id, due_at, since, signal, attempts, reason, holder, node_id) \
         SELECT $1, id, $2, $2, 1, 0, '', '', '' FROM clusters WHERE 1 = 1",
        asked_again!()
    );
    CLAIM = "WITH picked AS MATERIALIZED (SELECT kind, id FROM work WHERE kind = $1 AND node_id = $6 AND due_at <= $2 \
        ORDER BY due_at LIMIT $3 SKIPLOCKED) \
        UPDATE work SET holder = $4, due_at = $5, attempts = work.attempts + 1 FROM picked \
        WHERE work.kind = picked.kind AND work.id = picked.id \
        RETURNING work.kind, work.id, work.signal, work.attempts, work.since";
    SETTLE = "DELETE FROM work WHERE kind = $1 AND id = $2 AND holder = $3 AND signal = $4";
    LEAVE = "UPDATE work SET holder = '', due_at = $4, since = $4, attempts = 0, reason = '' \
        WHERE kind = $1 AND id = $2 AND holder = $3";
    RETURN = "UPDATE work SET holder = '', due_at = $5, since = $6, attempts = $7, reason = $8 \
        WHERE kind = $1 AND id = $2 AND holder = $3 AND signal = $4";
    RELEASE = "UPDATE work SET holder = '', due_at = $2, attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END \
        WHERE holder = $1";
    RELEASE_ALL = "UPDATE work SET holder = '', due_at = $1 WHERE holder <> ''";
    FORGET = "DELETE FROM work WHERE kind = $1 AND id = $2";
    NEXT_DUE = "SELECT due_at FROM work WHERE kind = $1 AND node_id = $2 ORDER BY due_at LIMIT 1";
    GIVE = "UPDATE work SET node_id = $3 WHERE kind = $1 AND id = $2";
    GIVE_BACK = "UPDATE work SET node_id = '', holder = '', due_at = $3 WHERE kind = $1 AND node_id = $2";
    PENDING = concat!(pending_columns!(), " ORDER BY due_at, kind, id LIMIT $1");
    PENDING_OF = concat!(pending_columns!(), " WHERE kind = $2 ORDER BY due_at, id LIMIT $1");
    COUNT = "SELECT kind, COUNT(*), SUM(CASE WHEN due_at <= $1 THEN 1 ELSE 0 END), \
        SUM(CASE WHEN holder <> '' THEN 1 ELSE 0 END), SUM(CASE WHEN attempts > 1 THEN 1 ELSE 0 END), \
        MIN(CASE WHEN due_at <= $1 THEN due_at END) FROM work GROUP BY kind ORDER BY kind";
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

/// How held work is put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Again {
    /// When it is due.
    pub due_at: Timestamp,
    /// Since when it has been asked for.
    pub since: Timestamp,
    /// How often it was tried.
    pub attempts: i64,
    /// Why it is not settled.
    pub reason: String,
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
    /// What is due and nobody works on.
    pub due: i64,
    /// What somebody works on.
    pub held: i64,
    /// What has been tried more than once.
    pub retried: i64,
    /// Since when the oldest of what is due has been.
    pub oldest_due_at: Option<Timestamp>,
}

/// Asks the loops to look at a thing when it is time.
pub(crate) fn ask(tx: &Tx, kind: &'static str, id: Id, due_at: Timestamp, now: Timestamp) -> Result<()> {
    let since = due_at.max(now);
    tx.post(&ENQUEUE, params![kind, id.as_str(), due_at.millis(), since.millis()])?;
    announce(tx, id.to_string());
    Ok(())
}

/// The same, for the loops themselves.
pub fn enqueue(
    tx: &Tx,
    _: &System,
    kind: &'static str,
    id: Id,
    due_at: Timestamp,
    now: Timestamp,
) -> Result<()> {
    ask(tx, kind, id, due_at, now)
}

/// Asks the loops to look at every deployment and every cluster; says how many that are.
pub fn enqueue_everything(tx: &Tx, _: &System, now: Timestamp) -> Result<u64> {
    let clusters = tx.execute(&ENQUEUE_CLUSTERS, params![crate::clusters::KIND, now.millis()])?;
    let deployments = tx.execute(&ENQUEUE_DEPLOYMENTS, params![crate::deployments::KIND, now.millis()])?;
    announce(tx, String::new());
    Ok(clusters + deployments)
}

/// Tells this process, and the other replicas, that there is work.
fn announce(tx: &Tx, id: String) {
    let (organization_id, workspace_id, deployment_id) = (None, None, None);
    tx.announce(Change { kind: KIND, id, organization_id, workspace_id, deployment_id, version: 0 });
}

/// Takes some of what is due of a kind and that anybody may do, the longest due first, until the lease ends.
pub fn claim(
    tx: &Tx,
    system: &System,
    kind: &str,
    holder: &str,
    lease_ends: Timestamp,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Claim>> {
    claim_of(tx, system, (kind, ANYBODY), holder, lease_ends, now, limit)
}

/// Takes some of what is due of a kind on a node, the longest due first, until the lease ends.
pub fn claim_of(
    tx: &Tx,
    _: &System,
    (kind, node): (&str, &str),
    holder: &str,
    lease_ends: Timestamp,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Claim>> {
    tx.query(&CLAIM, params![kind, now.millis(), limit, holder, lease_ends.millis(), node], |row| {
        Ok(Claim {
            kind: row.get(0)?,
            id: row.id(1)?,
            signal: row.get(2)?,
            attempts: row.get(3)?,
            since: row.time(4)?,
        })
    })
}

/// Forgets work that is done, or leaves it due now where it was asked for again; says whether it was still held.
pub fn settle(tx: &Tx, _: &System, holder: &str, claim: &Claim, now: Timestamp) -> Result<bool> {
    if tx.execute(&SETTLE, params![&claim.kind, claim.id.as_str(), holder, claim.signal])? == 1 {
        return Ok(true);
    }
    leave(tx, holder, claim, now)
}

/// Puts work back, or leaves it due now where it was asked for again; says whether it was still held.
pub fn again(
    tx: &Tx,
    _: &System,
    holder: &str,
    claim: &Claim,
    again: &Again,
    now: Timestamp,
) -> Result<bool> {
    let (due_at, since) = (again.due_at.millis(), again.since.millis());
    let id = claim.id.as_str();
    let rows = tx.execute(
        &RETURN,
        params![&claim.kind, id, holder, claim.signal, due_at, since, again.attempts, &again.reason],
    )?;
    if rows == 0 {
        return leave(tx, holder, claim, now);
    }
    announce(tx, claim.id.to_string());
    Ok(true)
}

/// Leaves work that was asked for again while it was held: it is new, and due now.
fn leave(tx: &Tx, holder: &str, claim: &Claim, now: Timestamp) -> Result<bool> {
    let rows = tx.execute(&LEAVE, params![&claim.kind, claim.id.as_str(), holder, now.millis()])?;
    announce(tx, claim.id.to_string());
    Ok(rows == 1)
}

/// Lets go of everything that a holder holds, as if it had never been tried.
pub fn release(tx: &Tx, _: &System, holder: &str, now: Timestamp) -> Result<u64> {
    let rows = tx.execute(&RELEASE, params![holder, now.millis()])?;
    announce(tx, String::new());
    Ok(rows)
}

/// Lets go of everything that anybody holds: for the start of the only process.
pub fn release_all(tx: &Tx, _: &System, now: Timestamp) -> Result<u64> {
    tx.execute(&RELEASE_ALL, params![now.millis()])
}

/// Forgets work, whoever holds it.
pub(crate) fn cancel(tx: &Tx, kind: &str, id: Id) -> Result<u64> {
    tx.execute(&FORGET, params![kind, id.as_str()])
}

/// The same, for whoever looks after the loops.
pub fn forget(tx: &Tx, _: &System, kind: &str, id: Id) -> Result<u64> {
    cancel(tx, kind, id)
}

/// When the next work of a kind that anybody may do is due, or its next lease ends.
pub fn next_due(conn: &Conn, system: &System, kind: &str) -> Result<Option<Timestamp>> {
    next_due_of(conn, system, (kind, ANYBODY))
}

/// When the next work of a kind on a node is due, or its next lease ends.
pub fn next_due_of(conn: &Conn, _: &System, (kind, node): (&str, &str)) -> Result<Option<Timestamp>> {
    conn.query_opt(&NEXT_DUE, params![kind, node], |row| row.time(0))
}

/// Leaves work on a thing to a node from now on.
pub(crate) fn give(tx: &Tx, kind: &str, id: Id, node_id: &str) -> Result<()> {
    tx.execute(&GIVE, params![kind, id.as_str(), node_id])?;
    announce(tx, id.to_string());
    Ok(())
}

/// Leaves everything that was a node's to anybody, due now.
pub(crate) fn give_back(tx: &Tx, kind: &str, node_id: &str, now: Timestamp) -> Result<u64> {
    let rows = tx.execute(&GIVE_BACK, params![kind, node_id, now.millis()])?;
    announce(tx, String::new());
    Ok(rows)
}

/// What is pending and why, the most urgent first; of all kinds, or of one.
pub fn pending(conn: &Conn, _: &System, kind: Option<&str>, limit: u32) -> Result<Vec<Pending>> {
    match kind {
        Some(kind) => conn.query(&PENDING_OF, params![limit, kind], read),
        None => conn.query(&PENDING, params![limit], read),
    }
}

/// How much is pending.
pub fn backlog(conn: &Conn, _: &System, now: Timestamp) -> Result<Vec<Backlog>> {
    conn.query(&COUNT, params![now.millis()], |row| {
        Ok(Backlog {
            kind: row.get(0)?,
            pending: row.get(1)?,
            due: row.get(2)?,
            held: row.get(3)?,
            retried: row.get(4)?,
            oldest_due_at: row.time_opt(5)?,
        })
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
