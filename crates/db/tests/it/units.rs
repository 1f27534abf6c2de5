//! Units of work: alone, beside each other, and when they fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use podium_db::{Error, Fault, Result, Sql, params};

use crate::support::{Bed, INSERT, change, count, insert, number, on_both_engines};

on_both_engines!(
    constraints_are_told_apart,
    a_failing_unit_does_not_hurt_its_neighbours,
    a_panic_is_an_error_of_its_unit,
    a_failed_statement_cannot_be_swallowed,
    the_commit_listener_runs_before_the_result_is_returned,
    a_listener_that_panics_is_survived,
    errors_of_the_caller_pass_through,
    reads_cannot_write,
    a_closed_database_refuses,
    waiting_units_are_finished_by_close,
);

async fn constraints_are_told_apart(bed: Bed) {
    bed.db.write(None, |tx| insert(tx, "a", 1)).await.unwrap();
    let twice = bed.db.write(None, |tx| insert(tx, "a", 2)).await;
    let Err(Error::Unique(which)) = twice else { panic!("{twice:?}") };
    assert!(which.contains("items"), "{which}");
    static PART: Sql = Sql::new("INSERT INTO parts (id, item_id) VALUES ($1, $2)");
    static DELETE: Sql = Sql::new("DELETE FROM items WHERE id = $1");
    let orphan = bed.db.write(None, |tx| tx.execute(&PART, params!["p", "nobody"])).await;
    assert_eq!(orphan, Err(Error::ForeignKey));
    assert_eq!(bed.db.write(None, |tx| tx.execute(&PART, params!["p", "a"])).await, Ok(1));
    assert_eq!(bed.db.write(None, |tx| tx.execute(&DELETE, params!["a"])).await, Err(Error::ForeignKey));
    assert_eq!(number(&bed.db, "a").await, Some(1));
}

async fn a_failing_unit_does_not_hurt_its_neighbours(bed: Bed) {
    let units = (0..200).map(|n| {
        bed.db.write(None, move |tx| {
            insert(tx, &format!("item-{n}"), n)?;
            match n % 4 {
                0 => Err(Error::Other("changed its mind".to_owned())),
                1 => insert(tx, &format!("item-{n}"), n),
                _ => Ok(()),
            }
        })
    });
    let results: Vec<Result<()>> = futures_util::future::join_all(units).await;
    for (n, result) in results.iter().enumerate() {
        match n % 4 {
            0 => assert_eq!(*result, Err(Error::Other("changed its mind".to_owned()))),
            1 => assert!(matches!(result, Err(Error::Unique(_)))),
            _ => assert_eq!(*result, Ok(())),
        }
    }
    assert_eq!(count(&bed.db).await, 100);
    assert_eq!(bed.heard().len(), 100);
}

async fn a_panic_is_an_error_of_its_unit(bed: Bed) {
    let panicking = bed.db.write(None, |tx| -> Result<()> {
        insert(tx, "a", 1)?;
        panic!("on purpose")
    });
    let fine = bed.db.write(None, |tx| insert(tx, "b", 2));
    let (panicking, fine) = tokio::join!(panicking, fine);
    assert_eq!(panicking, Err(Error::Panicked("on purpose".to_owned())));
    assert_eq!(fine, Ok(()));
    for panicking in [
        bed.db.read(None, |_| -> Result<()> { panic!("on purpose") }).await,
        bed.db.page(None, |_| -> Result<()> { panic!("on purpose") }).await,
        bed.db.scan(None, |_| -> Result<()> { panic!("on purpose") }).await,
    ] {
        assert_eq!(panicking, Err(Error::Panicked("on purpose".to_owned())));
    }
    assert_eq!(count(&bed.db).await, 1);
    assert_eq!(bed.heard(), ["b"]);
}

async fn a_failed_statement_cannot_be_swallowed(bed: Bed) {
    bed.db.write(None, |tx| insert(tx, "a", 1)).await.unwrap();
    let swallowed = bed.db.write(None, |tx| {
        insert(tx, "b", 2)?;
        let _ = insert(tx, "a", 2);
        Ok::<_, Error>(())
    });
    assert!(matches!(swallowed.await, Err(Error::Other(_))));
    assert_eq!(number(&bed.db, "b").await, None);
}

async fn the_commit_listener_runs_before_the_result_is_returned(bed: Bed) {
    for n in 0..50 {
        let id = format!("item-{n}");
        let unit = {
            let id = id.clone();
            bed.db.write(None, move |tx| insert(tx, &id, 1))
        };
        unit.await.unwrap();
        assert_eq!(bed.heard().last(), Some(&id));
    }
    let failing = bed.db.write(None, |tx| {
        tx.announce(change("never"));
        Err::<(), _>(Error::Other("no".to_owned()))
    });
    assert!(failing.await.is_err());
    assert_eq!(bed.heard().len(), 50);
}

async fn a_listener_that_panics_is_survived(bed: Bed) {
    let heard = Arc::clone(&bed.heard);
    let _ = std::thread::spawn(move || {
        let _lock = heard.lock().unwrap();
        panic!("poisons the lock, so that the listener panics");
    })
    .join();
    bed.db.write(None, |tx| insert(tx, "a", 1)).await.unwrap();
    bed.db.write(None, |tx| insert(tx, "b", 1)).await.unwrap();
    assert_eq!(count(&bed.db).await, 2);
}

/// An error that wraps, as those of the layers above do.
#[derive(Debug)]
enum Wrapped {
    Db(Error),
    Refused,
}

impl From<Error> for Wrapped {
    fn from(error: Error) -> Self {
        Self::Db(error)
    }
}

impl Fault for Wrapped {
    fn db(&self) -> Option<&Error> {
        if let Self::Db(error) = self { Some(error) } else { None }
    }
}

async fn errors_of_the_caller_pass_through(bed: Bed) {
    let refused = bed.db.write(None, |tx| {
        insert(tx, "a", 1)?;
        Err::<(), _>(Wrapped::Refused)
    });
    assert!(matches!(refused.await, Err(Wrapped::Refused)));
    let twice = bed.db.write(None, |tx| {
        insert(tx, "a", 1)?;
        insert(tx, "a", 1)?;
        Ok(())
    });
    assert!(matches!(twice.await, Err(Wrapped::Db(Error::Unique(_)))));
    let read = bed.db.read(None, |_| Err::<(), _>(Wrapped::Refused)).await;
    assert!(matches!(read, Err(Wrapped::Refused)));
}

async fn reads_cannot_write(bed: Bed) {
    let scan = bed.db.scan(None, |conn| conn.query(&INSERT, params!["a", 1], |_| Ok(()))).await;
    assert!(scan.is_err());
    assert_eq!(count(&bed.db).await, 0);
}

async fn a_closed_database_refuses(bed: Bed) {
    bed.db.write(None, |tx| insert(tx, "a", 1)).await.unwrap();
    bed.db.close().await;
    bed.db.close().await;
    assert!(matches!(bed.db.write(None, |tx| insert(tx, "b", 1)).await, Err(Error::Unavailable(_))));
    let read = bed.db.read(None, |_| Ok::<_, Error>(())).await;
    assert!(matches!(read, Err(Error::Unavailable(_))));
    let scan = bed.db.scan(None, |_| Ok::<_, Error>(())).await;
    assert!(matches!(scan, Err(Error::Unavailable(_))));
}

async fn waiting_units_are_finished_by_close(bed: Bed) {
    let done = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..64)
        .map(|n| {
            let (db, done) = (bed.db.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                match db.write(None, move |tx| insert(tx, &format!("item-{n}"), n)).await {
                    Ok(()) => done.fetch_add(1, Ordering::SeqCst),
                    Err(error) => {
                        assert!(matches!(error, Error::Unavailable(_)), "{error}");
                        0
                    }
                }
            })
        })
        .collect();
    bed.db.close().await;
    for task in tasks {
        task.await.unwrap();
    }
    let again = podium_db::Db::open(podium_db::Options::new(bed.target.clone())).await.unwrap();
    assert_eq!(count(&again).await, done.load(Ordering::SeqCst) as i64);
    again.close().await;
}
