//! A database of its own for every test, on either engine.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use podium_db::{Change, Db, Migration, Options, Result, Sql, Target, Tx, params};

/// The tables that tests use.
pub(crate) const TABLES: &[Migration] = &[Migration {
    version: 1,
    name: "tables",
    sqlite: "CREATE TABLE items (id TEXT NOT NULL PRIMARY KEY, number BIGINT, flag BOOLEAN, body BLOB, note TEXT);
             CREATE TABLE parts (id TEXT NOT NULL PRIMARY KEY, item_id TEXT NOT NULL REFERENCES items (id) ON DELETE RESTRICT);",
    postgres: "CREATE TABLE items (id TEXT COLLATE \"C\" NOT NULL PRIMARY KEY, number BIGINT, flag BOOLEAN, body BYTEA, note TEXT);
             CREATE TABLE parts (id TEXT COLLATE \"C\" NOT NULL PRIMARY KEY, item_id TEXT NOT NULL REFERENCES items (id) ON DELETE RESTRICT);",
}];

podium_db::statements! {
    pub(crate) INSERT = "INSERT INTO items (id, number) VALUES ($1, $2)";
    pub(crate) NUMBER = "SELECT number FROM items WHERE id = $1";
    pub(crate) COUNT = "SELECT count(*) FROM items";
    pub(crate) SET = "UPDATE items SET number = $2 WHERE id = $1";
    pub(crate) COMPARE_AND_SET = "UPDATE items SET number = $2 + 1 WHERE id = $1 AND number = $2";
}

/// A database with the tables of the tests, and what was heard of its commits.
pub(crate) struct Bed {
    pub(crate) db: Db,
    pub(crate) target: Target,
    pub(crate) heard: Arc<Mutex<Vec<Change>>>,
    _directory: Option<tempfile::TempDir>,
}

impl Bed {
    pub(crate) async fn sqlite() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let target = Target::Sqlite(directory.path().join("podium.db"));
        Self::open(target, Some(directory)).await
    }

    pub(crate) async fn postgres() -> Self {
        Self::open(Target::Postgres(fresh_database().await), None).await
    }

    async fn open(target: Target, directory: Option<tempfile::TempDir>) -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let mut options = Options::new(target.clone());
        options.connections = 6;
        let ear = Arc::clone(&heard);
        options.on_commit = Arc::new(move |changes| ear.lock().unwrap().extend_from_slice(changes));
        let db = Db::open(options).await.unwrap();
        db.migrate(TABLES).await.unwrap();
        Self { db, target, heard, _directory: directory }
    }

    /// The ids that `on_commit` heard of, so far.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().iter().map(|change| change.id.clone()).collect()
    }
}

/// Makes an empty database on the private server and gives its URL.
pub(crate) async fn fresh_database() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let Ok(admin) = std::env::var("PODIUM_TEST_POSTGRES") else {
        panic!("run `cargo xtask test`, which starts a private PostgreSQL")
    };
    let name = format!("db_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let (server, _) = admin.rsplit_once('/').unwrap();
    let mut options = Options::new(Target::Postgres(admin.clone()));
    options.connections = 1;
    let db = Db::open(options).await.unwrap();
    let create = format!("CREATE DATABASE {name}");
    db.read(None, move |conn| conn.query(&Sql::owned(create.clone()), params![], |_| Ok(()))).await.unwrap();
    db.close().await;
    format!("{server}/{name}")
}

/// A change that is only an id.
pub(crate) fn change(id: &str) -> Change {
    Change {
        kind: "item",
        id: id.to_owned(),
        organization_id: None,
        workspace_id: None,
        deployment_id: None,
        version: 1,
    }
}

/// Inserts an item and says so.
pub(crate) fn insert(tx: &Tx, id: &str, number: i64) -> Result<()> {
    tx.execute(&INSERT, params![id, number])?;
    tx.announce(change(id));
    Ok(())
}

pub(crate) async fn number(db: &Db, id: &'static str) -> Option<i64> {
    db.read(None, move |conn| conn.query_opt(&NUMBER, params![id], |row| row.get(0))).await.unwrap()
}

pub(crate) async fn count(db: &Db) -> i64 {
    db.scan(None, |conn| conn.query_one(&COUNT, params![], |row| row.get(0))).await.unwrap()
}

/// Runs each test on SQLite and on PostgreSQL.
macro_rules! on_both_engines {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(crate::support::Bed::sqlite().await).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name(crate::support::Bed::postgres().await).await;
            })*
        }
    };
}
pub(crate) use on_both_engines;
