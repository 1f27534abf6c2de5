//! The database file, its lock, and how connections to it are configured.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::row_changes::RowChanges;
use super::translate;
use crate::{Error, Result};

/// Prepared statements that each connection caches.
const STATEMENTS: usize = 512;

/// The absolute path, independent of the working directory.
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path).map_err(|error| cannot_open(path, &error))?;
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(|error| cannot_open(&path, &error))?;
    }
    Ok(path)
}

/// A file that belongs to the database.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Makes this process the only one that writes the file, until the lock is dropped.
pub(super) fn lock(path: &Path) -> Result<File> {
    let lock = beside(path, ".lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock)
        .map_err(|error| cannot_open(&lock, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(Error::Unavailable(format!("{} is in use by another process", path.display())))
        }
        Err(TryLockError::Error(error)) => Err(cannot_open(&lock, &error)),
    }
}

/// The connection that writes.
///
/// The writer thread runs checkpoints: automatic ones would run inside COMMIT, before it is
/// acknowledged. It also changes `synchronous`, from one transaction to the next. The empty transaction makes the
/// write-ahead log if it is missing. What it changes is followed by `changes`.
pub(super) fn open_writer(path: &Path, changes: &Arc<RowChanges>) -> Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = open(
        path,
        flags,
        "PRAGMA busy_timeout = 10000;
         PRAGMA journal_mode = WAL;
         PRAGMA synchronous = FULL;
         PRAGMA foreign_keys = ON;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA journal_size_limit = 67108864;
         PRAGMA cache_size = -32768;
         PRAGMA temp_store = MEMORY;
         BEGIN IMMEDIATE;
         COMMIT;",
    )?;
    changes.watch(&mut connection).map_err(|error| translate(&error))?;
    Ok(connection)
}

/// A connection that only copies the log into the file. Both are synced, before and after.
pub(super) fn open_checkpointer(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = open(path, flags, "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 0;")?;
    keep_log(&connection)?;
    Ok(connection)
}

/// Leaves the log alone when this connection is closed, even if it is the last one.
pub(super) fn keep_log(connection: &Connection) -> Result<()> {
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map(drop)
        .map_err(|error| translate(&error))
}

/// A connection that cannot write.
///
/// After every commit a reader drops its page cache. With memory mapping it reloads them without a system call each; an
/// I/O error of the disk then ends the process by a signal, as it would fail every request anyway.
pub(super) fn open_reader(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    open(
        path,
        flags,
        "PRAGMA busy_timeout = 1000;
         PRAGMA query_only = ON;
         PRAGMA mmap_size = 2147418112;
         PRAGMA cache_size = -8192;
         PRAGMA temp_store = MEMORY;",
    )
}

fn open(path: &Path, flags: OpenFlags, setup: &str) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, flags).map_err(|error| cannot_open(path, &error))?;
    connection.execute_batch(setup).map_err(|error| translate(&error))?;
    // One plan for a statement, whatever is bound to it: otherwise SQLite prepares it again for each new value.
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(|error| translate(&error))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(connection)
}

pub(super) fn cannot_open(path: &Path, reason: &dyn std::fmt::Display) -> Error {
    Error::Unavailable(format!("cannot open {}: {reason}", path.display()))
}
