//! Environments that must not run, because they take more of the machine than they may.

use std::sync::PoisonError;

use podium_domain::UserText;
use podium_domain::deployments::plan::{Component, Health, Rollout};

use super::Keeper;
use crate::Environment;
use crate::blocking::blocking;
use crate::local::trees::clear;

impl Keeper {
    /// Why it must not run, where that is so.
    pub(super) fn must_not_run(&self) -> Option<UserText> {
        self.stopped_for.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends everything that runs, and removes temporary files, which nobody has any more.
    pub(super) async fn stay_stopped(&mut self, environment: &Environment, why: UserText) {
        tracing::warn!(id = %self.id, %why, "an environment is stopped");
        let _ = self.stand_on_ground().await;
        self.stop_all(self.pace().short_grace).await;
        let temporary = self.place.temporary();
        let cleared = blocking(move || clear(&temporary, None, u64::MAX)).await;
        if let Err(error) = cleared {
            tracing::warn!(id = %self.id, %error, "temporary files of an environment cannot be removed");
        }
        self.follow_logs().await;
        self.state.running = environment.running();
        self.remember().await;
        let running = self.state.running.clone();
        self.view.change(|shown| {
            shown.rollout = Rollout::Done;
            shown.components = vec![Component { name: "disk".into(), health: Health::Down(why.into()) }];
            shown.running = running;
            shown.web_port = None;
        });
    }
}
