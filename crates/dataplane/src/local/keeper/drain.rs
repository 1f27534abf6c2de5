//! Lets running tasks end before what runs them restarts.
//!
//! While a file asks for it the executor takes no further task, and says when none runs any more. The file outlives the
//! control plane, so a drain that was begun goes on whatever happens.

use std::fs;
use std::time::Duration;

use podium_api::Timestamp;
use tokio::time::Instant;

use super::Keeper;
use crate::Environment;
use crate::local::layout::write_whole;
use crate::local::program::Manner;

/// A drain that is under way.
pub(super) struct Drain {
    /// What the executor calls it when it says that it is done.
    request: String,
    /// When whoever waits gives up.
    deadline: Instant,
    /// The same, for people.
    until: Timestamp,
}

impl Keeper {
    /// How long tasks may take to end by themselves.
    pub(super) fn drain_grace(&self, environment: &Environment) -> Duration {
        environment.drain_grace.unwrap_or(self.pace().drain)
    }

    /// Asks the executor to take no further task, if nobody has yet; tells until when to wait for those that run.
    pub(super) fn begin_drain(&mut self, grace: Duration) -> Timestamp {
        if let Some(drain) = &self.drain {
            return drain.until;
        }
        let now = (self.plane.services.clock)();
        // One that was begun before a restart of the control plane goes on.
        let begun = fs::read_to_string(self.place.drain()).ok().and_then(|text| text.parse().ok());
        let begun = begun.map_or(now, Timestamp::from_millis);
        let request = begun.millis().to_string();
        if let Err(error) = write_whole(&self.place.drain(), request.as_bytes(), 0o644) {
            tracing::error!(id = %self.id, %error, "tasks cannot be drained");
        }
        let until = begun + grace;
        let left = u64::try_from(until.millis() - now.millis()).unwrap_or(0);
        let deadline = Instant::now() + Duration::from_millis(left).min(grace);
        self.drain = Some(Drain { request, deadline, until });
        until
    }

    /// Whether nothing is left to wait for.
    pub(super) fn is_drained(&self) -> bool {
        let Some(drain) = &self.drain else { return false };
        // Of a length that the executor writes: the file belongs to code that nobody trusts.
        let path = self.place.status().join("drained");
        let said = fs::symlink_metadata(&path)
            .ok()
            .filter(|metadata| metadata.is_file() && metadata.len() == drain.request.len() as u64)
            .and_then(|_| fs::read_to_string(&path).ok());
        said.as_deref() == Some(&drain.request) || Instant::now() >= drain.deadline
    }

    /// Lets the executor take tasks again.
    pub(super) fn end_drain(&mut self) {
        self.drain = None;
        match fs::remove_file(self.place.drain()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::error!(id = %self.id, %error, "a drain cannot be ended");
            }
            _ => {}
        }
    }

    /// Waits for running tasks before everything stops; tells whether to go on, which is not so where something else is
    /// wanted by now.
    pub(super) async fn drain_before(&mut self, what: &str, environment: &Environment) -> bool {
        let scheduler = self.kept.get("scheduler").filter(|kept| kept.ends_by.is_none());
        if scheduler.is_none_or(|kept| kept.manner != Manner::Drain) {
            return true;
        }
        let until = self.begin_drain(self.drain_grace(environment));
        self.view.wait_for("scheduler", waiting(what, until));
        let mut orders = self.orders.clone();
        while !self.is_drained() {
            let Some(scheduler) = self.kept.get("scheduler") else { break };
            tokio::select! {
                () = scheduler.process.ended() => break,
                () = tokio::time::sleep(self.pace().impatient) => {}
                _ = orders.changed() => return false,
            }
        }
        true
    }
}

/// What is waited for, for people.
pub(super) fn waiting(what: &str, until: Timestamp) -> String {
    format!("running tasks end before {what}, by {until} at the latest")
}
