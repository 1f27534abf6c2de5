//! Which threads wait for the disk, and who waits for them.

use std::io;
use std::pin::pin;
use std::sync::mpsc;

use futures_util::future::poll_immediate;
use rusqlite::Connection;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::*;
use crate::unit::erased;
use crate::{Change, Db, Sql, params};

#[test]
fn connections_are_opened_when_they_are_needed_and_as_many_kept_as_there_are_cores() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.db");
    let pool = Pool::open(&path, 1, 1, Arc::new(|_| {})).unwrap();
    assert_eq!(pool.readers.idle.len(), 1);
    let taken: Vec<Conn> = (0..=cores()).map(|_| pool.readers.take().unwrap()).collect();
    taken.into_iter().for_each(|conn| pool.readers.give_back(conn));
    assert_eq!(pool.readers.idle.len(), cores());
    assert_eq!(pool.scanners.idle.len(), 1, "scans have connections of their own");
}

/// Says when a sync has begun, and waits to be told how it ends.
struct Disk {
    begun: UnboundedReceiver<()>,
    verdict: mpsc::Sender<io::Result<()>>,
}

struct Bed {
    pool: Arc<Pool>,
    db: Db,
    disk: Disk,
    heard: Arc<Mutex<Vec<String>>>,
    _directory: tempfile::TempDir,
}

static INSERT: Sql = Sql::new("INSERT INTO items (id) VALUES ($1)");
static COUNT: Sql = Sql::new("SELECT COUNT(*) FROM items");

impl Bed {
    async fn new(may_sync_itself: bool) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("one.db");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE items (id TEXT PRIMARY KEY)").unwrap();
        let (begin, begun) = unbounded_channel();
        let (verdict, verdicts) = mpsc::channel();
        let sync = move || {
            begin.send(()).unwrap();
            verdicts.recv().unwrap()
        };
        let log = Log { sync: Box::new(sync), may_sync_itself };
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let ear = Arc::clone(&heard);
        let listen = move |changes: &[Change]| {
            ear.lock().unwrap().extend(changes.iter().map(|change| change.id.clone()));
        };
        let pool = Arc::new(Pool::open_with(&path, 1, 64, Arc::new(listen), Some(log)).unwrap());
        Self {
            db: Db::from(Arc::clone(&pool)),
            pool,
            disk: Disk { begun, verdict },
            heard,
            _directory: directory,
        }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// What any other connection to the file would see, on disk or not.
    fn visible(&self) -> i64 {
        let (work, counted) = erased(count);
        self.pool.readers.in_snapshot(work).unwrap();
        counted.take().unwrap()
    }
}

impl Disk {
    async fn sync_begins(&mut self) {
        self.begun.recv().await.unwrap();
    }

    fn sync_ends(&self, how: io::Result<()>) {
        self.verdict.send(how).unwrap();
    }
}

fn count(conn: &Conn) -> Result<i64> {
    conn.query_one(&COUNT, &[], |row| row.get(0))
}

/// Adds an item, says so, and answers how many there are.
fn insert(tx: &Tx, id: &str) -> Result<i64> {
    tx.execute(&INSERT, params![id])?;
    let (organization_id, workspace_id, deployment_id) = (None, None, None);
    let id = id.to_owned();
    tx.announce(Change { kind: "item", id, organization_id, workspace_id, deployment_id, version: 1 });
    count(tx)
}

#[tokio::test]
async fn nobody_is_told_of_a_commit_before_it_is_on_disk() {
    let mut bed = Bed::new(false).await;
    let mut write = pin!(bed.db.write(None, |tx| insert(tx, "a")));
    assert!(poll_immediate(&mut write).await.is_none());
    bed.disk.sync_begins().await;
    assert_eq!(bed.visible(), 1);
    let (mut read, mut page, mut scan) =
        (pin!(bed.db.read(None, count)), pin!(bed.db.page(None, count)), pin!(bed.db.scan(None, count)));
    assert!(poll_immediate(&mut write).await.is_none(), "the writer is not told");
    assert!(poll_immediate(&mut read).await.is_none(), "readers are not told");
    assert!(poll_immediate(&mut page).await.is_none());
    assert!(poll_immediate(&mut scan).await.is_none());
    assert!(bed.heard().is_empty(), "listeners are not told");
    bed.disk.sync_ends(Ok(()));
    assert_eq!(tokio::join!(write, read, page, scan), (Ok(1), Ok(1), Ok(1), Ok(1)));
    assert_eq!(bed.heard(), ["a"]);
}

#[tokio::test]
async fn a_unit_alone_is_seen_when_it_is_on_disk_and_not_earlier() {
    let bed = Bed::new(true).await;
    assert_eq!(bed.db.write(None, |tx| insert(tx, "a")).await, Ok(1));
    assert_eq!(bed.db.read(None, count).await, Ok(1));
    assert!(bed.disk.begun.is_empty(), "SQLite has synced by itself");
}

#[tokio::test]
async fn units_run_while_the_group_before_is_synced_and_are_answered_in_order() {
    let mut bed = Bed::new(false).await;
    let mut first = pin!(bed.db.write(None, |tx| insert(tx, "a")));
    assert!(poll_immediate(&mut first).await.is_none());
    bed.disk.sync_begins().await;
    let (ran, mut runs) = unbounded_channel();
    let unit = |id: &'static str| {
        let ran = ran.clone();
        bed.db.write(None, move |tx| {
            let seen = insert(tx, id);
            ran.send(id).unwrap();
            seen
        })
    };
    let (mut second, mut third) = (pin!(unit("b")), pin!(unit("c")));
    assert!(poll_immediate(&mut second).await.is_none());
    assert!(poll_immediate(&mut third).await.is_none());
    assert_eq!((runs.recv().await, runs.recv().await), (Some("b"), Some("c")));
    assert_eq!(bed.visible(), 1, "they are committed when the sync before has ended");
    bed.disk.sync_ends(Ok(()));
    assert_eq!(first.await, Ok(1));
    bed.disk.sync_begins().await;
    assert!(poll_immediate(&mut second).await.is_none());
    assert_eq!(bed.heard(), ["a"]);
    bed.disk.sync_ends(Ok(()));
    assert_eq!(tokio::join!(second, third), (Ok(2), Ok(3)));
    assert_eq!(bed.heard(), ["a", "b", "c"]);
    assert!(bed.disk.begun.is_empty(), "the two shared one sync");
}

#[tokio::test]
async fn a_failed_sync_refuses_whoever_waits_and_everybody_after() {
    let mut bed = Bed::new(false).await;
    let mut first = pin!(bed.db.write(None, |tx| insert(tx, "a")));
    assert!(poll_immediate(&mut first).await.is_none());
    bed.disk.sync_begins().await;
    let mut second = pin!(bed.db.write(None, |tx| insert(tx, "b")));
    let mut read = pin!(bed.db.read(None, count));
    assert!(poll_immediate(&mut second).await.is_none());
    assert!(poll_immediate(&mut read).await.is_none());
    bed.disk.sync_ends(Err(io::Error::other("the disk is gone")));
    let (first, second, read) = tokio::join!(first, second, read);
    let later = bed.db.write(None, |tx| insert(tx, "c")).await;
    for refused in
        [first, second, read, later, bed.db.read(None, count).await, bed.db.scan(None, count).await]
    {
        let Err(Error::Unavailable(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("the disk is gone"), "{why}");
    }
    assert!(bed.heard().is_empty());
    assert!(bed.disk.begun.is_empty(), "a sync that succeeds after one that failed proves nothing");
    assert_eq!(bed.visible(), 1, "what was not committed by then never is");
    bed.pool.close().await;
    assert!(files::beside(&bed.pool.readers.path, "-wal").exists(), "the log is kept for the next start");
}

#[tokio::test]
async fn closing_waits_for_the_last_sync() {
    let mut bed = Bed::new(false).await;
    let mut writes: Vec<_> =
        ["a", "b"].map(|id| Box::pin(bed.db.write(None, move |tx| insert(tx, id)))).into();
    assert!(poll_immediate(&mut writes[0]).await.is_none());
    bed.disk.sync_begins().await;
    assert!(poll_immediate(&mut writes[1]).await.is_none());
    let mut close = pin!(bed.pool.close());
    assert!(poll_immediate(&mut close).await.is_none());
    bed.disk.sync_ends(Ok(()));
    bed.disk.sync_begins().await;
    assert!(poll_immediate(&mut close).await.is_none());
    bed.disk.sync_ends(Ok(()));
    close.await;
    assert_eq!(futures_util::future::join_all(writes).await, [Ok(1), Ok(2)]);
}

type SomeUnit = Box<dyn Fn(&Tx) -> Result<i64> + Send>;

/// Runs three units in one group, the second of which fails, and returns which ran, in order.
async fn with_one_that_fails(fail: impl Fn(&Tx) -> Result<i64> + Send + 'static) -> Vec<&'static str> {
    let mut bed = Bed::new(false).await;
    let mut first = pin!(bed.db.write(None, |tx| insert(tx, "first")));
    assert!(poll_immediate(&mut first).await.is_none());
    bed.disk.sync_begins().await;
    let (ran, mut runs) = unbounded_channel();
    let noted = |id: &'static str, unit: SomeUnit| {
        let ran = ran.clone();
        Box::pin(bed.db.write(None, move |tx| {
            let result = unit(tx);
            ran.send(id).unwrap();
            result
        }))
    };
    let mut before = noted("before", Box::new(|tx| insert(tx, "before")));
    let mut failing = noted("failing", Box::new(fail));
    let mut after = noted("after", Box::new(|tx| insert(tx, "after")));
    for unit in [&mut before, &mut failing, &mut after] {
        assert!(poll_immediate(unit).await.is_none());
    }
    let mut order = Vec::new();
    while order.last() != Some(&"after") {
        order.extend(runs.recv().await);
    }
    bed.disk.sync_ends(Ok(()));
    bed.disk.sync_begins().await;
    bed.disk.sync_ends(Ok(()));
    let (first, before, failing, after) = tokio::join!(first, before, failing, after);
    assert_eq!((first, before, after), (Ok(1), Ok(2), Ok(3)));
    assert_eq!(failing, Err(Error::Other("no".to_owned())));
    assert_eq!(bed.visible(), 3);
    assert_eq!(bed.heard(), ["first", "before", "after"]);
    assert!(runs.is_empty());
    order
}

#[tokio::test]
async fn a_unit_that_fails_before_it_writes_costs_its_neighbours_nothing() {
    let order = with_one_that_fails(|tx| {
        assert!(tx.execute(&INSERT, params!["first"]).is_err(), "it is there already");
        Err(Error::Other("no".to_owned()))
    });
    assert_eq!(order.await, ["before", "failing", "after"]);
}

#[tokio::test]
async fn a_unit_that_fails_after_it_wrote_is_taken_back_and_its_neighbours_run_again() {
    let order = with_one_that_fails(|tx| {
        insert(tx, "failing")?;
        Err(Error::Other("no".to_owned()))
    });
    assert_eq!(order.await, ["before", "failing", "before", "after"]);
}

#[tokio::test]
async fn a_unit_that_fails_to_read_what_it_wrote_is_taken_back() {
    static RETURNING: Sql = Sql::new("INSERT INTO items (id) VALUES ($1) RETURNING id");
    let order = with_one_that_fails(|tx| {
        tx.query_one(&RETURNING, params!["failing"], |_| Err(Error::Other("no".to_owned())))
    });
    assert_eq!(order.await, ["before", "failing", "before", "after"]);
}

#[tokio::test]
async fn for_a_while_after_that_units_are_taken_back_one_by_one() {
    let bed = Bed::new(true).await;
    let fail = |tx: &Tx| insert(tx, "failing").and(Err::<i64, _>(Error::Other("no".to_owned())));
    for number in 0..40 {
        assert!(bed.db.write(None, fail).await.is_err());
        assert_eq!(bed.db.write(None, move |tx| insert(tx, &number.to_string())).await, Ok(number + 1));
    }
    assert_eq!(bed.visible(), 40);
}
