//! What the plane must remember of an environment to find it again: never what it can be told anew, never a secret.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use podium_domain::deployments::Running;
use serde::{Deserialize, Serialize};

use super::identity::Identity;
use super::layout::write_whole;
use super::program::Manner;

/// What is remembered of an environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct State {
    /// Tells its user and its place among all environments.
    pub(super) slot: u32,
    pub(super) namespace: String,
    pub(super) generation: i64,
    pub(super) is_hibernating: bool,
    /// Whether it is to vanish.
    pub(super) is_removed: bool,
    /// The runtime that its database on a server was made with; none where the database is a file.
    pub(super) server_runtime: Option<String>,
    /// Whether that server is the plane's own.
    pub(super) is_private: bool,
    /// The runtime that its database was last migrated for.
    pub(super) migrated_for: Option<String>,
    /// What was last brought up.
    pub(super) running: Running,
    /// Where its web server listens.
    pub(super) web_port: u16,
    /// The component that is about to be started: an end in that moment leaves a process that nobody remembers.
    pub(super) starting: Option<String>,
    /// What was started, by component.
    pub(super) processes: BTreeMap<String, Started>,
    /// How often components were started again because they had failed.
    pub(super) restarts: BTreeMap<String, u64>,
}

/// A process that was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Started {
    pub(super) identity: Identity,
    /// What it was started with.
    pub(super) fingerprint: String,
    /// How it is replaced.
    #[serde(default)]
    pub(super) manner: Manner,
}

impl State {
    /// Reads what was remembered; nothing where there is nothing.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
                io::Error::new(ErrorKind::InvalidData, format!("{} cannot be read: {error}", path.display()))
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Remembers it.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        write_whole(path, &serde_json::to_vec(self)?, 0o600)
    }
}

/// Where the state of one environment is written: by its keeper, and by whoever orders its removal.
pub(super) struct Memory {
    path: PathBuf,
    is_removed: Mutex<bool>,
}

impl Memory {
    pub(super) fn new(path: PathBuf, is_removed: bool) -> Self {
        Self { path, is_removed: Mutex::new(is_removed) }
    }

    /// Remembers a state. A removal that was ordered is not forgotten by it.
    pub(super) fn write(&self, state: &State) -> io::Result<()> {
        let is_removed = self.is_removed.lock().unwrap_or_else(PoisonError::into_inner);
        State { is_removed: *is_removed, ..state.clone() }.write(&self.path)
    }

    /// Remembers that the environment is to vanish.
    pub(super) fn mark_removed(&self) -> io::Result<()> {
        let mut is_removed = self.is_removed.lock().unwrap_or_else(PoisonError::into_inner);
        let state = State::read(&self.path)?.ok_or(ErrorKind::NotFound)?;
        State { is_removed: true, ..state }.write(&self.path)?;
        *is_removed = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removal_that_was_ordered_outlasts_whatever_the_keeper_writes_after_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let (memory, state) = (Memory::new(path.clone(), false), State { slot: 7, ..State::default() });
        assert!(memory.mark_removed().is_err(), "there is nothing to remove");
        memory.write(&state).unwrap();
        memory.mark_removed().unwrap();
        memory.write(&State { generation: 3, ..state }).unwrap();
        let read = State::read(&path).unwrap().unwrap();
        assert_eq!((read.slot, read.generation, read.is_removed), (7, 3, true));
    }
}
