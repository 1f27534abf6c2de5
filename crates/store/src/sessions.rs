//! Browser sessions at the console: the hash of each cookie, and the token that it refers to.
//!
//! These functions cover all organizations: they find out whose session it is.

use podium_api::{CredentialId, SessionId, SubjectId, Timestamp};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::columns::Columns;
use crate::{Doorkeeper, Housekeeper};

statements! {
    BY_HASH = "SELECT COALESCE(id, token_id), credential_hash, token_id, subject_id, is_own, expires_at \
        FROM browser_sessions WHERE hash = $1";
    HASH_OF = "SELECT hash FROM browser_sessions WHERE COALESCE(id, token_id) = $1 AND subject_id = $2";
    INSERT = "INSERT INTO browser_sessions (hash, credential_hash, token_id, subject_id, is_own, created_at, expires_at, id) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    DELETE = "DELETE FROM browser_sessions WHERE hash = $1";
    DELETE_OF = "DELETE FROM browser_sessions WHERE subject_id = $1";
    DELETE_OTHERS = "DELETE FROM browser_sessions WHERE subject_id = $1 AND COALESCE(id, token_id) <> $2";
    DROP_CODES = "DELETE FROM door_codes WHERE session_hash = $1";
    DROP_PASSES = "DELETE FROM door_passes WHERE session_hash = $1";
    PRUNE = "DELETE FROM browser_sessions WHERE hash IN \
        (SELECT hash FROM browser_sessions WHERE expires_at < $1 LIMIT $2)";
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrowserSession {
    /// Its id: that of its token, if that was made for it.
    pub id: SessionId,
    /// The hash of the token that it refers to.
    pub credential_hash: String,
    pub token_id: CredentialId,
    /// Whose it is: a user, or an API token.
    pub subject_id: SubjectId,
    /// Whether the token was made for this session, and ends with it.
    pub is_own: bool,
    pub expires_at: Timestamp,
}

/// Finds a session by the hash of its cookie.
pub fn by_hash(conn: &Conn, _: &Doorkeeper, hash: &str) -> Result<Option<BrowserSession>> {
    conn.query_opt(&BY_HASH, params![hash], |row| {
        Ok(BrowserSession {
            id: row.id(0)?,
            credential_hash: row.get(1)?,
            token_id: row.id(2)?,
            subject_id: row.id(3)?,
            is_own: row.get::<i64>(4)? != 0,
            expires_at: row.time(5)?,
        })
    })
}

pub fn hash_of(conn: &Conn, _: &Doorkeeper, subject_id: SubjectId, id: SessionId) -> Result<Option<String>> {
    conn.query_opt(&HASH_OF, params![id.as_str(), subject_id.as_str()], |row| row.get(0))
}

pub fn insert(tx: &Tx, _: &Doorkeeper, hash: &str, session: &BrowserSession, now: Timestamp) -> Result<()> {
    let values = params![
        hash,
        session.credential_hash.as_str(),
        session.token_id.as_str(),
        session.subject_id.as_str(),
        i64::from(session.is_own),
        now.millis(),
        session.expires_at.millis(),
        session.id.as_str(),
    ];
    tx.run(&INSERT, values)
}

/// Ends a session, with every code and pass that came from it; returns whether it was there.
pub fn delete(tx: &Tx, _: &Doorkeeper, hash: &str) -> Result<bool> {
    tx.execute(&DROP_CODES, params![hash])?;
    tx.execute(&DROP_PASSES, params![hash])?;
    Ok(tx.execute(&DELETE, params![hash])? > 0)
}

/// Ends every session of a subject. Codes and passes from them are invalid without them.
pub fn delete_of_subject(tx: &Tx, _: &Doorkeeper, subject_id: SubjectId) -> Result<()> {
    tx.run(&DELETE_OF, params![subject_id.as_str()])
}

/// Ends every session of a subject except one.
pub fn delete_others_of_subject(
    tx: &Tx,
    _: &Doorkeeper,
    subject_id: SubjectId,
    kept_id: SessionId,
) -> Result<()> {
    tx.run(&DELETE_OTHERS, params![subject_id.as_str(), kept_id.as_str()])
}

/// Drops some sessions that expired before a time; returns how many.
pub fn prune(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE, params![before.millis(), limit])
}
