//! Deployments: Apache Airflow environments.

mod parts;
mod requests;

use crate::deploys::DeployGit;
use crate::enums::{CloudProvider, DeploymentStatus, DeploymentType, Executor, SchedulerSize};
use crate::path::{InOrganization, OfDeployment};
use crate::reply::{Many, One};
use crate::subjects::SubjectProfile;
use crate::union::OneOf;
use crate::{ClusterId, DeploymentId, Named, NodePoolId, OrganizationId, Shown, WorkspaceId};

pub use parts::{
    DeploymentEnvironmentVariable, DeploymentHibernationOverride, DeploymentHibernationSchedule,
    DeploymentHibernationSpec, DeploymentHibernationStatus, DeploymentRemoteExecution, DeploymentScalingSpec,
    DeploymentScalingStatus, WorkerQueue,
};
pub use requests::{
    CreateDeploymentRequest, DeploymentEnvironmentVariableRequest, DeploymentHibernationOverrideRequest,
    DeploymentHibernationSpecRequest, DeploymentRemoteExecutionRequest, DeploymentScalingSpecRequest,
    InstanceSpecRequest, OverrideDeploymentHibernationBody, UpdateDeploymentRequest, WorkerQueueRequest,
};

endpoints! {
    tag "Deployment";

    /// List deployments
    List: GET "/organizations/{organizationId}/deployments" as "ListDeployments" {
        path: InOrganization, query: ListDeployments, reply: Many<DeploymentsPaginated>,
        permission: "organization.deployments.get",
    }
    /// Create a deployment
    Create: POST "/organizations/{organizationId}/deployments" as "CreateDeployment" {
        path: InOrganization, body: OneOf<CreateDeploymentRequest>, reply: One<Deployment>,
        permission: "workspace.deployments.create", target_in_body: "workspaceId", event: DeploymentCreated,
        also: [409],
        marks: [starts_operation],
    }
    /// Get a deployment
    Get: GET "/organizations/{organizationId}/deployments/{deploymentId}" as "GetDeployment" {
        path: OfDeployment, reply: One<Shown<Deployment>>,
        permission: "deployment.get",
    }
    /// Update a deployment
    Update: POST "/organizations/{organizationId}/deployments/{deploymentId}" as "UpdateDeployment" {
        path: OfDeployment, body: OneOf<UpdateDeploymentRequest>, reply: One<Deployment>,
        permission: "deployment.update", event: DeploymentUpdated, also: [409], marks: [starts_operation],
    }
    /// Delete a deployment
    Delete: DELETE "/organizations/{organizationId}/deployments/{deploymentId}" as "DeleteDeployment" {
        path: OfDeployment, query: DeleteDeployment,
        permission: "deployment.delete", event: DeploymentDeleted, marks: [starts_operation],
    }
    /// Override the hibernation of a deployment
    OverrideHibernation: POST "/organizations/{organizationId}/deployments/{deploymentId}/hibernation-override"
        as "UpdateDeploymentHibernationOverride" {
        path: OfDeployment, body: OverrideDeploymentHibernationBody,
        reply: One<DeploymentHibernationOverride>,
        permission: "deployment.update", event: DeploymentHibernationOverrideSet, marks: [starts_operation],
    }
    /// End the hibernation override of a deployment
    EndHibernationOverride: DELETE "/organizations/{organizationId}/deployments/{deploymentId}/hibernation-override"
        as "DeleteDeploymentHibernationOverride" {
        path: OfDeployment,
        permission: "deployment.update", event: DeploymentHibernationOverrideRemoved,
        marks: [starts_operation],
    }
}

wire! {
    /// How to delete a deployment.
    #[derive(Default)]
    pub struct DeleteDeployment {
        /// Whether its running tasks may finish first, up to its drain grace.
        pub drain: Option<bool>,
    }

    /// Which deployments to list.
    clamped sorted["name", "createdAt", "updatedAt"] pub struct ListDeployments {
        /// Only the deployments with these ids.
        #[serde(default)]
        pub deployment_ids: Vec<Named<DeploymentId>>,
        /// Only deployments with one of these names.
        #[serde(default)]
        pub names: Vec<String>,
        /// Only deployments of these workspaces.
        #[serde(default)]
        pub workspace_ids: Vec<Named<WorkspaceId>>,
    }

    /// A page of deployments.
    page DeploymentsPaginated {
        /// The deployments.
        deployments: Vec<Shown<Deployment>>
    }

    /// A deployment: an Apache Airflow environment.
    stamped(SubjectProfile) pub struct Deployment {
        /// Its id.
        pub id: DeploymentId,
        /// Its name, unique in the workspace.
        pub name: String,
        /// Its description.
        pub description: Option<String>,
        /// Its organization.
        pub organization_id: OrganizationId,
        /// Its workspace.
        pub workspace_id: WorkspaceId,
        /// The name of its workspace.
        pub workspace_name: Option<String>,
        /// Where it runs.
        #[serde(rename = "type")]
        pub kind: Option<DeploymentType>,
        /// The cluster that it runs on.
        pub cluster_id: Option<ClusterId>,
        /// The name of that cluster.
        pub cluster_name: Option<String>,
        /// The cloud provider that it runs at.
        pub cloud_provider: Option<CloudProvider>,
        /// The region that it runs in.
        pub region: Option<String>,
        /// Its name in the data plane, which never changes.
        pub namespace: String,
        /// Its status.
        pub status: DeploymentStatus,
        /// Why, as a message that a person can act on.
        pub status_reason: Option<String>,
        /// The version of Apache Airflow.
        pub airflow_version: String,
        /// The runtime that it is to run.
        pub platform_runtime_version: String,
        /// The same as `platformRuntimeVersion`, for older clients.
        pub runtime_version: String,
        /// Where its images are stored.
        pub image_repository: String,
        /// The image that it is to run.
        pub image_tag: String,
        /// The same as `imageTag`, for older clients.
        pub image_version: Option<String>,
        /// The DAGs that run.
        pub dag_tarball_version: Option<String>,
        /// The DAGs that are to run.
        pub desired_dag_tarball_version: Option<String>,
        /// Where the code of the current deploy came from.
        pub git: Option<DeployGit>,
        /// Whether only API tokens may create deploys.
        pub is_cicd_enforced: bool,
        /// Whether DAGs are deployed separately from images.
        pub is_dag_deploy_enabled: bool,
        /// Whether it may hibernate.
        pub is_development_mode: Option<bool>,
        /// Whether its components run in several replicas.
        pub is_high_availability: Option<bool>,
        /// The executor.
        pub executor: Option<Executor>,
        /// The size of its scheduler.
        pub scheduler_size: Option<SchedulerSize>,
        /// The size of its scheduler in units of 0.1 CPU and 0.375 GiB.
        pub scheduler_au: Option<u32>,
        /// CPU of each scheduler.
        pub scheduler_cpu: String,
        /// Memory of each scheduler.
        pub scheduler_memory: String,
        /// How many schedulers there are.
        pub scheduler_replicas: u32,
        /// Its worker queues, by name; absent where it has none.
        pub worker_queues: Option<Vec<WorkerQueue>>,
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
        /// Its environment variables; a secret has no value here.
        pub environment_variables: Option<Vec<DeploymentEnvironmentVariable>>,
        /// E-mail addresses that are notified of problems.
        pub contact_emails: Option<Vec<String>>,
        /// How it scales.
        pub scaling_spec: Option<DeploymentScalingSpec>,
        /// How it is scaled now.
        pub scaling_status: Option<DeploymentScalingStatus>,
        /// Remote execution of its tasks; absent if it is off.
        pub remote_execution: Option<DeploymentRemoteExecution>,
        /// The cloud identity of its workloads.
        pub effective_workload_identity: Option<String>,
        /// The cloud identity of its workloads after a failover.
        #[serde(rename = "effectiveDRWorkloadIdentity")]
        pub effective_dr_workload_identity: Option<String>,
        /// Seconds for which a change waits for running tasks before it restarts what runs them, where that is set.
        pub drain_grace_seconds: Option<u32>,
        /// Whether a deploy fails if a file of its DAGs cannot be imported, unless the live version has that error, too.
        pub is_strict_deploy_enabled: Option<bool>,
        /// For how many days DAG runs, their tasks and their logs are kept, where that is set; 0 means for good.
        pub history_retention_days: Option<u32>,
        /// When older runs are removed, where that is set.
        pub clean_up_cron: Option<String>,
        /// Addresses that it calls from.
        #[serde(rename = "externalIPs")]
        pub external_ips: Option<Vec<String>>,
        /// Addresses that it calls from after a failover.
        #[serde(rename = "drExternalIPs")]
        pub dr_external_ips: Option<Vec<String>>,
        /// The identity provider of its workloads.
        pub oidc_issuer_url: Option<String>,
        /// The identity provider of its workloads after a failover.
        pub dr_oidc_issuer_url: Option<String>,
        /// Where people see it in the console.
        pub ui_url: String,
        /// Where its API is.
        pub api_url: String,
        /// Where its web interface is.
        pub web_server_url: String,
        /// The host of its web interface.
        pub web_server_ingress_hostname: String,
        /// Where the API of Apache Airflow is.
        pub web_server_airflow_api_url: String,
        /// CPU of each web server.
        pub web_server_cpu: String,
        /// Memory of each web server.
        pub web_server_memory: String,
        /// How many web servers there are.
        pub web_server_replicas: Option<u32>,
    }
}
