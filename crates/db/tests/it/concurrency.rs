//! Many at once: nothing is lost, nothing is half seen.

use std::sync::mpsc;

use podium_db::{Db, Error, params};

use crate::support::{Bed, COMPARE_AND_SET, COUNT, NUMBER, SET, count, insert, number, on_both_engines};

on_both_engines!(increments_are_not_lost, a_scan_sees_one_snapshot, more_scans_than_connections);

async fn increment(db: &Db) {
    db.write(None, |tx| {
        let before: i64 = tx.query_one(&NUMBER, params!["counter"], |row| row.get(0))?;
        match tx.execute(&COMPARE_AND_SET, params!["counter", before])? {
            1 => Ok(()),
            _ => Err(Error::Lost),
        }
    })
    .await
    .unwrap();
}

async fn increments_are_not_lost(bed: Bed) {
    bed.db.write(None, |tx| insert(tx, "counter", 0)).await.unwrap();
    let tasks: Vec<_> = (0..40)
        .map(|_| {
            let db = bed.db.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    increment(&db).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(number(&bed.db, "counter").await, Some(400));
}

async fn a_scan_sees_one_snapshot(bed: Bed) {
    bed.db.write(None, |tx| insert(tx, "a", 1)).await.unwrap();
    let (looked, wait_for_look) = mpsc::channel();
    let (written, wait_for_write) = mpsc::channel();
    let wait_for_write = std::sync::Mutex::new(wait_for_write);
    let db = bed.db.clone();
    let scan = tokio::spawn(async move {
        db.scan(None, move |conn| {
            let before: i64 = conn.query_one(&COUNT, params![], |row| row.get(0))?;
            looked.send(()).unwrap();
            wait_for_write.lock().unwrap().recv().unwrap();
            let after: i64 = conn.query_one(&COUNT, params![], |row| row.get(0))?;
            let number: i64 = conn.query_one(&NUMBER, params!["a"], |row| row.get(0))?;
            Ok::<_, Error>((before, after, number))
        })
        .await
    });
    tokio::task::spawn_blocking(move || wait_for_look.recv()).await.unwrap().unwrap();
    bed.db
        .write(None, |tx| {
            insert(tx, "b", 2)?;
            tx.execute(&SET, params!["a", 9])
        })
        .await
        .unwrap();
    written.send(()).unwrap();
    assert_eq!(scan.await.unwrap(), Ok((1, 1, 1)));
    assert_eq!(count(&bed.db).await, 2);
}

async fn more_scans_than_connections(bed: Bed) {
    bed.db.write(None, |tx| insert(tx, "a", 1)).await.unwrap();
    let counts = futures_util::future::join_all((0..100).map(|_| count(&bed.db))).await;
    assert!(counts.iter().all(|count| *count == 1));
}
