//! The saved state of an environment, which is needed to find it again: neither the desired state nor secrets. And
//! whether the operator of this machine has stopped it.
//!
//! A file in each environment that is stopped says so: it is there over restarts and reboots, and can be written
//! whether or not a server runs. A running plane looks for it, and carries it out; one that is opened finds it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use podium_airflow::settings::ProjectSettings;
use podium_api::{DeploymentId, Timestamp};
use podium_domain::deployments::Running;
use serde::{Deserialize, Serialize};

use super::identity::Identity;
use super::layout::{Layout, Place, missing_is_none, write_whole};
use super::plane::Plane;
use super::program::ReplaceStrategy;
use crate::blocking::{allow_blocking, assert_may_block, blocking};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct State {
    /// Determines its user.
    pub(super) slot: u32,
    pub(super) namespace: String,
    pub(super) generation: i64,
    /// The generation whose rollout has ended last.
    pub(super) settled_generation: i64,
    pub(super) is_hibernating: bool,
    pub(super) is_removed: bool,
    /// Until when its removal waits for running tasks, if it does.
    pub(super) drains_until: Option<Timestamp>,
    /// The runtime that its database on a server was created with; `None` if the database is a file.
    pub(super) server_runtime: Option<String>,
    /// Whether that server is the plane's own.
    pub(super) is_private: bool,
    /// The runtime that its database was last migrated for.
    pub(super) migrated_for: Option<String>,
    /// The layers of packages that it runs with, or is being changed to.
    pub(super) layers: BTreeSet<String>,
    /// The project that is live, if its DAGs are in one.
    pub(super) project: Option<ProjectSettings>,
    /// What was last running: its rollout ended, or it was live when the environment was stopped.
    pub(super) running: Running,
    /// What is live, or about to be: everything that it needs is there. Earlier versions knew only what was running.
    pub(super) live: Option<Running>,
    /// The version of the DAGs that was live before this one.
    pub(super) dags_before: Option<String>,
    /// Whether the rollout of the live DAGs has not ended yet.
    pub(super) are_dags_new: bool,
    pub(super) web_port: u16,
    /// The component that is being started: a crash at that moment leaves a process that is not in `processes`.
    pub(super) starting: Option<String>,
    pub(super) processes: BTreeMap<String, Started>,
    /// How often components were restarted after failures.
    pub(super) restarts: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Started {
    pub(super) identity: Identity,
    pub(super) fingerprint: String,
    /// How it is replaced by a new version.
    #[serde(default, rename = "manner")]
    pub(super) strategy: ReplaceStrategy,
}

impl State {
    pub(super) fn live(&self) -> &Running {
        self.live.as_ref().unwrap_or(&self.running)
    }

    /// Records what goes live.
    pub(super) fn go_live(&mut self, live: Running) {
        let before = self.live().dag_version.clone();
        if before != live.dag_version {
            self.dags_before = before;
            self.are_dags_new = true;
        }
        self.live = Some(live);
    }

    /// Records that the rollout of what is live has ended.
    pub(super) fn end_rollout(&mut self) {
        self.running = self.live().clone();
        self.are_dags_new = false;
        self.settled_generation = self.generation;
    }

    /// Reads the state; `None` if there is none.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        assert_may_block();
        let Some(bytes) = missing_is_none(fs::read(path))? else { return Ok(None) };
        serde_json::from_slice(&bytes).map(Some).map_err(|error| {
            io::Error::new(ErrorKind::InvalidData, format!("{} cannot be read: {error}", path.display()))
        })
    }

    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        write_whole(path, &serde_json::to_vec(self)?, 0o600)
    }
}

/// The state file of one environment, written by its supervisor and when its removal is ordered.
pub(super) struct StateFile {
    path: PathBuf,
    /// The number of requested writes.
    asked: AtomicU64,
    written: Mutex<WriteLog>,
}

/// The progress of the writes.
struct WriteLog {
    is_removed: bool,
    drains_until: Option<Timestamp>,
    /// The number of the newest completed write: an older one must not undo it.
    newest: u64,
    /// Whether the supervisor has ended: pending writes are discarded.
    is_over: bool,
}

impl StateFile {
    pub(super) fn new(path: PathBuf, state: &State) -> Self {
        let State { is_removed, drains_until, .. } = *state;
        let written = Mutex::new(WriteLog { is_removed, drains_until, newest: 0, is_over: false });
        Self { path, asked: AtomicU64::new(0), written }
    }

    /// Writes a state. It does not undo an ordered removal.
    pub(super) async fn write(self: &Arc<Self>, state: &State) -> io::Result<()> {
        let state = state.clone();
        self.exclusively(move |writing| writing.write(&state)).await
    }

    /// Runs work that writes states, unless something newer was written in the meantime or the supervisor has ended.
    /// Nothing else is written until the work is done, and [`StateFile::end`] waits for it.
    pub(super) async fn exclusively<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&StateWriter<'_>) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let state_file = Arc::clone(self);
        blocking(move || state_file.do_exclusively(number, work)).await
    }

    fn do_exclusively<T>(
        &self,
        number: u64,
        work: impl FnOnce(&StateWriter<'_>) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut written = self.lock();
        if written.is_over || written.newest > number {
            return Err(ErrorKind::Interrupted.into());
        }
        written.newest = number;
        let WriteLog { is_removed, drains_until, .. } = *written;
        work(&StateWriter { path: &self.path, is_removed, drains_until })
    }

    /// Waits for the current write and refuses further ones.
    pub(super) fn end(&self) {
        self.lock().is_over = true;
    }

    /// Saves that the environment is being removed, and until when that waits for running tasks.
    pub(super) fn mark_removed(&self, drains_until: Option<Timestamp>) -> io::Result<()> {
        let mut written = self.lock();
        let state = State::read(&self.path)?.ok_or(ErrorKind::NotFound)?;
        State { is_removed: true, drains_until, ..state }.write(&self.path)?;
        (written.is_removed, written.drains_until) = (true, drains_until);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, WriteLog> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes the state while the file is locked.
pub(super) struct StateWriter<'a> {
    path: &'a Path,
    is_removed: bool,
    drains_until: Option<Timestamp>,
}

impl StateWriter<'_> {
    /// Writes a state. It does not undo an ordered removal.
    pub(super) fn write(&self, state: &State) -> io::Result<()> {
        let Self { path, is_removed, drains_until } = *self;
        State { is_removed, drains_until, ..state.clone() }.write(path)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Once its running tasks have finished.
    Drain,
    /// At once: running tasks are ended.
    Now,
}

impl Stop {
    const NOW: &str = "now";

    /// How an environment is to be stopped, if it is.
    pub(super) fn read(place: &Place) -> Option<Self> {
        assert_may_block();
        let text = fs::read_to_string(place.stopped()).ok()?;
        Some(if text.trim() == Self::NOW { Self::Now } else { Self::Drain })
    }
}

/// An environment on this machine, as its files show it. They are read and written whoever runs the plane.
#[derive(Debug)]
pub struct StoppableEnvironment {
    pub id: DeploymentId,
    /// Its name in URLs.
    pub namespace: String,
    place: Place,
}

/// The environments below a plane's directory that can be stopped: those that are not being removed. It blocks: for a
/// command that does nothing else meanwhile.
pub fn stoppable_environments(directory: &Path) -> io::Result<Vec<StoppableEnvironment>> {
    allow_blocking(|| {
        let layout = Layout::at(directory);
        let mut found = Vec::new();
        for id in missing_is_none(layout.known())?.unwrap_or_default() {
            let place = layout.environment(id);
            let state = State::read(&place.state())?.filter(|state| !state.is_removed);
            found.extend(state.map(|State { namespace, .. }| StoppableEnvironment { id, namespace, place }));
        }
        Ok(found)
    })
}

impl StoppableEnvironment {
    /// Whether its operator wants it stopped.
    pub fn is_marked(&self) -> bool {
        allow_blocking(|| Stop::read(&self.place)).is_some()
    }

    /// Has it stopped, from now on.
    pub fn mark(&self, stop: Stop) -> io::Result<()> {
        let text = match stop {
            Stop::Drain => "",
            Stop::Now => Stop::NOW,
        };
        allow_blocking(|| write_whole(&self.place.stopped(), text.as_bytes(), 0o600))
    }

    /// Lets it run again.
    pub fn unmark(&self) -> io::Result<()> {
        allow_blocking(|| {
            missing_is_none(fs::remove_file(self.place.stopped()))?;
            fs::File::open(&self.place.root)?.sync_all()
        })
    }

    /// Whether none of its components runs; also if it is gone.
    pub fn is_at_rest(&self) -> io::Result<bool> {
        allow_blocking(|| Ok(State::read(&self.place.state())?.is_none_or(|state| state.is_at_rest())))
    }
}

impl State {
    /// Whether none of its components runs.
    pub(super) fn is_at_rest(&self) -> bool {
        self.starting.is_none() && !self.processes.values().any(|started| started.identity.is_alive())
    }

    /// Whether its operator has stopped it, and that is done.
    pub(super) fn is_stopped(&self, place: &Place) -> bool {
        Stop::read(place).is_some() && self.is_at_rest()
    }
}

/// Carries out what the operator orders, as long as the plane exists.
pub(super) async fn watch(plane: Weak<Plane>) {
    loop {
        let Some(pause) = plane.upgrade().map(|plane| plane.timing.startup_poll) else { return };
        tokio::time::sleep(pause).await;
        let Some(plane) = plane.upgrade() else { return };
        let places: Vec<(DeploymentId, Place)> = {
            let supervisors = plane.supervisors();
            supervisors.keys().map(|id| (*id, plane.layout.environment(*id))).collect()
        };
        let found = blocking(move || {
            places.into_iter().map(|(id, place)| (id, Stop::read(&place))).collect::<Vec<_>>()
        });
        let found = found.await;
        let supervisors = plane.supervisors();
        for (id, stop) in found {
            if let Some(handle) = supervisors.get(&id) {
                handle.set_operator_stop(stop);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state_file(directory: &Path) -> (PathBuf, Arc<StateFile>) {
        let path = directory.join("state.json");
        (path.clone(), Arc::new(StateFile::new(path, &State::default())))
    }

    async fn read(path: &Path) -> State {
        let path = path.to_owned();
        blocking(move || State::read(&path)).await.unwrap().unwrap()
    }

    #[test]
    fn a_process_is_stored_with_the_names_that_earlier_versions_used() {
        let identity = Identity::of(std::process::id().cast_signed()).unwrap();
        let started = Started { identity, fingerprint: "f".into(), strategy: ReplaceStrategy::Drain };
        let stored = serde_json::to_value(&started).unwrap();
        assert_eq!((&stored["fingerprint"], &stored["manner"]), (&"f".into(), &"drain".into()));
        assert_eq!(serde_json::from_value::<Started>(stored).unwrap(), started);
    }

    #[tokio::test]
    async fn an_ordered_removal_survives_later_writes_of_the_supervisor() {
        let directory = tempfile::tempdir().unwrap();
        let (path, state_file) = state_file(directory.path());
        let state = State { slot: 7, ..State::default() };
        let mark_removed = || {
            let state_file = Arc::clone(&state_file);
            blocking(move || state_file.mark_removed(Some(Timestamp::from_millis(9))))
        };
        assert!(mark_removed().await.is_err(), "there is nothing to remove");
        state_file.write(&state).await.unwrap();
        mark_removed().await.unwrap();
        state_file.write(&State { generation: 3, ..state }).await.unwrap();
        let read = read(&path).await;
        assert_eq!((read.slot, read.generation, read.is_removed), (7, 3, true));
        assert_eq!(read.drains_until, Some(Timestamp::from_millis(9)));
    }

    #[test]
    fn an_abandoned_write_undoes_no_later_one_and_is_discarded_with_the_supervisor() {
        let directory = tempfile::tempdir().unwrap();
        let (path, state_file) = state_file(directory.path());
        let write = |number: u64| {
            let state = State { generation: i64::try_from(number).unwrap(), ..State::default() };
            state_file.do_exclusively(number, |writing| writing.write(&state)).map_err(|error| error.kind())
        };
        assert_eq!(write(2), Ok(()));
        assert_eq!(write(1), Err(ErrorKind::Interrupted), "it was asked for before the other");
        assert_eq!(State::read(&path).unwrap().unwrap().generation, 2);
        state_file.end();
        assert_eq!(write(3), Err(ErrorKind::Interrupted));
    }
}
