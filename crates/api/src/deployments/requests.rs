//! Requests to create and change deployments, which come in a variant for each type of deployment.

use schemars::{Schema, SchemaGenerator, json_schema};

use super::parts::DeploymentHibernationSchedule;
use crate::decode::MAY_BE_EMPTY;
use crate::enums::{CloudProvider, DeploymentType, Executor, SchedulerSize, WorkerMachineName};
use crate::union::{Union, Variant, narrowed, no_fields};
use crate::{ClusterId, NodePoolId, Patch, WorkerQueueId, WorkspaceId, WrittenTime};

wire! {
    /// A new deployment; `name` and `workspaceId` are enough.
    pub struct CreateDeploymentRequest {
        /// Where it runs; derived from the infrastructure if omitted.
        #[serde(rename = "type")]
        pub kind: Option<DeploymentType>,
        /// Its name, unique in the workspace.
        #[schemars(length(min = 1, max = 500))]
        pub name: String,
        /// Its workspace.
        pub workspace_id: WorkspaceId,
        /// Its description.
        #[schemars(length(max = 1000))]
        pub description: Option<String>,
        /// The cluster to run on; excludes provider and region.
        pub cluster_id: Option<ClusterId>,
        /// The cloud provider to run at; goes with `region`.
        pub cloud_provider: Option<CloudProvider>,
        /// The region to run in; goes with `cloudProvider`.
        pub region: Option<String>,
        /// The runtime; the newest stable one if omitted.
        pub platform_runtime_version: Option<String>,
        /// The executor.
        pub executor: Option<Executor>,
        /// The size of its scheduler.
        pub scheduler_size: Option<SchedulerSize>,
        /// The size and number of its schedulers.
        #[serde(default)]
        #[schemars(schema_with = "new_instance_spec")]
        pub scheduler: Option<InstanceSpecRequest>,
        /// Whether its components run in several replicas.
        pub is_high_availability: Option<bool>,
        /// Whether it may hibernate.
        pub is_development_mode: Option<bool>,
        /// Whether only API tokens may create deploys; the workspace decides if it is omitted.
        pub is_cicd_enforced: Option<bool>,
        /// Whether DAGs are deployed separately from images.
        pub is_dag_deploy_enabled: Option<bool>,
        /// Its worker queues.
        #[serde(default)]
        #[schemars(schema_with = "machine_queues")]
        pub worker_queues: Option<Vec<WorkerQueueRequest>>,
        /// CPU of a task's pod.
        pub default_task_pod_cpu: Option<String>,
        /// Memory of a task's pod.
        pub default_task_pod_memory: Option<String>,
        /// CPU of all pods together.
        pub resource_quota_cpu: Option<String>,
        /// Memory of all pods together.
        pub resource_quota_memory: Option<String>,
        /// The node pool of tasks' pods.
        pub task_pod_node_pool_id: Option<NodePoolId>,
        /// Its environment variables.
        #[schemars(length(max = 1000))]
        pub environment_variables: Option<Vec<DeploymentEnvironmentVariableRequest>>,
        /// E-mail addresses that are notified of problems.
        #[schemars(length(max = 100))]
        pub contact_emails: Option<Vec<String>>,
        /// How it scales.
        pub scaling_spec: Option<DeploymentScalingSpecRequest>,
        /// Remote execution of its tasks.
        pub remote_execution: Option<DeploymentRemoteExecutionRequest>,
        /// The cloud identity of its workloads.
        #[schemars(length(max = 500))]
        pub workload_identity: Option<String>,
        /// The cloud identity of its workloads after a failover.
        #[schemars(length(max = 500))]
        pub dr_workload_identity: Option<String>,
        /// Seconds that a change waits for running tasks before it restarts the workers; ten minutes if it is not
        /// set.
        #[schemars(range(min = 0, max = 86400))]
        pub drain_grace_seconds: Option<u32>,
        /// Whether a deploy fails if a file of its DAGs cannot be imported, unless the live version has that error, too.
        pub is_strict_deploy_enabled: Option<bool>,
        /// For how many days DAG runs, their tasks and their logs are kept; 0, and nothing, mean for good.
        #[schemars(range(min = 0, max = 3650))]
        pub history_retention_days: Option<u32>,
        /// When older runs are removed: a cron expression in UTC, every night at three if it is not set.
        #[schemars(length(max = 100))]
        pub clean_up_cron: Option<String>,
    }

    /// New settings of a deployment.
    pub struct UpdateDeploymentRequest {
        /// Where it runs, which does not change.
        #[serde(rename = "type")]
        pub kind: Option<DeploymentType>,
        /// Its name, unique in the workspace.
        #[schemars(length(min = 1, max = 500))]
        pub name: String,
        /// Its workspace; another one moves it there.
        pub workspace_id: WorkspaceId,
        /// Its description.
        #[schemars(length(max = 1000))]
        pub description: Option<String>,
        /// The executor.
        pub executor: Executor,
        /// The size of its scheduler.
        pub scheduler_size: Option<SchedulerSize>,
        /// The size and number of its schedulers.
        #[serde(default)]
        #[schemars(schema_with = "instance_spec")]
        pub scheduler: Option<InstanceSpecRequest>,
        /// Whether its components run in several replicas.
        pub is_high_availability: Option<bool>,
        /// Whether it may hibernate: can be switched off, never on.
        pub is_development_mode: Option<bool>,
        /// Whether only API tokens may create deploys.
        pub is_cicd_enforced: bool,
        /// Whether DAGs are deployed separately from images.
        pub is_dag_deploy_enabled: bool,
        /// Its worker queues: an entry with a known id, or else a known name, changes that queue; queues not listed are
        /// deleted.
        #[serde(default)]
        #[schemars(schema_with = "queues")]
        pub worker_queues: Option<Vec<WorkerQueueRequest>>,
        /// CPU of a task's pod.
        pub default_task_pod_cpu: Option<String>,
        /// Memory of a task's pod.
        pub default_task_pod_memory: Option<String>,
        /// CPU of all pods together.
        pub resource_quota_cpu: Option<String>,
        /// Memory of all pods together.
        pub resource_quota_memory: Option<String>,
        /// The node pool of tasks' pods.
        pub task_pod_node_pool_id: Option<NodePoolId>,
        /// Its environment variables, all of them.
        #[schemars(length(max = 1000))]
        pub environment_variables: Vec<DeploymentEnvironmentVariableRequest>,
        /// E-mail addresses that are notified of problems.
        #[schemars(length(max = 100))]
        pub contact_emails: Option<Vec<String>>,
        /// How it scales.
        pub scaling_spec: Option<DeploymentScalingSpecRequest>,
        /// Remote execution of its tasks.
        pub remote_execution: Option<DeploymentRemoteExecutionRequest>,
        /// The cloud identity of its workloads.
        #[schemars(length(max = 500))]
        pub workload_identity: Option<String>,
        /// The cloud identity of its workloads after a failover.
        #[schemars(length(max = 500))]
        pub dr_workload_identity: Option<String>,
        /// Seconds that a change waits for running tasks before it restarts the workers; ten minutes if it is not
        /// set.
        #[schemars(range(min = 0, max = 86400))]
        pub drain_grace_seconds: Option<u32>,
        /// Whether a deploy fails if a file of its DAGs cannot be imported, unless the live version has that error, too.
        pub is_strict_deploy_enabled: Option<bool>,
        /// For how many days DAG runs, their tasks and their logs are kept; 0, and nothing, mean for good.
        #[schemars(range(min = 0, max = 3650))]
        pub history_retention_days: Option<u32>,
        /// When older runs are removed: a cron expression in UTC, every night at three if it is not set.
        #[schemars(length(max = 100))]
        pub clean_up_cron: Option<String>,
    }
}

const OF_HYBRID: &[&str] = &["scheduler", "taskPodNodePoolId"];
const NOT_OF_HYBRID: &[&str] = &[
    "cloudProvider",
    "region",
    "schedulerSize",
    "isHighAvailability",
    "isDevelopmentMode",
    "scalingSpec",
    "defaultTaskPodCpu",
    "defaultTaskPodMemory",
    "resourceQuotaCpu",
    "resourceQuotaMemory",
    "remoteExecution",
];

impl Union for CreateDeploymentRequest {
    const TAG: &'static str = "type";
    const VARIANTS: &'static [Variant] = &[
        Variant {
            word: "STANDARD",
            name: "CreateStandardDeploymentRequest",
            without: OF_HYBRID,
            required: &[],
            fields: no_fields,
        },
        Variant {
            word: "DEDICATED",
            name: "CreateDedicatedDeploymentRequest",
            without: &["scheduler", "taskPodNodePoolId", "cloudProvider", "region"],
            required: &[],
            fields: no_fields,
        },
        Variant {
            word: "HYBRID",
            name: "CreateHybridDeploymentRequest",
            without: NOT_OF_HYBRID,
            required: &[],
            fields: |generator| {
                vec![("executor", hybrid_executor()), ("workerQueues", node_pool_queues(generator))]
            },
        },
    ];
}

impl Union for UpdateDeploymentRequest {
    const TAG: &'static str = "type";
    const MAY_LACK_TAG: bool = true;
    const VARIANTS: &'static [Variant] = &[
        Variant {
            word: "STANDARD",
            name: "UpdateStandardDeploymentRequest",
            without: OF_HYBRID,
            required: &["type", "isHighAvailability", "schedulerSize"],
            fields: no_fields,
        },
        Variant {
            word: "DEDICATED",
            name: "UpdateDedicatedDeploymentRequest",
            without: OF_HYBRID,
            required: &["type", "isHighAvailability", "schedulerSize"],
            fields: no_fields,
        },
        Variant {
            word: "HYBRID",
            name: "UpdateHybridDeploymentRequest",
            without: NOT_OF_HYBRID,
            required: &["type", "scheduler"],
            fields: |_| vec![("executor", hybrid_executor())],
        },
    ];
}

wire! {
    /// The size and number of schedulers.
    #[derive(Copy)]
    pub struct InstanceSpecRequest {
        /// The size, in units of 0.1 CPU and 0.375 GiB.
        #[schemars(range(min = 5, max = 24))]
        pub au: Option<u32>,
        /// Number of schedulers.
        #[schemars(range(min = 1, max = 4))]
        pub replicas: Option<u32>,
    }

    /// A worker queue.
    pub struct WorkerQueueRequest {
        /// The queue that is changed.
        pub id: Option<WorkerQueueId>,
        /// Its name: lower-case letters, digits and `-`, beginning with a letter.
        #[schemars(length(max = 63))]
        pub name: String,
        /// Whether tasks without a queue run there: true for the queue named `default`.
        pub is_default: bool,
        /// The size of its workers.
        pub platform_machine: Option<WorkerMachineName>,
        /// The node pool of its workers.
        pub node_pool_id: Option<NodePoolId>,
        /// The least workers.
        #[schemars(range(min = 0))]
        pub min_worker_count: u32,
        /// The most workers.
        #[schemars(range(min = 1))]
        pub max_worker_count: u32,
        /// How many tasks a worker runs at once.
        #[schemars(range(min = 1))]
        pub worker_concurrency: u32,
        /// Disk of a worker.
        pub pod_ephemeral_storage: Option<String>,
    }

    /// An environment variable.
    pub struct DeploymentEnvironmentVariableRequest {
        /// Its name.
        #[schemars(length(min = 1, max = 256))]
        pub key: String,
        /// Its value; a secret without one keeps the stored value.
        #[schemars(length(max = 32768), extend("format" = "password"))]
        pub value: Option<String>,
        /// Whether it is a secret.
        pub is_secret: bool,
    }

    /// Remote execution of tasks.
    pub struct DeploymentRemoteExecutionRequest {
        /// Whether tasks run remotely.
        pub enabled: bool,
        /// Addresses that agents may call from; none means any.
        #[schemars(length(max = 1000))]
        pub allowed_ip_address_ranges: Option<Vec<String>>,
        /// Where agents put the logs of tasks.
        #[schemars(length(max = 1000))]
        pub task_log_bucket: Option<String>,
        /// Where people find the logs of a task.
        #[schemars(length(max = 1000))]
        pub task_log_url_pattern: Option<String>,
    }

    /// How a deployment is to scale.
    pub struct DeploymentScalingSpecRequest {
        /// When it is to hibernate.
        pub hibernation_spec: Option<DeploymentHibernationSpecRequest>,
    }

    /// When a deployment is to hibernate.
    pub struct DeploymentHibernationSpecRequest {
        /// An override of the schedules.
        #[serde(rename = "override")]
        pub override_: Option<DeploymentHibernationOverrideRequest>,
        /// The schedules.
        #[schemars(length(max = 10))]
        pub schedules: Option<Vec<DeploymentHibernationSchedule>>,
    }

    /// An override of the hibernation schedules.
    pub struct DeploymentHibernationOverrideRequest {
        /// Whether the deployment is to hibernate.
        pub is_hibernating: Option<bool>,
        /// When it expires; absent means never.
        pub override_until: Option<WrittenTime>,
    }

    /// An override of the hibernation schedules, from now on.
    pub struct OverrideDeploymentHibernationBody {
        /// Whether the deployment is to hibernate; `null` deletes the override.
        pub is_hibernating: Patch<bool>,
        /// When it expires; absent or `null` means never.
        pub override_until: Option<WrittenTime>,
    }
}

fn hybrid_executor() -> Schema {
    json_schema!({ "type": "string", "enum": ["CELERY", "KUBERNETES"], "description": "The executor." })
}

fn new_instance_spec(generator: &mut SchemaGenerator) -> Schema {
    narrowed::<InstanceSpecRequest>(generator, "CreateDeploymentInstanceSpecRequest", &[], &[])
}

fn instance_spec(generator: &mut SchemaGenerator) -> Schema {
    narrowed::<InstanceSpecRequest>(
        generator,
        "UpdateDeploymentInstanceSpecRequest",
        &[],
        &["au", "replicas"],
    )
}

fn queues(generator: &mut SchemaGenerator) -> Schema {
    queues_of(&narrowed::<WorkerQueueRequest>(generator, "UpdateWorkerQueueRequest", &[], &[]))
}

fn machine_queues(generator: &mut SchemaGenerator) -> Schema {
    let (name, without, required) = ("WorkerQueueRequest", ["nodePoolId"], ["platformMachine"]);
    queues_of(&narrowed::<WorkerQueueRequest>(generator, name, &without, &required))
}

fn node_pool_queues(generator: &mut SchemaGenerator) -> Schema {
    let without = ["platformMachine", "podEphemeralStorage"];
    queues_of(&narrowed::<WorkerQueueRequest>(
        generator,
        "HybridWorkerQueueRequest",
        &without,
        &["nodePoolId"],
    ))
}

/// An executor without queues is sent an empty list as well as none: which one it is, the rules know.
fn queues_of(queue: &Schema) -> Schema {
    json_schema!({ "type": "array", "items": queue, "minItems": 1, "maxItems": 100, (MAY_BE_EMPTY): true })
}
