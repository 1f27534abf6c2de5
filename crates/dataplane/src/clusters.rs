//! A cluster as a plane is asked for it, and as it shows it.

use podium_api::Id;
use podium_api::enums::CloudProvider;
use serde_json::Value;

/// A cluster as it is wanted.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Its id.
    pub id: Id,
    /// Its organization.
    pub organization_id: Id,
    /// Its name.
    pub name: String,
    /// Advanced by every change of what is wanted.
    pub generation: i64,
    /// The cloud provider.
    pub cloud_provider: CloudProvider,
    /// The region.
    pub region: String,
    /// The region that takes over, where there is one.
    pub dr_region: Option<String>,
    /// Whether its deployments are to run in that region.
    pub is_failed_over: bool,
    /// Networks, node pools and the rest of what its owner has chosen, as the API shows it.
    pub details: Value,
}

/// A cluster as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedCluster {
    /// The generation that was last applied.
    pub generation: i64,
    /// How far that got.
    pub progress: ClusterProgress,
    /// Who vouches for the identities of its workloads.
    pub oidc_issuer_url: Option<String>,
    /// The address of its name server.
    pub kube_dns_ip: Option<String>,
    /// The addresses that its workloads are seen under.
    pub external_ips: Vec<String>,
}

/// How far applying a cluster got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterProgress {
    /// Not done yet.
    Working,
    /// It is as it was asked to be, and works.
    Healthy,
    /// It is as it was asked to be, and does not work; the text says why.
    Unhealthy(String),
    /// It cannot be made so; the text says why.
    Failed(String),
}
