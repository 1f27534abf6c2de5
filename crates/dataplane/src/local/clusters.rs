//! Clusters on this machine: there are none. Those that were created before clusters had planes are names for it, and
//! keep their deployments.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use podium_api::ClusterId;
use podium_api::clusters::{ClusterHealthStatus, ClusterMetadata};
use podium_api::enums::HealthValue;

use crate::{Cluster, ObservedCluster, Progress};

/// Why no cluster can be created.
pub(super) const NO_CLUSTERS: &str = "This server runs deployments on its own machine and cannot create or connect clusters. Delete the \
                           cluster, and create deployments without one: they run on the machine of the server.";
const ONE_REGION: &str = "The cluster is a name for the machine of the server, which is in one region.";

/// Clusters that are names for this machine, as they were applied last. Nothing needs to be kept: they are applied again.
#[derive(Default)]
pub(super) struct NamedClusters(Mutex<HashMap<ClusterId, ObservedCluster>>);

impl NamedClusters {
    /// Takes note of a cluster. It can be renamed and assigned, but not moved to another region.
    pub(super) fn apply(&self, wanted: &Cluster) {
        let progress = if wanted.wants_failed_over == wanted.cluster.is_failed_over {
            Progress::Ready(ClusterHealthStatus { value: HealthValue::Healthy, details: Vec::new() })
        } else {
            Progress::Failed(ONE_REGION.into())
        };
        let metadata = ClusterMetadata::default();
        let seen = ObservedCluster { generation: wanted.generation, progress, metadata };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_later = |known: &ObservedCluster| known.generation > wanted.generation;
        if !known.get(&wanted.cluster.id).is_some_and(is_later) {
            known.insert(wanted.cluster.id, seen);
        }
    }

    pub(super) fn get(&self, id: ClusterId) -> Option<ObservedCluster> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub(super) fn remove(&self, id: ClusterId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
}
