//! A deployment as callers see it.

use podium_api::Timestamp;
use podium_api::clusters::Cluster;
use podium_api::deployments::{
    Deployment, DeploymentEnvironmentVariable, DeploymentHibernationOverride, DeploymentHibernationSpec,
    DeploymentHibernationStatus, DeploymentRemoteExecution, DeploymentScalingSpec, DeploymentScalingStatus,
    WorkerQueue,
};
use podium_api::enums::{CloudProvider, DeploymentType};
use podium_domain::deployments::queues::DEFAULT;
use podium_domain::deployments::{
    EnvironmentVariable, Hibernation, HibernationOverride, Queue, Spec, hibernation,
};
use podium_domain::deploys::image_repository;
use podium_domain::options::{self, Size};
use podium_store::Scope;
use podium_store::deployments::{DeploymentRow, OnCluster};

use crate::cx::Cx;

/// A web server, whatever the deployment's size.
const WEB_SERVER_CPU: &str = "1";
const WEB_SERVER_MEMORY: &str = "2Gi";

pub(super) fn on_cluster(cluster: Cluster) -> OnCluster {
    OnCluster {
        name: cluster.name,
        is_failed_over: cluster.is_failed_over,
        details: cluster.details,
        metadata: cluster.metadata,
        plane: cluster.data_plane,
    }
}

/// A deployment as callers see it now.
pub(super) fn deployment(cx: &Cx<Scope>, row: &DeploymentRow) -> Deployment {
    let DeploymentRow { spec, stamp, observed, cluster, .. } = row;
    let public_url = &cx.app().config.public_url;
    let host_name = cx.app().public_url().host().to_owned();
    let web_server_url = format!("{public_url}/airflow/{}", row.namespace);
    // A runtime is named for the Apache Airflow in it.
    let airflow_version = spec.runtime_version.clone();
    let api = if airflow_version.starts_with("2.") { "api/v1" } else { "api/v2" };
    let hybrid = spec.kind == DeploymentType::Hybrid;
    let scheduler = scheduler(spec);
    let failed_over = cluster.as_ref().filter(|cluster| cluster.is_failed_over);
    let region = failed_over.map(|cluster| cluster.details.dr_region.clone()).or_else(|| spec.region.clone());
    let metadata = cluster.as_ref().map(|cluster| &cluster.metadata);
    let external_ips = metadata.map(|metadata| metadata.external_ips.clone()).unwrap_or_default();
    let state = hibernation::state(&spec.hibernation, spec.is_development_mode, cx.now());
    Deployment {
        id: row.id,
        name: row.name.clone(),
        description: Some(spec.description.clone()),
        organization_id: row.organization_id,
        workspace_id: row.workspace_id,
        workspace_name: row.workspace_name.clone(),
        kind: Some(spec.kind),
        cluster_id: row.cluster_id,
        cluster_name: cluster.as_ref().map(|cluster| cluster.name.clone()),
        cloud_provider: spec.cloud_provider,
        region,
        namespace: row.namespace.clone(),
        status: row.status,
        status_reason: (!row.status_reason.is_empty()).then(|| row.status_reason.to_string()),
        airflow_version,
        platform_runtime_version: spec.runtime_version.clone(),
        runtime_version: spec.runtime_version.clone(),
        image_repository: image_repository(public_url, &row.namespace),
        image_tag: spec.release.image_tag.clone(),
        image_version: Some(spec.release.image_tag.clone()),
        dag_tarball_version: observed.dag_version.clone(),
        desired_dag_tarball_version: spec.release.dag_version.clone(),
        git: spec.release.git.clone(),
        is_cicd_enforced: spec.is_cicd_enforced,
        is_dag_deploy_enabled: spec.is_dag_deploy_enabled,
        is_development_mode: (!hybrid).then_some(spec.is_development_mode),
        is_high_availability: (!hybrid).then_some(spec.is_high_availability),
        executor: Some(spec.executor),
        scheduler_size: spec.scheduler_size,
        scheduler_au: spec.scheduler_au,
        scheduler_cpu: scheduler.cpu.to_string(),
        scheduler_memory: scheduler.memory.to_string(),
        scheduler_replicas: spec.scheduler_replicas,
        worker_queues: worker_queues(row),
        default_task_pod_cpu: spec.default_task_pod_cpu.clone(),
        default_task_pod_memory: spec.default_task_pod_memory.clone(),
        resource_quota_cpu: spec.resource_quota_cpu.clone(),
        resource_quota_memory: spec.resource_quota_memory.clone(),
        task_pod_node_pool_id: spec.task_pod_node_pool_id,
        environment_variables: Some(spec.environment_variables.iter().map(variable).collect()),
        contact_emails: Some(spec.contact_emails.clone()),
        scaling_spec: scaling_spec(&spec.hibernation, cx.now()),
        scaling_status: spec.is_development_mode.then(|| DeploymentScalingStatus {
            hibernation_status: Some(DeploymentHibernationStatus {
                is_hibernating: state.is_hibernating,
                next_event_at: state.next.map(|(at, _)| at),
                next_event_type: state.next.map(|(_, event)| event),
                reason: Some(state.reason),
            }),
        }),
        remote_execution: remote_execution(spec, &web_server_url),
        effective_workload_identity: spec.workload_identity.clone(),
        effective_dr_workload_identity: spec.dr_workload_identity.clone(),
        drain_grace_seconds: spec.drain_grace_seconds,
        is_strict_deploy_enabled: spec.is_strict_deploy_enabled,
        history_retention_days: spec.history_retention_days,
        clean_up_cron: spec.clean_up_cron.clone(),
        external_ips: Some(external_ips),
        dr_external_ips: Some(Vec::new()),
        oidc_issuer_url: metadata.and_then(|metadata| metadata.oidc_issuer_url.clone()),
        dr_oidc_issuer_url: None,
        ui_url: format!("{public_url}/deployments/{}", row.id),
        api_url: format!("{web_server_url}/{api}"),
        web_server_airflow_api_url: format!("{web_server_url}/{api}"),
        web_server_url,
        web_server_ingress_hostname: host_name,
        web_server_cpu: WEB_SERVER_CPU.into(),
        web_server_memory: WEB_SERVER_MEMORY.into(),
        web_server_replicas: Some(if spec.is_high_availability { 2 } else { 1 }),
        created_at: stamp.created_at,
        created_by: stamp.created_by.clone(),
        updated_at: stamp.updated_at,
        updated_by: stamp.updated_by.clone(),
    }
}

fn scheduler(spec: &Spec) -> Size {
    match (spec.scheduler_size, spec.scheduler_au) {
        (Some(size), _) => options::scheduler(size),
        (None, units) => options::au(units.unwrap_or(options::AU_PER_SCHEDULER.default)),
    }
}

/// The queues by name, as clients match them; none where there are none.
fn worker_queues(row: &DeploymentRow) -> Option<Vec<WorkerQueue>> {
    let mut queues: Vec<_> = row.spec.worker_queues.iter().map(|queue| worker_queue(queue, row)).collect();
    queues.sort_by(|a, b| a.name.cmp(&b.name));
    Some(queues).filter(|queues| !queues.is_empty())
}

fn scaling_spec(hibernation: &Hibernation, now: Timestamp) -> Option<DeploymentScalingSpec> {
    let Hibernation { schedules, override_ } = hibernation;
    let is_said = override_.is_some() || !schedules.is_empty();
    is_said.then(|| DeploymentScalingSpec {
        hibernation_spec: Some(DeploymentHibernationSpec {
            override_: hibernation_override(override_.as_ref(), now),
            schedules: Some(schedules.clone()).filter(|schedules| !schedules.is_empty()),
        }),
    })
}

fn worker_queue(queue: &Queue, row: &DeploymentRow) -> WorkerQueue {
    let (pod_cpu, pod_memory) = match queue.machine {
        Some(machine) => {
            let size = options::machine(machine).size;
            (size.cpu.to_string(), size.memory.to_string())
        }
        None => node(queue, row).unwrap_or_default(),
    };
    WorkerQueue {
        id: queue.id,
        name: queue.name.clone(),
        is_default: queue.name == DEFAULT,
        platform_machine: queue.machine.map(|machine| machine.as_str().to_owned()),
        node_pool_id: queue.node_pool_id,
        min_worker_count: queue.min_workers,
        max_worker_count: queue.max_workers,
        worker_concurrency: queue.concurrency,
        pod_cpu,
        pod_memory,
        pod_ephemeral_storage: queue.ephemeral_storage.clone(),
    }
}

fn node(queue: &Queue, row: &DeploymentRow) -> Option<(String, String)> {
    let provider: CloudProvider = row.spec.cloud_provider?;
    let pools = &row.cluster.as_ref()?.details.node_pools;
    let pool = pools.iter().find(|pool| Some(pool.id) == queue.node_pool_id)?;
    let instance = options::provider(provider).node_instance(&pool.node_instance_type)?;
    Some((instance.cpu.to_string(), instance.memory.clone()))
}

fn variable(variable: &EnvironmentVariable) -> DeploymentEnvironmentVariable {
    DeploymentEnvironmentVariable {
        key: variable.key.clone(),
        value: variable.value.clone(),
        is_secret: variable.secret.is_some(),
        updated_at: variable.updated_at,
    }
}

fn remote_execution(spec: &Spec, url: &str) -> Option<DeploymentRemoteExecution> {
    let remote = spec.remote_execution.clone()?;
    Some(DeploymentRemoteExecution {
        enabled: true,
        remote_api_url: format!("{url}/agents"),
        allowed_ip_address_ranges: remote.allowed_ip_address_ranges,
        task_log_bucket: remote.task_log_bucket,
        task_log_url_pattern: remote.task_log_url_pattern,
    })
}

pub(super) fn hibernation_override(
    stored: Option<&HibernationOverride>,
    now: Timestamp,
) -> Option<DeploymentHibernationOverride> {
    stored.map(|stored| DeploymentHibernationOverride {
        is_active: Some(stored.is_active(now)),
        is_hibernating: Some(stored.is_hibernating),
        override_until: stored.until.clone(),
    })
}
