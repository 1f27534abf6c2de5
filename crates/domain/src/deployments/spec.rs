//! The desired state of a deployment, and what is known to run: two documents, stored next to the deployment's
//! columns.
//!
//! Fields are added with `#[serde(default)]`, so that older documents stay readable.

use podium_api::deployments::DeploymentHibernationSchedule;
use podium_api::deploys::DeployGit;
use podium_api::enums::{CloudProvider, DeploymentType, Executor, SchedulerSize, WorkerMachineName};
use podium_api::{DeployId, NodePoolId, Timestamp, WorkerQueueId, WrittenTime};
use serde::{Deserialize, Serialize};

use crate::options;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    pub kind: DeploymentType,
    pub description: String,
    /// The cloud provider that it runs at; none on the server's own infrastructure.
    pub cloud_provider: Option<CloudProvider>,
    pub region: Option<String>,
    pub runtime_version: String,
    pub executor: Executor,
    /// The size of its scheduler, unless it is HYBRID.
    pub scheduler_size: Option<SchedulerSize>,
    /// The size of its scheduler, if it is HYBRID.
    pub scheduler_au: Option<u32>,
    pub scheduler_replicas: u32,
    /// Whether its components run more than once.
    pub is_high_availability: bool,
    pub is_development_mode: bool,
    /// Whether only API tokens make deploys.
    pub is_cicd_enforced: bool,
    /// Whether DAGs are deployed apart from images.
    pub is_dag_deploy_enabled: bool,
    /// Its worker queues, by name; older documents have `default` first.
    pub worker_queues: Vec<Queue>,
    pub default_task_pod_cpu: Option<String>,
    pub default_task_pod_memory: Option<String>,
    /// CPU of all pods together.
    pub resource_quota_cpu: Option<String>,
    /// Memory of all pods together.
    pub resource_quota_memory: Option<String>,
    pub task_pod_node_pool_id: Option<NodePoolId>,
    pub environment_variables: Vec<EnvironmentVariable>,
    /// E-mail addresses that are notified of problems.
    pub contact_emails: Vec<String>,
    pub workload_identity: Option<String>,
    /// The same after a failover.
    pub dr_workload_identity: Option<String>,
    /// How long a change waits for running tasks, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain_grace_seconds: Option<u32>,
    /// Whether every deploy is strict, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_strict_deploy_enabled: Option<bool>,
    /// For how many days history is kept, if set; 0 means for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history_retention_days: Option<u32>,
    /// When older history is removed, if set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_up_cron: Option<String>,
    /// When that was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_up_since: Option<Timestamp>,
    pub remote_execution: Option<RemoteExecution>,
    pub hibernation: Hibernation,
    pub release: Release,
}

impl Spec {
    /// A deployment of a type with all its defaults and without queues, to which only its runtime was deployed.
    pub fn new(kind: DeploymentType, runtime_version: impl Into<String>) -> Self {
        let runtime_version = runtime_version.into();
        let hybrid = kind == DeploymentType::Hybrid;
        let sized = |text: String| (!hybrid).then_some(text);
        let (pod, quota) = (options::POD, options::QUOTA);
        Self {
            kind,
            description: String::new(),
            cloud_provider: None,
            region: None,
            executor: Executor::Celery,
            scheduler_size: (!hybrid).then_some(SchedulerSize::Small),
            scheduler_au: hybrid.then_some(options::AU_PER_SCHEDULER.default),
            scheduler_replicas: options::SCHEDULER_REPLICAS.default,
            is_high_availability: false,
            is_development_mode: false,
            is_cicd_enforced: false,
            is_dag_deploy_enabled: !hybrid,
            worker_queues: Vec::new(),
            default_task_pod_cpu: sized(pod.cpu.default.to_string()),
            default_task_pod_memory: sized(pod.memory().default.to_string()),
            resource_quota_cpu: sized(quota.cpu.default.to_string()),
            resource_quota_memory: sized(quota.memory().default.to_string()),
            task_pod_node_pool_id: None,
            environment_variables: Vec::new(),
            contact_emails: Vec::new(),
            workload_identity: None,
            dr_workload_identity: None,
            drain_grace_seconds: None,
            is_strict_deploy_enabled: None,
            history_retention_days: None,
            clean_up_cron: None,
            clean_up_since: None,
            remote_execution: None,
            hibernation: Hibernation::default(),
            release: Release { image_tag: runtime_version.clone(), ..Release::default() },
            runtime_version,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    pub id: WorkerQueueId,
    pub name: String,
    /// The size of its workers, unless the deployment is HYBRID.
    pub machine: Option<WorkerMachineName>,
    /// The node pool of its workers, if the deployment is HYBRID.
    pub node_pool_id: Option<NodePoolId>,
    pub min_workers: u32,
    pub max_workers: u32,
    /// How many tasks a worker runs at once.
    pub concurrency: u32,
    pub ephemeral_storage: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentVariable {
    pub key: String,
    /// Its value, unless it is a secret.
    pub value: Option<String>,
    /// Its value, if it is a secret.
    pub secret: Option<Secret>,
    pub updated_at: Timestamp,
}

/// A sealed secret, in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(pub String);

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemoteExecution {
    /// Addresses that agents may call from; none means any.
    pub allowed_ip_address_ranges: Vec<String>,
    /// Where agents put the logs of tasks.
    pub task_log_bucket: Option<String>,
    /// Where people find the logs of a task.
    pub task_log_url_pattern: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hibernation {
    pub schedules: Vec<DeploymentHibernationSchedule>,
    /// What outranks them.
    #[serde(rename = "override")]
    pub override_: Option<HibernationOverride>,
}

/// What outranks the schedules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HibernationOverride {
    pub is_hibernating: bool,
    /// When it expires; `None` means never.
    pub until: Option<WrittenTime>,
}

impl HibernationOverride {
    /// Whether it has not expired.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.until.as_ref().is_none_or(|until| until.at() > now)
    }
}

/// What is deployed: everything that a rollback restores, except for the runtime and the DAG-deploy setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// The deploy that made it; none before the first.
    pub deploy_id: Option<DeployId>,
    pub image_tag: String,
    pub dag_version: Option<String>,
    pub bundles: Vec<Bundle>,
    pub git: Option<DeployGit>,
    /// Whether it may only go live without import errors that the live version does not have.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_strict: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bundle {
    /// Where it is mounted, as requested.
    pub mount_path: String,
    pub bundle_type: String,
    pub version: String,
    /// The deploy that brought it.
    pub deploy_id: DeployId,
}

impl Bundle {
    /// Where it is below the environment's home.
    pub fn place(&self) -> &str {
        placed_at(&self.mount_path)
    }
}

/// Airflow's home in the reference image. Environments have another one here, and what is mounted below this one is
/// placed below theirs.
pub const REFERENCE_HOME: &str = "/usr/local/airflow/";

/// Where a mount path is below the environment's home, whether it was given as absolute or not.
pub fn placed_at(mount_path: &str) -> &str {
    mount_path.strip_prefix(REFERENCE_HOME).unwrap_or(mount_path)
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    pub image_tag: Option<String>,
    pub runtime_version: Option<String>,
    pub dag_version: Option<String>,
    pub bundles: Vec<RunningBundle>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningBundle {
    pub mount_path: String,
    pub version: String,
}

impl RunningBundle {
    /// Where it is below the environment's home.
    pub fn place(&self) -> &str {
        placed_at(&self.mount_path)
    }
}
