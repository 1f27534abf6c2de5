//! Environments that must not run, because they exceed their quota.

use std::sync::PoisonError;

use podium_domain::UserText;
use podium_domain::deployments::plan::{Component, Health, Rollout};

use super::Supervisor;
use crate::blocking::blocking;
use crate::local::trees::clear;

impl Supervisor {
    /// Why the environment must not run, if it must not.
    pub(super) fn stop_reason(&self) -> Option<UserText> {
        self.stop_reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops all processes and removes temporary files.
    pub(super) async fn stop_and_report(&mut self, why: UserText) {
        tracing::warn!(id = %self.id, %why, "stopping an environment");
        let _ = self.refresh_isolation().await;
        self.stop_all(self.timing().short_grace).await;
        let temporary = self.place.temporary();
        let cleared = blocking(move || clear(&temporary, None, u64::MAX)).await;
        if let Err(error) = cleared {
            tracing::warn!(id = %self.id, %error, "temporary files of an environment cannot be removed");
        }
        self.follow_logs().await;
        self.state.running = self.state.live().clone();
        self.save_state().await;
        let running = self.state.running.clone();
        self.view.change(|status| {
            status.rollout = Rollout::Done;
            status.components = vec![Component { name: "disk".into(), health: Health::Down(why.into()) }];
            status.running = running;
            status.web_port = None;
        });
    }
}
