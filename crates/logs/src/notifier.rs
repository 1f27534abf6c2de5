//! Wake-ups: followers of a deployment are notified of new lines, and read them from the store.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use podium_api::DeploymentId;
use tokio::sync::watch;

/// One channel for each deployment that is followed.
#[derive(Default)]
pub(crate) struct Notifier(Mutex<HashMap<DeploymentId, watch::Sender<()>>>);

impl Notifier {
    fn lock(&self) -> MutexGuard<'_, HashMap<DeploymentId, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes to a deployment.
    pub(crate) fn subscribe(&self, deployment_id: DeploymentId) -> watch::Receiver<()> {
        let mut senders = self.lock();
        senders.retain(|_, sender| sender.receiver_count() > 0);
        senders.entry(deployment_id).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    /// Notifies the followers of deployments.
    pub(crate) fn notify(&self, deployments: impl Iterator<Item = DeploymentId>) {
        let senders = self.lock();
        if senders.is_empty() {
            return;
        }
        for sender in deployments.filter_map(|id| senders.get(&id)) {
            sender.send_replace(());
        }
    }

    /// Closes the channel of a deployment: its followers learn that nothing follows.
    pub(crate) fn close(&self, deployment_id: DeploymentId) {
        self.lock().remove(&deployment_id);
    }
}
