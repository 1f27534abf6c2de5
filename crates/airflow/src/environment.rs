//! Everything that a data plane needs to run a deployment, with secrets in the clear, so that it has to look nothing
//! up.

use std::time::Duration;

use podium_api::enums::{CloudProvider, DeploymentType, Executor, SchedulerSize};
use podium_api::{ClusterId, DeploymentId, NodePoolId, OrganizationId, WorkspaceId};
use podium_domain::deployments::{Bundle, Queue, Release, RemoteExecution, Running, RunningBundle, Spec};

use crate::Secret;

/// An environment as it is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    /// The deployment.
    pub id: DeploymentId,
    /// Its organization.
    pub organization_id: OrganizationId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// The cluster that it runs on; none on the server's own infrastructure.
    pub cluster_id: Option<ClusterId>,
    /// Its name.
    pub name: String,
    /// Its unique name in the plane.
    pub namespace: String,
    /// Advanced by every change of what is wanted.
    pub generation: i64,
    /// Whether it is to be scaled to zero.
    pub is_hibernating: bool,
    /// The type of the deployment.
    pub kind: DeploymentType,
    /// The cloud provider.
    pub cloud_provider: Option<CloudProvider>,
    /// The region.
    pub region: Option<String>,
    /// The runtime.
    pub runtime_version: String,
    /// What runs its tasks.
    pub executor: Executor,
    /// The size of its scheduler.
    pub scheduler_size: Option<SchedulerSize>,
    /// The size of its scheduler in units of a tenth of a CPU.
    pub scheduler_au: Option<u32>,
    /// How many schedulers there are.
    pub scheduler_replicas: u32,
    /// Whether its components run more than once.
    pub is_high_availability: bool,
    /// Whether DAGs are deployed separately from images.
    pub is_dag_deploy_enabled: bool,
    /// Its worker queues.
    pub worker_queues: Vec<Queue>,
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
    /// The cloud identity of its workloads, where it runs now.
    pub workload_identity: Option<String>,
    /// Where its tasks run, with remote execution.
    pub remote_execution: Option<RemoteExecution>,
    /// Image, DAGs and bundles.
    pub release: Release,
    /// Its own environment variables.
    pub variables: Vec<Setting>,
    /// The settings that it gets from environment objects.
    pub objects: Objects,
    /// How long a change waits for running tasks before it restarts the processes that run them, if the deployment sets
    /// it.
    pub drain_grace: Option<Duration>,
}

/// Settings from environment objects: the environment's own and those linked to it, with overrides merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Environment variables, except those that the deployment itself sets.
    pub variables: Vec<Setting>,
    /// Connections, each as the JSON that Airflow reads.
    pub connections: Vec<Setting>,
    /// Airflow variables.
    pub airflow_variables: Vec<Setting>,
    /// Where metrics go, each as a JSON document.
    pub metrics_exports: Vec<Setting>,
}

/// A value under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name.
    pub key: String,
    /// The value.
    pub value: Secret,
    /// Whether logs must mask it.
    pub is_secret: bool,
}

/// The identity of a deployment, apart from its spec.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The deployment.
    pub id: DeploymentId,
    /// Its organization.
    pub organization_id: OrganizationId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// The cluster that it runs on.
    pub cluster_id: Option<ClusterId>,
    /// Its name.
    pub name: String,
    /// Its name in the plane.
    pub namespace: String,
    /// Advanced by every change of what is wanted.
    pub generation: i64,
}

impl Environment {
    /// The environment of a deployment, with these variables, whose secrets are in the clear.
    pub fn new(
        identity: Identity,
        spec: &Spec,
        is_hibernating: bool,
        variables: Vec<Setting>,
        objects: Objects,
    ) -> Self {
        let Identity { id, organization_id, workspace_id, cluster_id, name, namespace, generation } =
            identity;
        let spec = spec.clone();
        Self {
            id,
            organization_id,
            workspace_id,
            cluster_id,
            name,
            namespace,
            generation,
            is_hibernating,
            kind: spec.kind,
            cloud_provider: spec.cloud_provider,
            region: spec.region,
            runtime_version: spec.runtime_version,
            executor: spec.executor,
            scheduler_size: spec.scheduler_size,
            scheduler_au: spec.scheduler_au,
            scheduler_replicas: spec.scheduler_replicas,
            is_high_availability: spec.is_high_availability,
            is_dag_deploy_enabled: spec.is_dag_deploy_enabled,
            worker_queues: spec.worker_queues,
            default_task_pod_cpu: spec.default_task_pod_cpu,
            default_task_pod_memory: spec.default_task_pod_memory,
            resource_quota_cpu: spec.resource_quota_cpu,
            resource_quota_memory: spec.resource_quota_memory,
            task_pod_node_pool_id: spec.task_pod_node_pool_id,
            workload_identity: spec.workload_identity,
            remote_execution: spec.remote_execution,
            release: spec.release,
            variables,
            objects,
            drain_grace: spec.drain_grace_seconds.map(|seconds| Duration::from_secs(seconds.into())),
        }
    }

    /// What runs once the environment is up.
    pub fn running(&self) -> Running {
        let bundle = |bundle: &Bundle| RunningBundle {
            mount_path: bundle.mount_path.clone(),
            version: bundle.version.clone(),
        };
        Running {
            image_tag: Some(self.release.image_tag.clone()),
            runtime_version: Some(self.runtime_version.clone()),
            dag_version: self.release.dag_version.clone(),
            bundles: self.release.bundles.iter().map(bundle).collect(),
        }
    }
}
