//! The settings in a request, whether it creates a deployment or changes one.

use podium_api::NodePoolId;
use podium_api::deployments::{
    CreateDeploymentRequest, DeploymentEnvironmentVariableRequest, DeploymentRemoteExecutionRequest,
    DeploymentScalingSpecRequest, InstanceSpecRequest, UpdateDeploymentRequest, WorkerQueueRequest,
};
use podium_api::enums::{Executor, SchedulerSize};

/// The settings that a request may carry, of a new deployment or of a stored one.
pub(super) struct Requested<'a> {
    pub(super) description: Option<&'a str>,
    pub(super) executor: Option<Executor>,
    pub(super) scheduler_size: Option<SchedulerSize>,
    pub(super) scheduler: Option<InstanceSpecRequest>,
    pub(super) is_high_availability: Option<bool>,
    pub(super) is_development_mode: Option<bool>,
    pub(super) is_cicd_enforced: Option<bool>,
    pub(super) is_dag_deploy_enabled: Option<bool>,
    pub(super) worker_queues: Option<&'a [WorkerQueueRequest]>,
    pub(super) default_task_pod: (Option<&'a str>, Option<&'a str>),
    pub(super) resource_quota: (Option<&'a str>, Option<&'a str>),
    pub(super) task_pod_node_pool_id: Option<NodePoolId>,
    pub(super) environment_variables: Option<&'a [DeploymentEnvironmentVariableRequest]>,
    pub(super) contact_emails: Option<&'a [String]>,
    pub(super) scaling_spec: Option<&'a DeploymentScalingSpecRequest>,
    pub(super) remote_execution: Option<&'a DeploymentRemoteExecutionRequest>,
    pub(super) workload_identity: Option<&'a str>,
    pub(super) drain_grace_seconds: Option<u32>,
    pub(super) is_strict_deploy_enabled: Option<bool>,
    pub(super) clean_up: (Option<u32>, Option<&'a str>),
    pub(super) dr_workload_identity: Option<&'a str>,
}

/// The settings of a request of either kind: most fields have the same names and types.
macro_rules! requested {
    ($body:ident; $($field:ident: $value:expr),+ $(,)?) => {
        Requested {
            description: $body.description.as_deref(),
            scheduler_size: $body.scheduler_size,
            scheduler: $body.scheduler,
            is_high_availability: $body.is_high_availability,
            is_development_mode: $body.is_development_mode,
            worker_queues: $body.worker_queues.as_deref(),
            default_task_pod: ($body.default_task_pod_cpu.as_deref(), $body.default_task_pod_memory.as_deref()),
            resource_quota: ($body.resource_quota_cpu.as_deref(), $body.resource_quota_memory.as_deref()),
            task_pod_node_pool_id: $body.task_pod_node_pool_id,
            contact_emails: $body.contact_emails.as_deref(),
            scaling_spec: $body.scaling_spec.as_ref(),
            remote_execution: $body.remote_execution.as_ref(),
            workload_identity: $body.workload_identity.as_deref(),
            drain_grace_seconds: $body.drain_grace_seconds,
            is_strict_deploy_enabled: $body.is_strict_deploy_enabled,
            clean_up: ($body.history_retention_days, $body.clean_up_cron.as_deref()),
            dr_workload_identity: $body.dr_workload_identity.as_deref(),
            $($field: $value),+
        }
    };
}

pub(super) fn of_new(body: &CreateDeploymentRequest) -> Requested<'_> {
    requested! {
        body;
        executor: body.executor,
        is_cicd_enforced: body.is_cicd_enforced,
        is_dag_deploy_enabled: body.is_dag_deploy_enabled,
        environment_variables: body.environment_variables.as_deref(),
    }
}

pub(super) fn of_stored(body: &UpdateDeploymentRequest) -> Requested<'_> {
    requested! {
        body;
        executor: Some(body.executor),
        is_cicd_enforced: Some(body.is_cicd_enforced),
        is_dag_deploy_enabled: Some(body.is_dag_deploy_enabled),
        environment_variables: Some(&body.environment_variables),
    }
}
