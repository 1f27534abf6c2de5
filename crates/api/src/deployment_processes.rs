//! The processes of deployments, as they are at the moment.

use crate::path::InOrganization;
use crate::reply::Many;
use crate::{DeploymentId, Named, Timestamp, WorkspaceId};

endpoints! {
    tag "Deployment";

    /// List the processes of deployments
    List: GET "/organizations/{organizationId}/deployment-processes" as "ListDeploymentProcesses" {
        path: InOrganization, query: ListDeploymentProcesses, reply: Many<DeploymentProcessesPaginated>,
        permission: "organization.deployments.get", marks: [live],
    }
}

wire! {
    /// Of which deployments to list the processes.
    sorted["name", "createdAt", "updatedAt"] pub struct ListDeploymentProcesses {
        /// Only processes of these deployments.
        #[serde(default)]
        pub deployment_ids: Vec<Named<DeploymentId>>,
        /// Only processes of deployments in these workspaces.
        #[serde(default)]
        pub workspace_ids: Vec<Named<WorkspaceId>>,
    }

    /// A page of deployments with their processes.
    pub struct DeploymentProcessesPaginated {
        /// The deployments with their processes.
        pub deployment_processes: Vec<DeploymentProcesses>,
        /// When the processes were observed.
        pub observed_at: Timestamp,
        /// The effective limit.
        pub limit: u32,
        /// How many items were skipped.
        pub offset: u64,
        /// Total number of items.
        pub total_count: u64,
    }

    /// The processes of a deployment.
    pub struct DeploymentProcesses {
        /// The deployment.
        pub deployment_id: DeploymentId,
        /// Its processes, by name; empty while none runs.
        pub processes: Vec<DeploymentProcess>,
        /// The memory of all its processes.
        pub memory_bytes: Option<u64>,
        /// Its disk usage, as last measured.
        pub disk_bytes: Option<u64>,
        /// Why its processes cannot be observed.
        pub reason: Option<String>,
    }

    /// A process of a deployment.
    pub struct DeploymentProcess {
        /// Its name, such as `scheduler` or `worker-default`.
        pub name: String,
        /// Whether it works.
        pub is_up: bool,
        /// Why the process does not work.
        pub reason: Option<String>,
        /// How often it was restarted after it failed.
        pub restarts: u64,
        /// The memory of the process and of its child processes.
        pub memory_bytes: Option<u64>,
        /// When it was started.
        pub started_at: Option<Timestamp>,
        /// Its last heartbeat.
        pub heartbeat_at: Option<Timestamp>,
    }
}
