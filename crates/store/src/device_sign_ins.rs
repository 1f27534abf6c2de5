//! Terminals that wait for a person to sign them in, found by the hashes of their codes.
//!
//! These functions cover all organizations: nobody is known yet.

use podium_api::enums::DeviceSignInDecision;
use podium_api::{Timestamp, UserId};
use podium_db::{Conn, Result, Row, Tx, params, statements};

use crate::record::record;
use crate::{Doorkeeper, Housekeeper};

record! {
    /// A terminal that waits, or about which a person has decided.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DeviceSignIn as columns! {
        pub address: String = get "address",
        pub client_name: String = get "client_name",
        pub user_agent: String = get "user_agent",
        pub decision: Option<DeviceSignInDecision> = word_opt "decision",
        pub user_id: Option<UserId> = id_opt "user_id",
        /// The hash of the token with which that was decided.
        pub credential_hash: Option<String> = get "credential_hash",
        pub created_at: Timestamp = time "created_at",
        pub expires_at: Timestamp = time "expires_at",
    }
}

statements! {
    COUNT = "SELECT COUNT(*) FROM device_sign_ins WHERE expires_at > $1 AND decision IS NULL";
    COUNT_OF_PLACE = "SELECT COUNT(*) FROM device_sign_ins WHERE place = $1 AND expires_at > $2 AND decision IS NULL";
    COUNT_OF_SITE = "SELECT COUNT(*) FROM device_sign_ins WHERE site = $1 AND expires_at > $2 AND decision IS NULL";
    INSERT = "INSERT INTO device_sign_ins (hash, user_code_hash, place, site, address, client_name, user_agent, created_at, \
        expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    BY_HASH = concat!("SELECT ", columns!(), " FROM device_sign_ins WHERE hash = $1");
    BY_USER_CODE = concat!("SELECT ", columns!(), " FROM device_sign_ins WHERE user_code_hash = $1");
    DECIDE = "UPDATE device_sign_ins SET decision = $2, user_id = $3, credential_hash = $4, \
        expires_at = CASE WHEN expires_at < $6 THEN $6 ELSE expires_at END \
        WHERE user_code_hash = $1 AND decision IS NULL AND expires_at > $5";
    TAKE = concat!("DELETE FROM device_sign_ins WHERE hash = $1 AND decision = 'APPROVE' RETURNING ", columns!());
    FORGET_OF = "DELETE FROM device_sign_ins WHERE user_id = $1";
    PRUNE = "DELETE FROM device_sign_ins WHERE hash IN \
        (SELECT hash FROM device_sign_ins WHERE expires_at < $1 LIMIT $2)";
}

/// A terminal that wants to be signed in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDeviceSignIn {
    pub hash: String,
    /// The keyed hash of the code that a person types.
    pub user_code_hash: String,
    /// Where it asked from, as bounds are counted.
    pub place: String,
    /// The larger network that this place is part of.
    pub site: String,
    pub address: String,
    pub client_name: String,
    pub user_agent: String,
    pub created_at: Timestamp,
    /// Until when it can be approved.
    pub expires_at: Timestamp,
}

/// How many wait for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    pub all: u64,
    pub of_place: u64,
    pub of_site: u64,
}

/// How many wait for a decision, in all and where another one comes from.
pub fn count(conn: &Conn, _: &Doorkeeper, (place, site): (&str, &str), now: Timestamp) -> Result<Open> {
    let one = |row: &Row<'_>| row.get::<i64>(0).map(i64::cast_unsigned);
    Ok(Open {
        all: conn.query_one(&COUNT, params![now.millis()], one)?,
        of_place: conn.query_one(&COUNT_OF_PLACE, params![place, now.millis()], one)?,
        of_site: conn.query_one(&COUNT_OF_SITE, params![site, now.millis()], one)?,
    })
}

/// Adds one; violates a unique index if the code is taken.
pub fn insert(tx: &Tx, _: &Doorkeeper, new: &NewDeviceSignIn) -> Result<()> {
    let values = params![
        new.hash.as_str(),
        new.user_code_hash.as_str(),
        new.place.as_str(),
        new.site.as_str(),
        new.address.as_str(),
        new.client_name.as_str(),
        new.user_agent.as_str(),
        new.created_at.millis(),
        new.expires_at.millis(),
    ];
    tx.run(&INSERT, values)
}

/// Finds one by the hash of its own code.
pub fn by_hash(conn: &Conn, _: &Doorkeeper, hash: &str) -> Result<Option<DeviceSignIn>> {
    conn.query_opt(&BY_HASH, params![hash], DeviceSignIn::read)
}

/// Finds one by the keyed hash of the code that a person typed.
pub fn by_user_code(conn: &Conn, _: &Doorkeeper, hash: &str) -> Result<Option<DeviceSignIn>> {
    conn.query_opt(&BY_USER_CODE, params![hash], DeviceSignIn::read)
}

/// Decides about one that waits, which then works at least until `lasts_until`; returns whether there was one.
pub fn decide(
    tx: &Tx,
    _: &Doorkeeper,
    user_code_hash: &str,
    decision: DeviceSignInDecision,
    (user_id, credential_hash): (UserId, &str),
    (now, lasts_until): (Timestamp, Timestamp),
) -> Result<bool> {
    let params = params![
        user_code_hash,
        decision.as_str(),
        user_id.as_str(),
        credential_hash,
        now.millis(),
        lasts_until.millis(),
    ];
    Ok(tx.execute(&DECIDE, params)? > 0)
}

/// Removes one that was approved; of two concurrent attempts, one gets it.
pub fn take(tx: &Tx, _: &Doorkeeper, hash: &str) -> Result<Option<DeviceSignIn>> {
    Ok(tx.query(&TAKE, params![hash], DeviceSignIn::read)?.pop())
}

/// Drops what a user has decided and no terminal has fetched yet.
pub fn forget_of(tx: &Tx, _: &Doorkeeper, user_id: UserId) -> Result<()> {
    tx.run(&FORGET_OF, params![user_id.as_str()])
}

/// Drops some that expired before a time; returns how many.
pub fn prune(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE, params![before.millis(), limit])
}
