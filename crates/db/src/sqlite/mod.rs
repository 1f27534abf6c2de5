//! SQLite: one file, one process, one writer.
//!
//! Reads by key take microseconds, less than handing them to another thread, so they run on the calling
//! thread. Scans may take long and run in the blocking pool. Writes are queued for the single writer.

mod checkpointer;
mod copy;
mod durable;
mod files;
mod row_changes;
mod session;
mod syncer;
#[cfg(test)]
mod tests;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use crossbeam_queue::ArrayQueue;
use tokio::sync::Semaphore;

use self::checkpointer::Checkpointer;
pub use self::copy::copy_database;
use self::durable::Durable;
use self::row_changes::RowChanges;
pub(crate) use self::row_changes::slot;
pub(crate) use self::session::{Session, column};
use self::syncer::Log;
use crate::conn::{self, Conn};
use crate::options::cores;
use crate::queue::Queue;
use crate::unit::{self, Unit, Work, answered, guarded};
use crate::{Error, OnCommit, Result, RowsRead, Tx};

/// The readers and the writer of one file.
pub(crate) struct Pool {
    readers: Readers,
    scanners: Arc<Readers>,
    scans: Arc<Semaphore>,
    jobs: Queue<Unit>,
    commits: Arc<AtomicU64>,
    durable: Arc<Durable>,
    changes: Arc<RowChanges>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Pool {
    /// Opens the file, creates it if it is missing, and starts its writer.
    pub(crate) fn open(path: &Path, connections: usize, queue: usize, on_commit: OnCommit) -> Result<Self> {
        Self::open_with(path, connections, queue, on_commit, None)
    }

    /// The same with another way to sync the log.
    fn open_with(
        path: &Path,
        connections: usize,
        queue: usize,
        on_commit: OnCommit,
        log: Option<Log>,
    ) -> Result<Self> {
        let path = files::absolute(path)?;
        let lock = files::lock(&path)?;
        let changes = Arc::<RowChanges>::default();
        let connection = files::open_writer(&path, &changes)?;
        let (jobs, waiting) = Queue::new(queue);
        let (commits, durable) = (Arc::<AtomicU64>::default(), Arc::<Durable>::default());
        let log = log.map_or_else(|| Log::of(&path), Ok)?;
        let writer = writer::start(writer::Start {
            connection,
            lock,
            jobs: waiting,
            on_commit,
            commits: Arc::clone(&commits),
            durable: Arc::clone(&durable),
            log,
            checkpointer: Checkpointer::start(&path, Arc::clone(&durable))?,
        })?;
        let connections = connections.max(1);
        Ok(Self {
            // Reads run on the threads of their callers, so that no more run at a time than there are cores.
            readers: Readers::open(path.clone(), cores(), Some(&changes))?,
            scanners: Arc::new(Readers::open(path, connections, Some(&changes))?),
            scans: Arc::new(Semaphore::new(connections)),
            jobs,
            commits,
            durable,
            changes,
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Opens an existing file read-only, even while another process writes it.
    pub(crate) fn view(path: &Path) -> Result<Self> {
        let path = std::path::absolute(path).map_err(Error::unavailable)?;
        let (jobs, _) = Queue::new(1);
        jobs.close();
        Ok(Self {
            // Nobody reports what the other process changes.
            readers: Readers::open(path.clone(), 1, None)?,
            scanners: Arc::new(Readers::open(path, 1, None)?),
            scans: Arc::new(Semaphore::new(1)),
            jobs,
            commits: Arc::default(),
            durable: Arc::default(),
            changes: Arc::default(),
            writer: Mutex::new(None),
        })
    }

    /// Runs a read on the calling thread.
    pub(crate) async fn read(&self, work: Work<Conn>) -> Result<()> {
        let ran = self.readers.once(work);
        self.durable.catch_up().await?;
        ran
    }

    /// Runs a short read on the calling thread, in one snapshot.
    pub(crate) async fn page(&self, work: Work<Conn>) -> Result<()> {
        let ran = self.readers.in_snapshot(work);
        self.durable.catch_up().await?;
        ran
    }

    /// Runs a scan in the blocking pool, in one snapshot.
    pub(crate) async fn scan(&self, work: Work<Conn>) -> Result<()> {
        let permit = Arc::clone(&self.scans).acquire_owned().await.map_err(|_| unit::closed())?;
        let scanners = Arc::clone(&self.scanners);
        let scan = tokio::task::spawn_blocking(move || {
            let ran = scanners.in_snapshot(work);
            drop(permit);
            ran
        });
        let ran = scan.await.unwrap_or_else(|_| Err(unit::closed()));
        self.durable.catch_up().await?;
        ran
    }

    pub(crate) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Acquire)
    }

    /// Whether rows are as they were read, and what was read is on disk.
    pub(crate) fn unchanged(&self, rows: &RowsRead) -> bool {
        self.durable.is_caught_up() && self.changes.unchanged(rows, u64::MAX - 1)
    }

    /// Waits until everything that readers may have seen is on disk.
    pub(crate) async fn durable(&self) -> Result<()> {
        self.durable.catch_up().await
    }

    pub(crate) fn waiting(&self) -> usize {
        self.jobs.len()
    }

    /// Queues a unit for the writer and waits until it is durable.
    pub(crate) async fn write(&self, work: Work<Tx>) -> Result<()> {
        let (unit, told) = Unit::new(work);
        self.jobs.push(unit)?;
        answered(told).await
    }

    /// Refuses further reads, waits for queued writes and checkpoints the WAL into the file.
    pub(crate) async fn close(&self) {
        self.scans.close();
        self.readers.close();
        self.scanners.close();
        self.jobs.close();
        let writer = self.writer.lock().ok().and_then(|mut writer| writer.take());
        let Some(writer) = writer else { return };
        let ended = tokio::task::spawn_blocking(move || writer.join().is_ok());
        if !ended.await.unwrap_or(false) {
            tracing::error!("the writer thread ended with a panic");
        }
    }
}

/// A pool of read-only connections.
struct Readers {
    path: PathBuf,
    changes: Option<Arc<RowChanges>>,
    idle: ArrayQueue<Conn>,
    closed: AtomicBool,
}

impl Readers {
    /// Opens one connection to check that it works; others are opened on demand, and `count` are kept.
    fn open(path: PathBuf, count: usize, changes: Option<&Arc<RowChanges>>) -> Result<Self> {
        let (idle, closed) = (ArrayQueue::new(count), AtomicBool::new(false));
        let readers = Self { path, changes: changes.cloned(), idle, closed };
        readers.give_back(readers.another()?);
        Ok(readers)
    }

    /// An idle connection, or one more when all are in use: opening one is quicker than waiting might be.
    fn take(&self) -> Result<Conn> {
        if self.closed.load(Ordering::Acquire) {
            return Err(unit::closed());
        }
        let conn = self.idle.pop().map_or_else(|| self.another(), Ok)?;
        session(&conn).begins();
        Ok(conn)
    }

    /// Runs statements, each of which sees the state of its moment.
    fn once(&self, mut work: Work<Conn>) -> Result<()> {
        let conn = self.take()?;
        let ran = guarded(&conn, &mut || work(&conn));
        self.give_back(conn);
        ran.map(drop)
    }

    /// Runs statements that all see the same state.
    fn in_snapshot(&self, mut work: Work<Conn>) -> Result<()> {
        let conn = self.begin()?;
        let ran = guarded(&conn, &mut || work(&conn));
        self.end(conn);
        ran.map(drop)
    }

    /// A connection in a new snapshot.
    fn begin(&self) -> Result<Conn> {
        let conn = self.take()?;
        session(&conn).control("BEGIN DEFERRED")?;
        Ok(conn)
    }

    /// A connection that cannot end its snapshot is dropped: it would prevent checkpoints.
    fn end(&self, conn: Conn) {
        if session(&conn).control("COMMIT").is_ok() {
            self.give_back(conn);
        }
    }

    /// Returns the connection to the pool, unless the pool is full.
    fn give_back(&self, conn: Conn) {
        if !self.closed.load(Ordering::Acquire) {
            drop(self.idle.push(conn));
        }
    }

    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        while self.idle.pop().is_some() {}
    }

    fn another(&self) -> Result<Conn> {
        let changes = self.changes.clone();
        files::open_reader(&self.path).map(|connection| Session::reading(connection, changes))
    }
}

/// The session of a connection of this pool.
fn session(conn: &Conn) -> &Session {
    match conn.session() {
        conn::Session::Sqlite(session) => session,
        conn::Session::Postgres(_) => unreachable!("this connection was made by the pool for SQLite"),
    }
}

fn translate(error: &rusqlite::Error) -> Error {
    use rusqlite::ErrorCode;
    let rusqlite::Error::SqliteFailure(failure, message) = error else { return Error::other(error) };
    let message = message.as_deref().unwrap_or_default();
    match (failure.extended_code, failure.code) {
        (2067 | 1555, _) => {
            Error::Unique(message.strip_prefix("UNIQUE constraint failed: ").unwrap_or(message).to_owned())
        }
        (787, _) => Error::ForeignKey,
        // ON DELETE RESTRICT is reported as a trigger constraint.
        (1811, _) if message.contains("FOREIGN KEY") => Error::ForeignKey,
        (
            _,
            ErrorCode::DiskFull
            | ErrorCode::SystemIoFailure
            | ErrorCode::OutOfMemory
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::CannotOpen
            | ErrorCode::ReadOnly,
        ) => Error::unavailable(error),
        _ => Error::other(error),
    }
}
