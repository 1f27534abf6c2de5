//! One connection, spoken to in the shared interface.

use std::cell::Cell;
use std::sync::Arc;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::row_changes::RowChanges;
use super::translate;
use crate::conn::{self, Conn, Visit};
use crate::row::Kind;
use crate::{Error, Result, Row, RowsRead, Sql, Value};

/// A connection to the file.
pub(crate) struct Session {
    connection: Connection,
    /// What tells which rows have changed; not for whoever writes, which sees what is not committed.
    changes: Option<Arc<RowChanges>>,
    /// The last commit that the current unit is certain to see.
    at: Cell<u64>,
}

impl Session {
    /// Wraps a connection for a unit.
    pub(super) fn conn(connection: Connection) -> Conn {
        Self::reading(connection, None)
    }

    /// Wraps a connection that only reads.
    pub(super) fn reading(connection: Connection, changes: Option<Arc<RowChanges>>) -> Conn {
        Conn::new(conn::Session::Sqlite(Self { connection, changes, at: Cell::new(0) }))
    }

    /// Says that another unit begins: comes before its first statement.
    pub(super) fn begins(&self) {
        if let Some(changes) = &self.changes {
            self.at.set(changes.now());
        }
    }

    /// Whether rows are as they were read, for a unit that sees one snapshot.
    pub(crate) fn unchanged(&self, rows: &RowsRead) -> bool {
        self.changes.as_ref().is_some_and(|changes| changes.unchanged(rows, self.at.get()))
    }

    /// Whether changes of rows are told.
    pub(crate) fn follows_changes(&self) -> bool {
        self.changes.is_some()
    }

    pub(crate) fn each(&self, sql: &Sql, params: &[Value<'_>], visit: Visit<'_>) -> Result<()> {
        let mut statement =
            self.connection.prepare_cached(sql.sqlite()).map_err(|error| explain(sql, &error))?;
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
        Ok(rows as u64)
    }

    pub(crate) fn prepare(&self, sql: &Sql) -> Result<()> {
        self.connection.prepare(sql.sqlite()).map(drop).map_err(|error| translate(&error))
    }

    pub(crate) fn script(&self, text: &str) -> Result<()> {
        self.connection.execute_batch(text).map_err(|error| translate(&error))
    }

    /// Whether the outer transaction is gone.
    pub(super) fn is_autocommit(&self) -> bool {
        self.connection.is_autocommit()
    }

    /// Runs one of the writer's own statements.
    pub(super) fn control(&self, text: &'static str) -> Result<()> {
        let mut statement = self.connection.prepare_cached(text).map_err(|error| translate(&error))?;
        statement.raw_execute().map(drop).map_err(|error| translate(&error))
    }

    /// Runs a checkpoint pragma: the frames in the log, and how many of them are in the file.
    pub(super) fn checkpoint(&self, text: &'static str) -> Result<(i64, i64)> {
        let mut statement = self.connection.prepare_cached(text).map_err(|error| translate(&error))?;
        statement.query_row((), |row| Ok((row.get(1)?, row.get(2)?))).map_err(|error| translate(&error))
    }
}

/// The error, with the statement if the statement is to blame.
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

/// One column of a row.
pub(crate) fn column<'r>(row: &'r rusqlite::Row<'_>, index: usize) -> Result<Value<'r>> {
    match row.get_ref(index).map_err(|error| translate(&error))? {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(value) => Ok(Value::Int(value)),
        ValueRef::Text(text) => std::str::from_utf8(text).map(Value::Text).map_err(Error::other),
        ValueRef::Blob(bytes) => Ok(Value::Blob(bytes)),
        ValueRef::Real(_) => Err(Error::Other(format!("column {index} is a floating-point number"))),
    }
}
