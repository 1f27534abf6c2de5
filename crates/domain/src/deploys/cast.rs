//! Deployments and requests for the tests of deploys.

use podium_api::Id;
use podium_api::deploys::CreateDeployRequest;
use podium_api::enums::{DeployType, DeploymentType, Executor, SchedulerSize};

use crate::deployments::{Bundle, Hibernation, Release, Spec};
use crate::refusal::{Refusal, Result};

pub(crate) fn id(number: u32) -> Id {
    Id::from_parts(0, number, 0)
}

/// A deployment with DAG deploys that nothing was deployed to.
pub(crate) fn spec() -> Spec {
    Spec {
        kind: DeploymentType::Standard,
        description: String::new(),
        cloud_provider: None,
        region: None,
        runtime_version: "3.1.0".into(),
        executor: Executor::Celery,
        scheduler_size: Some(SchedulerSize::Small),
        scheduler_au: None,
        scheduler_replicas: 1,
        is_high_availability: false,
        is_development_mode: false,
        is_cicd_enforced: false,
        is_dag_deploy_enabled: true,
        worker_queues: Vec::new(),
        default_task_pod_cpu: None,
        default_task_pod_memory: None,
        resource_quota_cpu: None,
        resource_quota_memory: None,
        task_pod_node_pool_id: None,
        environment_variables: Vec::new(),
        contact_emails: Vec::new(),
        workload_identity: None,
        dr_workload_identity: None,
        remote_execution: None,
        hibernation: Hibernation::default(),
        release: Release {
            deploy_id: None,
            image_tag: "3.1.0".into(),
            dag_version: None,
            bundles: Vec::new(),
            git: None,
        },
    }
}

pub(crate) fn request(kind: DeployType) -> CreateDeployRequest {
    CreateDeployRequest {
        kind,
        description: None,
        bundle_type: None,
        bundle_mount_path: None,
        platform_runtime_version: None,
        git: None,
    }
}

pub(crate) fn bundle(mount_path: &str, version: &str) -> Bundle {
    Bundle {
        mount_path: mount_path.into(),
        bundle_type: "dbt".into(),
        version: version.into(),
        deploy_id: id(7),
    }
}

/// The wrong fields of a request that is refused for its fields, and none of one that is not refused.
pub(crate) fn wrong<T>(result: Result<T>) -> Vec<String> {
    match result {
        Ok(_) => Vec::new(),
        Err(Refusal::Invalid { fields, message }) => {
            assert!(!fields.is_empty(), "{message}");
            fields.iter().map(|error| format!("{}: {}", error.field, error.code)).collect()
        }
        Err(other) => panic!("{other:?}"),
    }
}
