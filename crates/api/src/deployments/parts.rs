//! Parts of a deployment.

use crate::enums::HibernationEvent;
use crate::{NodePoolId, Timestamp, WorkerQueueId, WrittenTime};

wire! {
    /// A worker queue.
    #[derive(PartialEq)]
    pub struct WorkerQueue {
        /// Its id.
        pub id: WorkerQueueId,
        /// Its name.
        pub name: String,
        /// Whether tasks without a queue run there.
        pub is_default: bool,
        /// The size of its workers.
        pub platform_machine: Option<String>,
        /// The node pool of its workers.
        pub node_pool_id: Option<NodePoolId>,
        /// The least workers.
        pub min_worker_count: u32,
        /// The most workers.
        pub max_worker_count: u32,
        /// How many tasks a worker runs at once.
        pub worker_concurrency: u32,
        /// CPU of a worker.
        pub pod_cpu: String,
        /// Memory of a worker.
        pub pod_memory: String,
        /// Disk of a worker.
        pub pod_ephemeral_storage: Option<String>,
    }

    /// An environment variable; a secret has no value here.
    pub struct DeploymentEnvironmentVariable {
        /// Its name.
        pub key: String,
        /// Its value, unless it is a secret.
        pub value: Option<String>,
        /// Whether it is a secret.
        pub is_secret: bool,
        /// When it was last changed.
        pub updated_at: Timestamp,
    }

    /// Remote execution of tasks.
    pub struct DeploymentRemoteExecution {
        /// Whether tasks run remotely.
        pub enabled: bool,
        /// Where agents report.
        pub remote_api_url: String,
        /// Addresses that agents may call from; none means any.
        pub allowed_ip_address_ranges: Vec<String>,
        /// Where agents put the logs of tasks.
        pub task_log_bucket: Option<String>,
        /// Where people find the logs of a task.
        pub task_log_url_pattern: Option<String>,
    }

    /// How a deployment scales.
    pub struct DeploymentScalingSpec {
        /// When it hibernates.
        pub hibernation_spec: Option<DeploymentHibernationSpec>,
    }

    /// When a deployment hibernates.
    pub struct DeploymentHibernationSpec {
        /// An override of the schedules.
        #[serde(rename = "override")]
        pub override_: Option<DeploymentHibernationOverride>,
        /// The schedules.
        pub schedules: Option<Vec<DeploymentHibernationSchedule>>,
    }

    /// An override of the hibernation schedules.
    #[derive(PartialEq)]
    pub struct DeploymentHibernationOverride {
        /// Whether it is in force.
        pub is_active: Option<bool>,
        /// Whether the deployment is to hibernate.
        pub is_hibernating: Option<bool>,
        /// When it expires; absent means never.
        pub override_until: Option<WrittenTime>,
    }

    /// A pair of times, as five-field cron expressions in UTC.
    #[derive(PartialEq, Eq)]
    pub struct DeploymentHibernationSchedule {
        /// Its description.
        #[schemars(length(max = 200))]
        pub description: Option<String>,
        /// When to hibernate, such as `0 20 * * *`.
        pub hibernate_at_cron: String,
        /// When to wake, such as `0 6 * * 1-5`.
        pub wake_at_cron: String,
        /// Whether the schedule is in force.
        pub is_enabled: bool,
    }

    /// How a deployment is scaled now.
    pub struct DeploymentScalingStatus {
        /// Whether it hibernates, and what comes next.
        pub hibernation_status: Option<DeploymentHibernationStatus>,
    }

    /// Whether a deployment hibernates, and what comes next.
    #[derive(PartialEq)]
    pub struct DeploymentHibernationStatus {
        /// Whether it is to hibernate now.
        pub is_hibernating: bool,
        /// When the deployment hibernates or wakes next.
        pub next_event_at: Option<Timestamp>,
        /// Whether it hibernates or wakes then.
        pub next_event_type: Option<HibernationEvent>,
        /// Why the deployment hibernates, or why it does not.
        pub reason: Option<String>,
    }
}
