//! What a unit of work talks to.
//!
//! A statement that failed ends its unit: PostgreSQL cannot go on after one, so neither engine does. Later statements
//! are refused, and a unit that swallows the error and succeeds anyway is rolled back. Where a conflict is expected,
//! write `ON CONFLICT DO NOTHING`.

use std::cell::{Cell, RefCell};
use std::ops::Deref;

use crate::{Engine, Error, Owned, Result, Row, RowsRead, Sql, Value, postgres, sqlite};

/// A connection that reads.
pub struct Conn {
    session: Session,
    failed: Cell<bool>,
}

/// Is given each row, and says whether it wants the next.
pub(crate) type Visit<'v> = &'v mut dyn FnMut(&Row<'_>) -> Result<bool>;

pub(crate) enum Session {
    Sqlite(sqlite::Session),
    Postgres(Box<postgres::Session>),
}

impl Conn {
    pub(crate) fn new(session: Session) -> Self {
        Self { session, failed: Cell::new(false) }
    }

    /// Every row of an answer.
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

    /// The first row of an answer, if there is one.
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

    /// The first row of an answer that always has one.
    pub fn query_one<T>(
        &self,
        sql: &Sql,
        params: &[Value<'_>],
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        self.query_opt(sql, params, read)?
            .ok_or_else(|| Error::Other("expected a row, found none".to_owned()))
    }

    /// Runs a statement; `visit` says whether it wants the next row. What the engines do with it is compiled once, not for
    /// each caller.
    fn each(&self, sql: &Sql, params: &[Value<'_>], visit: Visit<'_>) -> Result<()> {
        self.noting(|| match &self.session {
            Session::Sqlite(session) => session.each(sql, params, visit),
            Session::Postgres(session) => session.each(sql, params, visit),
        })
    }

    /// Whether a condition holds. On PostgreSQL it was given with the unit, and is checked with the unit's first
    /// statement: asking again costs nothing.
    pub fn holds(&self, guard: &Guard) -> Result<bool> {
        if self.engine() == Engine::Postgres {
            return Ok(true);
        }
        let params: Vec<Value<'_>> = guard.params.iter().map(Owned::as_value).collect();
        let found = self.query_opt(guard.sql, &params, |row| row.get::<i64>(0))?;
        Ok(found == Some(guard.expected))
    }

    /// Whether rows are in this unit's snapshot as they were read; never where changes of rows are not told.
    pub fn unchanged(&self, rows: &RowsRead) -> bool {
        matches!(&self.session, Session::Sqlite(session) if session.unchanged(rows))
    }

    /// Whether changes of rows are told, so that it is worth while to ask [`Conn::unchanged`].
    pub fn follows_changes(&self) -> bool {
        matches!(&self.session, Session::Sqlite(session) if session.follows_changes())
    }

    /// Prepares a statement and does not run it.
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

    /// Forgets failures: another unit begins.
    pub(crate) fn begin(&self) {
        self.failed.set(false);
    }

    /// Whether a statement of the current unit failed.
    pub(crate) fn failed(&self) -> bool {
        self.failed.get()
    }

    /// Runs a statement, unless one has failed: SQLite may be outside of the transaction then, and would take it.
    fn noting<T>(&self, statement: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.failed.get() {
            return Err(Error::other("an earlier statement of this unit failed"));
        }
        let result = statement();
        self.failed.set(result.is_err());
        result
    }
}

/// A transaction: reads, writes, and says what it changed.
pub struct Tx {
    conn: Conn,
    changes: RefCell<Vec<Change>>,
}

impl Tx {
    pub(crate) fn new(conn: Conn) -> Self {
        Self { conn, changes: RefCell::default() }
    }

    /// Runs a statement and says how many rows it touched.
    pub fn execute(&self, sql: &Sql, params: &[Value<'_>]) -> Result<u64> {
        self.noting(|| match &self.session {
            Session::Sqlite(session) => session.execute(sql, params),
            Session::Postgres(session) => session.execute(sql, params),
        })
    }

    /// Says what this transaction changed: heard by `on_commit` once it is committed, by nobody if it is not.
    pub fn announce(&self, change: Change) {
        self.changes.borrow_mut().push(change);
    }

    /// The session, to connect it again.
    pub(crate) fn session_mut(&mut self) -> &mut Session {
        &mut self.conn.session
    }

    /// The changes announced so far, to be kept or dropped.
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

/// What a transaction says that it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The kind of resource.
    pub kind: &'static str,
    /// Its id.
    pub id: String,
    /// The organization it belongs to.
    pub organization_id: Option<String>,
    /// The workspace it belongs to.
    pub workspace_id: Option<String>,
    /// The deployment it belongs to.
    pub deployment_id: Option<String>,
    /// Its version after the change.
    pub version: i64,
}

/// A condition: one row, whose first column is `expected`.
///
/// On PostgreSQL, where other replicas change what this one remembers, it is checked in the same round trip as the
/// unit's first statement; if it does not hold the unit fails with [`Error::Stale`] and changes nothing. On SQLite one
/// process writes, and is told; a transaction that must be certain asks with [`Conn::holds`].
#[derive(Debug, Clone)]
pub struct Guard {
    /// The query.
    pub sql: &'static Sql,
    /// Its parameters.
    pub params: Vec<Owned>,
    /// What its first column must be.
    pub expected: i64,
}

/// Something that transactions hold until they end: many share it, or one has it alone. It is taken before the first
/// statement, so that what the transaction reads cannot be older than the turn that it waited for.
///
/// SQLite has one writer: every transaction has everything alone there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hold {
    /// What is held, as a number that others will not use for anything else.
    pub key: i64,
    /// Whether nobody else may hold it meanwhile.
    pub alone: bool,
}
