//! PostgreSQL: a pool of threads, each with one connection and a runtime of its own that drives it.
//!
//! A unit is synchronous, so its thread waits for every response; driving the connection on that same thread saves
//! the two wake-ups that a query to another thread would cost. Jobs reach the threads over one bounded channel.

mod cache;
mod connect;
mod notifier;
mod session;
mod tls;
mod types;
mod worker;

use std::sync::{Arc, Mutex, RwLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;

use self::connect::Connector;
use self::notifier::Notifier;
pub(crate) use self::session::Session;
pub(crate) use self::types::column;
use self::worker::Job;
use crate::queue::Queue;
use crate::{AdvisoryLock, Error, Fault, Guard, OnCommit, Result, Tx, unit};

/// How long a unit waits for a connection before the database counts as unavailable.
const PATIENCE: Duration = Duration::from_secs(5);

/// The kind of transaction that a unit needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// None: each statement runs on its own.
    Read,
    /// One snapshot.
    Scan,
    /// A transaction.
    Write,
}

/// The worker threads, and the thread that notifies other replicas.
pub(crate) struct Pool {
    jobs: Queue<Job>,
    notifier: Arc<Notifier>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Pool {
    /// Starts the threads; each connects when it first has something to do.
    pub(crate) fn open(url: &str, connections: usize, queue: usize, on_commit: OnCommit) -> Result<Self> {
        let connector = Arc::new(Connector::new(url)?);
        let notifier = Arc::new(Notifier::default());
        let (jobs, waiting) = Queue::new(queue);
        let shared =
            Arc::new(worker::Shared { on_commit, notifier: Arc::clone(&notifier), turns: RwLock::default() });
        let mut threads = vec![notifier::start(Arc::clone(&notifier), Arc::clone(&connector))?];
        for number in 1..=connections.max(1) {
            threads.push(worker::start(
                number,
                Arc::clone(&connector),
                waiting.clone(),
                Arc::clone(&shared),
            )?);
        }
        Ok(Self { jobs, notifier, threads: Mutex::new(threads) })
    }

    /// Hands a unit to the next free thread and waits for the result.
    pub(crate) async fn run<T, E>(
        &self,
        mode: Mode,
        guard: Option<Arc<Guard>>,
        work: impl FnMut(&Tx) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Fault,
    {
        self.run_locked(mode, guard, Vec::new(), work).await
    }

    /// The same, for a transaction that takes advisory locks.
    pub(crate) async fn run_locked<T, E>(
        &self,
        mode: Mode,
        guard: Option<Arc<Guard>>,
        locks: Vec<AdvisoryLock>,
        work: impl FnMut(&Tx) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: Fault,
    {
        let (unit, answer) = unit::wrap(work);
        let job = Job { unit, mode, guard, locks: locks.into(), deadline: Instant::now() + PATIENCE };
        self.jobs.push(job)?;
        unit::answer(answer).await
    }

    /// How many units wait for a thread.
    pub(crate) fn waiting(&self) -> usize {
        self.jobs.len()
    }

    /// Runs the queued units and stops the threads.
    pub(crate) async fn close(&self) {
        let threads =
            self.threads.lock().map(|mut threads| std::mem::take(&mut *threads)).unwrap_or_default();
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

/// Translates an error of the driver.
fn translate(error: &tokio_postgres::Error) -> Error {
    let Some(refusal) = error.as_db_error() else {
        return if lost_connection(error) { Error::unavailable(error) } else { Error::other(Chain(error)) };
    };
    let code = refusal.code();
    if *code == SqlState::UNIQUE_VIOLATION {
        Error::Unique(refusal.constraint().unwrap_or_default().to_owned())
    } else if *code == SqlState::FOREIGN_KEY_VIOLATION || *code == SqlState::RESTRICT_VIOLATION {
        Error::ForeignKey
    } else if *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED {
        Error::Lost
    } else if lost_connection(error) || matches!(&code.code()[..2], "53" | "57") {
        Error::Unavailable(format!("{}: {}", code.code(), refusal.message()))
    } else {
        Error::Other(format!("{}: {}", code.code(), refusal.message()))
    }
}

/// Whether the connection is unusable: closed, or with cached statements that the server does not know.
fn lost_connection(error: &tokio_postgres::Error) -> bool {
    let Some(refusal) = error.as_db_error() else {
        let io = std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>);
        return io || error.is_closed();
    };
    let code = refusal.code().code();
    let forgotten = code == "26000" || code == "0A000" && refusal.message().contains("cached plan");
    forgotten || code.starts_with("08") || code.starts_with("57P")
}

/// An error with its causes, which the driver's own text omits.
struct Chain<'e>(&'e (dyn std::error::Error + 'static));

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        self.0.source().map_or(Ok(()), |cause| write!(f, ": {}", Chain(cause)))
    }
}
