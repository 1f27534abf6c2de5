//! Which rows changed lately, so that what was made from rows can be kept until they change.
//!
//! A row has a slot, by its table and its rowid; rows may share one. The slot holds the number of the last commit that
//! changed such a row. It says that the row is changing from the moment of the change until the commit can be seen by
//! readers, so that nobody takes an old row for a new one in between. Nothing is lost by a change that is rolled back:
//! the row is read again.
//!
//! All of this process's writing connections are watched, and no other process writes the file.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use rusqlite::hooks::Action;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::rows_read::RowsRead;

const SLOTS: usize = 1 << 16;
const CHANGING: u64 = u64::MAX;

pub(crate) struct RowChanges {
    commits: AtomicU64,
    slots: Box<[AtomicU64]>,
    /// Held while a commit is counted.
    counting: Mutex<()>,
}

impl Default for RowChanges {
    fn default() -> Self {
        let slots = (0..SLOTS).map(|_| AtomicU64::new(0)).collect();
        Self { commits: AtomicU64::new(0), slots, counting: Mutex::new(()) }
    }
}

impl RowChanges {
    /// Follows what a connection writes. The setting `wal_autocheckpoint` takes the hook away, so it comes before.
    pub(super) fn watch(self: &Arc<Self>, connection: &mut Connection) -> rusqlite::Result<()> {
        let changed: Arc<Mutex<Vec<u16>>> = Arc::default();
        let noting = (Arc::clone(self), Arc::clone(&changed));
        connection.update_hook(Some(move |action: Action, _: &str, table: &str, rowid: i64| {
            // Nothing was made from a row before it was there.
            if action != Action::SQLITE_INSERT {
                let (changes, changed) = &noting;
                let slot = slot(table, rowid);
                changes.slots[usize::from(slot)].store(CHANGING, Ordering::SeqCst);
                changed.lock().unwrap_or_else(PoisonError::into_inner).push(slot);
            }
        }))?;
        let ending = (Arc::clone(self), changed);
        let end = move || ending.0.count(&mut ending.1.lock().unwrap_or_else(PoisonError::into_inner));
        connection.rollback_hook(Some(end.clone()))?;
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, _: i32| {
            end();
            Ok(())
        }))
    }

    /// The number of the last commit. What is read after this was asked contains it.
    pub(super) fn now(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    /// Whether none of these rows has changed since they were read, nor between `at` and now.
    pub(crate) fn unchanged(&self, rows: &RowsRead, at: u64) -> bool {
        let newest = rows.at.min(at);
        rows.slots().iter().all(|slot| self.slots[usize::from(*slot)].load(Ordering::SeqCst) <= newest)
    }

    /// Counts a commit, now that readers can see it.
    fn count(&self, changed: &mut Vec<u16>) {
        let _counting = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.now() + 1;
        for slot in changed.drain(..) {
            self.slots[usize::from(slot)].store(number, Ordering::SeqCst);
        }
        self.commits.store(number, Ordering::SeqCst);
    }
}

pub(crate) fn slot(table: &str, rowid: i64) -> u16 {
    xxh3_64_with_seed(table.as_bytes(), rowid.cast_unsigned()) as u16
}
