//! A consistent copy of a database file, even while it is being written.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::{files, translate};
use crate::{Error, Result};

/// How long to wait for a writer that has the file locked.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// Copies a database to a file that does not exist yet. Symbolic links are not followed: the directory may belong to
/// somebody untrusted.
pub fn copy_database(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        return Err(Error::Other(format!("{} exists", to.display())));
    }
    let real = |path: &Path| -> std::io::Result<std::path::PathBuf> {
        let name = path.file_name().ok_or(std::io::ErrorKind::InvalidInput)?;
        Ok(std::fs::canonicalize(path.parent().unwrap_or(Path::new(".")))?.join(name))
    };
    let from = real(from).map_err(|error| files::cannot_open(from, &error))?;
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let source =
        Connection::open_with_flags(&from, flags).map_err(|error| files::cannot_open(&from, &error))?;
    for (setting, value) in
        [(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true), (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)]
    {
        source.set_db_config(setting, value).map_err(|error| translate(&error))?;
    }
    let mut target = Connection::open(to).map_err(|error| files::cannot_open(to, &error))?;
    let backup = Backup::new(&source, &mut target).map_err(|error| translate(&error))?;
    let started = Instant::now();
    loop {
        // All pages in one step: they are read in one transaction, so they are consistent.
        match backup.step(-1).map_err(|error| translate(&error))? {
            StepResult::Done => break,
            _ if started.elapsed() > PATIENCE => {
                return Err(Error::Unavailable(format!(
                    "{} is locked by a writer the whole time",
                    from.display()
                )));
            }
            _ => std::thread::sleep(PAUSE),
        }
    }
    drop(backup);
    target.close().map_err(|(_, error)| translate(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_whole_also_while_the_file_is_written_and_a_link_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let writer = Connection::open(at("one.db")).unwrap();
        writer
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x); BEGIN; INSERT INTO t VALUES (1)")
            .unwrap();
        copy_database(&at("one.db"), &at("before.db")).unwrap();
        writer.execute_batch("COMMIT").unwrap();
        copy_database(&at("one.db"), &at("after.db")).unwrap();
        let count = |name: &str| -> i64 {
            let copy = Connection::open(at(name)).unwrap();
            copy.query_one("SELECT COUNT(*) FROM t", [], |row| row.get(0)).unwrap()
        };
        assert_eq!((count("before.db"), count("after.db")), (0, 1));
        assert!(copy_database(&at("one.db"), &at("after.db")).is_err(), "nothing is overwritten");
        std::os::unix::fs::symlink(at("one.db"), at("link.db")).unwrap();
        assert!(copy_database(&at("link.db"), &at("other.db")).is_err());
        assert!(copy_database(&at("missing.db"), &at("other.db")).is_err());
        std::fs::write(at("nonsense.db"), "this is no database, and long enough to be looked at".repeat(100))
            .unwrap();
        assert!(copy_database(&at("nonsense.db"), &at("nonsense-copy.db")).is_err());
    }
}
