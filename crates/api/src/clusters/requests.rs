//! Requests to create and change clusters: a variant for each provider, and for each type.

use super::ClusterK8sTag;
use crate::enums::{CloudProvider, ClusterType};
use crate::union::{Union, Variant, no_fields};
use crate::{NodePoolId, WorkspaceId};

wire! {
    /// A new cluster, of any provider.
    pub struct CreateClusterRequest {
        /// Its provider.
        pub cloud_provider: CloudProvider,
        /// Its name, unique in the organization.
        #[schemars(length(min = 1, max = 128))]
        pub name: String,
        /// Its region at the provider.
        #[schemars(length(max = 100))]
        pub region: String,
        /// Who runs it, and for whom.
        pub r#type: ClusterType,
        /// The range of its network.
        #[schemars(length(max = 100))]
        pub vpc_subnet_range: String,
        /// The machine of its databases; HYBRID needs one.
        #[schemars(length(max = 100))]
        pub db_instance_type: Option<String>,
        /// The standby region; DEDICATED only.
        #[schemars(length(max = 100))]
        pub dr_region: Option<String>,
        /// The range of the network in the standby region; same as `vpcSubnetRange` unless given.
        #[schemars(length(max = 100))]
        pub dr_vpc_subnet_range: Option<String>,
        /// Another range of the network in the standby region.
        #[schemars(length(max = 100))]
        pub dr_secondary_vpc_cidr: Option<String>,
        /// The range of pods in the standby region; same as `podSubnetRange` unless given.
        #[schemars(length(max = 100))]
        pub dr_pod_subnet_range: Option<String>,
        /// The range of services in the standby region; same as `serviceSubnetRange` unless given.
        #[schemars(length(max = 100))]
        pub dr_service_subnet_range: Option<String>,
        /// The range of the service peering in the standby region; same as `servicePeeringRange` unless given.
        #[schemars(length(max = 100))]
        pub dr_service_peering_range: Option<String>,
        /// Whether copies reach the standby region within a guaranteed time.
        pub enable_replication_time_control: Option<bool>,
        /// Whether traffic leaves by a private network.
        pub is_private_network_egress_enabled: Option<bool>,
        /// Tags applied to all of the cluster's cloud resources.
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
        /// The workspaces whose deployments it accepts; an empty list means all.
        #[schemars(length(max = 1000))]
        pub workspace_ids: Option<Vec<WorkspaceId>>,
    }

    /// A new pool of nodes.
    pub struct CreateNodePoolRequest {
        /// Its name, unique in the cluster.
        pub name: String,
        /// The machine of its nodes.
        pub node_instance_type: String,
        /// Maximum number of nodes.
        pub max_node_count: i64,
        /// Whether it runs workloads that name no pool; exactly one pool does.
        pub is_default: Option<bool>,
    }

    /// New settings of a cluster, of either type.
    #[derive(Default)]
    pub struct UpdateClusterRequest {
        /// The type that it has.
        pub cluster_type: Option<ClusterType>,
        /// Its name, unique in the organization.
        #[schemars(length(min = 1, max = 128))]
        pub name: Option<String>,
        /// Tags applied to all of the cluster's cloud resources.
        #[schemars(length(max = 1000))]
        pub k8s_tags: Option<Vec<ClusterK8sTag>>,
        /// The machine of its databases.
        #[schemars(length(max = 100))]
        pub db_instance_type: Option<String>,
        /// Whether the cluster has a standby region; `true` needs a `drRegion`.
        pub enable_dr: Option<bool>,
        /// The standby region, set when disaster recovery is switched on.
        #[schemars(length(max = 100))]
        pub dr_region: Option<String>,
        /// The range of the network in the standby region.
        #[schemars(length(max = 100))]
        pub dr_vpc_subnet_range: Option<String>,
        /// The range of pods in the standby region.
        #[schemars(length(max = 100))]
        pub dr_pod_subnet_range: Option<String>,
        /// The range of services in the standby region.
        #[schemars(length(max = 100))]
        pub dr_service_subnet_range: Option<String>,
        /// The range of the service peering in the standby region.
        #[schemars(length(max = 100))]
        pub dr_service_peering_range: Option<String>,
        /// Whether copies reach the standby region within a guaranteed time.
        pub enable_replication_time_control: Option<bool>,
        /// `true` moves all deployments to the standby region, `false` moves them back; nothing else changes.
        pub is_failed_over: Option<bool>,
        /// Whether traffic leaves by a private network; AWS only.
        pub is_private_network_egress_enabled: Option<bool>,
        /// All pools of nodes: pools with a known id or name are changed, other pools added, and missing pools removed.
        #[schemars(length(max = 1000))]
        pub node_pools: Option<Vec<UpdateNodePoolRequest>>,
        /// The workspaces whose deployments it accepts; an empty list means all.
        #[schemars(length(max = 1000))]
        pub workspace_ids: Option<Vec<WorkspaceId>>,
    }

    /// A pool of nodes, changed or new.
    pub struct UpdateNodePoolRequest {
        /// Its id, where it has one.
        pub id: Option<NodePoolId>,
        /// Its name, unique in the cluster.
        pub name: String,
        /// The machine of its nodes.
        pub node_instance_type: String,
        /// Maximum number of nodes.
        pub max_node_count: i64,
        /// Whether it runs workloads that name no pool; exactly one pool does.
        pub is_default: Option<bool>,
    }
}

impl Union for CreateClusterRequest {
    const TAG: &'static str = "cloudProvider";
    const VARIANTS: &'static [Variant] = &[
        Variant {
            word: "AWS",
            name: "CreateAwsClusterRequest",
            without: &[
                "tenantId",
                "podSubnetRange",
                "serviceSubnetRange",
                "servicePeeringRange",
                "drPodSubnetRange",
                "drServiceSubnetRange",
                "drServicePeeringRange",
            ],
            required: &[],
            fields: no_fields,
        },
        Variant {
            word: "AZURE",
            name: "CreateAzureClusterRequest",
            without: &[
                "podSubnetRange",
                "serviceSubnetRange",
                "servicePeeringRange",
                "drPodSubnetRange",
                "drServiceSubnetRange",
                "drServicePeeringRange",
                "secondaryVpcCidr",
                "isPrivateNetworkEgressEnabled",
            ],
            required: &[],
            fields: no_fields,
        },
        Variant {
            word: "GCP",
            name: "CreateGcpClusterRequest",
            without: &["tenantId", "secondaryVpcCidr", "isPrivateNetworkEgressEnabled"],
            required: &["podSubnetRange", "serviceSubnetRange", "servicePeeringRange"],
            fields: no_fields,
        },
    ];
}

impl Union for UpdateClusterRequest {
    const TAG: &'static str = "clusterType";
    const VARIANTS: &'static [Variant] = &[
        Variant {
            word: "DEDICATED",
            name: "UpdateDedicatedClusterRequest",
            without: &[],
            required: &["k8sTags", "name"],
            fields: no_fields,
        },
        Variant {
            word: "HYBRID",
            name: "UpdateHybridClusterRequest",
            without: &[
                "name",
                "k8sTags",
                "dbInstanceType",
                "enableDr",
                "drRegion",
                "drVpcSubnetRange",
                "drPodSubnetRange",
                "drServiceSubnetRange",
                "drServicePeeringRange",
                "enableReplicationTimeControl",
                "isFailedOver",
                "isPrivateNetworkEgressEnabled",
                "nodePools",
            ],
            required: &["clusterType"],
            fields: no_fields,
        },
    ];
}
