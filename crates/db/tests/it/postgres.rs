//! What only PostgreSQL can do to us: connections that die, replicas that speak, races that are lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use podium_db::{Conn, Db, Error, Migration, Options, Result, Sql, Target, params};

use crate::support::{Bed, TABLES, count, insert, number};

static KILL_OTHERS: Sql = Sql::new(
    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()",
);
static KILL_SELF: Sql = Sql::new("SELECT pg_terminate_backend(pg_backend_pid())");

async fn replica(bed: &Bed) -> Db {
    let mut options = Options::new(bed.target.clone());
    options.connections = 2;
    Db::open(options).await.unwrap()
}

fn kill_others(conn: &Conn) -> Result<i64> {
    conn.query_one(&KILL_OTHERS, params![], |row| row.get(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_connections_are_replaced() {
    let bed = Bed::postgres().await;
    let other = replica(&bed).await;
    for round in 0..5 {
        let before = futures_util::future::join_all((0..20).map(|_| count(&bed.db))).await;
        assert!(before.iter().all(|count| *count == round));
        assert!(other.read(None, kill_others).await.unwrap() > 0);
        bed.db.write(None, move |tx| insert(tx, &format!("item-{round}"), 1)).await.unwrap();
    }
    assert_eq!(bed.heard().len(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_whose_connection_dies_before_commit_runs_again() {
    let bed = Bed::postgres().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let written = bed.db.write(None, move |tx| {
        insert(tx, "a", 1)?;
        if counted.fetch_add(1, Ordering::SeqCst) == 0 {
            tx.query(&KILL_SELF, params![], |_| Ok(()))?;
        }
        Ok::<_, Error>(())
    });
    assert_eq!(written.await, Ok(()));
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    assert_eq!(bed.heard(), ["a"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_unit_that_always_loses_its_connection_is_given_up() {
    let bed = Bed::postgres().await;
    let doomed = bed.db.write(None, |tx| tx.query(&KILL_SELF, params![], |_| Ok(()))).await;
    assert!(matches!(doomed, Err(Error::Unavailable(_))), "{doomed:?}");
    assert_eq!(count(&bed.db).await, 0);
}

/// A trigger that runs at COMMIT and does what it is told.
async fn at_commit(bed: &Bed, deed: &str) {
    let script = format!(
        "CREATE SEQUENCE commits;
         CREATE FUNCTION deed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {deed}; RETURN NULL; END $$;
         CREATE CONSTRAINT TRIGGER deed AFTER INSERT ON items DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION deed();"
    );
    let postgres: &'static str = script.leak();
    let second = Migration { version: 2, name: "deed", sqlite: "", postgres };
    bed.db.migrate(&[TABLES[0], second]).await.unwrap();
}

/// Inserts a row, counting the runs.
async fn counted_insert(bed: &Bed) -> (Result<()>, usize) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let result = bed.db.write(None, move |tx| {
        counted.fetch_add(1, Ordering::SeqCst);
        insert(tx, "a", 1)
    });
    (result.await, runs.load(Ordering::SeqCst))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_dies_during_commit_is_not_tried_again() {
    let bed = Bed::postgres().await;
    at_commit(&bed, "PERFORM pg_terminate_backend(pg_backend_pid())").await;
    let (result, runs) = counted_insert(&bed).await;
    let Err(Error::Unavailable(message)) = result else { panic!("{result:?}") };
    assert!(message.contains("outcome is unknown"), "{message}");
    assert_eq!(runs, 1);
    assert!(bed.heard().is_empty());
    assert_eq!(count(&bed.db).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_at_commit_is_run_again() {
    let bed = Bed::postgres().await;
    at_commit(&bed, "IF nextval('commits') < 3 THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF").await;
    assert_eq!(counted_insert(&bed).await, (Ok(()), 3));
    assert_eq!(bed.heard(), ["a"]);
    assert_eq!(count(&bed.db).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_race_is_run_again_but_not_for_ever() {
    let bed = Bed::postgres().await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let lost = bed.db.write(None, move |tx| {
        insert(tx, "a", 1)?;
        counted.fetch_add(1, Ordering::SeqCst);
        Err::<(), _>(Error::Lost)
    });
    assert_eq!(lost.await, Err(Error::Lost));
    assert_eq!(runs.load(Ordering::SeqCst), 40);
    assert_eq!(count(&bed.db).await, 0);
    assert!(bed.heard().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn deadlocks_are_run_again() {
    static TOUCH: Sql = Sql::new("UPDATE items SET number = number + 1 WHERE id = $1");
    let bed = Bed::postgres().await;
    bed.db.write(None, |tx| insert(tx, "a", 0)).await.unwrap();
    bed.db.write(None, |tx| insert(tx, "b", 0)).await.unwrap();
    let meet = Arc::new(std::sync::Barrier::new(2));
    let cross = |first: &'static str, second: &'static str| {
        let meet = Arc::clone(&meet);
        let mut runs = 0;
        bed.db.write(None, move |tx| {
            runs += 1;
            tx.execute(&TOUCH, params![first])?;
            if runs == 1 {
                meet.wait();
            }
            tx.execute(&TOUCH, params![second])
        })
    };
    let (one, two) = tokio::join!(cross("a", "b"), cross("b", "a"));
    assert_eq!((one, two), (Ok(1), Ok(1)));
    assert_eq!(number(&bed.db, "a").await, Some(2));
    assert_eq!(number(&bed.db, "b").await, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_wakes_the_other_replicas() {
    let bed = Bed::postgres().await;
    let other = replica(&bed).await;
    // The first wake-up says that it listens.
    other.wait_for_wake().await;
    bed.db.wait_for_wake().await;
    bed.db.write(None, |tx| insert(tx, "a", 1)).await.unwrap();
    other.wait_for_wake().await;
    other.write(None, |tx| insert(tx, "b", 1)).await.unwrap();
    bed.db.wait_for_wake().await;
    // A connection that was lost may have missed something.
    other.read(None, kill_others).await.unwrap();
    bed.db.wait_for_wake().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_composed_at_run_time_are_evicted_oldest_first() {
    let bed = Bed::postgres().await;
    for n in 0..1_200_i64 {
        let sql = Sql::owned(format!("SELECT count(*) + {n} FROM items WHERE id = $1"));
        let found =
            bed.db.read(None, move |conn| conn.query_one(&sql, params!["a"], |row| row.get::<i64>(0)));
        assert_eq!(found.await, Ok(n));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_is_unavailable() {
    let nobody = Target::Postgres("postgres://nobody@127.0.0.1:1/nowhere".to_owned());
    let Err(Error::Unavailable(message)) = Db::open(Options::new(nobody)).await else {
        panic!("who answered?")
    };
    assert!(message.contains("cannot connect"), "{message}");
    let invalid = Target::Postgres("postgres://h/d?nonsense=1".to_owned());
    assert!(matches!(Db::open(Options::new(invalid)).await, Err(Error::Other(_))));
}
