//! Clusters: where deployments run that do not share infrastructure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::enums::{CloudProvider, ClusterStatus, ClusterType, HealthValue};
use crate::{Id, Timestamp};

/// A cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// Its id.
    pub id: Id,
    /// Its name, unique in the organization.
    pub name: String,
    /// Its organization.
    pub organization_id: Id,
    /// Who it is run by and for.
    pub r#type: ClusterType,
    /// Its provider.
    pub cloud_provider: CloudProvider,
    /// Its region at the provider.
    pub region: String,
    /// Its state.
    pub status: ClusterStatus,
    /// Whether it works.
    pub health_status: ClusterHealthStatus,
    /// Whether its deployments run in the other region now.
    pub is_failed_over: bool,
    /// Whether its deployments are on their way to the other region or back.
    pub failover_in_progress: bool,
    /// Whether its region takes no new clusters.
    pub is_limited: bool,
    /// The only workspaces that it takes deployments of; none means all.
    pub workspace_ids: Vec<Id>,
    /// What is known of it once it is there.
    pub metadata: ClusterMetadata,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// What its owner has chosen.
    #[serde(flatten)]
    pub details: ClusterDetails,
}

/// What the owner of a cluster has chosen.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterDetails {
    /// The machine of its databases.
    pub db_instance_type: String,
    /// The account at the provider.
    pub provider_account: Option<String>,
    /// The tenant at the provider; AZURE only.
    pub tenant_id: Option<String>,
    /// Pools of nodes.
    pub node_pools: Vec<NodePool>,
    /// Tags of everything that it consists of.
    pub tags: Vec<ClusterK8sTag>,
    /// The range of its network.
    pub vpc_subnet_range: String,
    /// The range of its pods; GCP only.
    pub pod_subnet_range: Option<String>,
    /// The range of its services; GCP only.
    pub service_subnet_range: Option<String>,
    /// The range of its service peering; GCP only.
    pub service_peering_range: Option<String>,
    /// Another range of its network; AWS only.
    pub secondary_vpc_cidr: Option<String>,
    /// Whether traffic leaves by a private network; AWS only.
    pub is_private_network_egress_enabled: Option<bool>,
    /// Whether another region stands by.
    pub is_dr_enabled: bool,
    /// The region that stands by; empty where none does.
    pub dr_region: String,
    /// The range of the network there.
    pub dr_vpc_subnet_range: Option<String>,
    /// The range of pods there; GCP only.
    pub dr_pod_subnet_range: Option<String>,
    /// The range of services there; GCP only.
    pub dr_service_subnet_range: Option<String>,
    /// The range of the service peering there; GCP only.
    pub dr_service_peering_range: Option<String>,
    /// Another range of the network there; AWS only.
    pub dr_secondary_vpc_cidr: Option<String>,
    /// Whether copies reach the region that stands by within a guaranteed time.
    pub enable_replication_time_control: bool,
}

/// A pool of nodes of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodePool {
    /// Its id.
    pub id: Id,
    /// Its name, unique in the cluster.
    pub name: String,
    /// Its cluster.
    pub cluster_id: Id,
    /// The provider of its cluster.
    pub cloud_provider: CloudProvider,
    /// Whether it runs what names no pool.
    pub is_default: bool,
    /// How many nodes it has at the most.
    pub max_node_count: u32,
    /// The machine of its nodes.
    pub node_instance_type: String,
    /// Machines of workers that fit on a node.
    #[serde(default)]
    pub supported_platform_machines: Vec<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A tag of everything that a cluster consists of.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterK8sTag {
    /// Its name, unique in the cluster.
    #[schemars(length(max = 128))]
    pub key: Option<String>,
    /// Its value.
    #[schemars(length(max = 256))]
    pub value: Option<String>,
}

/// Whether a cluster works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterHealthStatus {
    /// In one word.
    pub value: HealthValue,
    /// What is wrong.
    #[serde(default)]
    pub details: Vec<ClusterHealthStatusDetail>,
}

impl Default for ClusterHealthStatus {
    /// Nobody has looked yet.
    fn default() -> Self {
        Self { value: HealthValue::Unknown, details: Vec::new() }
    }
}

/// Something that is wrong with a cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterHealthStatusDetail {
    /// A word that a program can act on.
    pub code: String,
    /// What is wrong, in words that a person can act on.
    pub description: String,
    /// How bad it is.
    pub severity: String,
    /// What it is wrong with.
    pub component: Option<String>,
}

/// What is known of a cluster once it is there.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterMetadata {
    /// Addresses that its traffic comes from.
    #[serde(rename = "externalIPs", default)]
    pub external_ips: Vec<String>,
    /// The address of its name server.
    pub kube_dns_ip: Option<String>,
    /// Who vouches for its workloads.
    pub oidc_issuer_url: Option<String>,
}

/// A page of clusters.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClustersPaginated {
    /// The clusters.
    pub clusters: Vec<Cluster>,
    /// The limit in force.
    pub limit: u32,
    /// How many were skipped.
    pub offset: u64,
    /// How many there are in all.
    pub total_count: u64,
}

/// A new cluster, of any provider.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateClusterRequest {
    /// Its provider.
    pub cloud_provider: CloudProvider,
    /// Its name, unique in the organization.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// Its region at the provider.
    #[schemars(length(max = 100))]
    pub region: String,
    /// Who it is run by and for.
    pub r#type: ClusterType,
    /// The range of its network.
    #[schemars(length(max = 100))]
    pub vpc_subnet_range: String,
    /// The machine of its databases; HYBRID needs one.
    #[schemars(length(max = 100))]
    pub db_instance_type: Option<String>,
    /// The region that stands by; DEDICATED only.
    #[schemars(length(max = 100))]
    pub dr_region: Option<String>,
    /// The range of the network in the region that stands by; as `vpcSubnetRange` unless given.
    #[schemars(length(max = 100))]
    pub dr_vpc_subnet_range: Option<String>,
    /// Another range of the network in the region that stands by.
    #[schemars(length(max = 100))]
    pub dr_secondary_vpc_cidr: Option<String>,
    /// The range of pods in the region that stands by; as `podSubnetRange` unless given.
    #[schemars(length(max = 100))]
    pub dr_pod_subnet_range: Option<String>,
    /// The range of services in the region that stands by; as `serviceSubnetRange` unless given.
    #[schemars(length(max = 100))]
    pub dr_service_subnet_range: Option<String>,
    /// The range of the service peering in the region that stands by; as `servicePeeringRange` unless given.
    #[schemars(length(max = 100))]
    pub dr_service_peering_range: Option<String>,
    /// Whether copies reach the region that stands by within a guaranteed time.
    pub enable_replication_time_control: Option<bool>,
    /// Whether traffic leaves by a private network.
    pub is_private_network_egress_enabled: Option<bool>,
    /// Tags of everything that it consists of.
    #[schemars(length(max = 1000))]
    pub k8s_tags: Option<Vec<ClusterK8sTag>>,
    /// Pools of nodes; HYBRID needs some.
    #[schemars(length(max = 1000))]
    pub node_pools: Option<Vec<CreateNodePoolRequest>>,
    /// The account at the provider; HYBRID needs one.
    #[schemars(length(max = 256))]
    pub provider_account: Option<String>,
    /// The tenant at the provider; HYBRID needs one.
    #[schemars(length(max = 256))]
    pub tenant_id: Option<String>,
    /// The range of its pods.
    #[schemars(length(max = 100))]
    pub pod_subnet_range: Option<String>,
    /// The range of its services.
    #[schemars(length(max = 100))]
    pub service_subnet_range: Option<String>,
    /// The range of its service peering.
    #[schemars(length(max = 100))]
    pub service_peering_range: Option<String>,
    /// Another range of its network.
    #[schemars(length(max = 100))]
    pub secondary_vpc_cidr: Option<String>,
    /// The only workspaces that it takes deployments of; none means all.
    #[schemars(length(max = 1000))]
    pub workspace_ids: Option<Vec<Id>>,
}

/// A new pool of nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateNodePoolRequest {
    /// Its name, unique in the cluster.
    pub name: String,
    /// The machine of its nodes.
    pub node_instance_type: String,
    /// How many nodes it has at the most.
    pub max_node_count: i64,
    /// Whether it runs what names no pool; exactly one does.
    pub is_default: Option<bool>,
}

/// New settings of a cluster, of either type.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateClusterRequest {
    /// The type that it has.
    pub cluster_type: Option<ClusterType>,
    /// Its name, unique in the organization.
    #[schemars(length(min = 1, max = 128))]
    pub name: Option<String>,
    /// Tags of everything that it consists of.
    #[schemars(length(max = 1000))]
    pub k8s_tags: Option<Vec<ClusterK8sTag>>,
    /// The machine of its databases.
    #[schemars(length(max = 100))]
    pub db_instance_type: Option<String>,
    /// Whether another region stands by; `true` needs a `drRegion`.
    pub enable_dr: Option<bool>,
    /// The region that stands by, set when it begins to.
    #[schemars(length(max = 100))]
    pub dr_region: Option<String>,
    /// The range of the network there.
    #[schemars(length(max = 100))]
    pub dr_vpc_subnet_range: Option<String>,
    /// The range of pods there.
    #[schemars(length(max = 100))]
    pub dr_pod_subnet_range: Option<String>,
    /// The range of services there.
    #[schemars(length(max = 100))]
    pub dr_service_subnet_range: Option<String>,
    /// The range of the service peering there.
    #[schemars(length(max = 100))]
    pub dr_service_peering_range: Option<String>,
    /// Whether copies reach the region that stands by within a guaranteed time.
    pub enable_replication_time_control: Option<bool>,
    /// `true` moves all deployments to the region that stands by, `false` moves them back; changes nothing else.
    pub is_failed_over: Option<bool>,
    /// Whether traffic leaves by a private network; AWS only.
    pub is_private_network_egress_enabled: Option<bool>,
    /// All pools of nodes: those with a known id or name are changed, others added, missing ones removed.
    #[schemars(length(max = 1000))]
    pub node_pools: Option<Vec<UpdateNodePoolRequest>>,
    /// The only workspaces that it takes deployments of; none means all.
    #[schemars(length(max = 1000))]
    pub workspace_ids: Option<Vec<Id>>,
}

/// A pool of nodes, changed or new.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateNodePoolRequest {
    /// Its id, where it has one.
    pub id: Option<Id>,
    /// Its name, unique in the cluster.
    pub name: String,
    /// The machine of its nodes.
    pub node_instance_type: String,
    /// How many nodes it has at the most.
    pub max_node_count: i64,
    /// Whether it runs what names no pool; exactly one does.
    pub is_default: Option<bool>,
}
