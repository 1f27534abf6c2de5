//! Sessions as their users see them: how and from where each began, and when it was last used.
//!
//! These functions cover all organizations: a session works in each one of its user. A row proves nothing. A session works
//! while its token is in `credentials` and, if it is a browser's, while it is in `browser_sessions`; lists and look-ups
//! leave out every other row.

use podium_api::enums::SessionKind;
use podium_api::{CredentialId, SessionId, Timestamp, UserId};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::record::{Reader, record};
use crate::{Doorkeeper, Housekeeper};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOrigin {
    pub kind: SessionKind,
    /// What the machine calls itself; empty if it said nothing.
    pub client_name: String,
    /// The address; empty if it is not known.
    pub address: String,
    /// The user agent; empty if it is not known.
    pub user_agent: String,
}

record! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct UserSessionRow as columns! {
        pub id: SessionId = id "t.id",
        pub token_id: CredentialId = id "t.token_id",
        /// How and from where it began.
        pub origin: SessionOrigin = origin "t.kind, t.client_name, t.address, t.user_agent",
        /// When it began.
        pub created_at: Timestamp = time "t.created_at",
        pub last_used_at: Timestamp = time "t.last_used_at",
        /// Until when it works.
        pub expires_at: Option<Timestamp> = time_opt "t.expires_at",
    }
}

impl Reader<'_, '_> {
    fn origin(&mut self) -> Result<SessionOrigin> {
        let (kind, client_name) = (self.word()?, self.get()?);
        Ok(SessionOrigin { kind, client_name, address: self.get()?, user_agent: self.get()? })
    }
}

macro_rules! works {
    ($now:literal) => {
        concat!(
            "(t.expires_at IS NULL OR t.expires_at > ",
            $now,
            ") AND EXISTS (SELECT 1 FROM credentials c WHERE c.token_id = t.token_id) AND (t.kind <> 'BROWSER' \
             OR EXISTS (SELECT 1 FROM browser_sessions b WHERE b.id = t.id))"
        )
    };
}

const USER: &str = "t.user_id = {}";
const WORKS: &str = works!("{}");

pub(crate) const TABLE: Table = Table {
    name: "user_sessions",
    columns: columns!(),
    joins: "",
    sorts: &[("createdAt", "created_at"), ("lastUsedAt", "last_used_at")],
    filters: &[USER, WORKS],
    ..Table::NAMED
};

statements! {
    GET = concat!("SELECT ", columns!(), " FROM user_sessions t WHERE t.id = $1 AND t.user_id = $2 AND ", works!("$3"));
    INSERT = "INSERT INTO user_sessions (id, user_id, token_id, kind, client_name, address, user_agent, created_at, \
        last_used_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    USED = "UPDATE user_sessions SET last_used_at = $2 WHERE id = $1 AND last_used_at < $2";
    DELETE = "DELETE FROM user_sessions WHERE id = $1";
    PRUNE = "DELETE FROM user_sessions WHERE id IN (SELECT id FROM user_sessions WHERE expires_at < $1 LIMIT $2)";
}

/// Reads a page of the sessions of a user that work, and how many there are.
pub fn list(
    conn: &Conn,
    _: &Doorkeeper,
    user_id: UserId,
    paging: &Paging,
    now: Timestamp,
) -> Result<Listed<UserSessionRow>> {
    let mut filter = Filter::new(USER, user_id.as_str());
    filter.and(WORKS, Some(now.millis()));
    TABLE.page(conn, filter, paging, Total::Count, UserSessionRow::read)
}

pub fn get(
    conn: &Conn,
    _: &Doorkeeper,
    user_id: UserId,
    id: SessionId,
    now: Timestamp,
) -> Result<Option<UserSessionRow>> {
    conn.query_opt(&GET, params![id.as_str(), user_id.as_str(), now.millis()], UserSessionRow::read)
}

pub fn insert(tx: &Tx, _: &Doorkeeper, user_id: UserId, session: &UserSessionRow) -> Result<()> {
    let values = params![
        session.id.as_str(),
        user_id.as_str(),
        session.token_id.as_str(),
        session.origin.kind.as_str(),
        session.origin.client_name.as_str(),
        session.origin.address.as_str(),
        session.origin.user_agent.as_str(),
        session.created_at.millis(),
        session.last_used_at.millis(),
        session.expires_at.map(Timestamp::millis),
    ];
    tx.run(&INSERT, values)
}

/// Notes when a session was last used.
pub fn used(tx: &Tx, _: &Housekeeper, id: SessionId, at: Timestamp) -> Result<()> {
    tx.run(&USED, params![id.as_str(), at.millis()])
}

pub fn delete(tx: &Tx, _: &Doorkeeper, id: SessionId) -> Result<()> {
    tx.run(&DELETE, params![id.as_str()])
}

/// Drops some sessions that expired before a time; returns how many.
pub fn prune(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE, params![before.millis(), limit])
}
