//! The connections that units of work use.
//!
//! A failed statement ends its unit: PostgreSQL cannot continue after one, so neither engine does. Later statements
//! are refused, and a unit that ignores the error and returns success is rolled back. Where a conflict is expected,
//! write `ON CONFLICT DO NOTHING`.

use std::cell::{Cell, RefCell};
use std::ops::Deref;

use crate::{Engine, Error, Owned, Result, Row, RowsRead, Sql, Value, postgres, sqlite};

pub struct Conn {
    session: Session,
    failed: Cell<bool>,
}

/// Receives each row, and returns whether to continue.
pub(crate) type Visit<'v> = &'v mut dyn FnMut(&Row<'_>) -> Result<bool>;

pub type Question<'a> = (&'a Sql, &'a [Value<'a>]);

pub(crate) enum Session {
    Sqlite(sqlite::Session),
    Postgres(Box<postgres::Session>),
}

impl Conn {
    pub(crate) fn new(session: Session) -> Self {
        Self { session, failed: Cell::new(false) }
    }

    pub fn query<T>(
        &self,
        sql: &Sql,
        params: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut rows = Vec::new();
        self.each(sql, params, &mut |row| {
            rows.push(read(row)?);
            Ok(true)
        })?;
        Ok(rows)
    }

    pub fn query_opt<T>(
        &self,
        sql: &Sql,
        params: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let mut first = None;
        self.each(sql, params, &mut |row| {
            first = Some(read(row)?);
            Ok(false)
        })?;
        Ok(first)
    }

    /// The first row of a result that always has one.
    pub fn query_one<T>(
        &self,
        sql: &Sql,
        params: &[Value<'_>],
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.query_opt(sql, params, read)?
            .ok_or_else(|| Error::Other("expected a row, found none".to_owned()))
    }

    /// Runs a statement; `visit` returns whether to continue. The engines' part is compiled once, not for
    /// each caller.
    fn each(&self, sql: &Sql, params: &[Value<'_>], visit: Visit<'_>) -> Result<()> {
        self.noting(|| match &self.session {
            Session::Sqlite(session) => session.each(sql, params, visit),
            Session::Postgres(session) => session.each(sql, params, visit),
        })
    }

    /// Asks two things that do not depend on each other; on PostgreSQL in one round trip. The rows of the first are shown
    /// before those of the second.
    pub fn query_both(
        &self,
        first: Question<'_>,
        second: Question<'_>,
        mut read_first: impl FnMut(&Row<'_>) -> Result<()>,
        mut read_second: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<()> {
        let visit_first: Visit<'_> = &mut |row| read_first(row).map(|()| true);
        let visit_second: Visit<'_> = &mut |row| read_second(row).map(|()| true);
        self.noting(|| match &self.session {
            Session::Sqlite(session) => {
                session.each(first.0, first.1, visit_first)?;
                session.each(second.0, second.1, visit_second)
            }
            Session::Postgres(session) => session.both([first, second], visit_first, visit_second),
        })
    }

    /// Whether a guard holds. On PostgreSQL it was passed with the unit and is checked with the unit's first
    /// statement, so this costs nothing.
    pub fn holds(&self, guard: &Guard) -> Result<bool> {
        if self.engine() == Engine::Postgres {
            return Ok(true);
        }
        let params: Vec<Value<'_>> = guard.params.iter().map(Owned::as_value).collect();
        let found = self.query_opt(guard.sql, &params, |row| row.get::<i64>(0))?;
        Ok(found == Some(guard.expected))
    }

    /// Whether rows are in this unit's snapshot as they were read; always false if changes of rows are not reported.
    pub fn unchanged(&self, rows: &RowsRead) -> bool {
        matches!(&self.session, Session::Sqlite(session) if session.unchanged(rows))
    }

    /// Whether changes of rows are reported, so that [`Conn::unchanged`] can be true.
    pub fn follows_changes(&self) -> bool {
        matches!(&self.session, Session::Sqlite(session) if session.follows_changes())
    }

    /// Prepares a statement without running it.
    pub(crate) fn prepare(&self, sql: &Sql) -> Result<()> {
        match &self.session {
            Session::Sqlite(session) => session.prepare(sql),
            Session::Postgres(session) => session.prepare(sql),
        }
    }

    /// Runs a script, without parameters and without a time limit.
    pub(crate) fn script(&self, text: &str) -> Result<()> {
        self.noting(|| match &self.session {
            Session::Sqlite(session) => session.script(text),
            Session::Postgres(session) => session.script(text),
        })
    }

    pub(crate) fn engine(&self) -> Engine {
        match &self.session {
            Session::Sqlite(_) => Engine::Sqlite,
            Session::Postgres(_) => Engine::Postgres,
        }
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Resets the failure flag for the next unit.
    pub(crate) fn begin(&self) {
        self.failed.set(false);
    }

    /// Whether a statement of the current unit failed.
    pub(crate) fn failed(&self) -> bool {
        self.failed.get()
    }

    /// Runs a statement, unless one has failed: SQLite may then be outside the transaction and would accept it.
    fn noting<T>(&self, statement: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.failed.get() {
            return Err(Error::other("an earlier statement of this unit failed"));
        }
        let result = statement();
        self.failed.set(result.is_err());
        result
    }
}

/// A transaction: reads, writes, and records what it changed.
pub struct Tx {
    conn: Conn,
    changes: RefCell<Vec<Change>>,
}

impl Tx {
    pub(crate) fn new(conn: Conn) -> Self {
        Self { conn, changes: RefCell::default() }
    }

    /// Runs a statement and returns the number of affected rows.
    pub fn execute(&self, sql: &Sql, params: &[Value<'_>]) -> Result<u64> {
        self.noting(|| match &self.session {
            Session::Sqlite(session) => session.execute(sql, params),
            Session::Postgres(session) => session.execute(sql, params),
        })
    }

    /// Runs a statement that may affect any number of rows.
    pub fn run(&self, sql: &Sql, params: &[Value<'_>]) -> Result<()> {
        self.execute(sql, params).map(drop)
    }

    /// Runs a statement that affects one row: [`Error::Lost`] if somebody has changed or removed it.
    pub fn run_on_one(&self, sql: &Sql, params: &[Value<'_>]) -> Result<()> {
        if self.execute(sql, params)? == 1 { Ok(()) } else { Err(Error::Lost) }
    }

    /// Runs a statement of which nothing is asked but that it succeeds. On PostgreSQL it travels with the next one that is
    /// waited for; should it fail, the unit runs again and waits for each.
    pub fn post(&self, sql: &Sql, params: &[Value<'_>]) -> Result<()> {
        self.noting(|| match &self.session {
            Session::Sqlite(session) => session.execute(sql, params).map(drop),
            Session::Postgres(session) => session.post(sql, params),
        })
    }

    /// Records a change of this transaction: `on_commit` receives it once the transaction has committed.
    pub fn announce(&self, change: Change) {
        self.changes.borrow_mut().push(change);
    }

    /// The changes announced so far.
    pub(crate) fn changes(&self) -> &RefCell<Vec<Change>> {
        &self.changes
    }
}

impl Deref for Tx {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.conn
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub kind: &'static str,
    pub id: String,
    pub organization_id: Option<String>,
    pub workspace_id: Option<String>,
    pub deployment_id: Option<String>,
    pub version: i64,
}

impl Change {
    /// A change of something that belongs to no organization, workspace or deployment.
    pub fn new(kind: &'static str, id: &impl ToString, version: i64) -> Self {
        let (organization_id, workspace_id, deployment_id) = (None, None, None);
        Self { kind, id: id.to_string(), organization_id, workspace_id, deployment_id, version }
    }
}

/// A condition: a query that must return one row, whose first column is `expected`.
///
/// On PostgreSQL, where other replicas change what this one has cached, it is checked in the same round trip as the
/// unit's first statement; if it does not hold the unit fails with [`Error::Stale`] and changes nothing. On SQLite one
/// process writes and knows of every change; a transaction that must be certain checks with [`Conn::holds`].
///
/// Whoever has a guard can have it checked, and cannot take its query or its parameters out of it:
///
/// ```compile_fail,E0616
/// fn take(guard: &podium_db::Guard) -> &'static podium_db::Sql {
///     guard.sql
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Guard {
    pub(crate) sql: &'static Sql,
    pub(crate) params: Vec<Owned>,
    pub(crate) expected: i64,
}

impl Guard {
    /// Holds while the first column that the query finds is `expected`.
    pub const fn new(sql: &'static Sql, params: Vec<Owned>, expected: i64) -> Self {
        Self { sql, params, expected }
    }

    /// The guard that expects the same of `to`, which takes further parameters; `None` unless this one asks `from`.
    pub fn narrowed(
        &self,
        from: &'static Sql,
        to: &'static Sql,
        more: impl IntoIterator<Item = Owned>,
    ) -> Option<Self> {
        let params = || self.params.iter().cloned().chain(more).collect();
        std::ptr::eq(self.sql, from).then(|| Self::new(to, params(), self.expected))
    }
}

/// A lock that a transaction holds until it ends, shared or exclusive. It is taken before the first
/// statement, so that the transaction reads nothing older than the moment it got the lock.
///
/// SQLite has one writer, so there every transaction is exclusive anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AdvisoryLock {
    /// The key, unique to what is locked.
    pub key: i64,
    /// Whether no other transaction may hold it at the same time.
    pub exclusive: bool,
}
