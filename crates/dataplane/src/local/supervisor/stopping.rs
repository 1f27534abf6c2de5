//! Environments that must not run, because they exceed their quota, or because their operator has stopped them.

use std::sync::Arc;

use podium_domain::UserText;
use podium_domain::deployments::plan::{Component, Health, Rollout};

use super::{Supervisor, locked};
use crate::Environment;
use crate::blocking::blocking;
use crate::local::state::State;
use crate::local::stops::Stop;
use crate::local::trees::clear;

/// Why an environment does not run that its operator has stopped.
const BY_OPERATOR: &str =
    "the operator of its machine stopped it with `podium stop`. Run `podium start` to start it again";

/// What stands for the components of an environment that its operator has stopped.
pub(super) fn by_operator() -> Component {
    Component { name: "environment".into(), health: Health::Down(BY_OPERATOR.into()) }
}

impl State {
    /// What was wanted of a stopped environment meanwhile goes on waiting.
    pub(super) fn rollout_of_stopped(&self) -> Rollout {
        if self.settled_generation == self.generation { Rollout::Done } else { Rollout::Underway }
    }
}

impl Supervisor {
    /// Stops all processes and removes temporary files.
    pub(super) async fn stop_and_report(&mut self, why: UserText) {
        tracing::warn!(id = %self.id, %why, "stopping an environment");
        self.refresh_isolation_to_stop().await;
        self.stop_all(self.timing().short_grace).await;
        let temporary = self.place.temporary();
        let cleared = blocking(move || clear(&temporary, None, u64::MAX)).await;
        if let Err(error) = cleared {
            tracing::warn!(id = %self.id, %error, "temporary files of an environment cannot be removed");
        }
        self.follow_logs().await;
        let disk = Component { name: "disk".into(), health: Health::Down(why.into()) };
        self.show_stopped(Rollout::Done, vec![disk]).await;
    }

    /// Stops the environment if its operator has ordered that, once its running tasks have finished; returns whether it
    /// must not run.
    pub(super) async fn stop_if_ordered(&mut self, environment: Option<&Environment>) -> bool {
        let Some(stop) = *locked(&self.controls.operator_stop) else { return false };
        tracing::info!(id = %self.id, "stopping an environment for its operator");
        if let Err(why) = self.refresh_isolation().await {
            tracing::warn!(id = %self.id, %why, "processes that its components have left behind may not be found");
        }
        if stop == Stop::Now {
            self.controls.force.send_replace(true);
        }
        let grace = environment.map_or(self.timing().drain, |environment| self.drain_grace(environment));
        if !self.drain_within("stopping", grace, None).await || !self.finish_workers(grace).await {
            return true;
        }
        let mut orders = self.orders.clone();
        tokio::select! {
            () = self.stop_all(self.stop_grace()) => {}
            _ = orders.changed() => return true,
        }
        self.end_drain().await;
        self.show_stopped(self.state.rollout_of_stopped(), vec![by_operator()]).await;
        let plane = Arc::clone(&self.plane);
        tokio::spawn(async move { plane.stop_unused_database().await });
        true
    }
}
