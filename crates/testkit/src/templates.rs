//! Migrated databases for tests to copy: each test would otherwise take all steps from the first version on.
//!
//! A template is named by the migrations that made it, and used by all processes of all test runs. Those that find none
//! make one each; the first to give it its name wins.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use podium_db::{Db, Options, Result, Sql, Target};
use podium_store::MIGRATIONS;

pub(crate) async fn copy_to_file(path: &Path) {
    let template = std::env::temp_dir().join(format!("{}.db", name()));
    if !template.exists() {
        let draft = tempfile::tempdir().expect("a temporary directory");
        let made = draft.path().join("podium.db");
        migrate(Target::Sqlite(made.clone())).await;
        assert!(!draft.path().join("podium.db-wal").exists(), "all of it is in one file");
        fs::rename(&made, &template).expect("a template can be named");
    }
    fs::copy(&template, path).expect("a template can be copied");
}

/// Creates a migrated database on a server. `server` is the URL of its database for administration.
pub(crate) async fn copy_on_server(server: &str, database: &str) {
    let (base, _) = server.rsplit_once('/').expect("the URL names a database");
    let (template, draft) = (name(), format!("{database}_draft"));
    let admin = administer(server).await;
    let known = format!("SELECT 1 FROM pg_database WHERE datname = '{template}'");
    if run(&admin, &known).await.expect("databases can be listed") == 0 {
        create(&admin, &draft, "template1").await;
        migrate(Target::Postgres(format!("{base}/{draft}"))).await;
        must(&admin, &format!("ALTER DATABASE {draft} ALLOW_CONNECTIONS false")).await;
        if run(&admin, &format!("ALTER DATABASE {draft} RENAME TO {template}")).await.is_err() {
            // Another process was faster.
            must(&admin, &format!("DROP DATABASE {draft}")).await;
        }
    }
    create(&admin, database, &template).await;
    admin.close().await;
}

pub(crate) async fn create_on_server(server: &str, database: &str) {
    let admin = administer(server).await;
    create(&admin, database, "template1").await;
    admin.close().await;
}

async fn administer(server: &str) -> Db {
    let options = Options { connections: 1, ..Options::new(Target::Postgres(server.to_owned())) };
    Db::open(options).await.expect("the private PostgreSQL answers")
}

async fn create(admin: &Db, database: &str, template: &str) {
    // A long-running server may have databases of processes with the same pid.
    must(admin, &format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)")).await;
    must(admin, &format!("CREATE DATABASE {database} TEMPLATE {template}")).await;
}

async fn migrate(target: Target) {
    let db = Db::open(Options::new(target)).await.expect("it can be opened");
    db.migrate(MIGRATIONS).await.expect("it can be migrated");
    db.close().await;
}

async fn must(admin: &Db, statement: &str) {
    run(admin, statement).await.unwrap_or_else(|error| panic!("{statement}: {error}"));
}

/// Runs a statement; returns how many rows it has.
async fn run(admin: &Db, statement: &str) -> Result<usize> {
    let sql = Sql::owned(statement.to_owned());
    Ok(admin.read(None, move |conn| conn.query(&sql, &[], |_| Ok(()))).await?.len())
}

/// The name of the template that these migrations make.
fn name() -> String {
    let mut hasher = DefaultHasher::new();
    MIGRATIONS.iter().for_each(|migration| (migration.sqlite, migration.postgres).hash(&mut hasher));
    format!("podium_test_template_{:016x}", hasher.finish())
}
