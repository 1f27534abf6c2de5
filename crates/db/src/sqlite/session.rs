//! One connection, behind the interface that both engines share.

use std::cell::Cell;
use std::sync::Arc;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, ToSql, params_from_iter};

use super::row_changes::RowChanges;
use super::translate;
use crate::conn::{self, Conn, Visit};
use crate::row::Kind;
use crate::{Error, Result, Row, RowsRead, Sql, Value};

/// Extended result codes of SQLite.
const IOERR_FSYNC: i32 = 1034;
const IOERR_DIR_FSYNC: i32 = 1290;

pub(crate) struct Session {
    connection: Connection,
    /// Whether anything may have been written.
    wrote: Cell<bool>,
    /// Reports which rows have changed; not to the writer, which sees what is not committed.
    changes: Option<Arc<RowChanges>>,
    /// The last commit that the current unit is certain to see.
    at: Cell<u64>,
}

/// Why a COMMIT or a checkpoint failed.
pub(super) struct Failed {
    pub(super) error: Error,
    /// Whether it was the disk that could not be synced.
    pub(super) is_of_sync: bool,
}

impl Session {
    /// Wraps a connection for a unit.
    pub(super) fn conn(connection: Connection) -> Conn {
        Self::reading(connection, None)
    }

    /// Wraps a connection that only reads.
    pub(super) fn reading(connection: Connection, changes: Option<Arc<RowChanges>>) -> Conn {
        let (wrote, at) = (Cell::new(false), Cell::new(0));
        Conn::new(conn::Session::Sqlite(Self { connection, wrote, changes, at }))
    }

    /// Called when a unit begins, before its first statement.
    pub(super) fn begins(&self) {
        if let Some(changes) = &self.changes {
            self.at.set(changes.now());
        }
    }

    /// Whether rows are as they were read, in the snapshot of the current unit.
    pub(crate) fn unchanged(&self, rows: &RowsRead) -> bool {
        self.changes.as_ref().is_some_and(|changes| changes.unchanged(rows, self.at.get()))
    }

    pub(crate) fn follows_changes(&self) -> bool {
        self.changes.is_some()
    }

    pub(crate) fn each(&self, sql: &Sql, params: &[Value<'_>], visit: Visit<'_>) -> Result<()> {
        let mut statement =
            self.connection.prepare_cached(sql.sqlite()).map_err(|error| explain(sql, &error))?;
        // What returns rows has written all of them before the first is read, whatever becomes of reading them.
        self.note(&statement);
        let mut rows = statement.query(params_from_iter(params)).map_err(|error| explain(sql, &error))?;
        let at = self.changes.as_ref().map(|_| self.at.get());
        while let Some(row) = rows.next().map_err(|error| explain(sql, &error))? {
            if !visit(&Row(Kind::Sqlite(row, at)))? {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn execute(&self, sql: &Sql, params: &[Value<'_>]) -> Result<u64> {
        let mut statement =
            self.connection.prepare_cached(sql.sqlite()).map_err(|error| explain(sql, &error))?;
        let rows = statement.execute(params_from_iter(params)).map_err(|error| explain(sql, &error))?;
        self.note(&statement);
        Ok(rows as u64)
    }

    pub(crate) fn prepare(&self, sql: &Sql) -> Result<()> {
        self.connection.prepare(sql.sqlite()).map(drop).map_err(|error| translate(&error))
    }

    pub(crate) fn script(&self, text: &str) -> Result<()> {
        self.wrote.set(true);
        self.connection.execute_batch(text).map_err(|error| translate(&error))
    }

    /// Notes a statement that may have written. One that failed to has taken back its own part: SQLite sees to that.
    fn note(&self, statement: &Statement<'_>) {
        if !statement.readonly() {
            self.wrote.set(true);
        }
    }

    /// Whether anything may have been written since the last time.
    pub(super) fn take_wrote(&self) -> bool {
        self.wrote.replace(false)
    }

    /// Whether the outer transaction has been rolled back.
    pub(super) fn is_autocommit(&self) -> bool {
        self.connection.is_autocommit()
    }

    /// Runs one of the writer's own statements.
    pub(super) fn control(&self, text: &'static str) -> Result<()> {
        let mut statement = self.connection.prepare_cached(text).map_err(|error| translate(&error))?;
        statement.raw_execute().map(drop).map_err(|error| translate(&error))
    }

    pub(super) fn commit(&self) -> Result<(), Failed> {
        let committed = self.connection.prepare_cached("COMMIT").and_then(|mut commit| commit.raw_execute());
        committed.map(drop).map_err(|error| Failed::new(&error))
    }

    /// Leaves the log alone when this connection is closed.
    pub(super) fn keep_log(&self) -> Result<()> {
        super::files::keep_log(&self.connection)
    }

    /// Runs a checkpoint pragma: the frames in the log, and how many of them are in the file.
    pub(super) fn checkpoint(&self, text: &'static str) -> Result<(i64, i64), Failed> {
        checkpoint(&self.connection, text)
    }
}

impl Failed {
    fn new(error: &rusqlite::Error) -> Self {
        let code = error.sqlite_error().map(|failure| failure.extended_code);
        Self { error: translate(error), is_of_sync: matches!(code, Some(IOERR_FSYNC | IOERR_DIR_FSYNC)) }
    }
}

/// Runs a checkpoint pragma: the frames in the log, and how many of them are in the file.
pub(super) fn checkpoint(connection: &Connection, text: &'static str) -> Result<(i64, i64), Failed> {
    let pragma = connection.prepare_cached(text);
    let numbers = pragma.and_then(|mut pragma| pragma.query_row((), |row| Ok((row.get(1)?, row.get(2)?))));
    numbers.map_err(|error| Failed::new(&error))
}

/// The error, with the statement if the statement caused it.
fn explain(sql: &Sql, error: &rusqlite::Error) -> Error {
    match translate(error) {
        Error::Other(message) => Error::Other(format!("{message}: {}", sql.text())),
        error => error,
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match *self {
            Value::Null => ValueRef::Null,
            Value::Int(value) => ValueRef::Integer(value),
            Value::Bool(value) => ValueRef::Integer(value.into()),
            Value::Text(value) => ValueRef::Text(value.as_bytes()),
            Value::Blob(value) => ValueRef::Blob(value),
            Value::Texts(_) | Value::Strings(_) => {
                return Ok(ToSqlOutput::Owned(self.json().unwrap_or_default().into()));
            }
        }))
    }
}

pub(crate) fn column<'r>(row: &'r rusqlite::Row<'_>, index: usize) -> Result<Value<'r>> {
    match row.get_ref(index).map_err(|error| translate(&error))? {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(value) => Ok(Value::Int(value)),
        ValueRef::Text(text) => std::str::from_utf8(text).map(Value::Text).map_err(Error::other),
        ValueRef::Blob(bytes) => Ok(Value::Blob(bytes)),
        ValueRef::Real(_) => Err(Error::Other(format!("column {index} is a floating-point number"))),
    }
}
