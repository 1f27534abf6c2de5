//! Workspaces: where an organization's deployments live together.

use crate::enums::CloudProvider;
use crate::path::{InOrganization, OfWorkspace};
use crate::reply::{Many, One};
use crate::subjects::SubjectProfile;
use crate::{ClusterId, Named, OrganizationId, Patch, Shown, WorkspaceId};

endpoints! {
    tag "Workspace";

    /// List workspaces
    List: GET "/organizations/{organizationId}/workspaces" as "ListWorkspaces" {
        path: InOrganization, query: ListWorkspaces, reply: Many<WorkspacesPaginated>,
        permission: "organization.workspaces.get",
    }
    /// Create a workspace
    Create: POST "/organizations/{organizationId}/workspaces" as "CreateWorkspace" {
        path: InOrganization, body: CreateWorkspaceRequest, reply: One<Workspace>,
        permission: "organization.workspaces.create", event: WorkspaceCreated, also: [409],
    }
    /// Get a workspace
    Get: GET "/organizations/{organizationId}/workspaces/{workspaceId}" as "GetWorkspace" {
        path: OfWorkspace, reply: One<Shown<Workspace>>,
        permission: "workspace.get",
    }
    /// Update a workspace
    Update: POST "/organizations/{organizationId}/workspaces/{workspaceId}" as "UpdateWorkspace" {
        path: OfWorkspace, body: UpdateWorkspaceRequest, reply: One<Workspace>,
        permission: "workspace.settings.update", event: WorkspaceUpdated, also: [409],
    }
    /// Delete a workspace
    Delete: DELETE "/organizations/{organizationId}/workspaces/{workspaceId}" as "DeleteWorkspace" {
        path: OfWorkspace,
        permission: "workspace.delete", event: WorkspaceDeleted, also: [412],
    }
}

wire! {
    /// Which workspaces to list.
    sorted["name", "createdAt", "updatedAt"] pub struct ListWorkspaces {
        /// Only the workspaces with these ids.
        #[serde(default)]
        pub workspace_ids: Vec<Named<WorkspaceId>>,
        /// Only workspaces with one of these names.
        #[serde(default)]
        pub names: Vec<String>,
    }

    /// A workspace.
    stamped(Option<SubjectProfile>) pub struct Workspace {
        /// Its id.
        pub id: WorkspaceId,
        /// Its name, unique in the organization.
        pub name: String,
        /// Its description.
        pub description: Option<String>,
        /// Its organization.
        pub organization_id: OrganizationId,
        /// The name of its organization.
        pub organization_name: Option<String>,
        /// Whether new deployments accept deploys only from API tokens.
        pub cicd_enforced_default: bool,
        /// The cluster of new deployments.
        pub default_cluster_id: Option<ClusterId>,
        /// The cloud provider of new deployments.
        pub default_cloud_provider: Option<CloudProvider>,
        /// The region of new deployments.
        pub default_region: Option<String>,
    }

    /// A page of workspaces.
    page WorkspacesPaginated {
        /// The workspaces.
        workspaces: Vec<Shown<Workspace>>
    }

    /// A new workspace.
    #[derive(Default)]
    pub struct CreateWorkspaceRequest {
        /// Its name, unique in the organization.
        #[schemars(length(min = 1, max = 50))]
        pub name: String,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
        /// Whether new deployments accept deploys only from API tokens.
        pub cicd_enforced_default: Option<bool>,
        /// The cluster of new deployments; excludes provider and region.
        pub default_cluster_id: Option<ClusterId>,
        /// The cloud provider of new deployments; goes with `defaultRegion`.
        pub default_cloud_provider: Option<CloudProvider>,
        /// The region of new deployments; goes with `defaultCloudProvider`.
        #[schemars(length(max = 100))]
        pub default_region: Option<String>,
    }

    /// New settings of a workspace.
    pub struct UpdateWorkspaceRequest {
        /// Its name, unique in the organization.
        #[schemars(length(min = 1, max = 50))]
        pub name: String,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: String,
        /// Whether new deployments accept deploys only from API tokens.
        pub cicd_enforced_default: bool,
        /// The cluster of new deployments; `null` clears it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        pub default_cluster_id: Patch<ClusterId>,
        /// The cloud provider of new deployments; `null` clears it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        pub default_cloud_provider: Patch<CloudProvider>,
        /// The region of new deployments; `null` clears it.
        #[serde(default, skip_serializing_if = "Patch::is_keep")]
        pub default_region: Patch<String>,
    }
}
