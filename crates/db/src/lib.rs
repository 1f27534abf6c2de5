//! The driver seam: one small synchronous interface over SQLite and PostgreSQL.
//!
//! SQL is written once, in the dialect that both engines share (see [`Sql`]), and runs inside a *unit of work*: a
//! closure that receives a [`Conn`] or a [`Tx`] and does nothing but use it. A unit may run more than once
//! (conflicts, broken connections, a batch that starts over), so time comes from outside.
//!
//! * SQLite: one writer thread with group commit; reads by key run inline on the calling thread, scans in the
//!   blocking pool.
//! * PostgreSQL: a pool of threads, each of which owns one connection and drives it without leaving the thread.
//!
//! This crate knows no tables, builds no queries, maps no rows by name and offers no way to await
//! anything inside a unit. No other crate names a database driver, and no other crate branches on [`Engine`].

#![allow(clippy::disallowed_types, clippy::disallowed_macros, reason = "statements are of this crate")]

mod conn;
mod db;
mod error;
pub mod joined;
mod migrate;
mod options;
mod postgres;
mod queue;
mod row;
mod rows_read;
mod schema;
mod sql;
mod sqlite;
mod unit;
mod value;

pub use conn::{AdvisoryLock, Change, Conn, Guard, Question, Tx};
pub use db::Db;
pub use error::{Error, Fault, Result};
pub use migrate::Migration;
pub use options::{Engine, OnCommit, Options, Target};
pub use row::{FromColumn, Row};
pub use rows_read::{JoinedRow, RowsRead};
pub use schema::{Column, Table};
pub use sql::Sql;
pub use sqlite::copy_database;
pub use value::{Owned, Value};
