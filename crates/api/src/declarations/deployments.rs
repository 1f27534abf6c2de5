//! Deployments in files of declarations.

use crate::enums::{CloudProvider, DeploymentType, Executor, SchedulerSize, WorkerMachineName};

wire! {
    /// A deployment.
    declared pub struct Deployment {
        /// Its name, unique in the workspace.
        pub name: String,
        /// Its workspace, by name.
        pub workspace: String,
        /// Its description.
        pub description: Option<String>,
        /// Where it runs; never changes.
        #[serde(rename = "type")]
        pub kind: Option<DeploymentType>,
        /// The cluster to run on, by name; excludes provider and region; never changes.
        pub cluster: Option<String>,
        /// The cloud provider to run at; goes with `region`; never changes.
        pub cloud_provider: Option<CloudProvider>,
        /// The region to run in; goes with `cloudProvider`; never changes.
        pub region: Option<String>,
        /// The runtime that it is created with. Later deploys change it, not this file.
        pub platform_runtime_version: Option<String>,
        /// The executor.
        pub executor: Option<Executor>,
        /// The size of its scheduler.
        pub scheduler_size: Option<SchedulerSize>,
        /// The size and number of its schedulers; of type HYBRID only.
        pub scheduler: Option<Scheduler>,
        /// Whether its components run in several replicas.
        pub is_high_availability: Option<bool>,
        /// Whether it may hibernate: can be switched off, never on.
        pub is_development_mode: Option<bool>,
        /// Whether only API tokens may create deploys.
        pub is_cicd_enforced: Option<bool>,
        /// Whether DAGs are deployed separately from images.
        pub is_dag_deploy_enabled: Option<bool>,
        /// Its worker queues; all of them.
        pub worker_queues: Option<Vec<WorkerQueue>>,
        /// CPU of a task's pod.
        pub default_task_pod_cpu: Option<String>,
        /// Memory of a task's pod.
        pub default_task_pod_memory: Option<String>,
        /// CPU of all pods together.
        pub resource_quota_cpu: Option<String>,
        /// Memory of all pods together.
        pub resource_quota_memory: Option<String>,
        /// The node pool of tasks' pods, by name.
        pub task_pod_node_pool: Option<String>,
        /// Its environment variables; all of them.
        pub environment_variables: Option<Vec<EnvironmentVariable>>,
        /// E-mail addresses that are notified of problems.
        pub contact_emails: Option<Vec<String>>,
        /// How it scales.
        pub scaling_spec: Option<ScalingSpec>,
        /// Remote execution of its tasks.
        pub remote_execution: Option<RemoteExecution>,
        /// Seconds that a change waits for running tasks before it restarts the workers.
        pub drain_grace_seconds: Option<u32>,
        /// Whether a deploy fails if a file of its DAGs cannot be imported, unless the live version has that error, too.
        pub is_strict_deploy_enabled: Option<bool>,
        /// For how many days DAG runs, their tasks and their logs are kept; 0 means for good.
        pub history_retention_days: Option<u32>,
        /// When older runs are removed: a cron expression in UTC.
        pub clean_up_cron: Option<String>,
    }

    /// The size and number of schedulers.
    declared pub struct Scheduler {
        /// The size, in units of 0.1 CPU and 0.375 GiB.
        pub au: u32,
        /// Number of schedulers.
        pub replicas: u32,
    }

    /// A worker queue.
    declared pub struct WorkerQueue {
        /// Its name; tasks without a queue run in `default`.
        pub name: String,
        /// The size of its workers.
        pub platform_machine: Option<WorkerMachineName>,
        /// The node pool of its workers, by name.
        pub node_pool: Option<String>,
        /// The least workers.
        pub min_worker_count: u32,
        /// The most workers.
        pub max_worker_count: u32,
        /// How many tasks a worker runs at once.
        pub worker_concurrency: u32,
        /// Disk of a worker.
        pub pod_ephemeral_storage: Option<String>,
    }

    /// An environment variable.
    declared pub struct EnvironmentVariable {
        /// Its name.
        pub key: String,
        /// Its value; write `${env:NAME}` for a secret.
        pub value: Option<String>,
        /// Whether it is a secret; the default is no.
        pub is_secret: Option<bool>,
    }

    /// How a deployment scales.
    declared pub struct ScalingSpec {
        /// When it hibernates.
        pub hibernation_spec: Option<HibernationSpec>,
    }

    /// When a deployment hibernates.
    declared pub struct HibernationSpec {
        /// The schedules; all of them.
        pub schedules: Option<Vec<HibernationSchedule>>,
    }

    /// A pair of times, as five-field cron expressions in UTC.
    declared pub struct HibernationSchedule {
        /// Its description.
        pub description: Option<String>,
        /// When to hibernate, such as `0 20 * * *`.
        pub hibernate_at_cron: String,
        /// When to wake, such as `0 6 * * 1-5`.
        pub wake_at_cron: String,
        /// Whether the schedule is in force.
        pub is_enabled: bool,
    }

    /// Remote execution of tasks.
    declared pub struct RemoteExecution {
        /// Whether tasks run remotely.
        pub enabled: bool,
        /// Addresses that agents may call from; none means any.
        pub allowed_ip_address_ranges: Option<Vec<String>>,
        /// Where agents put the logs of tasks.
        pub task_log_bucket: Option<String>,
        /// Where people find the logs of a task.
        pub task_log_url_pattern: Option<String>,
    }
}
