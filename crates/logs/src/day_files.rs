//! The files of a deployment, and how much of each may be read.
//!
//! The writer notes here how far each file that it has open is written; of all other files everything that is whole
//! may be read. Either way a reader never sees half a write.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use podium_api::Id;

use crate::Search;
use crate::backwards;
use crate::day::Day;

/// Which file.
pub(crate) type Key = (Id, Day);

/// The files below a directory.
pub(crate) struct DayFiles {
    root: PathBuf,
    /// How far the files that are being written are written.
    written: Mutex<HashMap<Key, u64>>,
}

/// How much of which days a search sees, the newest day first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bound(pub(crate) Vec<(Day, u64)>);

impl DayFiles {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self { root, written: Mutex::default() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Notes how far a file is written.
    pub(crate) fn note(&self, key: Key, length: u64) {
        self.lock().insert(key, length);
    }

    /// Says that a file is not being written any more.
    pub(crate) fn forget(&self, key: Key) {
        self.lock().remove(&key);
    }

    /// How much of what a search asks for there is now.
    pub(crate) fn bound(&self, search: &Search) -> io::Result<Bound> {
        let id = search.deployment_id;
        let mut days = self.days(id)?;
        days.retain(|day| day.begins() < search.window.end && day.ends() > search.window.start);
        days.sort_unstable_by(|left, right| right.cmp(left));
        let mut bound = Vec::with_capacity(days.len());
        for day in days {
            let length = self.length((id, day))?;
            if length > 0 {
                bound.push((day, length));
            }
        }
        Ok(Bound(bound))
    }

    fn length(&self, key: Key) -> io::Result<u64> {
        let noted = || self.lock().get(&key).copied();
        if let Some(length) = noted() {
            return Ok(length);
        }
        let Some(file) = self.open(key)? else { return Ok(0) };
        let (whole, _) = backwards::whole(&file)?;
        // The writer may have begun in the meantime; then it knows better.
        Ok(noted().unwrap_or(whole))
    }

    /// A file to read, if there is one.
    pub(crate) fn open(&self, (id, day): Key) -> io::Result<Option<File>> {
        missing_is_none(File::open(day.path(&self.root, id)))
    }

    /// The days that a deployment has files of.
    pub(crate) fn days(&self, deployment_id: Id) -> io::Result<Vec<Day>> {
        let names = names(&self.root.join(deployment_id.as_str()))?;
        Ok(names.iter().filter_map(|name| Day::from_name(name)).collect())
    }

    /// The deployments that have files.
    pub(crate) fn deployments(&self) -> io::Result<Vec<Id>> {
        Ok(names(&self.root)?.iter().filter_map(|name| name.parse().ok()).collect())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Key, u64>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn names(directory: &Path) -> io::Result<Vec<String>> {
    let Some(entries) = missing_is_none(fs::read_dir(directory))? else { return Ok(Vec::new()) };
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// What may be gone by now is not there.
pub(crate) fn missing_is_none<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
