//! Clusters: where deployments run that do not share infrastructure.

mod requests;

use crate::enums::{CloudProvider, ClusterStatus, ClusterType, HealthValue, PlaneKind};
use crate::path::{InOrganization, OfCluster};
use crate::reply::{Many, One};
use crate::union::OneOf;
use crate::{ClusterId, NodePoolId, OrganizationId, Timestamp, WorkspaceId};

pub use requests::{
    CreateClusterRequest, CreateNodePoolRequest, UpdateClusterRequest, UpdateNodePoolRequest,
};

endpoints! {
    tag "Cluster";

    /// List clusters
    List: GET "/organizations/{organizationId}/clusters" as "ListClusters" {
        path: InOrganization, query: ListClusters, reply: Many<ClustersPaginated>,
        permission: "organization.clusters.get",
    }
    /// Create a cluster
    Create: POST "/organizations/{organizationId}/clusters" as "CreateCluster" {
        path: InOrganization, body: OneOf<CreateClusterRequest>, reply: One<Cluster>,
        permission: "organization.clusters.create", event: ClusterCreated,
        also: [409, 412], marks: [starts_operation],
    }
    /// Get a cluster
    Get: GET "/organizations/{organizationId}/clusters/{clusterId}" as "GetCluster" {
        path: OfCluster, reply: One<Cluster>,
        permission: "organization.clusters.get",
    }
    /// Update a cluster
    Update: POST "/organizations/{organizationId}/clusters/{clusterId}" as "UpdateCluster" {
        path: OfCluster, body: OneOf<UpdateClusterRequest>, reply: One<Cluster>,
        permission: "organization.clusters.update", event: ClusterUpdated,
        also: [409, 412], marks: [starts_operation],
    }
    /// Delete a cluster
    Delete: DELETE "/organizations/{organizationId}/clusters/{clusterId}" as "DeleteCluster" {
        path: OfCluster,
        permission: "organization.clusters.delete", event: ClusterDeleted,
        also: [409, 412], marks: [starts_operation],
    }
}

wire! {
    /// Which clusters to list.
    sorted["name", "createdAt", "updatedAt"] pub struct ListClusters {
        /// Only clusters with one of these names.
        #[serde(default)]
        pub names: Vec<String>,
        /// Only clusters of this provider.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub provider: Option<CloudProvider>,
    }

    /// A cluster.
    #[derive(PartialEq, Eq)]
    pub struct Cluster {
        /// Its id.
        pub id: ClusterId,
        /// Its name, unique in the organization.
        pub name: String,
        /// Its organization.
        pub organization_id: OrganizationId,
        /// Who runs it, and for whom.
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
        /// The workspaces whose deployments it accepts; an empty list means all.
        pub workspace_ids: Vec<WorkspaceId>,
        /// Details that are known once the cluster exists.
        pub metadata: ClusterMetadata,
        /// What its deployments run on, once the cluster has been made or connected.
        pub data_plane: Option<PlaneKind>,
        /// When it was created.
        pub created_at: Timestamp,
        /// When it was last changed.
        pub updated_at: Timestamp,
        /// What its owner has chosen.
        #[serde(flatten)]
        pub details: ClusterDetails,
    }

    /// What the owner of a cluster has chosen.
    #[derive(Default, PartialEq, Eq)]
    pub struct ClusterDetails {
        /// The machine of its databases.
        pub db_instance_type: String,
        /// The account at the provider.
        pub provider_account: Option<String>,
        /// The tenant at the provider; AZURE only.
        pub tenant_id: Option<String>,
        /// Pools of nodes.
        pub node_pools: Vec<NodePool>,
        /// Tags applied to all of the cluster's cloud resources.
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
        /// Whether the cluster has a standby region.
        pub is_dr_enabled: bool,
        /// The standby region; empty if there is none.
        pub dr_region: String,
        /// The range of the network in the standby region.
        pub dr_vpc_subnet_range: Option<String>,
        /// The range of pods in the standby region; GCP only.
        pub dr_pod_subnet_range: Option<String>,
        /// The range of services in the standby region; GCP only.
        pub dr_service_subnet_range: Option<String>,
        /// The range of the service peering in the standby region; GCP only.
        pub dr_service_peering_range: Option<String>,
        /// Another range of the network in the standby region; AWS only.
        pub dr_secondary_vpc_cidr: Option<String>,
        /// Whether copies reach the standby region within a guaranteed time.
        pub enable_replication_time_control: bool,
    }

    /// A pool of nodes of a cluster.
    #[derive(PartialEq, Eq)]
    pub struct NodePool {
        /// Its id.
        pub id: NodePoolId,
        /// Its name, unique in the cluster.
        pub name: String,
        /// Its cluster.
        pub cluster_id: ClusterId,
        /// The provider of its cluster.
        pub cloud_provider: CloudProvider,
        /// Whether it runs workloads that name no pool.
        pub is_default: bool,
        /// Maximum number of nodes.
        pub max_node_count: u32,
        /// The machine of its nodes.
        pub node_instance_type: String,
        /// Machines of workers that fit on a node.
        pub supported_platform_machines: Vec<String>,
        /// When it was created.
        pub created_at: Timestamp,
        /// When it was last changed.
        pub updated_at: Timestamp,
    }

    /// A tag applied to all cloud resources of a cluster.
    #[derive(Default, PartialEq, Eq)]
    pub struct ClusterK8sTag {
        /// Its name, unique in the cluster.
        #[schemars(length(max = 128))]
        pub key: Option<String>,
        /// Its value.
        #[schemars(length(max = 256))]
        pub value: Option<String>,
    }

    /// Whether a cluster works.
    #[derive(PartialEq, Eq)]
    pub struct ClusterHealthStatus {
        /// In one word.
        pub value: HealthValue,
        /// The problems of the cluster.
        pub details: Vec<ClusterHealthStatusDetail>,
    }
}

impl Default for ClusterHealthStatus {
    /// It has not been checked yet.
    fn default() -> Self {
        Self { value: HealthValue::Unknown, details: Vec::new() }
    }
}

wire! {
    /// Something that is wrong with a cluster.
    #[derive(PartialEq, Eq)]
    pub struct ClusterHealthStatusDetail {
        /// A word that a program can act on.
        pub code: String,
        /// What is wrong, as a message that a person can act on.
        pub description: String,
        /// How bad it is.
        pub severity: String,
        /// The component that has the problem.
        pub component: Option<String>,
    }

    /// Details of a cluster that are known once it exists.
    #[derive(Default, PartialEq, Eq)]
    pub struct ClusterMetadata {
        /// Addresses that its traffic comes from.
        #[serde(rename = "externalIPs")]
        pub external_ips: Vec<String>,
        /// The address of its name server.
        pub kube_dns_ip: Option<String>,
        /// The identity provider of its workloads.
        pub oidc_issuer_url: Option<String>,
    }

    /// A page of clusters.
    page ClustersPaginated {
        /// The clusters.
        clusters: Vec<Cluster>
    }
}
