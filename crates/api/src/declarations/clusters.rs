//! Clusters in files of declarations.

use crate::enums::{CloudProvider, ClusterType};

wire! {
    /// A cluster.
    declared pub struct Cluster {
        /// Its name, unique in the organization.
        pub name: String,
        /// Who runs it, and for whom; never changes.
        #[serde(rename = "type")]
        pub kind: Option<ClusterType>,
        /// Its provider; never changes.
        pub cloud_provider: Option<CloudProvider>,
        /// Its region at the provider; never changes.
        pub region: Option<String>,
        /// The account at the provider; never changes.
        pub provider_account: Option<String>,
        /// The tenant at the provider; never changes.
        pub tenant_id: Option<String>,
        /// The machine of its databases.
        pub db_instance_type: Option<String>,
        /// The range of its network; never changes.
        pub vpc_subnet_range: Option<String>,
        /// The range of its pods; never changes.
        pub pod_subnet_range: Option<String>,
        /// The range of its services; never changes.
        pub service_subnet_range: Option<String>,
        /// The range of its service peering; never changes.
        pub service_peering_range: Option<String>,
        /// Another range of its network; never changes.
        pub secondary_vpc_cidr: Option<String>,
        /// Whether traffic leaves by a private network.
        pub is_private_network_egress_enabled: Option<bool>,
        /// The standby region.
        pub dr_region: Option<String>,
        /// The range of the network in the standby region.
        pub dr_vpc_subnet_range: Option<String>,
        /// The range of pods in the standby region.
        pub dr_pod_subnet_range: Option<String>,
        /// The range of services in the standby region.
        pub dr_service_subnet_range: Option<String>,
        /// The range of the service peering in the standby region.
        pub dr_service_peering_range: Option<String>,
        /// Another range of the network in the standby region; never changes.
        pub dr_secondary_vpc_cidr: Option<String>,
        /// Whether copies reach the standby region within a guaranteed time.
        pub enable_replication_time_control: Option<bool>,
        /// Tags applied to all of the cluster's cloud resources.
        pub tags: Option<Vec<Tag>>,
        /// Pools of nodes; all of them.
        pub node_pools: Option<Vec<NodePool>>,
        /// The workspaces whose deployments it accepts, by name; an empty list means all.
        pub workspaces: Option<Vec<String>>,
    }

    /// A tag of cloud resources.
    declared pub struct Tag {
        /// Its name, unique in the cluster.
        pub key: String,
        /// Its value.
        pub value: Option<String>,
    }

    /// A pool of nodes.
    declared pub struct NodePool {
        /// Its name, unique in the cluster.
        pub name: String,
        /// The machine of its nodes.
        pub node_instance_type: String,
        /// Maximum number of nodes.
        pub max_node_count: u32,
        /// Whether it runs workloads that name no pool; exactly one pool does.
        pub is_default: Option<bool>,
    }
}
