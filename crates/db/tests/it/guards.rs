//! Guards: checked on PostgreSQL, where other replicas exist; passed over on SQLite.

use std::sync::Arc;

use podium_db::{AdvisoryLock, Conn, Error, Guard, Owned, Result, Sql, Tx, params};

use crate::support::{Bed, NUMBER, count, insert, number};

static EPOCH: Sql = Sql::new("SELECT number FROM items WHERE id = $1");

fn guard(id: &str, expected: i64) -> Option<Arc<Guard>> {
    Some(Arc::new(Guard::new(&EPOCH, vec![Owned::from(id)], expected)))
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

static SET: Sql = Sql::new("UPDATE items SET number = $2 WHERE id = $1");
static WAITING: Sql = Sql::new(
    "SELECT COUNT(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
     WHERE d.datname = current_database() AND NOT l.granted",
);

/// A transaction that holds something alone, makes the epoch 8 and ends when the sender is dropped.
async fn hold_alone(bed: &Bed) -> (std::sync::mpsc::Sender<()>, tokio::task::JoinHandle<Result<()>>) {
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let (go_on, goes_on) = std::sync::mpsc::channel();
    let db = bed.db.clone();
    let changing = tokio::spawn(async move {
        let lock = AdvisoryLock { key: 1, exclusive: true };
        db.write_locked(None, vec![lock], move |tx| {
            tx.execute(&SET, params!["epoch", 8])?;
            let _ = begun.send(());
            let _ = goes_on.recv();
            Ok::<_, Error>(())
        })
        .await
    });
    has_begun.recv().await.unwrap();
    (go_on, changing)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_waited_for_a_lock_sees_the_changes_made_meanwhile() {
    let bed = Bed::postgres().await;
    bed.db.write(None, |tx| insert(tx, "epoch", 7)).await.unwrap();
    for exclusive in [false, true] {
        bed.db.write(None, |tx| tx.execute(&SET, params!["epoch", 7])).await.unwrap();
        let (go_on, changing) = hold_alone(&bed).await;
        let db = bed.db.clone();
        let waiting = tokio::spawn(async move {
            db.write_locked(guard("epoch", 7), vec![AdvisoryLock { key: 1, exclusive }], write).await
        });
        // Another thing is held by nobody.
        let other = vec![AdvisoryLock { key: 2, exclusive: true }];
        assert_eq!(bed.db.write_locked(None, other, |_| Ok::<_, Error>(())).await, Ok(()));
        while bed.db.read(None, |conn| conn.query_one(&WAITING, params![], |row| row.get::<i64>(0))).await
            == Ok(0)
        {
            tokio::task::yield_now().await;
        }
        drop(go_on);
        assert_eq!(changing.await.unwrap(), Ok(()));
        assert_eq!(waiting.await.unwrap(), Err(Error::Stale), "it was true when the wait began");
        assert_eq!(number(&bed.db, "b").await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_locks_do_not_exclude_each_other() {
    let bed = Bed::postgres().await;
    let meeting = Arc::new(std::sync::Barrier::new(2));
    let share = || {
        let (db, meeting) = (bed.db.clone(), Arc::clone(&meeting));
        tokio::spawn(async move {
            let locks =
                vec![AdvisoryLock { key: 1, exclusive: false }, AdvisoryLock { key: 2, exclusive: false }];
            db.write_locked(None, locks, move |tx| {
                tx.query(&EPOCH, params!["epoch"], |_| Ok(()))?;
                meeting.wait();
                Ok::<_, Error>(())
            })
            .await
        })
    };
    let (one, other) = (share(), share());
    assert_eq!((one.await.unwrap(), other.await.unwrap()), (Ok(()), Ok(())));
}

#[tokio::test]
async fn sqlite_checks_guards_inside_the_transaction() {
    let bed = Bed::sqlite().await;
    bed.db.write(None, |tx| insert(tx, "epoch", 7)).await.unwrap();
    for (id, expected, holds) in [("epoch", 7, true), ("epoch", 8, false), ("nobody", 7, false)] {
        let guard = guard(id, expected).unwrap();
        assert_eq!(bed.db.write(None, move |tx| tx.holds(&guard)).await, Ok(holds));
    }
}
