//! The one writer: group commit, in two stages.
//!
//! Whatever waits when a transaction begins shares its fsync. The writer commits a group without waiting for the disk and
//! hands it to the [`Syncer`], which syncs the log and answers; meanwhile the writer runs the units of the next group, and
//! commits them when that sync has ended. A single unit that nobody waits behind is committed with SQLite's own sync, so
//! that readers see it when it is on disk and not earlier. Nobody is answered before the sync: acknowledged means on disk.
//!
//! Units have no savepoint of their own, which would cost a third of the writer's time. One that fails after it has
//! written takes the transaction back, and the others of its group run again, each in a savepoint. For a while after that
//! all units have one.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, select};
use rusqlite::Connection;

use super::checkpointer::Checkpointer;
use super::durable::Durable;
use super::session::Session;
use super::syncer::{Group, Log, Syncer, refuse, unsynced};
use crate::unit::{Outcome, Unit, publish};
use crate::{Error, OnCommit, Result, Tx};

/// A group ends when it has this many units, or has run this long and no sync is under way.
const MOST_UNITS: usize = 512;
const LONGEST: Duration = Duration::from_millis(5);

/// How many groups have savepoints after a unit had to be taken back, that unit's own included.
const CAREFUL_GROUPS: u32 = 16;

/// The WAL is checkpointed each time it has grown by this many pages (16 MiB).
const LOG_PAGES: i64 = 4096;

pub(super) struct Start {
    pub(super) connection: Connection,
    pub(super) lock: File,
    pub(super) jobs: Receiver<Unit>,
    pub(super) on_commit: OnCommit,
    pub(super) commits: Arc<AtomicU64>,
    pub(super) durable: Arc<Durable>,
    pub(super) log: Log,
    pub(super) checkpointer: Checkpointer,
}

/// Starts the writer; it ends when the queue is closed and empty.
pub(super) fn start(start: Start) -> Result<JoinHandle<()>> {
    let Start { connection, lock, jobs, on_commit, commits, durable, log, checkpointer } = start;
    let may_sync_itself = log.may_sync_itself;
    let syncer = Syncer::start(log, Arc::clone(&durable), Arc::clone(&on_commit))?;
    let mut writer = Writer {
        tx: Tx::new(Session::conn(connection)),
        jobs,
        on_commit,
        commits,
        durable,
        syncer,
        checkpointer,
        may_sync_itself,
        syncs_itself: true,
        careful: 0,
        log_pages: 0,
        fold_at: LOG_PAGES,
        _lock: lock,
    };
    let work = move || {
        writer.work();
        writer.end();
    };
    std::thread::Builder::new()
        .name("podium-writer".to_owned())
        .spawn(work)
        .map_err(|error| Error::unavailable(format_args!("cannot start the writer thread: {error}")))
}

struct Writer {
    tx: Tx,
    jobs: Receiver<Unit>,
    on_commit: OnCommit,
    commits: Arc<AtomicU64>,
    durable: Arc<Durable>,
    syncer: Syncer,
    checkpointer: Checkpointer,
    may_sync_itself: bool,
    /// Whether COMMIT waits for the disk.
    syncs_itself: bool,
    /// How many groups are still to have savepoints.
    careful: u32,
    log_pages: i64,
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

/// What a unit left in the transaction.
enum Left {
    /// What it should.
    Clean,
    /// Writes of a unit that failed.
    Dirt,
}

impl Writer {
    fn work(&mut self) {
        while let Ok(first) = self.jobs.recv() {
            if first.abandoned() {
                continue;
            }
            if let Some(error) = self.durable.failure() {
                first.refuse(error);
                continue;
            }
            self.group(first);
            if self.durable.failure().is_none() {
                self.fold();
            }
        }
    }

    /// Waits for the last sync and folds the log into the file. After a failed sync the log is left as it is: the next
    /// start copies all of it again, while here the file may lack what counts as copied.
    fn end(self) {
        self.syncer.finish();
        self.checkpointer.finish();
        if self.durable.failure().is_some() {
            if let Err(error) = super::session(&self.tx).keep_log() {
                tracing::error!(%error, "cannot keep the write-ahead log");
            }
            return;
        }
        if let Err(failed) = super::session(&self.tx).checkpoint("PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::warn!(error = %failed.error, "the last checkpoint failed; the next start will repeat it");
        }
    }

    /// Runs what waits in one transaction, commits it and sees to it that it is answered.
    fn group(&mut self, first: Unit) {
        let is_calm = self.jobs.is_empty() && !self.note_ended_sync();
        let mut units = vec![first];
        let ran = self.begin(is_calm && self.may_sync_itself).and_then(|()| self.together(&mut units));
        self.careful = self.careful.saturating_sub(1);
        match ran.and_then(|()| self.commit()) {
            Ok(committed) => self.pass_on(committed, units),
            Err(Failure::Refused(error)) => refuse(units, &error),
            Err(Failure::Undone(error)) => {
                tracing::warn!(%error, units = units.len(), "a transaction was rolled back: running its units one by one");
                self.syncer.wait();
                units.into_iter().for_each(|unit| self.alone(unit));
            }
        }
    }

    /// Runs the first unit, then whatever else comes while there is time.
    fn together(&mut self, units: &mut Vec<Unit>) -> Result<(), Failure> {
        let started = Instant::now();
        while let Some(unit) = units.last_mut() {
            if let Left::Dirt = self.run(unit)? {
                self.start_over(units)?;
            }
            let Some(next) = self.next(units.len(), started) else { break };
            units.push(next);
        }
        Ok(())
    }

    /// The next unit of a group, unless it is to be committed now. While the group before is on its way to the disk there
    /// is nothing to be gained by committing, so that it takes in whatever comes.
    fn next(&mut self, units: usize, started: Instant) -> Option<Unit> {
        loop {
            let in_flight = self.note_ended_sync();
            if units >= MOST_UNITS || (!in_flight && started.elapsed() >= LONGEST) {
                return None;
            }
            let unit = match self.jobs.try_recv() {
                Ok(unit) => Some(unit),
                Err(_) if !in_flight => return None,
                Err(_) => self.wait_for_more(),
            };
            match unit {
                Some(unit) if unit.abandoned() => {}
                Some(unit) => return Some(unit),
                None if self.syncer.in_flight() => return None,
                None => {}
            }
        }
    }

    /// Waits for a unit, or for the end of the sync; `None` and still in flight where the queue is closed.
    fn wait_for_more(&mut self) -> Option<Unit> {
        select! {
            recv(self.jobs) -> unit => unit.ok(),
            recv(self.syncer.ended) -> _ => {
                self.syncer.note_end();
                None
            }
        }
    }

    /// Whether a group is still on its way to the disk.
    fn note_ended_sync(&mut self) -> bool {
        if self.syncer.in_flight() && self.syncer.ended.try_recv().is_ok() {
            self.syncer.note_end();
        }
        self.syncer.in_flight()
    }

    /// Runs one unit, in a savepoint where units had to be taken back lately.
    fn run(&mut self, unit: &mut Unit) -> Result<Left, Failure> {
        if self.careful > 0 {
            return self.run_in_savepoint(unit).map(|()| Left::Clean);
        }
        let announced = self.tx.changes().borrow().len();
        let outcome = unit.run(&self.tx);
        let wrote = self.session().take_wrote();
        if self.session().is_autocommit() {
            return Err(self.undone(Error::unavailable("SQLite rolled back")));
        }
        if outcome == Outcome::Done {
            return Ok(Left::Clean);
        }
        self.tx.changes().borrow_mut().truncate(announced);
        Ok(if wrote { Left::Dirt } else { Left::Clean })
    }

    /// Takes everything back and runs all but the last unit again, which has failed and stays so.
    fn start_over(&mut self, units: &mut [Unit]) -> Result<(), Failure> {
        self.abort();
        self.careful = CAREFUL_GROUPS;
        self.begin(self.syncs_itself)?;
        let [again @ .., _] = units else { return Ok(()) };
        again.iter_mut().try_for_each(|unit| self.run_in_savepoint(unit))
    }

    fn run_in_savepoint(&mut self, unit: &mut Unit) -> Result<(), Failure> {
        let announced = self.tx.changes().borrow().len();
        let mut ended = self.session().control("SAVEPOINT unit");
        if ended.is_ok() {
            let outcome = unit.run(&self.tx);
            self.session().take_wrote();
            ended = if outcome == Outcome::Done {
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
            Ok(()) => Err(self.undone(Error::unavailable("SQLite rolled back"))),
            Err(error) => Err(self.undone(error)),
        }
    }

    fn undone(&self, error: Error) -> Failure {
        self.abort();
        Failure::Undone(error)
    }

    /// Runs one unit in a transaction of its own.
    fn alone(&mut self, mut unit: Unit) {
        let mut ended = self.begin(self.may_sync_itself).map(|()| None);
        if ended.is_ok() {
            if unit.run(&self.tx) == Outcome::Done {
                ended = self.commit();
            } else {
                self.abort();
            }
        }
        match ended {
            Ok(committed) => self.pass_on(committed, vec![unit]),
            Err(Failure::Refused(error) | Failure::Undone(error)) => unit.refuse(error),
        }
    }

    /// Begins a transaction whose COMMIT waits for the disk, or does not.
    fn begin(&mut self, syncs_itself: bool) -> Result<(), Failure> {
        let refused = |error| Failure::Refused(away(&error));
        if self.syncs_itself != syncs_itself {
            let level =
                if syncs_itself { "PRAGMA synchronous = FULL" } else { "PRAGMA synchronous = NORMAL" };
            self.session().script(level).map_err(refused)?;
            self.syncs_itself = syncs_itself;
        }
        self.session().control("BEGIN IMMEDIATE").map_err(refused)?;
        self.session().take_wrote();
        Ok(())
    }

    /// Commits when the group before is on disk. The number is that of a group that is still to be synced.
    fn commit(&mut self) -> Result<Option<u64>, Failure> {
        self.syncer.wait();
        if let Some(error) = self.durable.failure() {
            self.abort();
            return Err(Failure::Refused(error));
        }
        let number = (!self.syncs_itself).then(|| self.durable.next());
        if let Err(failed) = self.session().commit() {
            self.abort();
            if let Some(number) = number {
                self.durable.reached(number);
            }
            if failed.is_of_sync {
                self.durable.fail(unsynced(&failed.error));
            }
            return Err(Failure::Refused(away(&failed.error)));
        }
        self.commits.fetch_add(1, Ordering::Release);
        Ok(number)
    }

    /// Says what a committed transaction changed and answers its units, now or when it is on disk.
    fn pass_on(&mut self, to_be_synced: Option<u64>, units: Vec<Unit>) {
        let changes = self.tx.changes().take();
        match to_be_synced {
            Some(number) => self.syncer.hand_over(Group { number, units, changes }),
            None => {
                publish(&self.on_commit, &changes);
                units.into_iter().for_each(Unit::answer);
            }
        }
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

    /// Has the log copied into the file when it has grown, and copies the rest when that is done.
    ///
    /// A reader in an old snapshot prevents the WAL from restarting; retrying after every group would
    /// not help, so the next attempt waits until the WAL has grown as much again.
    fn fold(&mut self) {
        let Ok((log, _)) = self.session().checkpoint("PRAGMA wal_checkpoint(NOOP)") else { return };
        if log < self.log_pages {
            self.fold_at = LOG_PAGES;
        }
        self.log_pages = log;
        if log >= self.fold_at && !self.checkpointer.is_running() {
            self.checkpointer.begin();
        }
        // The log must not outgrow a checkpoint that takes long.
        if !self.checkpointer.has_ended(log >= self.fold_at + LOG_PAGES) {
            return;
        }
        match self.session().checkpoint("PRAGMA wal_checkpoint(PASSIVE)") {
            Ok((log, folded)) => self.fold_at = if folded == log { LOG_PAGES } else { log + LOG_PAGES },
            Err(failed) if failed.is_of_sync => self.durable.fail(unsynced(&failed.error)),
            Err(failed) => tracing::warn!(error = %failed.error, "a checkpoint failed"),
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
