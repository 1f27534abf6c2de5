//! Custom roles, the built-in ones, and templates to copy.

use crate::enums::{CustomRoleScope, DefaultRoleScope, RoleScope};
use crate::page::Page;
use crate::path::{InOrganization, OfRole};
use crate::reply::{Many, One};
use crate::subjects::SubjectProfile;
use crate::{RoleId, WorkspaceId};

endpoints! {
    tag "Role";

    /// List role templates
    ListTemplates: GET "/organizations/{organizationId}/role-templates" as "ListRoleTemplates" {
        path: InOrganization, query: ListRoleTemplates, reply: Many<Vec<RoleTemplate>>,
        permission: "organization.customRoles.get",
    }
    /// List roles
    List: GET "/organizations/{organizationId}/roles" as "ListRoles" {
        path: InOrganization, query: ListRoles, reply: Many<RolesPaginated>,
        permission: "organization.customRoles.get",
    }
    /// Create a custom role
    Create: POST "/organizations/{organizationId}/roles" as "CreateCustomRole" {
        path: InOrganization, body: CreateCustomRoleRequest, reply: One<RoleWithPermission>,
        permission: "organization.customRoles.create", event: RoleCreated, also: [409],
    }
    /// Get a custom role
    Get: GET "/organizations/{organizationId}/roles/{roleId}" as "GetCustomRole" {
        path: OfRole, reply: One<RoleWithPermission>,
        permission: "organization.customRoles.get",
    }
    /// Update a custom role
    Update: POST "/organizations/{organizationId}/roles/{roleId}" as "UpdateCustomRole" {
        path: OfRole, body: UpdateCustomRoleRequest, reply: One<RoleWithPermission>,
        permission: "organization.customRoles.update", event: RoleUpdated, also: [409],
    }
    /// Delete a custom role
    Delete: DELETE "/organizations/{organizationId}/roles/{roleId}" as "DeleteCustomRole" {
        path: OfRole,
        permission: "organization.customRoles.delete", event: RoleDeleted, also: [409, 412],
    }
}

wire! {
    /// Which roles to list.
    #[derive(Default)]
    pub struct ListRoles {
        /// Also list the built-in roles.
        pub include_default_roles: Option<bool>,
        /// Only roles of these scopes.
        #[serde(default)]
        pub scope_types: Vec<RoleScope>,
        /// The page of custom roles.
        #[serde(flatten)]
        pub page: Page<ListRoles>,
    }
    clamped sorts ListRoles ["name", "scopeType", "description", "createdAt", "updatedAt"];

    /// Which templates to list.
    pub struct ListRoleTemplates {
        /// Only templates of these scopes.
        #[serde(default)]
        pub scope_types: Vec<RoleScope>,
    }

    /// A custom role.
    stamped(SubjectProfile) pub struct Role {
        /// Its id.
        pub id: RoleId,
        /// Its name, unique in the organization.
        pub name: String,
        /// Its description.
        pub description: Option<String>,
        /// The kind of resource that the role is held on.
        pub scope_type: RoleScope,
        /// The workspaces in which it can be assigned; an empty list means all.
        pub restricted_workspace_ids: Vec<WorkspaceId>,
    }

    /// A custom role with its permissions.
    stamped(SubjectProfile) pub struct RoleWithPermission {
        /// Its id.
        pub id: RoleId,
        /// Its name, unique in the organization.
        pub name: String,
        /// Its description.
        pub description: Option<String>,
        /// The kind of resource that the role is held on.
        pub scope_type: RoleScope,
        /// The permissions that it gives.
        pub permissions: Vec<String>,
        /// The workspaces in which it can be assigned; an empty list means all.
        pub restricted_workspace_ids: Vec<WorkspaceId>,
    }

    /// A built-in role.
    pub struct DefaultRole {
        /// Its name.
        pub name: String,
        /// Its description.
        pub description: Option<String>,
        /// The kind of resource that the role is held on.
        pub scope_type: DefaultRoleScope,
        /// The permissions that it gives.
        pub permissions: Vec<String>,
    }

    /// A starting point for a custom role.
    pub struct RoleTemplate {
        /// Its name.
        pub name: String,
        /// Its description.
        pub description: Option<String>,
        /// What such a role is held on.
        pub scope_type: DefaultRoleScope,
        /// The permissions of such a role.
        pub permissions: Vec<String>,
    }

    /// A page of roles.
    pub struct RolesPaginated {
        /// The custom roles.
        pub roles: Vec<Role>,
        /// The built-in roles, where asked for.
        pub default_roles: Option<Vec<DefaultRole>>,
        /// The effective limit.
        pub limit: u32,
        /// How many items were skipped.
        pub offset: u64,
        /// How many custom roles there are in all.
        pub total_count: u64,
    }

    /// A new custom role.
    pub struct CreateCustomRoleRequest {
        /// Its name, unique in the organization and not a built-in one.
        #[schemars(length(min = 1, max = 128))]
        pub name: String,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
        /// What it is held on; cannot change later.
        pub scope_type: CustomRoleScope,
        /// Permissions of that scope, such as `deployment.logs.get`.
        #[schemars(length(min = 1))]
        pub permissions: Vec<String>,
        /// The workspaces in which it can be assigned; an empty list means all.
        #[schemars(length(max = 1000))]
        pub restricted_workspace_ids: Option<Vec<WorkspaceId>>,
    }

    /// New settings of a custom role.
    pub struct UpdateCustomRoleRequest {
        /// Its name, unique in the organization and not a built-in one.
        #[schemars(length(min = 1, max = 128))]
        pub name: String,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
        /// Permissions of its scope.
        #[schemars(length(min = 1))]
        pub permissions: Vec<String>,
        /// The workspaces in which it can be assigned; an empty list means all.
        #[schemars(length(max = 1000))]
        pub restricted_workspace_ids: Option<Vec<WorkspaceId>>,
    }
}
