//! What only SQLite promises: one writer for a file, and nothing acknowledged is lost when that writer is killed.

use std::future::{Future, poll_fn};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::task::Poll;

use podium_db::{Db, Error, Options, Result, Sql, Target, params};

use crate::support::{Bed, TABLES, change, count, insert, number};

#[tokio::test]
async fn a_second_opener_is_refused() {
    let bed = Bed::sqlite().await;
    let Err(Error::Unavailable(message)) = Db::open(Options::new(bed.target.clone())).await else {
        panic!("the file was opened twice")
    };
    assert!(message.contains("in use by another process"), "{message}");
    bed.db.close().await;
    let again = Db::open(Options::new(bed.target.clone())).await.unwrap();
    assert_eq!(count(&again).await, 0);
}

#[tokio::test]
async fn a_database_can_be_read_while_another_process_writes_it() {
    let bed = Bed::sqlite().await;
    let view = Db::view(bed.target.clone()).await.unwrap();
    assert_eq!(count(&view).await, 0);
    bed.db.write(None, |tx| insert(tx, "a", 1)).await.unwrap();
    assert_eq!((count(&view).await, number(&view, "a").await), (1, Some(1)));
    let refused = view.write(None, |tx| insert(tx, "b", 1)).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))));
    view.close().await;
    bed.db.close().await;
    let view = Db::view(bed.target.clone()).await.unwrap();
    assert_eq!(number(&view, "a").await, Some(1), "also when nobody writes");
    let missing = Db::view(Target::Sqlite("/nowhere/podium.db".into())).await;
    assert!(matches!(missing, Err(Error::Unavailable(_))), "nothing is made");
}

#[tokio::test]
async fn closing_folds_the_log_into_the_file() {
    let bed = Bed::sqlite().await;
    bed.db.write(None, |tx| insert(tx, "a", 1)).await.unwrap();
    bed.db.close().await;
    let Target::Sqlite(path) = &bed.target else { unreachable!() };
    assert!(!path.with_extension("db-wal").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_does_not_grow_without_end() {
    let bed = Bed::sqlite().await;
    let note = "x".repeat(100_000);
    for n in 0..600 {
        let note = note.clone();
        bed.db.write(None, move |tx| insert(tx, &format!("{n}{note}"), n)).await.unwrap();
        assert_eq!(number(&bed.db, "nobody").await, None);
    }
    let Target::Sqlite(path) = &bed.target else { unreachable!() };
    let log = std::fs::metadata(path.with_extension("db-wal")).unwrap().len();
    assert!(log < 40 << 20, "120 MB were written and the log has {log} bytes");
}

#[tokio::test]
async fn a_full_queue_refuses() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = Options::new(Target::Sqlite(directory.path().join("podium.db")));
    options.queue = 1;
    let db = Db::open(options).await.unwrap();
    db.migrate(TABLES).await.unwrap();
    let held = Held::hold(&db).await;
    let mut waiting = Box::pin(db.write(None, |tx| insert(tx, "a", 1)));
    assert!(poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context).is_pending())).await);
    let refused = db.write(None, |tx| insert(tx, "b", 1)).await;
    assert!(matches!(refused, Err(Error::Unavailable(_))));
    held.release().await;
    assert_eq!(waiting.await, Ok(()));
}

/// Disk full and the like end the transaction under everybody; a ROLLBACK inside a unit does the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_undone_under_its_units_is_run_again() {
    static ROLLBACK: Sql = Sql::new("ROLLBACK");
    let bed = Bed::sqlite().await;
    let held = Held::hold(&bed.db).await;
    let before = bed.db.write(None, |tx| insert(tx, "before", 1));
    let failing = bed.db.write(None, |tx| {
        insert(tx, "failing", 1)?;
        tx.execute(&ROLLBACK, params![])?;
        Err::<(), _>(Error::Other("full".to_owned()))
    });
    let pretending = bed.db.write(None, |tx| {
        tx.execute(&ROLLBACK, params![])?;
        tx.announce(change("pretending"));
        Ok::<_, Error>(())
    });
    let after = bed.db.write(None, |tx| insert(tx, "after", 1));
    let (before, failing, pretending, after, ()) =
        tokio::join!(before, failing, pretending, after, held.release());
    assert_eq!((before, after), (Ok(()), Ok(())));
    assert_eq!(failing, Err(Error::Other("full".to_owned())));
    assert!(matches!(pretending, Err(Error::Unavailable(_))), "{pretending:?}");
    assert_eq!(count(&bed.db).await, 2);
    assert_eq!(bed.heard(), ["before", "after"]);
}

/// Keeps the writer busy, so that what is asked meanwhile ends up in the same batch.
struct Held {
    release: mpsc::Sender<()>,
    unit: tokio::task::JoinHandle<Result<()>>,
}

impl Held {
    async fn hold(db: &Db) -> Self {
        let (entered, wait_until_entered) = mpsc::channel();
        let (release, wait_for_release) = mpsc::channel::<()>();
        let wait = Mutex::new(Some(wait_for_release));
        let db = db.clone();
        let unit = tokio::spawn(async move {
            db.write(None, move |_| {
                // Only the first run waits: an undone batch runs this unit again.
                if let Some(wait) = wait.lock().unwrap().take() {
                    entered.send(()).unwrap();
                    wait.recv().unwrap();
                }
                Ok(())
            })
            .await
        });
        tokio::task::spawn_blocking(move || wait_until_entered.recv()).await.unwrap().unwrap();
        Self { release, unit }
    }

    async fn release(self) {
        self.release.send(()).unwrap();
        assert_eq!(self.unit.await.unwrap(), Ok(()));
    }
}

/// Names the file that the child process is to write; unset in every other process.
const VICTIM: &str = "PODIUM_DB_TEST_VICTIM";

/// The child: writes for ever and says which writes were acknowledged. A test in name only.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Ok(path) = std::env::var(VICTIM) else { return };
    let db = Db::open(Options::new(Target::Sqlite(path.into()))).await.unwrap();
    db.migrate(TABLES).await.unwrap();
    let writers = (0..8).map(|writer| {
        let db = db.clone();
        async move {
            for n in 0.. {
                let id = format!("{writer}-{n}");
                let wanted = id.clone();
                db.write(None, move |tx| insert(tx, &wanted, n)).await.unwrap();
                eprintln!("acknowledged {id}");
            }
        }
    });
    futures_util::future::join_all(writers).await;
}

#[tokio::test]
async fn a_killed_process_loses_nothing_it_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("podium.db");
    let acknowledged = kill_after(&path, 500);
    let db = Db::open(Options::new(Target::Sqlite(path))).await.unwrap();
    for id in &acknowledged {
        let id: &'static str = Box::leak(id.clone().into_boxed_str());
        assert!(number(&db, id).await.is_some(), "{id} was acknowledged and is gone");
    }
    assert!(count(&db).await >= 500);
}

/// Runs the child, kills it after so many acknowledgements, and gives all of them.
fn kill_after(path: &Path, enough: usize) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sqlite::victim", "--nocapture"])
        .env(VICTIM, path)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut acknowledged = Vec::new();
    while let Some(Ok(line)) = lines.next() {
        if let Some(id) = line.strip_prefix("acknowledged ") {
            acknowledged.push(id.to_owned());
        }
        if acknowledged.len() == enough {
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    // The kill may have cut the last line short.
    acknowledged.pop();
    assert!(acknowledged.len() + 1 >= enough);
    acknowledged
}
