//! Reads what environments say about their DAG runs and tasks, from the spool that their listener writes to.
//!
//! How far it was read is stored with the events, in one transaction, so that each line is stored once, whenever this
//! process ends. An environment that says too much is read more slowly; its spool fills up, and its listener counts what
//! it drops.

mod scan;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use podium_airflow::spool::{allowed_events, most_lines};
use podium_api::DeploymentId;
use podium_domain::events::SpoolState;

use self::scan::scan;
use super::tail::restarting;
use crate::Claims;
use crate::Clock;
use crate::Fault;
use crate::blocking::blocking;

/// How often the spool is looked at.
const PACE: Duration = Duration::from_secs(1);

/// Reads the spool of an environment until it is dropped, despite errors and panics.
pub(super) async fn follow(id: DeploymentId, spool: PathBuf, claims: Arc<dyn Claims>, clock: Clock) {
    let read = || {
        let reader =
            Reader { id, spool: spool.clone(), claims: Arc::clone(&claims), clock: Arc::clone(&clock) };
        async move {
            let Err(fault) = reader.run().await;
            tracing::warn!(%id, %fault, "the events of an environment cannot be stored yet");
        }
    };
    restarting(read, |error| {
        tracing::error!(%id, %error, "reading the events of an environment failed and restarts");
    })
    .await;
}

struct Reader {
    id: DeploymentId,
    spool: PathBuf,
    claims: Arc<dyn Claims>,
    clock: Clock,
}

impl Reader {
    async fn run(self) -> Result<std::convert::Infallible, Fault> {
        let mut state = self.claims.state(self.id).await?;
        loop {
            let Some((next, has_events)) = self.step(state).await? else {
                tokio::time::sleep(PACE).await;
                continue;
            };
            state = next;
            // What is no event is not charged to the environment, so it must not be read as fast as it is written.
            if !has_events {
                tokio::time::sleep(PACE).await;
            }
        }
    }

    /// Stores what is new, and says whether there were events in it; `None` if there is nothing, or the environment may say
    /// no more for now.
    async fn step(&self, state: SpoolState) -> Result<Option<(SpoolState, bool)>, Fault> {
        let now = (self.clock)();
        let allowed = allowed_events(&state, now);
        // A scan may empty the spool, and what it counts would be lost.
        if allowed == 0 {
            return Ok(None);
        }
        let (spool, from) = (self.spool.clone(), state.position);
        let found = blocking(move || scan(&spool, from, most_lines(allowed), now)).await;
        let has_events = found.has_events();
        let Some(batch) = found.batch(from) else { return Ok(None) };
        match self.claims.record(self.id, batch).await? {
            Some(next) => Ok(Some((next, has_events))),
            None => Err(Fault::Failed("somebody else has read them, or the deployment is gone".into())),
        }
    }
}

#[cfg(test)]
mod tests;
