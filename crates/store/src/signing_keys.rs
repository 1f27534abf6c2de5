//! The keys that tokens are signed with.

use podium_api::Timestamp;
use podium_db::{Conn, Result, Tx, params, statements};

use crate::record::record;
use crate::{Doorkeeper, Founder, Housekeeper};

record! {
    #[derive(Clone)]
    pub struct SigningKeyRow as columns! {
        /// Its id, the `kid` of tokens.
        pub id: String = get "id",
        /// The public half.
        pub public_key: Vec<u8> = get "public_key",
        /// The private half, encrypted; gone once the key is retired.
        pub sealed_private_key: Option<Vec<u8>> = get "sealed_private_key",
        pub created_at: Timestamp = time "created_at",
        /// Since when it signs no more.
        pub retired_at: Option<Timestamp> = time_opt "retired_at",
    }
}

statements! {
    ALL = concat!("SELECT ", columns!(), " FROM signing_keys ORDER BY created_at, id");
    INSERT = "INSERT INTO signing_keys (id, public_key, sealed_private_key, created_at, retired_at) VALUES ($1, $2, $3, $4, NULL)";
    RETIRE = "UPDATE signing_keys SET retired_at = $2, sealed_private_key = NULL WHERE id <> $1 AND retired_at IS NULL";
    DROP_UNUSED = "DELETE FROM signing_keys WHERE retired_at < $1 \
        AND NOT EXISTS (SELECT 1 FROM credentials c WHERE c.signing_key_id = signing_keys.id)";
}

/// Every key whose tokens may still be alive, oldest first.
pub fn all(conn: &Conn, _: &Doorkeeper) -> Result<Vec<SigningKeyRow>> {
    conn.query(&ALL, &[], SigningKeyRow::read)
}

pub fn insert(tx: &Tx, _: &Founder, key: &SigningKeyRow) -> Result<()> {
    tx.run(
        &INSERT,
        params![&key.id, &key.public_key, key.sealed_private_key.as_deref(), key.created_at.millis()],
    )
}

/// Retires every key but this one.
pub fn retire_others(tx: &Tx, _: &Founder, id: &str, at: Timestamp) -> Result<()> {
    tx.run(&RETIRE, params![id, at.millis()])
}

/// Drops keys that were retired before a time and whose last token is gone.
pub fn drop_unused(tx: &Tx, _: &Housekeeper, before: Timestamp) -> Result<u64> {
    tx.execute(&DROP_UNUSED, params![before.millis()])
}
