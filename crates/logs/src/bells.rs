//! Bells: whoever follows a deployment is woken when there is something new, and reads it from the store.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use podium_api::DeploymentId;
use tokio::sync::watch;

/// One bell for each deployment that is followed.
#[derive(Default)]
pub(crate) struct Bells(Mutex<HashMap<DeploymentId, watch::Sender<()>>>);

impl Bells {
    fn lock(&self) -> MutexGuard<'_, HashMap<DeploymentId, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hears the bell of a deployment.
    pub(crate) fn hear(&self, deployment_id: DeploymentId) -> watch::Receiver<()> {
        let mut bells = self.lock();
        bells.retain(|_, bell| bell.receiver_count() > 0);
        bells.entry(deployment_id).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    /// Rings for deployments.
    pub(crate) fn ring(&self, deployments: impl Iterator<Item = DeploymentId>) {
        let bells = self.lock();
        if bells.is_empty() {
            return;
        }
        for bell in deployments.filter_map(|id| bells.get(&id)) {
            bell.send_replace(());
        }
    }

    /// Ends a bell: whoever hears it is told that nothing comes any more.
    pub(crate) fn end(&self, deployment_id: DeploymentId) {
        self.lock().remove(&deployment_id);
    }
}
