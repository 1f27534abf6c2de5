//! Settings of the installation itself.

use podium_db::{Conn, Result, Tx, params, statements};

use crate::Founder;

statements! {
    GET = "SELECT value FROM settings WHERE key = $1";
    ADD = "INSERT INTO settings (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING";
}

pub fn get(conn: &Conn, _: &Founder, key: &str) -> Result<Option<String>> {
    conn.query_opt(&GET, params![key], |row| row.get(0))
}

/// Writes a setting unless it already exists; returns whether it was written.
pub fn add(tx: &Tx, _: &Founder, key: &str, value: &str) -> Result<bool> {
    Ok(tx.execute(&ADD, params![key, value])? == 1)
}
