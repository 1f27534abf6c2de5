//! One thread of the pool: takes a unit, runs it, retries it if that may help, and returns its result.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;

use super::Mode;
use super::connect::Connector;
use super::notifier::Notifier;
use super::session::{End, Session};
use crate::conn::{self, Conn};
use crate::unit::{Outcome, Unit, publish};
use crate::{AdvisoryLock, Error, Guard, OnCommit, Result, Tx};

/// How often a unit may run. A unit loses a race only to one that won it; on several replicas that may happen many
/// times in a row.
const MOST_RUNS: u32 = 40;

/// How many connections may break during a unit before the unit is considered the cause.
const MOST_BREAKS: u32 = 2;

/// From this run on, a unit that keeps losing races writes exclusively in this process.
const EXCLUSIVE: u32 = 4;

/// How many short reads share a round trip at the most.
const TOGETHER: usize = 16;

/// What ends a run that is to be repeated.
const LOST: Outcome = Outcome::Failed(Some(Error::Lost));

/// A unit and how to run it.
pub(super) struct Job {
    pub(super) unit: Unit,
    pub(super) mode: Mode,
    pub(super) guard: Option<Arc<Guard>>,
    pub(super) locks: Arc<[AdvisoryLock]>,
    pub(super) deadline: Instant,
}

pub(super) struct Shared {
    pub(super) on_commit: OnCommit,
    pub(super) notifier: Arc<Notifier>,
    pub(super) turns: RwLock<()>,
}

/// The right to write, held while a unit runs.
enum Turn<'s> {
    Shared { _held: Option<RwLockReadGuard<'s, ()>> },
    Alone { _held: RwLockWriteGuard<'s, ()> },
}

impl Shared {
    /// Waits for the right to write; reads need none.
    fn turn(&self, mode: Mode, run: u32) -> Turn<'_> {
        match mode {
            Mode::Write if run >= EXCLUSIVE => {
                Turn::Alone { _held: self.turns.write().unwrap_or_else(PoisonError::into_inner) }
            }
            Mode::Write => {
                Turn::Shared { _held: Some(self.turns.read().unwrap_or_else(PoisonError::into_inner)) }
            }
            Mode::Read | Mode::Page | Mode::Scan => Turn::Shared { _held: None },
        }
    }
}

/// Starts a thread; it ends when the queue is closed and empty.
pub(super) fn start(
    number: usize,
    connector: Arc<Connector>,
    jobs: Receiver<Job>,
    shared: Arc<Shared>,
) -> Result<JoinHandle<()>> {
    let name = format!("podium-pg-{number}");
    let session = Session::new(connector);
    let worker = Worker { tx: Tx::new(Conn::new(conn::Session::Postgres(Box::new(session)))), shared };
    let work = move || {
        while let Ok(first) = jobs.recv() {
            let more = jobs.try_iter().take(if first.is_short() { TOGETHER - 1 } else { 0 });
            let jobs: Vec<Job> =
                std::iter::once(first).chain(more).filter(|job| !job.unit.abandoned()).collect();
            worker.perform_all(jobs);
        }
    };
    std::thread::Builder::new().name(name).spawn(work).map_err(Error::unavailable)
}

struct Worker {
    tx: Tx,
    shared: Arc<Shared>,
}

impl Job {
    /// Whether it may share a round trip with others.
    fn is_short(&self) -> bool {
        matches!(self.mode, Mode::Read | Mode::Page)
    }
}

impl Worker {
    /// Runs units: several short ones in one round trip.
    ///
    /// Each runs until it asks for something. What all of them asked for is sent together, and they run again, with the
    /// answers. Whoever asks for more, or was behind somebody who failed, goes on by itself.
    fn perform_all(&self, mut jobs: Vec<Job>) {
        let deadline = jobs.iter().map(|job| job.deadline).min();
        if let (2.., Some(deadline)) = (jobs.len(), deadline)
            && self.session().connect(deadline).is_ok()
        {
            jobs = self.perform_together(jobs);
        }
        for job in jobs {
            self.perform(job);
        }
    }

    /// Runs short units together; gives back those that are not done.
    fn perform_together(&self, mut jobs: Vec<Job>) -> Vec<Job> {
        let session = self.session();
        session.scatter();
        let mut gathered = Vec::with_capacity(jobs.len());
        for job in &mut jobs {
            session.gather(job.guard.clone());
            job.unit.run(&self.tx);
            gathered.push(session.gathered());
        }
        let replies = session.replies(gathered);
        let mut left = Vec::new();
        for (mut job, reply) in jobs.into_iter().zip(replies) {
            match reply {
                Some(Ok(reply)) if !session.is_broken() => {
                    session.answered(reply, job.mode);
                    let outcome = job.unit.run(&self.tx);
                    match session.end(false) {
                        Ok(()) if outcome != LOST => job.unit.answer(),
                        _ => left.push(job),
                    }
                }
                Some(Err(error)) => job.unit.refuse(error),
                _ => left.push(job),
            }
        }
        left
    }

    /// Runs a unit until it succeeds, or fails for good.
    fn perform(&self, job: Job) {
        let Job { mut unit, mode, guard, locks, deadline } = job;
        let shared = Arc::clone(&self.shared);
        let mut breaks = 0;
        let mut slowly = false;
        for run in 1.. {
            if let Err(error) = self.session().connect(deadline) {
                return unit.refuse(error);
            }
            let turn = shared.turn(mode, run);
            self.session().open(mode, guard.clone(), Arc::clone(&locks), slowly);
            let outcome = unit.run(&self.tx);
            let changes = self.tx.changes().take();
            let end = self.session().end(outcome == Outcome::Done && mode == Mode::Write);
            let again = match &end {
                Ok(()) => outcome == LOST,
                Err(End::Slower) => {
                    slowly = true;
                    self.session().leave();
                    continue;
                }
                Err(End::Again(Error::Lost)) => true,
                Err(End::Again(_)) => {
                    breaks += 1;
                    breaks <= MOST_BREAKS
                }
                Err(End::Final(_)) => false,
            };
            if again && run < MOST_RUNS {
                self.session().leave();
                drop(turn);
                if breaks == 0 {
                    std::thread::sleep(pause(run));
                }
                continue;
            }
            match end {
                Ok(()) => {
                    if outcome == Outcome::Done && !changes.is_empty() {
                        publish(&shared.on_commit, &changes);
                        shared.notifier.tell();
                    }
                    unit.answer();
                }
                Err(End::Again(error) | End::Final(error)) => unit.refuse(error),
                Err(End::Slower) => unit.refuse(Error::Lost),
            }
            break;
        }
        self.session().leave();
    }

    fn session(&self) -> &Session {
        match self.tx.session() {
            conn::Session::Postgres(session) => session,
            conn::Session::Sqlite(_) => unreachable!("the pool was started with a session of PostgreSQL"),
        }
    }
}

/// A random time, longer on average after each run.
fn pause(run: u32) -> Duration {
    let most = 1_000_u64 << run.min(6);
    Duration::from_micros(RandomState::new().hash_one(run) % most)
}
