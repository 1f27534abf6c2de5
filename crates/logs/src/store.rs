//! The face of the engine.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use podium_api::{Id, Timestamp};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::day_files::DayFiles;
use crate::snapshots::{Snapshot, Snapshots};
use crate::writer::{self, Command, Done};
use crate::{Entry, Line, Page, Search, find};

/// How many searches read at the same time; further ones wait.
const READERS: usize = 8;

/// Logs of deployments.
pub struct LogStore {
    files: Arc<DayFiles>,
    writer: mpsc::Sender<Command>,
    readers: Arc<Semaphore>,
    snapshots: Snapshots,
    retention: Duration,
}

impl LogStore {
    /// Opens the logs below a directory, which is made once there is something to keep. Lines are kept for so long.
    pub fn open(directory: impl Into<PathBuf>, retention: Duration) -> io::Result<Self> {
        let files = Arc::new(DayFiles::new(directory.into()));
        let writer = writer::start(Arc::clone(&files))?;
        let readers = Arc::new(Semaphore::new(READERS));
        Ok(Self { files, writer, readers, snapshots: Snapshots::default(), retention })
    }

    /// Adds lines, of any deployments and in any order. Once this returns every search sees them.
    ///
    /// Where it fails some of them may have been added: whoever tries again may add those twice.
    pub async fn append(&self, lines: Vec<Line>) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        self.tell(|done| Command::Append(lines, done)).await
    }

    /// Begins a search of a subject: its pages see what has been written by now, and nothing later.
    pub async fn snapshot(
        &self,
        id: Id,
        subject_id: Id,
        search: Search,
        now: Timestamp,
    ) -> io::Result<Arc<Snapshot>> {
        let asked = search.clone();
        let bound = self.reading(move |files| files.bound(&asked)).await?;
        Ok(self.snapshots.keep(subject_id, Snapshot { id, search, bound }, now))
    }

    /// The search that a subject has begun on a deployment under this id, unless it has lapsed.
    pub fn resume(&self, id: Id, subject_id: Id, deployment_id: Id, now: Timestamp) -> Option<Arc<Snapshot>> {
        self.snapshots.find(id, subject_id, deployment_id, now)
    }

    /// Reads a page of a search, newest first; of one moment what was written last comes first.
    pub async fn page(&self, snapshot: Arc<Snapshot>, page: Page) -> io::Result<Vec<Entry>> {
        self.reading(move |files| find::page(files, &snapshot.search, &snapshot.bound, page)).await
    }

    /// Forgets a deployment.
    pub async fn remove(&self, deployment_id: Id) -> io::Result<()> {
        self.snapshots.forget(deployment_id);
        self.tell(|done| Command::Remove(deployment_id, done)).await
    }

    /// Forgets the days that have been over for longer than lines are kept.
    pub async fn expire(&self, now: Timestamp) -> io::Result<()> {
        let before = now - self.retention;
        self.tell(|done| Command::Expire(before, done)).await
    }

    async fn tell(&self, command: impl FnOnce(Done) -> Command) -> io::Result<()> {
        let ended = || io::Error::other("the log writer has ended");
        let (done, told) = oneshot::channel();
        self.writer.send(command(done)).await.map_err(|_| ended())?;
        told.await.map_err(|_| ended())?
    }

    /// Reads files where nobody else has to wait for it. The permit goes along: a caller that leaves frees nothing.
    async fn reading<T: Send + 'static>(
        &self,
        read: impl FnOnce(&DayFiles) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let permit = Arc::clone(&self.readers).acquire_owned().await.map_err(io::Error::other)?;
        let files = Arc::clone(&self.files);
        let task = tokio::task::spawn_blocking(move || {
            let read = read(&files);
            drop(permit);
            read
        });
        task.await.map_err(io::Error::other)?
    }
}

#[cfg(test)]
mod tests;
