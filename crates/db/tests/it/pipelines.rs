//! Round trips that are shared: statements that nobody waits for, two questions at once, short reads of many callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use futures_util::future::join_all;
use podium_db::{Conn, Db, Error, Guard, Options, Owned, Result, Sql, params};

use crate::support::{Bed, COUNT, INSERT, NUMBER, SET, change, count, insert, number, on_both_engines};

static EPOCH: Sql = Sql::new("SELECT number FROM items WHERE id = $1");
static BROKEN: Sql = Sql::new("SELECT 1 / (number - number) FROM items WHERE id = $1");

on_both_engines!(
    what_is_posted_is_seen_by_the_next_statement_and_committed,
    a_posted_statement_that_fails_is_told_where_it_stands,
    what_is_posted_before_a_refusal_is_undone,
    two_questions_have_two_answers,
    many_reads_at_once_have_their_own_answers,
    a_page_sees_one_snapshot,
);

async fn what_is_posted_is_seen_by_the_next_statement_and_committed(bed: Bed) {
    let seen = bed.db.write(None, |tx| {
        tx.post(&INSERT, params!["a", 1])?;
        tx.post(&SET, params!["a", 2])?;
        let seen: i64 = tx.query_one(&NUMBER, params!["a"], |row| row.get(0))?;
        tx.post(&SET, params!["a", 3])?;
        tx.announce(change("a"));
        Ok::<_, Error>(seen)
    });
    assert_eq!(seen.await, Ok(2));
    assert_eq!(number(&bed.db, "a").await, Some(3));
    assert_eq!(bed.heard(), ["a"]);
}

async fn a_posted_statement_that_fails_is_told_where_it_stands(bed: Bed) {
    bed.db.write(None, |tx| insert(tx, "a", 1)).await.unwrap();
    for asks_more in [true, false] {
        let taken = bed.db.write(None, move |tx| {
            tx.post(&INSERT, params!["b", 1])?;
            match tx.post(&INSERT, params!["a", 2]) {
                Err(Error::Unique(_)) => return Err(Error::Other("the name is taken".to_owned())),
                posted => posted?,
            }
            if asks_more {
                tx.query_one(&COUNT, params![], |row| row.get::<i64>(0))?;
            }
            tx.announce(change("never"));
            Ok(())
        });
        assert_eq!(taken.await, Err(Error::Other("the name is taken".to_owned())));
    }
    assert_eq!(count(&bed.db).await, 1);
    assert_eq!(bed.heard(), ["a"]);
}

async fn what_is_posted_before_a_refusal_is_undone(bed: Bed) {
    let refused = bed.db.write(None, |tx| {
        tx.post(&INSERT, params!["a", 1])?;
        Err::<(), _>(Error::Other("changed its mind".to_owned()))
    });
    assert!(refused.await.is_err());
    assert_eq!(count(&bed.db).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_posted_is_not_committed_where_the_guard_fails() {
    let bed = Bed::postgres().await;
    bed.db.write(None, |tx| insert(tx, "epoch", 7)).await.unwrap();
    for (expected, outcome) in [(8, Err(Error::Stale)), (7, Ok(()))] {
        let written = bed.db.write(guard("epoch", expected), |tx| tx.post(&INSERT, params!["b", 1]));
        assert_eq!(written.await, outcome);
        assert_eq!(number(&bed.db, "b").await, outcome.ok().map(|()| 1));
    }
}

async fn two_questions_have_two_answers(bed: Bed) {
    bed.db.write(None, |tx| insert(tx, "a", 1)).await.unwrap();
    bed.db.write(None, |tx| insert(tx, "b", 2)).await.unwrap();
    let ask = |conn: &Conn| {
        let (mut total, mut numbers) = (0, Vec::new());
        conn.query_both(
            (&COUNT, params![]),
            (&NUMBER, params!["b"]),
            |row| {
                total = row.get::<i64>(0)?;
                Ok(())
            },
            |row| {
                numbers.push(row.get::<i64>(0)?);
                Ok(())
            },
        )?;
        Ok::<_, Error>((total, numbers))
    };
    assert_eq!(bed.db.read(None, ask).await, Ok((2, vec![2])));
    assert_eq!(bed.db.page(None, ask).await, Ok((2, vec![2])));
    assert_eq!(bed.db.scan(None, ask).await, Ok((2, vec![2])));
    assert_eq!(bed.db.write(None, move |tx| ask(tx)).await, Ok((2, vec![2])));
    let broken = bed.db.page(None, |conn| {
        let ignore = |_: &podium_db::Row<'_>| Ok(());
        conn.query_both((&COUNT, params![]), (&Sql::new("SELECT nonsense"), params![]), ignore, ignore)
    });
    assert!(matches!(broken.await, Err(Error::Other(_))));
}

fn guard(id: &str, expected: i64) -> Option<Arc<Guard>> {
    Some(Arc::new(Guard::new(&EPOCH, vec![Owned::from(id)], expected)))
}

/// With few connections, so that reads have to share them.
async fn narrow(bed: &Bed) -> Db {
    Db::open(Options { connections: 2, ..Options::new(bed.target.clone()) }).await.unwrap()
}

/// What a read does; each kind has its own outcome.
fn read(conn: &Conn, n: i64) -> Result<i64> {
    let id = format!("item-{n}");
    match n % 5 {
        0 => conn.query_one(&NUMBER, params![&id], |row| row.get(0)),
        // One that asks for more, where the first answer says so.
        1 => {
            let first: i64 = conn.query_one(&NUMBER, params![&id], |row| row.get(0))?;
            let second: i64 = conn.query_one(&NUMBER, params!["item-0"], |row| row.get(0))?;
            Ok(first + second)
        }
        2 => conn.query_one(&BROKEN, params![&id], |row| row.get(0)),
        3 => conn.query(&Sql::owned(format!("SELECT nonsense{}", n % 10)), params![], |_| Ok(())).map(|_| 0),
        _ => Ok(n),
    }
}

async fn many_reads_at_once_have_their_own_answers(bed: Bed) {
    bed.db.write(None, |tx| (0..100).try_for_each(|n| insert(tx, &format!("item-{n}"), n))).await.unwrap();
    let db = if bed.db.is_shared() { narrow(&bed).await } else { bed.db.clone() };
    for _ in 0..3 {
        let reads = (0..100).map(|n| {
            let db = db.clone();
            tokio::spawn(async move {
                let guard = guard("item-7", if n % 7 == 0 { 8 } else { 7 });
                let unit = move |conn: &Conn| read(conn, n);
                if n % 2 == 0 { db.read(guard, unit).await } else { db.page(guard, unit).await }
            })
        });
        for (n, answer) in join_all(reads).await.into_iter().enumerate() {
            let (n, answer) = (n as i64, answer.unwrap());
            match n % 5 {
                _ if n % 7 == 0 && db.is_shared() => assert_eq!(answer, Err(Error::Stale), "{n}"),
                2 if !db.is_shared() => assert!(answer.is_err(), "{n}: {answer:?}"),
                2 | 3 => assert!(matches!(answer, Err(Error::Other(_))), "{n}: {answer:?}"),
                _ => assert_eq!(answer, Ok(n)),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_asks_for_something_else_when_it_runs_again_has_its_own_answer() {
    let bed = Bed::postgres().await;
    bed.db.write(None, |tx| (0..100).try_for_each(|n| insert(tx, &format!("item-{n}"), n))).await.unwrap();
    let db = narrow(&bed).await;
    let reads = (0..64).map(|_| {
        let db = db.clone();
        tokio::spawn(async move {
            let runs = AtomicUsize::new(0);
            db.read(None, move |conn| {
                let run = runs.fetch_add(1, Ordering::SeqCst) as i64;
                let found: i64 =
                    conn.query_one(&NUMBER, params![&format!("item-{run}")], |row| row.get(0))?;
                Ok::<_, Error>(found == run)
            })
            .await
        })
    });
    assert!(join_all(reads).await.into_iter().all(|answer| answer.unwrap() == Ok(true)));
}

async fn a_page_sees_one_snapshot(bed: Bed) {
    let (looked, mut looks) = tokio::sync::mpsc::unbounded_channel();
    let (written, wait_for_write) = mpsc::channel();
    let wait_for_write = std::sync::Mutex::new(wait_for_write);
    let db = bed.db.clone();
    let page = tokio::spawn(async move {
        db.page(None, move |conn| {
            let before: i64 = conn.query_one(&COUNT, params![], |row| row.get(0))?;
            looked.send(()).unwrap();
            wait_for_write.lock().unwrap().recv().unwrap();
            let after: i64 = conn.query_one(&COUNT, params![], |row| row.get(0))?;
            Ok::<_, Error>(after - before)
        })
        .await
    });
    // It may begin again when it asks for more than one thing.
    let mut writes = 0;
    while looks.recv().await.is_some() {
        writes += 1;
        bed.db.write(None, move |tx| insert(tx, &format!("item-{writes}"), writes)).await.unwrap();
        written.send(()).unwrap();
    }
    assert_eq!(page.await.unwrap(), Ok(0));
    assert_eq!(count(&bed.db).await, writes);
}
