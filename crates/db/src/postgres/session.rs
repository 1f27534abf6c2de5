//! One connection, behind the interface that both engines share.
//!
//! Everything that precedes the first statement of a unit (its BEGIN, its advisory locks and its guard) is sent
//! together with it: the server runs them in order, and one round trip covers all. Each is a statement of its own,
//! because a statement sees what was committed when it began: the guard must begin after the wait for the locks.

use std::cell::{Cell, RefCell};
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use futures_util::future::{join4, try_join_all};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Error as Driver};

use super::cache::Cache;
use super::connect::Connector;
use super::{Mode, lost_connection, translate};
use crate::conn::Visit;
use crate::row::Kind;
use crate::{AdvisoryLock, Error, Guard, Owned, Result, Row, Sql, Value};

/// A little longer than the server's own limit: after it, the server is not responding at all.
const SILENCE: Duration = Duration::from_secs(40);

/// Take an advisory lock until the transaction ends: shared, or exclusive.
static SHARED: Sql = Sql::new("SELECT pg_advisory_xact_lock_shared($1)");
static EXCLUSIVE: Sql = Sql::new("SELECT pg_advisory_xact_lock($1)");

/// A connection, with the state of the unit that uses it.
pub(crate) struct Session {
    runtime: Runtime,
    connector: Arc<Connector>,
    link: Option<Link>,
    opening: RefCell<Opening>,
    begun: Cell<bool>,
    stale: Cell<bool>,
    broken: Cell<bool>,
}

struct Link {
    client: Client,
    cache: Cache,
}

/// What is sent before the first statement.
#[derive(Default)]
struct Opening {
    begin: Option<&'static str>,
    locks: Arc<[AdvisoryLock]>,
    guard: Option<Arc<Guard>>,
}

/// Why a statement has no result.
enum Trouble {
    Driver(Driver),
    Stale,
}

impl From<Driver> for Trouble {
    fn from(error: Driver) -> Self {
        Self::Driver(error)
    }
}

/// Why a unit did not commit.
pub(super) enum End {
    /// Nothing was committed, and a retry may succeed.
    Again(Error),
    /// It failed for good.
    Final(Error),
}

impl Session {
    /// A session that is not connected yet.
    pub(super) fn new(runtime: Runtime, connector: Arc<Connector>) -> Self {
        Self {
            runtime,
            connector,
            link: None,
            opening: RefCell::default(),
            begun: Cell::new(false),
            stale: Cell::new(false),
            broken: Cell::new(false),
        }
    }

    /// Connects if necessary, retrying until the deadline.
    pub(super) fn connect(&mut self, deadline: Instant) -> Result<()> {
        if !self.broken.get() && self.link.as_ref().is_some_and(|link| !link.client.is_closed()) {
            return Ok(());
        }
        self.link = None;
        let mut pause = Duration::from_millis(10);
        let client = self.runtime.block_on(async {
            loop {
                match self.connector.connect().await {
                    Ok((client, connection)) => {
                        // Its error surfaces at the next use of the client.
                        drop(tokio::spawn(connection));
                        self.connector.prepare(&client).await.map_err(|error| translate(&error))?;
                        break Ok(client);
                    }
                    Err(error) if Instant::now() + pause > deadline => break Err(error),
                    Err(error) => tracing::debug!(%error, "cannot connect to PostgreSQL; retrying"),
                }
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(1));
            }
        })?;
        self.link = Some(Link { client, cache: Cache::default() });
        self.broken.set(false);
        Ok(())
    }

    /// Sets what to send before the first statement of the next unit.
    pub(super) fn open(&self, mode: Mode, guard: Option<Arc<Guard>>, locks: Arc<[AdvisoryLock]>) {
        let begin = match mode {
            Mode::Read => None,
            Mode::Scan => Some("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            Mode::Write => Some("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"),
        };
        self.opening.replace(Opening { begin, locks, guard });
        self.begun.set(false);
        self.stale.set(false);
    }

    /// Ends a unit: the guard if nothing has sent it, then the COMMIT if there is something to commit.
    pub(super) fn end(&self, commit: bool) -> Result<(), End> {
        self.opening.borrow_mut().begin = None;
        if self.opening.borrow().guard.is_some() && !self.stale.get() && !self.broken.get() {
            // Errors are recorded, and read below.
            let _ = self.run(Some(SILENCE), async |link| self.lead(link, ready(Ok(()))).await);
        }
        if self.broken.get() {
            return Err(End::Again(Error::unavailable("the connection to PostgreSQL was lost")));
        }
        if self.stale.get() {
            return Err(End::Final(Error::Stale));
        }
        if !(commit && self.begun.get()) {
            return Ok(());
        }
        match self.control("COMMIT") {
            Ok(()) => {
                self.begun.set(false);
                Ok(())
            }
            Err(_) if self.broken.get() => Err(End::Final(Error::unavailable(
                "the connection was lost during COMMIT: its outcome is unknown",
            ))),
            Err(Error::Lost) => Err(End::Again(Error::Lost)),
            Err(error) => Err(End::Final(error)),
        }
    }

    /// Rolls back a transaction that is still open.
    pub(super) fn leave(&self) {
        if self.begun.replace(false) && !self.broken.get() && self.control("ROLLBACK").is_err() {
            self.broken.set(true);
        }
    }

    pub(crate) fn each(&self, sql: &Sql, params: &[Value<'_>], visit: Visit<'_>) -> Result<()> {
        let rows: Vec<_> = self.explained(sql, async |link| {
            let statement = link.cache.get(&link.client, sql).await?;
            let rows = async {
                link.client.query_raw(&statement, params.iter().copied()).await?.try_collect().await
            };
            self.lead(link, rows).await
        })?;
        for row in &rows {
            if !visit(&Row(Kind::Postgres(row)))? {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn execute(&self, sql: &Sql, params: &[Value<'_>]) -> Result<u64> {
        self.explained(sql, async |link| {
            let statement = link.cache.get(&link.client, sql).await?;
            self.lead(link, link.client.execute_raw(&statement, params.iter().copied())).await
        })
    }

    pub(crate) fn prepare(&self, sql: &Sql) -> Result<()> {
        self.run(Some(SILENCE), async |link| Ok(link.client.prepare(sql.postgres()).await.map(drop)?))
    }

    pub(crate) fn script(&self, text: &str) -> Result<()> {
        self.run(None, async |link| self.lead(link, link.client.batch_execute(text)).await)
    }

    fn control(&self, text: &str) -> Result<()> {
        self.run(Some(SILENCE), async |link| Ok(link.client.batch_execute(text).await?))
    }

    /// Sends the preamble and the statement together.
    async fn lead<T>(
        &self,
        link: &Link,
        statement: impl Future<Output = Result<T, Driver>>,
    ) -> Result<T, Trouble> {
        let Opening { begin, locks, guard } = self.opening.take();
        if begin.is_none() && guard.is_none() {
            return Ok(statement.await?);
        }
        let check = match &guard {
            Some(guard) => Some((guard, link.cache.get(&link.client, guard.sql).await?)),
            None => None,
        };
        let mut taking = Vec::with_capacity(locks.len());
        for lock in &*locks {
            let sql = if lock.exclusive { &EXCLUSIVE } else { &SHARED };
            taking.push((link.cache.get(&link.client, sql).await?, Value::Int(lock.key)));
        }
        let begin = async {
            let Some(text) = begin else { return Ok(()) };
            self.begun.set(true);
            link.client.batch_execute(text).await
        };
        let held =
            try_join_all(taking.iter().map(|(statement, key)| link.client.execute_raw(statement, [*key])));
        let locks = async {
            let Some((guard, statement)) = &check else { return Ok(true) };
            let params = guard.params.iter().map(Owned::as_value);
            let rows: Vec<_> = link.client.query_raw(statement, params).await?.try_collect().await?;
            let [row] = &rows[..] else { return Ok(false) };
            Ok::<_, Driver>(row.try_get::<_, Value<'_>>(0)? == Value::Int(guard.expected))
        };
        // Polled in this order, hence sent in this order.
        let (begun, held, locks, answer) = join4(begin, held, locks, statement).await;
        begun?;
        held?;
        if !locks? {
            return Err(Trouble::Stale);
        }
        Ok(answer?)
    }

    /// Drives the connection until the work is done, and records whether the connection is still usable.
    fn run<T>(
        &self,
        limit: Option<Duration>,
        work: impl AsyncFnOnce(&Link) -> Result<T, Trouble>,
    ) -> Result<T> {
        let link = self.link.as_ref().ok_or_else(|| Error::unavailable("not connected"))?;
        let done = self.runtime.block_on(async {
            match limit {
                Some(limit) => tokio::time::timeout(limit, work(link)).await,
                None => Ok(work(link).await),
            }
        });
        match done {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(Trouble::Stale)) => {
                self.stale.set(true);
                Err(Error::Stale)
            }
            Ok(Err(Trouble::Driver(error))) => {
                self.broken.set(self.broken.get() || lost_connection(&error));
                Err(translate(&error))
            }
            Err(_) => {
                self.broken.set(true);
                Err(Error::unavailable("PostgreSQL does not respond"))
            }
        }
    }

    /// Like `run`; the error names the statement if the statement caused it.
    fn explained<T>(&self, sql: &Sql, work: impl AsyncFnOnce(&Link) -> Result<T, Trouble>) -> Result<T> {
        self.run(Some(SILENCE), work).map_err(|error| match error {
            Error::Other(message) => Error::Other(format!("{message}: {}", sql.text())),
            error => error,
        })
    }
}
