//! Environments that must not run, because they take more of the machine than they may.

use std::sync::PoisonError;

use podium_domain::deployments::plan::{Component, Health, Rollout};

use super::Keeper;
use crate::Environment;
use crate::local::trees::clear;

impl Keeper {
    /// Why it must not run, where that is so.
    pub(super) fn must_not_run(&self) -> Option<String> {
        self.stopped_for.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends everything that runs, and removes temporary files, which nobody has any more.
    pub(super) async fn stay_stopped(&mut self, environment: &Environment, why: String) {
        tracing::warn!(id = %self.id, why, "an environment is stopped");
        let _ = self.stand_on_ground().await;
        self.stop_all(self.pace().short_grace).await;
        let temporary = self.place.temporary();
        let cleared = tokio::task::spawn_blocking(move || clear(&temporary, None, u64::MAX)).await;
        if let Ok(Err(error)) = cleared {
            tracing::warn!(id = %self.id, %error, "temporary files of an environment cannot be removed");
        }
        self.follow_logs();
        self.state.running = environment.running();
        self.remember();
        let running = self.state.running.clone();
        self.view.change(|shown| {
            shown.rollout = Rollout::Done;
            shown.components = vec![Component { name: "disk".into(), health: Health::Down(why) }];
            shown.running = running;
            shown.web_port = None;
        });
    }
}
