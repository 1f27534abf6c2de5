//! The keys that tokens are signed with.

use podium_api::Timestamp;
use podium_db::{Conn, Result, Tx, params, statements};

use crate::columns::Columns;
use crate::{Doorkeeper, Founder, Housekeeper};

statements! {
    ALL = "SELECT id, public_key, sealed_private_key, created_at, retired_at FROM signing_keys ORDER BY created_at, id";
    INSERT = "INSERT INTO signing_keys (id, public_key, sealed_private_key, created_at, retired_at) VALUES ($1, $2, $3, $4, NULL)";
    RETIRE = "UPDATE signing_keys SET retired_at = $2, sealed_private_key = NULL WHERE id <> $1 AND retired_at IS NULL";
    DROP_UNUSED = "DELETE FROM signing_keys WHERE retired_at < $1 \
        AND NOT EXISTS (SELECT 1 FROM credentials c WHERE c.signing_key_id = signing_keys.id)";
}

/// A stored signing key.
#[derive(Clone)]
pub struct SigningKeyRow {
    /// Its id, the `kid` of tokens.
    pub id: String,
    /// The public half.
    pub public_key: Vec<u8>,
    /// The private half, encrypted; gone once the key is retired.
    pub sealed_private_key: Option<Vec<u8>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// Since when it signs no more.
    pub retired_at: Option<Timestamp>,
}

/// Every key whose tokens may still be alive, oldest first.
pub fn all(conn: &Conn, _: &Doorkeeper) -> Result<Vec<SigningKeyRow>> {
    conn.query(&ALL, &[], |row| {
        Ok(SigningKeyRow {
            id: row.get(0)?,
            public_key: row.get(1)?,
            sealed_private_key: row.get(2)?,
            created_at: row.time(3)?,
            retired_at: row.time_opt(4)?,
        })
    })
}

/// Adds a key.
pub fn insert(tx: &Tx, _: &Founder, key: &SigningKeyRow) -> Result<()> {
    tx.execute(
        &INSERT,
        params![&key.id, &key.public_key, key.sealed_private_key.as_deref(), key.created_at.millis()],
    )?;
    Ok(())
}

/// Retires every key but this one.
pub fn retire_others(tx: &Tx, _: &Founder, id: &str, at: Timestamp) -> Result<()> {
    tx.execute(&RETIRE, params![id, at.millis()])?;
    Ok(())
}

/// Drops keys that were retired before a time and whose last token is gone.
pub fn drop_unused(tx: &Tx, _: &Housekeeper, before: Timestamp) -> Result<u64> {
    tx.execute(&DROP_UNUSED, params![before.millis()])
}
