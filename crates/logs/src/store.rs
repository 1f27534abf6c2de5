//! The public interface of the log store.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use podium_api::{DeploymentId, SearchId, SubjectId, Timestamp};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::count::{self, Counts};
use crate::find::{self, Found, PageRequest};
use crate::follow::{self, Follow, Follower, NewLines};
use crate::journal::MAX_BATCH;
use crate::shared::Shared;
use crate::snapshots::{Snapshot, Snapshots};
use crate::writer::{self, Batch, Command};
use crate::{Entry, Line, Origin, Page, Search, flusher};

/// How many searches run concurrently; further ones wait.
const READERS: usize = 8;
/// How often a search is retried because segments were merged meanwhile.
const ATTEMPTS: usize = 8;

pub struct LogStore {
    pub(crate) shared: Arc<Shared>,
    /// `None` once the store is being closed.
    writer: Option<mpsc::Sender<Command>>,
    threads: Vec<JoinHandle<()>>,
    readers: Arc<Semaphore>,
    snapshots: Snapshots,
    retention: Duration,
    /// Released last: no other process may write before the threads have ended.
    _lock: Option<Lock>,
}

impl LogStore {
    /// Opens the logs below a directory, which is created if needed. Lines are kept for the retention period.
    ///
    /// The journal of an earlier process is replayed. Only one process at a time may open a directory: this fails if
    /// another one has it open.
    pub fn open(directory: impl Into<PathBuf>, retention: Duration) -> io::Result<Self> {
        let directory = directory.into();
        let lock = Lock::take(&directory)?;
        let shared = Arc::new(Shared::new(directory));
        let (tasks, flusher) = flusher::start(Arc::clone(&shared))?;
        let (writer, thread) = writer::start(Arc::clone(&shared), tasks)?;
        Ok(Self {
            shared,
            writer: Some(writer),
            threads: vec![thread, flusher],
            readers: Arc::new(Semaphore::new(READERS)),
            snapshots: Snapshots::default(),
            retention,
            _lock: Some(lock),
        })
    }

    /// A store without a directory: it accepts no lines and has none. For processes that leave logs to another one.
    pub fn closed() -> Self {
        Self {
            shared: Arc::new(Shared::new(PathBuf::new())),
            writer: None,
            threads: Vec::new(),
            readers: Arc::new(Semaphore::new(READERS)),
            snapshots: Snapshots::default(),
            retention: Duration::ZERO,
            _lock: None,
        }
    }

    /// Appends lines, of any deployments and in any order. Once this returns every search sees them.
    ///
    /// If it fails, none of them has been added; if it is dropped while it waits, they may have been.
    pub async fn append(&self, lines: Vec<Line>) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.send(|added| Command::Append(Batch { lines, origin: None }, added)).await.map(drop)
    }

    /// Appends the lines of a sender's batch, all of one deployment, unless this batch or a later one of the sender was
    /// added before; returns whether they are new.
    pub async fn append_once(&self, origin: Origin, lines: Vec<Line>) -> io::Result<bool> {
        let length: usize = lines.iter().map(|line| line.text.len() + 64).sum();
        if length > MAX_BATCH || lines.iter().any(|line| line.deployment_id != origin.deployment_id) {
            let message = "a batch must be of one deployment and at most 8 MiB";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.send(|added| Command::Append(Batch { lines, origin: Some(origin) }, added)).await
    }

    /// Starts a search of a subject: its pages see what has been written so far, and nothing later.
    pub fn snapshot(
        &self,
        id: SearchId,
        subject_id: SubjectId,
        search: Search,
        now: Timestamp,
    ) -> Arc<Snapshot> {
        let snapshot = Snapshot::new(id, search, self.shared.next());
        self.snapshots.insert(subject_id, snapshot, now)
    }

    /// The search of a subject on a deployment with this id, unless it has expired.
    pub fn resume(
        &self,
        id: SearchId,
        subject_id: SubjectId,
        deployment_id: DeploymentId,
        now: Timestamp,
    ) -> Option<Arc<Snapshot>> {
        self.snapshots.find(id, subject_id, deployment_id, now)
    }

    /// Reads a page of a search, newest first; lines with the same timestamp in reverse order of writing.
    pub async fn page(&self, snapshot: Arc<Snapshot>, page: Page) -> io::Result<Vec<Entry>> {
        self.reading(move |shared| {
            let from = snapshot.end_before(page.offset);
            let Found { entries, end } = find::page(
                shared,
                &PageRequest { search: &snapshot.search, below: snapshot.below, from, page },
            )?;
            if let Some(end) = end {
                snapshot.note_end(end);
            }
            Ok(entries)
        })
        .await
    }

    /// Counts what a search finds, in so many buckets of the same length; its maximum of results has no meaning.
    pub async fn count(&self, search: Search, buckets: usize) -> io::Result<Counts> {
        self.reading(move |shared| count::count(shared, &search, buckets)).await
    }

    /// Starts to follow a deployment after a line; without one, after all existing lines.
    pub fn follow(&self, search: Follow, after: Option<u64>) -> Follower {
        let wakeups = self.shared.notifier.subscribe(search.deployment_id);
        Follower::new(search, after.unwrap_or_else(|| self.shared.next().saturating_sub(1)), wakeups)
    }

    /// The lines that are new to a follower, in the order of writing.
    pub async fn new_lines(&self, follower: &Follower) -> io::Result<NewLines> {
        let (search, after) = (follower.search.clone(), follower.after);
        self.reading(move |shared| follow::new_lines(shared, &search, after)).await
    }

    pub async fn remove(&self, deployment_id: DeploymentId) -> io::Result<()> {
        self.snapshots.forget(deployment_id);
        self.send(|done| Command::Remove(deployment_id, done)).await
    }

    /// Deletes days that ended before the retention period.
    pub async fn expire(&self, now: Timestamp) -> io::Result<()> {
        let before = now - self.retention;
        self.send(|done| Command::Expire { before, now, done }).await
    }

    pub async fn flush(&self) -> io::Result<()> {
        self.send(Command::Flush).await
    }

    async fn send<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<io::Result<T>>) -> Command,
    ) -> io::Result<T> {
        let ended = || io::Error::other("this log store is closed");
        let (done, told) = oneshot::channel();
        let writer = self.writer.as_ref().ok_or_else(ended)?;
        writer.send(command(done)).await.map_err(|_| ended())?;
        told.await.map_err(|_| ended())?
    }

    /// Reads on the blocking pool. The permit is held until the read is done, even if the caller is gone.
    async fn reading<T: Send + 'static>(
        &self,
        read: impl Fn(&Shared) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let permit = Arc::clone(&self.readers).acquire_owned().await.map_err(io::Error::other)?;
        let shared = Arc::clone(&self.shared);
        let task = tokio::task::spawn_blocking(move || {
            let mut outcome = read(&shared);
            for _ in 1..ATTEMPTS {
                // A segment was merged or deleted in the meantime: retry with the current segments.
                let is_gone = outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
                if !is_gone {
                    break;
                }
                outcome = read(&shared);
            }
            drop(permit);
            outcome
        });
        task.await.map_err(io::Error::other)?
    }
}

impl Drop for LogStore {
    /// Waits for the threads to end; lines that are in no segment yet are in the journal.
    fn drop(&mut self) {
        self.shared.stop();
        self.writer = None;
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

const FILE: &str = "lock";

/// Held while a directory is open.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a directory, which is created if needed; fails immediately if another process holds the lock.
    pub(crate) fn take(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let path = directory.join(FILE);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {
                let message = format!(
                    "another process has {} open: stop it first, or give this process its own data directory",
                    directory.display()
                );
                Err(io::Error::new(io::ErrorKind::ResourceBusy, message))
            }
            Err(TryLockError::Error(error)) => {
                let message =
                    format!("{} cannot be locked, which its file system must allow: {error}", path.display());
                Err(io::Error::new(error.kind(), message))
            }
        }
    }
}

#[cfg(test)]
mod tests;
