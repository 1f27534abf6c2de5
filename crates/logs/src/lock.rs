//! A lock file, so that only one process at a time opens the directory.
//!
//! The operating system releases the lock when the process ends, however it ends. The file stays; only the lock counts.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

const FILE: &str = "lock";

/// Held while a directory is open.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a directory, which is created if needed; fails immediately if another process holds the lock.
    pub(crate) fn take(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let path = directory.join(FILE);
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {
                let message = format!(
                    "another process has {} open: stop it first, or give this process its own data directory",
                    directory.display()
                );
                Err(io::Error::new(io::ErrorKind::ResourceBusy, message))
            }
            Err(TryLockError::Error(error)) => {
                let message =
                    format!("{} cannot be locked, which its file system must allow: {error}", path.display());
                Err(io::Error::new(error.kind(), message))
            }
        }
    }
}
