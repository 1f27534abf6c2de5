//! The database, the interface for the rest of the program.

use std::sync::Arc;

use crate::conn::Conn;
use crate::postgres::Mode;
use crate::unit::{Outcome, Work, erased};
use crate::{
    AdvisoryLock, Engine, Error, Fault, Guard, Options, Result, RowsRead, Sql, Target, Tx, joined, postgres,
    sqlite,
};

/// A database; clones share it.
#[derive(Clone)]
pub struct Db(Pool);

#[derive(Clone)]
enum Pool {
    Sqlite(Arc<sqlite::Pool>),
    Postgres(Arc<postgres::Pool>),
}

#[cfg(test)]
impl From<Arc<sqlite::Pool>> for Db {
    fn from(pool: Arc<sqlite::Pool>) -> Self {
        Self(Pool::Sqlite(pool))
    }
}

impl Db {
    /// Opens a database; fails if it cannot be reached, or if another process writes the same file.
    pub async fn open(options: Options) -> Result<Self> {
        let Options { target, connections, queue, on_commit } = options;
        let pool = match target {
            Target::Sqlite(path) => {
                let open = move || sqlite::Pool::open(&path, connections, queue, on_commit);
                Pool::Sqlite(Arc::new(tokio::task::spawn_blocking(open).await.map_err(Error::other)??))
            }
            Target::Postgres(url) => {
                Pool::Postgres(Arc::new(postgres::Pool::open(&url, connections, queue, on_commit)?))
            }
        };
        let db = Self(pool);
        if db.engine() == Engine::Postgres {
            // The first unit shows whether the server responds.
            db.prepare_all(&[&Sql::new("SELECT 1")]).await?;
        }
        Ok(db)
    }

    /// Opens a database read-only, even while another process writes the same file.
    pub async fn view(target: Target) -> Result<Self> {
        match target {
            Target::Sqlite(path) => {
                let open = move || sqlite::Pool::view(&path);
                let pool = tokio::task::spawn_blocking(open).await.map_err(Error::other)??;
                Ok(Self(Pool::Sqlite(Arc::new(pool))))
            }
            target => Self::open(Options { connections: 1, ..Options::new(target) }).await,
        }
    }

    /// Whether other processes may write too. If not, a lease found at the start belonged to a process that has ended.
    pub fn is_shared(&self) -> bool {
        matches!(self.0, Pool::Postgres(_))
    }

    /// Which engine this is: for diagnostics, never for decisions.
    pub fn engine(&self) -> Engine {
        match &self.0 {
            Pool::Sqlite(_) => Engine::Sqlite,
            Pool::Postgres(_) => Engine::Postgres,
        }
    }

    /// Reads a few rows by key. On SQLite it runs inline on the calling thread, so it must not scan a table.
    pub async fn read<T: Send + 'static, E: Fault>(
        &self,
        guard: Option<Arc<Guard>>,
        unit: impl FnMut(&Conn) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (work, slot) = erased(unit);
        self.run_reading(Mode::Read, guard, work).await?;
        slot.take()
    }

    /// Reads a short page of a list by an index, in one snapshot. On SQLite it runs inline: a hundred rows at most.
    pub async fn page<T: Send + 'static, E: Fault>(
        &self,
        guard: Option<Arc<Guard>>,
        unit: impl FnMut(&Conn) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (work, slot) = erased(unit);
        self.run_reading(Mode::Page, guard, work).await?;
        slot.take()
    }

    /// Lists, counts, exports: everything in it sees one snapshot.
    pub async fn scan<T: Send + 'static, E: Fault>(
        &self,
        guard: Option<Arc<Guard>>,
        unit: impl FnMut(&Conn) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (work, slot) = erased(unit);
        self.run_reading(Mode::Scan, guard, work).await?;
        slot.take()
    }

    /// A transaction. It may run more than once, so time comes from outside; a result means that it is committed.
    pub async fn write<T: Send + 'static, E: Fault>(
        &self,
        guard: Option<Arc<Guard>>,
        unit: impl FnMut(&Tx) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.write_locked(guard, Vec::new(), unit).await
    }

    /// The same, for a transaction that holds advisory locks until it ends. They are taken in the given order:
    /// transactions with several locks must list them in the same order.
    pub async fn write_locked<T: Send + 'static, E: Fault>(
        &self,
        guard: Option<Arc<Guard>>,
        locks: Vec<AdvisoryLock>,
        unit: impl FnMut(&Tx) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (work, slot) = erased(unit);
        self.run_writing(guard, locks, work).await?;
        slot.take()
    }

    /// Runs a transaction and takes it back: returns what it would have returned, and changes nothing.
    pub async fn rehearse<T: Send + 'static, E: Fault>(
        &self,
        guard: Option<Arc<Guard>>,
        locks: Vec<AdvisoryLock>,
        unit: impl FnMut(&Tx) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (mut work, slot) = erased(unit);
        let taken_back = move |tx: &Tx| match work(tx) {
            Outcome::Done => Outcome::Failed(None),
            failed => failed,
        };
        self.run_writing(guard, locks, Box::new(taken_back)).await?;
        slot.take()
    }

    async fn run_reading(&self, mode: Mode, guard: Option<Arc<Guard>>, mut work: Work<Conn>) -> Result<()> {
        if let Some(joined) = joined::run(&mut |tx| work(tx)) {
            return joined;
        }
        match (&self.0, mode) {
            (Pool::Sqlite(pool), Mode::Read) => pool.read(work).await,
            (Pool::Sqlite(pool), Mode::Page) => pool.page(work).await,
            (Pool::Sqlite(pool), _) => pool.scan(work).await,
            (Pool::Postgres(pool), mode) => {
                pool.run(mode, guard, Vec::new(), Box::new(move |tx: &Tx| work(tx))).await
            }
        }
    }

    async fn run_writing(
        &self,
        guard: Option<Arc<Guard>>,
        locks: Vec<AdvisoryLock>,
        mut work: Work<Tx>,
    ) -> Result<()> {
        if let Some(joined) = joined::run(&mut work) {
            return joined;
        }
        match &self.0 {
            Pool::Sqlite(pool) => pool.write(work).await,
            Pool::Postgres(pool) => pool.run(Mode::Write, guard, locks, work).await,
        }
    }

    /// A number that changes with every commit, before the commit is acknowledged; `None` where others write too, and in
    /// units that run inside another.
    ///
    /// Data read after the number was taken is current as long as the number is the same.
    pub fn generation(&self) -> Option<u64> {
        match &self.0 {
            Pool::Sqlite(pool) => Some(pool.commits()).filter(|_| !joined::is_joined()),
            Pool::Postgres(_) => None,
        }
    }

    /// Whether rows are as they were read, so that reading them again would give the same; always false if others write
    /// too, and in units that run inside another. What is told on the strength of it may not be on disk yet: wait for [`Db::durable`] first.
    pub fn unchanged(&self, rows: &RowsRead) -> bool {
        match &self.0 {
            Pool::Sqlite(pool) => !joined::is_joined() && pool.unchanged(rows),
            Pool::Postgres(_) => false,
        }
    }

    /// Waits until everything that was visible to readers when this was called is on disk. Reads do so by themselves.
    pub async fn durable(&self) -> Result<()> {
        match &self.0 {
            Pool::Sqlite(pool) => pool.durable().await,
            Pool::Postgres(_) => Ok(()),
        }
    }

    /// How many units wait for a thread; on SQLite, for the writer.
    pub fn waiting(&self) -> usize {
        match &self.0 {
            Pool::Sqlite(pool) => pool.waiting(),
            Pool::Postgres(pool) => pool.waiting(),
        }
    }

    /// Runs queued units, refuses new ones, and stops every thread.
    pub async fn close(&self) {
        match &self.0 {
            Pool::Sqlite(pool) => pool.close().await,
            Pool::Postgres(pool) => pool.close().await,
        }
    }

    /// Resolves when another replica may have changed something; wake-ups may be coalesced. For one waiter.
    pub async fn wait_for_wake(&self) {
        match &self.0 {
            Pool::Sqlite(_) => std::future::pending().await,
            Pool::Postgres(pool) => pool.wait_for_wake().await,
        }
    }

    /// Prepares statements without running them: the text and the error of each one that is not valid.
    pub async fn prepare(&self, statements: &[&'static Sql]) -> Vec<(String, Error)> {
        match self.prepare_all(statements).await {
            Ok(failed) => failed,
            Err(error) => statements.iter().map(|sql| (sql.text().to_owned(), error.clone())).collect(),
        }
    }

    async fn prepare_all(&self, statements: &[&Sql]) -> Result<Vec<(String, Error)>> {
        let statements: Vec<Sql> = statements.iter().map(|sql| Sql::owned(sql.text().to_owned())).collect();
        self.read(None, move |conn| {
            let failures = statements
                .iter()
                .filter_map(|sql| conn.prepare(sql).err().map(|error| (sql.text().to_owned(), error)));
            Ok(failures.collect())
        })
        .await
    }
}
