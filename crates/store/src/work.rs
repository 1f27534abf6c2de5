//! The work queue of the loops: which resources to reconcile, and when. Items are written in the transaction that
//! causes them.
//!
//! A row names a resource, never what to do with it. A worker holds a row until its lease ends, which is when the row
//! is due again. Enqueueing a held row advances its signal; the holder then finds a different signal than it claimed
//! and leaves the row in the queue, due at once. So no request is lost, and nobody waits for a row that another worker
//! holds.
//!
//! Work on a deployment that is placed on a node belongs to that node: no other node claims it. All other work has no
//! node.

use podium_api::{DeploymentId, Id, Timestamp};
use podium_db::{Change, Conn, Result, Tx, params, statements};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Steward;
use crate::columns::{Columns, document};
use crate::record::record;

/// The kind of the change that announces work.
pub const KIND: &str = "work";
/// The node of work that any node may do.
pub const ANY_NODE: &str = "";

record! {
    /// Work as an operator sees it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Pending as pending_columns! {
        pub kind: String = get "kind",
        pub id: Id = id "id",
        /// When it is due, or when its lease ends.
        pub due_at: Timestamp = time "due_at",
        pub since: Timestamp = time "since",
        pub attempts: i64 = get "attempts",
        /// Why it is not settled yet.
        pub reason: String = get "reason",
        /// Who holds it; empty if nobody does.
        pub holder: String = get "holder",
    }
}

record! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Claim as claim_columns! {
        pub kind: String = get "work.kind",
        pub id: Id = id "work.id",
        pub signal: i64 = get "work.signal",
        /// How often it has been tried since it last made progress, this time included.
        pub attempts: i64 = get "work.attempts",
        pub since: Timestamp = time "work.since",
    }
}

record! {
    /// How much work of a kind there is.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Backlog as backlog_columns! {
        pub kind: String = get "kind",
        /// All of it.
        pub pending: i64 = get "COUNT(*)",
        /// Items that are due and not held.
        pub due: i64 = get "SUM(CASE WHEN due_at <= $1 THEN 1 ELSE 0 END)",
        pub held: i64 = get "SUM(CASE WHEN holder <> '' THEN 1 ELSE 0 END)",
        /// Items that have been tried more than once.
        pub retried: i64 = get "SUM(CASE WHEN attempts > 1 THEN 1 ELSE 0 END)",
        /// Since when the oldest due item has been due.
        pub oldest_due_at: Option<Timestamp> = time_opt "MIN(CASE WHEN due_at <= $1 THEN due_at END)",
    }
}

/// The effect of enqueueing a row again: it is due no later than before, and counts as new unless it is held.
macro_rules! asked_again {
    () => {
        " ON CONFLICT (kind, id) DO UPDATE SET signal = work.signal + 1, \
          due_at = CASE WHEN work.holder = '' AND excluded.due_at < work.due_at THEN excluded.due_at ELSE work.due_at END, \
          since = CASE WHEN excluded.since < work.since THEN excluded.since ELSE work.since END, \
          attempts = CASE WHEN work.holder = '' THEN 0 ELSE work.attempts END, \
          node_id = excluded.node_id, location = COALESCE(excluded.location, work.location)"
    };
}

statements! {
    ENQUEUE = concat!(
        "INSERT INTO work (kind, id, due_at, since, signal, attempts, reason, holder, node_id, location) \
         VALUES ($1, $2, $3, $4, 1, 0, '', '', \
         COALESCE((SELECT p.node_id FROM placements p WHERE p.deployment_id = $2), ''), $5)",
        asked_again!()
    );
    ENQUEUE_DEPLOYMENT = concat!(
        "INSERT INTO work (kind, id, due_at, since, signal, attempts, reason, holder, node_id) \
         SELECT $1, $2, $3, $3, 1, 0, '', '', \
         COALESCE((SELECT p.node_id FROM placements p WHERE p.deployment_id = $2), '') \
         WHERE EXISTS (SELECT 1 FROM deployments d WHERE d.id = $2) \
         OR EXISTS (SELECT 1 FROM work w WHERE w.kind = $1 AND w.id = $2)",
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
    CLAIM = concat!("WITH picked AS MATERIALIZED (SELECT kind, id FROM work WHERE kind = $1 AND node_id = $6 AND due_at <= $2 \
        ORDER BY due_at LIMIT $3 SKIPLOCKED) \
        UPDATE work SET holder = $4, due_at = $5, attempts = work.attempts + 1 FROM picked \
        WHERE work.kind = picked.kind AND work.id = picked.id \
        RETURNING ", claim_columns!());
    SETTLE = "DELETE FROM work WHERE kind = $1 AND id = $2 AND holder = $3 AND signal = $4";
    REOPEN = "UPDATE work SET holder = '', due_at = $4, since = $4, attempts = 0, reason = '' \
        WHERE kind = $1 AND id = $2 AND holder = $3";
    RESCHEDULE = "UPDATE work SET holder = '', due_at = $5, since = $6, attempts = $7, reason = $8 \
        WHERE kind = $1 AND id = $2 AND holder = $3 AND signal = $4";
    RELEASE = "UPDATE work SET holder = '', due_at = $2, attempts = CASE WHEN attempts > 0 THEN attempts - 1 ELSE 0 END \
        WHERE holder = $1";
    RELEASE_ALL = "UPDATE work SET holder = '', due_at = $1 WHERE holder <> ''";
    FORGET = "DELETE FROM work WHERE kind = $1 AND id = $2";
    LOCATION = "SELECT location FROM work WHERE kind = $1 AND id = $2";
    NEXT_DUE = "SELECT due_at FROM work WHERE kind = $1 AND node_id = $2 ORDER BY due_at LIMIT 1";
    ASSIGN = "UPDATE work SET node_id = $3 WHERE kind = $1 AND id = $2";
    UNASSIGN = "UPDATE work SET node_id = '', holder = '', due_at = $3 WHERE kind = $1 AND node_id = $2";
    OF_DELETED = "SELECT w.id FROM work w WHERE w.kind = $1 AND (w.node_id = '' OR w.node_id = $2) \
        AND NOT EXISTS (SELECT 1 FROM deployments d WHERE d.id = w.id) \
        AND NOT EXISTS (SELECT 1 FROM placements p WHERE p.deployment_id = w.id AND p.node_id <> '' AND p.node_id <> $2) \
        ORDER BY w.id";
    PENDING = concat!("SELECT ", pending_columns!(), " FROM work ORDER BY due_at, kind, id LIMIT $1");
    PENDING_OF = concat!("SELECT ", pending_columns!(), " FROM work WHERE kind = $2 ORDER BY due_at, id LIMIT $1");
    COUNT = concat!("SELECT ", backlog_columns!(), " FROM work GROUP BY kind ORDER BY kind");
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reschedule {
    pub due_at: Timestamp,
    pub since: Timestamp,
    pub attempts: i64,
    /// Why it is not settled.
    pub reason: String,
}

/// Enqueues a resource for reconciliation at a given time.
pub(crate) fn add(tx: &Tx, kind: &'static str, id: Id, due_at: Timestamp, now: Timestamp) -> Result<()> {
    put(tx, (kind, id), (due_at, due_at.max(now)), None)
}

/// Enqueues what is being removed, now, with where it is: its row is gone.
pub(crate) fn add_removal(
    tx: &Tx,
    kind: &'static str,
    id: Id,
    location: &impl Serialize,
    now: Timestamp,
) -> Result<()> {
    put(tx, (kind, id), (now, now), Some(&document(location)?))
}

fn put(
    tx: &Tx,
    (kind, id): (&'static str, Id),
    (due_at, since): (Timestamp, Timestamp),
    location: Option<&str>,
) -> Result<()> {
    tx.post(&ENQUEUE, params![kind, id.as_str(), due_at.millis(), since.millis(), location])?;
    announce(tx, id.as_str());
    Ok(())
}

/// Where something is that is being removed.
pub(crate) fn location<T: DeserializeOwned>(
    conn: &Conn,
    _: &Steward,
    kind: &str,
    id: Id,
) -> Result<Option<T>> {
    let known = conn.query_opt(&LOCATION, params![kind, id.as_str()], |row| {
        let is_known = row.get::<Option<String>>(0)?.is_some();
        is_known.then(|| row.document(0)).transpose()
    });
    Ok(known?.flatten())
}

/// The same, for the loops themselves.
pub fn enqueue(
    tx: &Tx,
    _: &Steward,
    kind: &'static str,
    id: Id,
    due_at: Timestamp,
    now: Timestamp,
) -> Result<()> {
    add(tx, kind, id, due_at, now)
}

/// Enqueues a deployment of which its plane tells, now. An environment that belongs to no deployment, and that nobody has
/// deleted, may be newer than this database: there is nothing to do with it.
pub fn enqueue_deployment(tx: &Tx, _: &Steward, id: DeploymentId, now: Timestamp) -> Result<()> {
    let is_known =
        tx.execute(&ENQUEUE_DEPLOYMENT, params![crate::deployments::KIND, id.as_str(), now.millis()])? > 0;
    if is_known {
        announce(tx, id.as_str());
    }
    Ok(())
}

/// Enqueues every deployment and every cluster; returns how many.
pub fn enqueue_everything(tx: &Tx, _: &Steward, now: Timestamp) -> Result<u64> {
    let clusters = tx.execute(&ENQUEUE_CLUSTERS, params![crate::clusters::KIND, now.millis()])?;
    let deployments = tx.execute(&ENQUEUE_DEPLOYMENTS, params![crate::deployments::KIND, now.millis()])?;
    announce(tx, "");
    Ok(clusters + deployments)
}

/// Notifies this process and the other replicas that there is work.
fn announce(tx: &Tx, id: &str) {
    tx.announce(Change::new(KIND, &id, 0));
}

/// Claims some due items of a kind without a node, the longest due first, until the lease ends.
pub fn claim(
    tx: &Tx,
    system: &Steward,
    kind: &str,
    holder: &str,
    lease_ends: Timestamp,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Claim>> {
    claim_of(tx, system, (kind, ANY_NODE), holder, lease_ends, now, limit)
}

/// Claims some due items of a kind on a node, the longest due first, until the lease ends.
pub fn claim_of(
    tx: &Tx,
    _: &Steward,
    (kind, node): (&str, &str),
    holder: &str,
    lease_ends: Timestamp,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<Claim>> {
    tx.query(&CLAIM, params![kind, now.millis(), limit, holder, lease_ends.millis(), node], Claim::read)
}

/// The deleted deployments that are still to be cleaned up, without those that are placed on another node than this one.
pub fn of_deleted_deployments(conn: &Conn, _: &Steward, node: &str) -> Result<Vec<DeploymentId>> {
    conn.query(&OF_DELETED, params![crate::deployments::KIND, node], |row| row.id(0))
}

/// Deletes a finished item, or leaves it due now if it was enqueued again; returns whether it was still held.
pub fn settle(tx: &Tx, _: &Steward, holder: &str, claim: &Claim, now: Timestamp) -> Result<bool> {
    if tx.execute(&SETTLE, params![&claim.kind, claim.id.as_str(), holder, claim.signal])? == 1 {
        return Ok(true);
    }
    reopen(tx, holder, claim, now)
}

/// Reschedules an item, or leaves it due now if it was enqueued again; returns whether it was still held.
pub fn reschedule(
    tx: &Tx,
    _: &Steward,
    holder: &str,
    claim: &Claim,
    again: &Reschedule,
    now: Timestamp,
) -> Result<bool> {
    let (due_at, since) = (again.due_at.millis(), again.since.millis());
    let id = claim.id.as_str();
    let rows = tx.execute(
        &RESCHEDULE,
        params![&claim.kind, id, holder, claim.signal, due_at, since, again.attempts, &again.reason],
    )?;
    if rows == 0 {
        return reopen(tx, holder, claim, now);
    }
    announce(tx, claim.id.as_str());
    Ok(true)
}

/// Reopens an item that was enqueued again while it was held: it is new, and due now.
fn reopen(tx: &Tx, holder: &str, claim: &Claim, now: Timestamp) -> Result<bool> {
    let rows = tx.execute(&REOPEN, params![&claim.kind, claim.id.as_str(), holder, now.millis()])?;
    announce(tx, claim.id.as_str());
    Ok(rows == 1)
}

/// Releases all items of a holder, as if they had never been tried.
pub fn release(tx: &Tx, _: &Steward, holder: &str, now: Timestamp) -> Result<u64> {
    let rows = tx.execute(&RELEASE, params![holder, now.millis()])?;
    announce(tx, "");
    Ok(rows)
}

/// Releases all held items: for the start of the only process.
pub fn release_all(tx: &Tx, _: &Steward, now: Timestamp) -> Result<u64> {
    tx.execute(&RELEASE_ALL, params![now.millis()])
}

/// Deletes an item, whoever holds it.
pub(crate) fn cancel(tx: &Tx, kind: &str, id: Id) -> Result<u64> {
    tx.execute(&FORGET, params![kind, id.as_str()])
}

/// The same, for the loops.
pub fn forget(tx: &Tx, _: &Steward, kind: &str, id: Id) -> Result<u64> {
    cancel(tx, kind, id)
}

/// When the next item of a kind without a node is due, or its next lease ends.
pub fn next_due(conn: &Conn, system: &Steward, kind: &str) -> Result<Option<Timestamp>> {
    next_due_of(conn, system, (kind, ANY_NODE))
}

/// When the next item of a kind on a node is due, or its next lease ends.
pub fn next_due_of(conn: &Conn, _: &Steward, (kind, node): (&str, &str)) -> Result<Option<Timestamp>> {
    conn.query_opt(&NEXT_DUE, params![kind, node], |row| row.time(0))
}

pub(crate) fn assign(tx: &Tx, kind: &str, id: Id, node_id: &str) -> Result<()> {
    tx.execute(&ASSIGN, params![kind, id.as_str(), node_id])?;
    announce(tx, id.as_str());
    Ok(())
}

/// Unassigns all work of a node, due now.
pub(crate) fn unassign(tx: &Tx, kind: &str, node_id: &str, now: Timestamp) -> Result<u64> {
    let rows = tx.execute(&UNASSIGN, params![kind, node_id, now.millis()])?;
    announce(tx, "");
    Ok(rows)
}

/// Pending items, the most urgent first; of all kinds, or of one.
pub fn pending(conn: &Conn, _: &Steward, kind: Option<&str>, limit: u32) -> Result<Vec<Pending>> {
    match kind {
        Some(kind) => conn.query(&PENDING_OF, params![limit, kind], Pending::read),
        None => conn.query(&PENDING, params![limit], Pending::read),
    }
}

pub fn backlog(conn: &Conn, _: &Steward, now: Timestamp) -> Result<Vec<Backlog>> {
    conn.query(&COUNT, params![now.millis()], Backlog::read)
}
