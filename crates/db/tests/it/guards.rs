//! Guards: checked on PostgreSQL, where other replicas exist; passed over on SQLite.

use std::sync::Arc;

use podium_db::{Conn, Error, Guard, Owned, Result, Sql, Tx, params};

use crate::support::{Bed, NUMBER, count, insert, number};

static EPOCH: Sql = Sql::new("SELECT number FROM items WHERE id = $1");

fn guard(id: &str, expected: i64) -> Option<Arc<Guard>> {
    Some(Arc::new(Guard { sql: &EPOCH, params: vec![Owned::from(id)], expected }))
}

fn look(conn: &Conn) -> Result<i64> {
    conn.query_one(&NUMBER, params!["epoch"], |row| row.get(0))
}

fn write(tx: &Tx) -> Result<()> {
    insert(tx, "b", 2)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_holds_changes_nothing() {
    let bed = Bed::postgres().await;
    bed.db.write(None, |tx| insert(tx, "epoch", 7)).await.unwrap();
    assert_eq!(bed.db.read(guard("epoch", 7), look).await, Ok(7));
    assert_eq!(bed.db.scan(guard("epoch", 7), look).await, Ok(7));
    assert_eq!(bed.db.write(guard("epoch", 7), write).await, Ok(()));
    assert_eq!(bed.db.write(guard("epoch", 7), |_| Ok::<_, Error>(())).await, Ok(()));
    assert_eq!(number(&bed.db, "b").await, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guard_that_fails_stops_everything() {
    let bed = Bed::postgres().await;
    bed.db.write(None, |tx| insert(tx, "epoch", 7)).await.unwrap();
    for stale in [guard("epoch", 8), guard("nobody", 7)] {
        assert_eq!(bed.db.read(stale.clone(), look).await, Err(Error::Stale));
        assert_eq!(bed.db.scan(stale.clone(), look).await, Err(Error::Stale));
        assert_eq!(bed.db.write(stale.clone(), write).await, Err(Error::Stale));
        assert_eq!(bed.db.read(stale.clone(), |_| Ok::<_, Error>(())).await, Err(Error::Stale));
        assert_eq!(bed.db.write(stale.clone(), |_| Ok::<_, Error>(())).await, Err(Error::Stale));
        let swallowed = bed.db.write(stale.clone(), |tx| {
            let _ = write(tx);
            Ok::<_, Error>(())
        });
        assert_eq!(swallowed.await, Err(Error::Stale));
        let broken =
            bed.db.read(stale, |conn| conn.query(&Sql::new("SELECT nonsense"), params![], |_| Ok(())));
        assert_eq!(broken.await, Err(Error::Stale));
    }
    assert_eq!(count(&bed.db).await, 1);
    assert_eq!(bed.heard(), ["epoch"]);
}

#[tokio::test]
async fn sqlite_passes_over_guards() {
    let bed = Bed::sqlite().await;
    assert_eq!(bed.db.write(guard("nobody", 7), write).await, Ok(()));
}
