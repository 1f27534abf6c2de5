//! Responses stored under an `Idempotency-Key`, written in the transaction of their effect.

use podium_api::{OperationId, SubjectId, Timestamp};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::record::record;
use crate::{Housekeeper, System};

record! {
    #[derive(Clone, Debug)]
    pub struct StoredResponse as columns! {
        pub request_hash: String = get "request_hash",
        /// The version of the resource, for the `ETag`.
        pub version: Option<i64> = get "version",
        pub body: Vec<u8> = get "body",
        pub is_sealed: bool = get "is_sealed",
        pub created_at: Timestamp = time "created_at",
        pub started_id: Option<OperationId> = id_opt "started_id",
    }
}

statements! {
    GET = concat!("SELECT ", columns!(), " FROM kept_answers \
        WHERE subject_id = $1 AND operation_id = $2 AND target = $3 AND key = $4");
    CLAIM = "INSERT INTO kept_answers (subject_id, operation_id, target, key, request_hash, body, is_sealed, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    KEEP = "UPDATE kept_answers SET version = $5, body = $6, is_sealed = $7, started_id = $8 \
        WHERE subject_id = $1 AND operation_id = $2 AND target = $3 AND key = $4";
    FORGET = "DELETE FROM kept_answers WHERE subject_id = $1 AND operation_id = $2 AND target = $3 AND key = $4 AND created_at < $5";
    PRUNE = "DELETE FROM kept_answers WHERE (subject_id, operation_id, target, key) IN \
        (SELECT subject_id, operation_id, target, key FROM kept_answers WHERE created_at < $1 LIMIT $2)";
}

/// The key of a stored response.
#[derive(Clone, Debug)]
pub struct IdempotencyKey {
    pub subject_id: SubjectId,
    pub operation_id: &'static str,
    pub target: String,
    pub key: String,
}

#[derive(Clone, Debug)]
pub struct NewResponse<'a> {
    /// The version of the resource, for the `ETag`.
    pub version: Option<i64>,
    pub body: &'a [u8],
    pub is_sealed: bool,
    pub started_id: Option<OperationId>,
}

pub fn get(conn: &Conn, _: &System, key: &IdempotencyKey) -> Result<Option<StoredResponse>> {
    let params = params![key.subject_id.as_str(), key.operation_id, &key.target, &key.key];
    conn.query_opt(&GET, params, StoredResponse::read)
}

/// Claims a key for a response, replacing an expired one. Waits for a concurrent claim of the same key.
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
    tx.run(&CLAIM, params)
}

/// Stores the response under a claimed key.
pub fn keep(tx: &Tx, _: &System, key: &IdempotencyKey, response: &NewResponse<'_>) -> Result<()> {
    let (subject, operation, target, name) =
        (key.subject_id.as_str(), key.operation_id, &key.target, &key.key);
    let NewResponse { version, body, is_sealed, started_id } = response;
    let started_id = started_id.as_ref().map(OperationId::as_str);
    tx.run(&KEEP, params![subject, operation, target, name, *version, *body, *is_sealed, started_id])
}

/// Drops some responses from before a time; returns how many.
pub fn prune(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE, params![before.millis(), limit])
}
