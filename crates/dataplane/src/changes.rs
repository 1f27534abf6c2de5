//! Change notifications of a data plane: they say that something should be observed again, never what its new state is.

use futures_util::future::select_all;
use podium_api::{ClusterId, DeploymentId};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};

/// How many changes are buffered for a subscriber; a slower one gets [`Changed::Everything`] instead.
const WAITING: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    Environment(DeploymentId),
    Cluster(ClusterId),
    /// Unknown: observe everything again.
    Everything,
}

#[derive(Clone, Debug)]
pub struct ChangeNotifier(broadcast::Sender<Changed>);

impl Default for ChangeNotifier {
    fn default() -> Self {
        Self(broadcast::Sender::new(WAITING))
    }
}

impl ChangeNotifier {
    pub fn notify(&self, changed: Changed) {
        // Without subscribers nothing is lost: every subscription begins with `Everything`.
        let _ = self.0.send(changed);
    }

    pub fn subscribe(&self) -> Changes {
        Changes { is_begun: false, receivers: vec![self.0.subscribe()] }
    }
}

/// Receives change notifications. The first one is always [`Changed::Everything`], because changes before the
/// subscription are unknown.
#[derive(Debug)]
pub struct Changes {
    is_begun: bool,
    receivers: Vec<broadcast::Receiver<Changed>>,
}

impl Changes {
    pub(crate) fn merged(changes: impl Iterator<Item = Self>) -> Self {
        Self { is_begun: false, receivers: changes.flat_map(|one| one.receivers).collect() }
    }

    /// Waits for the next change; `None` once every plane is dropped.
    pub async fn next(&mut self) -> Option<Changed> {
        if !std::mem::replace(&mut self.is_begun, true) {
            return Some(Changed::Everything);
        }
        while !self.receivers.is_empty() {
            let waiting = self.receivers.iter_mut().map(|receiver| Box::pin(receiver.recv()));
            let (received, index, _) = select_all(waiting).await;
            match received {
                Ok(changed) => return Some(changed),
                Err(RecvError::Lagged(_)) => return Some(Changed::Everything),
                Err(RecvError::Closed) => drop(self.receivers.swap_remove(index)),
            }
        }
        None
    }

    pub fn try_next(&mut self) -> Option<Changed> {
        if !std::mem::replace(&mut self.is_begun, true) {
            return Some(Changed::Everything);
        }
        self.receivers.iter_mut().find_map(|receiver| match receiver.try_recv() {
            Ok(changed) => Some(changed),
            Err(TryRecvError::Lagged(_)) => Some(Changed::Everything),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use podium_api::Id;

    use super::*;

    #[test]
    fn a_slow_subscriber_gets_everything() {
        let notifier = ChangeNotifier::default();
        let mut changes = notifier.subscribe();
        assert_eq!(changes.try_next(), Some(Changed::Everything), "what happened before");
        let id = Id::from_parts(1, 2, 3);
        let (cluster, environment) = (ClusterId::from_raw(id), DeploymentId::from_raw(id));
        notifier.notify(Changed::Cluster(cluster));
        assert_eq!(changes.try_next(), Some(Changed::Cluster(cluster)));
        assert_eq!(changes.try_next(), None);
        for _ in 0..=WAITING {
            notifier.notify(Changed::Environment(environment));
        }
        assert_eq!(changes.try_next(), Some(Changed::Everything));
        assert_eq!(changes.try_next(), Some(Changed::Environment(environment)));
    }
}
