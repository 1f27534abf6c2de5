//! Environments that the operator of this machine has stopped.
//!
//! A file in each says so: it is there over restarts and reboots, and can be written whether or not a server runs. A running
//! plane looks for it, and carries it out; one that is opened finds it.

use std::path::Path;
use std::sync::Weak;
use std::{fs, io};

use podium_api::DeploymentId;

use super::layout::{Layout, Place, missing_is_none, write_whole};
use super::plane::Plane;
use super::state::State;
use crate::blocking::{allow_blocking, assert_may_block, blocking};

/// How an environment is stopped.
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
    /// Its deployment.
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
