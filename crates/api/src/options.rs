//! What can be chosen for clusters and deployments.

use crate::enums::{CloudProvider, ClusterType, DeploymentType, Executor, SchedulerSize, WorkerMachineName};
use crate::path::InOrganization;
use crate::reply::Many;
use crate::{DeploymentId, Named, Timestamp};

endpoints! {
    tag "Options";

    /// Get the options for clusters
    ForClusters: GET "/organizations/{organizationId}/cluster-options" as "GetClusterOptions" {
        path: InOrganization, query: GetClusterOptions, reply: Many<Vec<ClusterOptions>>,
        open_to: MembersOnly,
    }
    /// Get the options for deployments
    ForDeployments: GET "/organizations/{organizationId}/deployment-options" as "GetDeploymentOptions" {
        path: InOrganization, query: GetDeploymentOptions, reply: Many<DeploymentOptions>,
        permission: "organization.deploymentConfigurations.get",
    }
}

wire! {
    /// Which options of clusters to read.
    pub struct GetClusterOptions {
        /// Only options of one provider.
        pub provider: Option<CloudProvider>,
        /// The type of the cluster.
        pub r#type: ClusterType,
    }

    /// Which options of deployments to read.
    #[derive(Default)]
    pub struct GetDeploymentOptions {
        /// Only the runtimes that this deployment may move to.
        pub deployment_id: Option<Named<DeploymentId>>,
        /// The type of deployment that is thought of; it narrows nothing.
        pub deployment_type: Option<DeploymentType>,
        /// The executor that is thought of; it narrows nothing.
        pub executor: Option<Executor>,
        /// The intended provider; machines are the same at every provider.
        pub cloud_provider: Option<CloudProvider>,
    }

    /// Options for a cluster at one provider.
    pub struct ClusterOptions {
        /// The provider.
        pub provider: CloudProvider,
        /// Its regions.
        pub regions: Vec<ProviderRegion>,
        /// The region to suggest.
        pub default_region: ProviderRegion,
        /// Machines of nodes.
        pub node_instances: Vec<ProviderInstanceType>,
        /// The machine of nodes to suggest.
        pub default_node_instance: ProviderInstanceType,
        /// Machines of databases.
        pub database_instances: Vec<ProviderInstanceType>,
        /// The default machine for a cluster's databases.
        pub default_database_instance: ProviderInstanceType,
        /// The least nodes of a pool.
        pub node_count_min: u32,
        /// The number of nodes to suggest.
        pub node_count_default: u32,
        /// The most nodes of a pool.
        pub node_count_max: u32,
        /// The range of the network to suggest.
        pub default_vpc_subnet_range: String,
        /// The range of pods to suggest.
        pub default_pod_subnet_range: Option<String>,
        /// The range of services to suggest.
        pub default_service_subnet_range: Option<String>,
        /// The range of the service peering to suggest.
        pub default_service_peering_range: Option<String>,
    }

    /// A region of a provider.
    #[derive(PartialEq, Eq)]
    pub struct ProviderRegion {
        /// Its name at the provider.
        pub name: String,
        /// Where the region is.
        pub location: String,
        /// Whether it takes no new clusters.
        pub limited: bool,
        /// Machines that it does not have.
        pub banned_instances: Vec<String>,
    }

    /// A machine of a provider.
    #[derive(PartialEq, Eq)]
    pub struct ProviderInstanceType {
        /// Its name at the provider.
        pub name: String,
        /// How many processors it has.
        pub cpu: u32,
        /// Memory.
        pub memory: String,
    }

    /// Options for a deployment.
    pub struct DeploymentOptions {
        /// Runtimes, the newest first.
        pub runtime_releases: Vec<RuntimeRelease>,
        /// Executors.
        pub executors: Vec<String>,
        /// Sizes of the scheduler, the smallest first.
        pub scheduler_machines: Vec<SchedulerMachine>,
        /// Machines of workers, the smallest first.
        pub worker_machines: Vec<WorkerMachine>,
        /// Bounds of worker queues.
        pub worker_queues: WorkerQueueOptions,
        /// Bounds of task pods and of all of them together.
        pub resource_quotas: ResourceQuotaOptions,
        /// Identities that the deployment could take on.
        pub workload_identity_options: Vec<WorkloadIdentityOption>,
    }

    /// A runtime: what a deployment runs.
    pub struct RuntimeRelease {
        /// The version of the runtime.
        pub version: String,
        /// The version of Apache Airflow in it.
        pub airflow_version: String,
        /// How far it is maintained: `stable` or `deprecated`.
        pub channel: String,
        /// When it was released.
        pub release_date: Timestamp,
        /// Whether it brings a new schema of Airflow's database.
        pub airflow_database_migration: bool,
        /// Whether it brings a new schema of the platform's own tables.
        pub platform_database_migration: bool,
    }

    /// A size of the scheduler.
    pub struct SchedulerMachine {
        /// Its name.
        pub name: SchedulerSize,
        /// Processors and memory of the machine.
        pub spec: MachineSpec,
    }

    /// A machine of workers.
    pub struct WorkerMachine {
        /// Its name.
        pub name: WorkerMachineName,
        /// Processors and memory of the machine.
        pub spec: MachineSpec,
        /// How many tasks it runs at once.
        pub concurrency: Range,
    }

    /// What a machine has.
    pub struct MachineSpec {
        /// Processors.
        pub cpu: String,
        /// Memory.
        pub memory: String,
        /// Disk that ends with the machine.
        pub ephemeral_storage: Option<String>,
        /// How many tasks it runs at once by default.
        pub concurrency: Option<u32>,
    }

    /// Bounds of a number.
    #[derive(Copy)]
    pub struct Range {
        /// The least.
        pub floor: u32,
        /// The default value.
        pub default: u32,
        /// The most.
        pub ceiling: u32,
    }

    /// Bounds of worker queues.
    pub struct WorkerQueueOptions {
        /// The workers that are always there.
        pub min_workers: Range,
        /// The workers that there can be.
        pub max_workers: Range,
        /// How many tasks a worker runs at once; a machine may allow less.
        pub worker_concurrency: Range,
    }

    /// Bounds of task pods and of all of them together.
    pub struct ResourceQuotaOptions {
        /// A task pod that does not say what it needs.
        pub default_pod_size: ResourceOption,
        /// All task pods together.
        pub resource_quota: ResourceOption,
    }

    /// Bounds of processors and memory.
    pub struct ResourceOption {
        /// Processors.
        pub cpu: ResourceRange,
        /// Memory.
        pub memory: ResourceRange,
    }

    /// Bounds of an amount.
    pub struct ResourceRange {
        /// The least.
        pub floor: String,
        /// The default value.
        pub default: String,
        /// The most.
        pub ceiling: String,
    }

    /// An identity that a deployment could take on.
    pub struct WorkloadIdentityOption {
        /// The name that people know it by.
        pub label: String,
        /// Its name at the provider.
        pub role: String,
    }
}
