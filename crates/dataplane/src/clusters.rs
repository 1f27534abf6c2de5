//! A cluster as it is wanted, and as a data plane observes it.

use podium_api::clusters::ClusterMetadata;
use podium_domain::clusters::plan::Progress;

/// A cluster as it is wanted.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Advanced by every change of what is wanted.
    pub generation: i64,
    /// Whether its deployments are to run in the standby region.
    pub wants_failed_over: bool,
    /// The cluster with its configuration.
    pub cluster: podium_api::clusters::Cluster,
}

impl Cluster {
    /// The region that its deployments are to run in.
    pub fn region(&self) -> &str {
        if self.wants_failed_over { &self.cluster.details.dr_region } else { &self.cluster.region }
    }
}

/// A cluster as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedCluster {
    /// The generation that was last applied.
    pub generation: i64,
    /// How far that got.
    pub progress: Progress,
    /// Its metadata.
    pub metadata: ClusterMetadata,
}
