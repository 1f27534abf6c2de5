//! One thread of the pool: takes a unit, runs it, runs it again if that may help, answers it.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;

use super::Mode;
use super::connect::Connector;
use super::notifier::Notifier;
use super::session::{End, Session};
use crate::conn::{self, Conn};
use crate::unit::{Outcome, Unit, publish};
use crate::{Error, Guard, OnCommit, Result, Tx};

/// How often a unit may run.
const MOST_RUNS: u32 = 10;

/// How many connections may break under a unit before it is the unit that looks guilty.
const MOST_BREAKS: u32 = 2;

/// From this run on, a unit that keeps losing races runs while no other such unit of this process does.
const TAKE_TURNS: u32 = 3;

/// What a thread is told.
pub(super) enum Order {
    Run(Job),
    Stop,
}

/// A unit and what it needs.
pub(super) struct Job {
    pub(super) unit: Box<dyn Unit>,
    pub(super) mode: Mode,
    pub(super) guard: Option<Guard>,
    pub(super) deadline: Instant,
}

/// What the threads share.
pub(super) struct Shared {
    pub(super) on_commit: OnCommit,
    pub(super) notifier: Arc<Notifier>,
    pub(super) contended: Mutex<()>,
}

/// Starts a thread; it ends at [`Order::Stop`], or when nobody is left to send it anything.
pub(super) fn start(
    number: usize,
    connector: Arc<Connector>,
    orders: Receiver<Order>,
    shared: Arc<Shared>,
) -> Result<JoinHandle<()>> {
    let name = format!("podium-pg-{number}");
    let runtime = super::connect::runtime()?;
    let session = Session::new(runtime, connector);
    let mut worker = Worker { tx: Tx::new(Conn::new(conn::Session::Postgres(Box::new(session)))), shared };
    let work = move || {
        while let Ok(Order::Run(job)) = orders.recv() {
            if !job.unit.abandoned() {
                worker.perform(job);
            }
        }
    };
    std::thread::Builder::new().name(name).spawn(work).map_err(Error::unavailable)
}

struct Worker {
    tx: Tx,
    shared: Arc<Shared>,
}

impl Worker {
    /// Runs a unit until it succeeds, or fails for good.
    fn perform(&mut self, job: Job) {
        let Job { mut unit, mode, guard, deadline } = job;
        let shared = Arc::clone(&self.shared);
        let mut turn = None;
        let mut breaks = 0;
        for run in 1.. {
            if run == TAKE_TURNS {
                turn = Some(shared.contended.lock().unwrap_or_else(PoisonError::into_inner));
            }
            if let Err(error) = self.connect(deadline) {
                return unit.refuse(error);
            }
            self.session().open(mode, guard.clone());
            let outcome = unit.run(&self.tx);
            let changes = self.tx.changes().take();
            let end = self.session().end(outcome == Outcome::Done && mode == Mode::Write);
            let again = match &end {
                Ok(()) => outcome == Outcome::Lost,
                Err(End::Again(Error::Lost)) => true,
                Err(End::Again(_)) => {
                    breaks += 1;
                    breaks <= MOST_BREAKS
                }
                Err(End::Final(_)) => false,
            };
            if again && run < MOST_RUNS {
                self.session().leave();
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
            }
            break;
        }
        self.session().leave();
        drop(turn);
    }

    fn connect(&mut self, deadline: Instant) -> Result<()> {
        match self.tx.session_mut() {
            conn::Session::Postgres(session) => session.connect(deadline),
            conn::Session::Sqlite(_) => Err(Error::other("the pool was started with another engine")),
        }
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
