//! A database for each test.

use std::sync::atomic::{AtomicU32, Ordering};

use podium_db::{Db, Options, Result, Sql, Target};
use tempfile::TempDir;

use crate::templates;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// A file in a temporary directory.
    Sqlite,
    Postgres,
}

#[derive(Debug)]
pub struct Database {
    target: Target,
    _directory: Option<TempDir>,
}

impl Database {
    pub async fn create(engine: Engine) -> Self {
        match engine {
            Engine::Sqlite => Self::in_file(),
            Engine::Postgres => {
                let (server, name) = on_server();
                templates::create_on_server(&server, &name).await;
                target_on(&server, &name)
            }
        }
    }

    /// Makes a database whose schema is up to date.
    pub async fn migrated(engine: Engine) -> Self {
        match engine {
            Engine::Sqlite => {
                let database = Self::in_file();
                if let Target::Sqlite(path) = &database.target {
                    templates::copy_to_file(path).await;
                }
                database
            }
            Engine::Postgres => {
                let (server, name) = on_server();
                templates::copy_on_server(&server, &name).await;
                target_on(&server, &name)
            }
        }
    }

    fn in_file() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        Self { target: Target::Sqlite(directory.path().join("podium.db")), _directory: Some(directory) }
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

/// A database on the server that is for this test only, and the URL of the one for administration.
fn on_server() -> (String, String) {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let server = std::env::var("PODIUM_TEST_POSTGRES").expect(
        "run `cargo xtask test`, which starts a private PostgreSQL (PODIUM_TEST_POSTGRES is not set)",
    );
    (server, format!("test_{}_{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed)))
}

fn target_on(server: &str, database: &str) -> Database {
    let (base, _) = server.rsplit_once('/').expect("the URL names a database");
    Database { target: Target::Postgres(format!("{base}/{database}")), _directory: None }
}
