//! PostgreSQL: a pool of threads, each with one connection and a runtime of its own that drives it.
//!
//! A unit is synchronous, so its thread waits for every response; driving the connection on that same thread saves
//! the two wake-ups that a query to another thread would cost. Jobs reach the threads over two bounded channels: short
//! reads, which a few threads take several at a time ([`worker`]), and everything else.

mod answer;
mod cache;
mod connect;
mod failure;
mod link;
mod notifier;
mod session;
mod stream;
mod tls;
mod types;
mod wire;
mod worker;

use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(crate) use self::answer::Line;
use self::connect::Connector;
use self::failure::Failure;
use self::notifier::Notifier;
pub(crate) use self::session::Session;
use self::worker::Job;
use crate::options::cores;
use crate::queue::Queue;
use crate::unit::{Unit, Work, answered};
use crate::{AdvisoryLock, Error, Guard, OnCommit, Result, Tx};

/// How long a unit waits for a connection before the database counts as unavailable.
const PATIENCE: Duration = Duration::from_secs(5);

/// The kind of transaction that a unit needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// None: each statement runs on its own.
    Read,
    /// One snapshot, for a statement or two that are soon answered.
    Page,
    /// One snapshot.
    Scan,
    Write,
}

/// The worker threads, and the thread that notifies other replicas.
pub(crate) struct Pool {
    short: Queue<Job>,
    jobs: Queue<Job>,
    notifier: Arc<Notifier>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Pool {
    /// Starts the threads; each connects when it first has something to do.
    pub(crate) fn open(url: &str, connections: usize, queue: usize, on_commit: OnCommit) -> Result<Self> {
        let connector = Arc::new(Connector::new(url)?);
        let notifier = Arc::new(Notifier::default());
        let (short, short_waiting) = Queue::new(queue);
        let (jobs, waiting) = Queue::new(queue);
        let shared =
            Arc::new(worker::Shared { on_commit, notifier: Arc::clone(&notifier), turns: RwLock::default() });
        let mut threads = vec![notifier::start(Arc::clone(&notifier), Arc::clone(&connector))?];
        let connections = connections.max(2);
        let readers = (2 * cores()).min(connections / 2);
        for number in 1..=connections {
            let jobs = if number <= readers { &short_waiting } else { &waiting };
            threads.push(worker::start(number, Arc::clone(&connector), jobs.clone(), Arc::clone(&shared))?);
        }
        Ok(Self { short, jobs, notifier, threads: Mutex::new(threads) })
    }

    /// Hands a unit to the next free thread and waits for its end.
    pub(crate) async fn run(
        &self,
        mode: Mode,
        guard: Option<Arc<Guard>>,
        locks: Vec<AdvisoryLock>,
        work: Work<Tx>,
    ) -> Result<()> {
        let (unit, told) = Unit::new(work);
        let job = Job { unit, mode, guard, locks: locks.into(), deadline: Instant::now() + PATIENCE };
        if matches!(mode, Mode::Read | Mode::Page) {
            self.short.push(job)?;
        } else {
            self.jobs.push(job)?;
        }
        answered(told).await
    }

    pub(crate) fn waiting(&self) -> usize {
        self.short.len() + self.jobs.len()
    }

    /// Runs the queued units and stops the threads.
    pub(crate) async fn close(&self) {
        let threads =
            self.threads.lock().map(|mut threads| std::mem::take(&mut *threads)).unwrap_or_default();
        self.short.close();
        self.jobs.close();
        let notifier = Arc::clone(&self.notifier);
        let ended = tokio::task::spawn_blocking(move || {
            let mut threads = threads.into_iter();
            let speaker = threads.next();
            let workers = threads.map(JoinHandle::join).all(|ended| ended.is_ok());
            notifier.stop();
            speaker.is_none_or(|speaker| speaker.join().is_ok()) && workers
        });
        if !ended.await.unwrap_or(false) {
            tracing::error!("a database thread ended with a panic");
        }
    }

    /// Resolves when another replica reported a change.
    pub(crate) async fn wait_for_wake(&self) {
        self.notifier.woken().await;
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.notifier.stop();
    }
}

/// What a driver's error means to the notifier, which only waits and connects again.
fn translate(error: &tokio_postgres::Error) -> Error {
    Error::unavailable(Chain(error))
}

/// An error with its causes, which the driver's own text omits.
struct Chain<'e>(&'e (dyn std::error::Error + 'static));

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        self.0.source().map_or(Ok(()), |cause| write!(f, ": {}", Chain(cause)))
    }
}
