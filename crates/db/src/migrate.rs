//! Migrations: plain SQL, applied once, in order, each in a transaction of its own.
//!
//! An applied migration is never edited and a database is never downgraded: both are reported as errors. Replicas
//! may start together; the first one migrates while the others wait.

use crate::{Db, Engine, Error, Result, Sql, Tx, params};

/// A step of the schema, written for both engines.
#[derive(Debug, Clone, Copy)]
pub struct Migration {
    /// Its place in the order.
    pub version: u32,
    pub name: &'static str,
    /// The script for SQLite.
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

impl Migration {
    /// The migration of a file such as `0012_name`.
    ///
    /// # Panics
    /// On a name that is not four digits, `_` and the rest; for constants that is an error of the compiler.
    #[must_use]
    pub const fn of_file(file: &'static str, sqlite: &'static str, postgres: &'static str) -> Self {
        let (digits, rest) = file.as_bytes().split_at(4);
        let mut version = 0;
        let mut place = 0;
        while place < digits.len() {
            assert!(digits[place].is_ascii_digit(), "a migration begins with four digits");
            version = version * 10 + (digits[place] - b'0') as u32;
            place += 1;
        }
        assert!(rest[0] == b'_', "`_` stands between the digits and the name of a migration");
        Self { version, name: file.split_at(5).1, sqlite, postgres }
    }

    fn script(&self, engine: Engine) -> &'static str {
        match engine {
            Engine::Sqlite => self.sqlite,
            Engine::Postgres => self.postgres,
        }
    }
}

pub(crate) const TABLE: &str = "schema_migrations";

const CREATE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (
    version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)";

/// An arbitrary key that nothing else locks: it spells "podium".
const LOCK: &str = "SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock(123597896279405)";

static APPLIED: Sql = Sql::new("SELECT version, name, checksum FROM schema_migrations ORDER BY version");
static RECORD: Sql = Sql::new("INSERT INTO schema_migrations (version, name, checksum) VALUES ($1, $2, $3)");

impl Db {
    /// Brings the schema up to date; the migrations are in order of their version.
    pub async fn migrate(&self, migrations: &[Migration]) -> Result<()> {
        if !migrations.is_sorted_by(|a, b| a.version < b.version) {
            return Err(Error::other("migrations must be in order of their version"));
        }
        loop {
            let known = migrations.to_vec();
            let Some(applied) = self.write(None, move |tx| step(tx, &known)).await? else { return Ok(()) };
            tracing::info!(version = applied.version, name = applied.name, "migrated the database");
        }
    }
}

/// Applies the first migration that is missing; `None` if there is none.
fn step(tx: &Tx, known: &[Migration]) -> Result<Option<Migration>> {
    if tx.engine() == Engine::Postgres {
        tx.script(LOCK)?;
    }
    tx.script(CREATE)?;
    let applied = tx.query(&APPLIED, params![], |row| {
        Ok((row.get::<i64>(0)?, row.get::<String>(1)?, row.get::<String>(2)?))
    })?;
    for (version, name, checksum) in &applied {
        let Some(same) = known.iter().find(|migration| i64::from(migration.version) == *version) else {
            return Err(Error::Other(format!(
                "this database was created by a newer version: it has migration {version} ({name}), which is unknown here"
            )));
        };
        if fingerprint(same.script(tx.engine())) != *checksum {
            return Err(Error::Other(format!(
                "migration {version} ({name}) was changed after it had been applied to this database"
            )));
        }
    }
    let missing = known
        .iter()
        .find(|migration| !applied.iter().any(|(version, ..)| *version == i64::from(migration.version)))
        .copied();
    if let Some(next) = missing {
        let script = next.script(tx.engine());
        tx.script(script).map_err(|error| {
            Error::Other(format!("migration {} ({}) failed: {error}", next.version, next.name))
        })?;
        tx.execute(&RECORD, params![next.version, next.name, &fingerprint(script)])?;
    }
    Ok(missing)
}

/// FNV-1a: it has to detect edits, not attacks.
fn fingerprint(script: &str) -> String {
    let hash = script.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::Migration;

    #[test]
    fn a_migration_file_name_gives_its_version_and_name() {
        const TWELFTH: Migration = Migration::of_file("0012_more_rows", "", "");
        assert_eq!((TWELFTH.version, TWELFTH.name), (12, "more_rows"));
    }

    #[test]
    fn fingerprints_are_fnv_1a() {
        assert_eq!(super::fingerprint(""), "cbf29ce484222325");
        assert_eq!(super::fingerprint("foobar"), "85944171f73967e8");
    }
}
