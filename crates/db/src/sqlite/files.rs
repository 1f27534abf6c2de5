//! The file, its lock, and how connections to it are set up.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::row_changes::RowChanges;
use super::translate;
use crate::{Error, Result};

/// Statements kept prepared by each connection.
const STATEMENTS: usize = 512;

/// The path that every connection uses, whatever happens to the working directory.
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path).map_err(|error| cannot_open(path, &error))?;
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(|error| cannot_open(&path, &error))?;
    }
    Ok(path)
}

/// Makes this process the only one that writes the file, until the lock is dropped.
pub(super) fn lock(path: &Path) -> Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let lock = PathBuf::from(name);
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
/// Checkpoints are the writer thread's business: the automatic ones would run inside COMMIT, before anybody is told
/// that it succeeded.
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
         PRAGMA temp_store = MEMORY;",
    )?;
    changes.watch(&mut connection).map_err(|error| translate(&error))?;
    Ok(connection)
}

/// A connection that cannot write.
///
/// After every commit a reader forgets its pages. Mapped into memory they are found again without a system call each; an
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
