//! Migrations: once, in order, never edited, never taken back.

use podium_db::{Db, Migration, Options, Sql, params};

use crate::support::{Bed, TABLES, count, fresh_database, insert, on_both_engines};

on_both_engines!(
    twice_is_once,
    a_later_one_is_applied,
    an_edited_one_is_refused,
    a_newer_database_is_refused,
    a_failing_one_leaves_nothing,
);

const SECOND: Migration = Migration {
    version: 2,
    name: "second",
    sqlite: "CREATE TABLE more (id TEXT); INSERT INTO more (id) VALUES ('x; y');",
    postgres: "CREATE TABLE more (id TEXT); INSERT INTO more (id) VALUES ('x; y');",
};

static MORE: Sql = Sql::new("SELECT count(*) FROM more");

async fn more(db: &Db) -> podium_db::Result<i64> {
    db.read(None, |conn| conn.query_one(&MORE, params![], |row| row.get(0))).await
}

async fn twice_is_once(bed: Bed) {
    bed.db.write(None, |tx| insert(tx, "a", 1)).await.unwrap();
    bed.db.migrate(TABLES).await.unwrap();
    assert_eq!(count(&bed.db).await, 1);
}

async fn a_later_one_is_applied(bed: Bed) {
    let both = [TABLES[0], SECOND];
    bed.db.migrate(&both).await.unwrap();
    bed.db.migrate(&both).await.unwrap();
    assert_eq!(more(&bed.db).await, Ok(1));
    assert!(bed.db.migrate(&[SECOND, TABLES[0]]).await.is_err());
}

async fn an_edited_one_is_refused(bed: Bed) {
    let edited = Migration { sqlite: "SELECT 1", postgres: "SELECT 1", ..TABLES[0] };
    let error = bed.db.migrate(&[edited]).await.unwrap_err().to_string();
    assert!(error.contains("migration 1 (tables) was changed"), "{error}");
}

async fn a_newer_database_is_refused(bed: Bed) {
    bed.db.migrate(&[TABLES[0], SECOND]).await.unwrap();
    let error = bed.db.migrate(TABLES).await.unwrap_err().to_string();
    assert!(error.contains("created by a newer version"), "{error}");
}

async fn a_failing_one_leaves_nothing(bed: Bed) {
    let failing = "CREATE TABLE more (id TEXT); INSERT INTO nowhere (id) VALUES ('x');";
    let broken = Migration { sqlite: failing, postgres: failing, ..SECOND };
    let error = bed.db.migrate(&[TABLES[0], broken]).await.unwrap_err().to_string();
    assert!(error.contains("migration 2 (second) failed"), "{error}");
    assert!(more(&bed.db).await.is_err());
    bed.db.migrate(&[TABLES[0], SECOND]).await.unwrap();
    assert_eq!(more(&bed.db).await, Ok(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_may_start_together() {
    let target = podium_db::Target::Postgres(fresh_database().await);
    let start = || {
        let mut options = Options::new(target.clone());
        options.connections = 2;
        async {
            let db = Db::open(options).await?;
            db.migrate(&[TABLES[0], SECOND]).await?;
            more(&db).await
        }
    };
    let started = futures_util::future::join_all((0..4).map(|_| start())).await;
    assert_eq!(started, vec![Ok(1); 4]);
}
