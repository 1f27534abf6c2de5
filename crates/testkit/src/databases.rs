//! A database for each test.

use std::sync::atomic::{AtomicU32, Ordering};

use podium_db::{Db, Options, Result, Sql, Target};
use tempfile::TempDir;

/// Which engine a test runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A file in a temporary directory.
    Sqlite,
    /// A database on the private server.
    Postgres,
}

/// A database for one test.
#[derive(Debug)]
pub struct Database {
    target: Target,
    _directory: Option<TempDir>,
}

impl Database {
    /// Makes an empty database.
    pub async fn create(engine: Engine) -> Self {
        match engine {
            Engine::Sqlite => {
                let directory = tempfile::tempdir().expect("a temporary directory");
                Self {
                    target: Target::Sqlite(directory.path().join("podium.db")),
                    _directory: Some(directory),
                }
            }
            Engine::Postgres => Self { target: create_on_server().await, _directory: None },
        }
    }

    /// Its target; on PostgreSQL several applications may open it.
    pub fn target(&self) -> Target {
        self.target.clone()
    }
}

/// Makes a node look as if it had not been seen for a long time.
pub async fn mark_node_unseen(target: Target, name: &str) {
    let mut options = Options::new(target);
    options.connections = 1;
    let db = Db::open(options).await.expect("the database answers");
    let sql = Sql::owned("UPDATE nodes SET last_seen_at = 0 WHERE name = $1".to_owned());
    let name = name.to_owned();
    let done: Result<u64> = db.write(None, move |tx| tx.execute(&sql, podium_db::params![&name])).await;
    assert_eq!(done.expect("it is written"), 1);
    db.close().await;
}

async fn create_on_server() -> Target {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let server = std::env::var("PODIUM_TEST_POSTGRES").expect(
        "run `cargo xtask test`, which starts a private PostgreSQL (PODIUM_TEST_POSTGRES is not set)",
    );
    let name = format!("test_{}_{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
    let mut options = Options::new(Target::Postgres(server.clone()));
    options.connections = 1;
    let admin = Db::open(options).await.expect("the private PostgreSQL answers");
    // A long-running server may have databases of processes with the same pid.
    let statements =
        [format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"), format!("CREATE DATABASE {name}")];
    for statement in statements {
        let sql = Sql::owned(statement);
        let made: Result<_> = admin.read(None, move |conn| conn.query(&sql, &[], |_| Ok(()))).await;
        made.expect("a database can be made");
    }
    admin.close().await;
    let (base, _) = server.rsplit_once('/').expect("the URL names a database");
    Target::Postgres(format!("{base}/{name}"))
}
