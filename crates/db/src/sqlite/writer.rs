//! The one writer: group commit.
//!
//! All units that wait when a transaction begins share its fsync. Each unit has its own savepoint, so one that
//! fails rolls back only itself. No result is returned before the COMMIT: acknowledged means on disk.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;
use rusqlite::Connection;

use super::session::Session;
use crate::unit::{Outcome, Unit, publish};
use crate::{Error, OnCommit, Result, Tx};

/// A batch ends when it has this many units, or has run this long.
const MOST_UNITS: usize = 512;
const LONGEST: Duration = Duration::from_millis(5);

/// The WAL is checkpointed each time it has grown by this many pages (16 MiB).
const LOG_PAGES: i64 = 4096;

/// Starts the writer; it ends when the queue is closed and empty.
pub(super) fn start(
    connection: Connection,
    lock: File,
    jobs: Receiver<Box<dyn Unit>>,
    on_commit: OnCommit,
    commits: Arc<AtomicU64>,
) -> Result<JoinHandle<()>> {
    let tx = Tx::new(Session::conn(connection));
    let mut writer = Writer { tx, jobs, on_commit, commits, log: 0, fold_at: LOG_PAGES, _lock: lock };
    std::thread::Builder::new()
        .name("podium-writer".to_owned())
        .spawn(move || writer.work())
        .map_err(|error| Error::unavailable(format_args!("cannot start the writer thread: {error}")))
}

struct Writer {
    tx: Tx,
    jobs: Receiver<Box<dyn Unit>>,
    on_commit: OnCommit,
    commits: Arc<AtomicU64>,
    log: i64,
    fold_at: i64,
    _lock: File,
}

/// Why a transaction did not commit.
enum Failure {
    /// It could not begin or could not commit: none of its units happened.
    Refused(Error),
    /// SQLite rolled it back during a unit (disk full, I/O error, out of memory): the other units of the batch are
    /// retried.
    Undone(Error),
}

impl Writer {
    fn work(&mut self) {
        while let Ok(first) = self.jobs.recv() {
            if !first.abandoned() {
                self.batch(first);
                self.fold();
            }
        }
        if let Err(error) = self.session().checkpoint("PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::warn!(%error, "the last checkpoint failed; the next start will repeat it");
        }
    }

    /// Runs the waiting units in one transaction and returns their results.
    fn batch(&self, first: Box<dyn Unit>) {
        let mut units = vec![first];
        match self.together(&mut units) {
            Ok(()) => units.into_iter().for_each(Unit::answer),
            Err(Failure::Refused(error)) => units.into_iter().for_each(|unit| unit.refuse(error.clone())),
            Err(Failure::Undone(error)) => {
                tracing::warn!(%error, units = units.len(), "a transaction was rolled back: running its units one by one");
                units.into_iter().for_each(|unit| self.alone(unit));
            }
        }
    }

    /// Runs the first unit, then the other waiting ones, and commits.
    fn together(&self, units: &mut Vec<Box<dyn Unit>>) -> Result<(), Failure> {
        self.begin()?;
        let started = Instant::now();
        for unit in units.iter_mut() {
            self.run(unit.as_mut())?;
        }
        while units.len() < MOST_UNITS && started.elapsed() < LONGEST {
            let Ok(mut unit) = self.jobs.try_recv() else { break };
            if !unit.abandoned() {
                let ran = self.run(unit.as_mut());
                units.push(unit);
                ran?;
            }
        }
        self.commit()
    }

    /// Runs one unit in its savepoint.
    fn run(&self, unit: &mut dyn Unit) -> Result<(), Failure> {
        let announced = self.tx.changes().borrow().len();
        let mut ended = self.session().control("SAVEPOINT unit");
        if ended.is_ok() {
            ended = if unit.run(&self.tx) == Outcome::Done {
                self.session().control("RELEASE unit")
            } else {
                self.tx.changes().borrow_mut().truncate(announced);
                self.session()
                    .control("ROLLBACK TO unit")
                    .and_then(|()| self.session().control("RELEASE unit"))
            };
        }
        match ended {
            Ok(()) if !self.session().is_autocommit() => Ok(()),
            Ok(()) => Err(Failure::Undone(Error::unavailable("SQLite rolled back"))),
            Err(error) => {
                self.abort();
                Err(Failure::Undone(error))
            }
        }
    }

    /// Runs one unit in a transaction of its own.
    fn alone(&self, mut unit: Box<dyn Unit>) {
        let mut ended = self.begin();
        if ended.is_ok() {
            if unit.run(&self.tx) == Outcome::Done {
                ended = self.commit();
            } else {
                self.abort();
            }
        }
        match ended {
            Ok(()) => unit.answer(),
            Err(Failure::Refused(error) | Failure::Undone(error)) => unit.refuse(error),
        }
    }

    fn begin(&self) -> Result<(), Failure> {
        self.session().control("BEGIN IMMEDIATE").map_err(|error| Failure::Refused(away(&error)))
    }

    /// Commits, then publishes the changes.
    fn commit(&self) -> Result<(), Failure> {
        if let Err(error) = self.session().control("COMMIT") {
            self.abort();
            return Err(Failure::Refused(away(&error)));
        }
        self.commits.fetch_add(1, Ordering::Release);
        publish(&self.on_commit, &self.tx.changes().take());
        Ok(())
    }

    /// Rolls back the transaction, unless SQLite already did.
    fn abort(&self) {
        self.tx.changes().borrow_mut().clear();
        if !self.session().is_autocommit()
            && let Err(error) = self.session().control("ROLLBACK")
        {
            tracing::error!(%error, "cannot roll back");
        }
    }

    /// Checkpoints the WAL when it has grown: between batches, when no caller is waiting.
    ///
    /// A reader in an old snapshot prevents the WAL from restarting; retrying after every batch would
    /// not help, so the next attempt waits until the WAL has grown as much again.
    fn fold(&mut self) {
        let Ok((log, _)) = self.session().checkpoint("PRAGMA wal_checkpoint(NOOP)") else { return };
        if log < self.log {
            self.fold_at = LOG_PAGES;
        }
        self.log = log;
        if log < self.fold_at {
            return;
        }
        match self.session().checkpoint("PRAGMA wal_checkpoint(PASSIVE)") {
            Ok((log, folded)) => self.fold_at = if folded == log { LOG_PAGES } else { log + LOG_PAGES },
            Err(error) => tracing::warn!(%error, "a checkpoint failed"),
        }
    }

    fn session(&self) -> &Session {
        super::session(&self.tx)
    }
}

/// An error of the transaction itself is never blamed on a unit.
fn away(error: &Error) -> Error {
    match error {
        Error::Unavailable(_) => error.clone(),
        error => Error::unavailable(error),
    }
}
