//! Responses stored under an `Idempotency-Key`, written in the transaction of their effect.

use podium_api::{SubjectId, Timestamp};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::System;
use crate::columns::Columns;

statements! {
    GET = "SELECT request_hash, version, body, is_sealed, created_at FROM kept_answers \
        WHERE subject_id = $1 AND operation_id = $2 AND target = $3 AND key = $4";
    CLAIM = "INSERT INTO kept_answers (subject_id, operation_id, target, key, request_hash, body, is_sealed, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    KEEP = "UPDATE kept_answers SET version = $5, body = $6, is_sealed = $7 \
        WHERE subject_id = $1 AND operation_id = $2 AND target = $3 AND key = $4";
    FORGET = "DELETE FROM kept_answers WHERE subject_id = $1 AND operation_id = $2 AND target = $3 AND key = $4 AND created_at < $5";
    PRUNE = "DELETE FROM kept_answers WHERE (subject_id, operation_id, target, key) IN \
        (SELECT subject_id, operation_id, target, key FROM kept_answers WHERE created_at < $1 LIMIT $2)";
}

/// What an answer is kept under.
#[derive(Clone, Debug)]
pub struct IdempotencyKey {
    /// Who asked.
    pub subject_id: SubjectId,
    /// For what.
    pub operation_id: &'static str,
    /// On what: the path.
    pub target: String,
    /// The header's value.
    pub key: String,
}

/// A kept answer.
#[derive(Clone, Debug)]
pub struct StoredResponse {
    /// A hash of the request that it answers.
    pub request_hash: String,
    /// The version of the resource, for the `ETag`.
    pub version: Option<i64>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether the body is encrypted.
    pub is_sealed: bool,
    /// When it was given.
    pub created_at: Timestamp,
}

/// Finds a kept answer.
pub fn get(conn: &Conn, _: &System, key: &IdempotencyKey) -> Result<Option<StoredResponse>> {
    let params = params![key.subject_id.as_str(), key.operation_id, &key.target, &key.key];
    conn.query_opt(&GET, params, |row| {
        Ok(StoredResponse {
            request_hash: row.get(0)?,
            version: row.get(1)?,
            body: row.get(2)?,
            is_sealed: row.get(3)?,
            created_at: row.time(4)?,
        })
    })
}

/// Takes a key for an answer that is to come; one that has lapsed makes room. Waits for another that takes the same.
pub fn claim(
    tx: &Tx,
    _: &System,
    key: &IdempotencyKey,
    request_hash: &str,
    now: Timestamp,
    lapsed_before: Timestamp,
) -> Result<()> {
    let (subject, operation, target, name) =
        (key.subject_id.as_str(), key.operation_id, &key.target, &key.key);
    tx.execute(&FORGET, params![subject, operation, target, name, lapsed_before.millis()])?;
    let nothing: &[u8] = &[];
    let params = params![subject, operation, target, name, request_hash, nothing, false, now.millis()];
    tx.execute(&CLAIM, params)?;
    Ok(())
}

/// Keeps the answer under a key that was taken.
pub fn keep(
    tx: &Tx,
    _: &System,
    key: &IdempotencyKey,
    version: Option<i64>,
    body: &[u8],
    is_sealed: bool,
) -> Result<()> {
    let (subject, operation, target, name) =
        (key.subject_id.as_str(), key.operation_id, &key.target, &key.key);
    tx.execute(&KEEP, params![subject, operation, target, name, version, body, is_sealed])?;
    Ok(())
}

/// Drops some answers from before a time; says how many.
pub fn prune(tx: &Tx, _: &System, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE, params![before.millis(), limit])
}
