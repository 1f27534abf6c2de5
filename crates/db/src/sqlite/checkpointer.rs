//! The thread that copies the log into the file while the writer goes on.
//!
//! It gets almost to the end of the log, because the writer adds to it meanwhile. The writer copies the little that is left
//! between two groups; only then can the log start over.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender};
use rusqlite::Connection;

use super::durable::Durable;
use super::session::checkpoint;
use super::{files, syncer};
use crate::{Error, Result};

/// The writer's end.
pub(super) struct Checkpointer {
    requests: Sender<()>,
    ended: Receiver<()>,
    is_running: bool,
    thread: JoinHandle<()>,
}

impl Checkpointer {
    pub(super) fn start(database: &Path, durable: Arc<Durable>) -> Result<Self> {
        let connection = files::open_checkpointer(database)?;
        let file = File::open(database).map_err(|error| files::cannot_open(database, &error))?;
        let (requests, incoming) = crossbeam_channel::bounded(1);
        let (end, ended) = crossbeam_channel::bounded(1);
        let work = move || {
            while let Ok(()) = incoming.recv() {
                run(&connection, &file, &durable);
                let _ = end.send(());
            }
        };
        let thread = std::thread::Builder::new().name("podium-checkpoint".to_owned()).spawn(work).map_err(
            |error| Error::unavailable(format_args!("cannot start the checkpoint thread: {error}")),
        )?;
        Ok(Self { requests, ended, is_running: false, thread })
    }

    pub(super) const fn is_running(&self) -> bool {
        self.is_running
    }

    /// Begins, unless it has begun.
    pub(super) fn begin(&mut self) {
        self.is_running = self.is_running || self.requests.send(()).is_ok();
    }

    /// Whether a run has ended, once for each; waits for that where it is told to.
    pub(super) fn has_ended(&mut self, wait: bool) -> bool {
        let ended =
            self.is_running && if wait { self.ended.recv().is_ok() } else { self.ended.try_recv().is_ok() };
        self.is_running &= !ended;
        ended
    }

    /// Waits for the end of the thread, and of its connection.
    pub(super) fn finish(self) {
        drop(self.requests);
        if self.thread.join().is_err() {
            tracing::error!("the checkpoint thread did not end well");
        }
    }
}

/// Copies what is in the log, and syncs the file: SQLite leaves that to whoever reaches the end of the log.
fn run(connection: &Connection, file: &File, durable: &Durable) {
    match checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)") {
        Err(failed) if failed.is_of_sync => durable.fail(syncer::unsynced(&failed.error)),
        Err(failed) => tracing::warn!(error = %failed.error, "a checkpoint failed"),
        Ok(_) => {
            // What the kernel could not write it forgets, and no later checkpoint would copy it again.
            if let Err(error) = file.sync_data() {
                durable.fail(syncer::unsynced(&error));
            }
        }
    }
}
