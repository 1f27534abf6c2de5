//! Custom roles, the built-in ones, and templates to copy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::enums::{CustomRoleScope, DefaultRoleScope, RoleScope};
use crate::page::{Page, SortKeys};
use crate::path::{InOrganization, OfRole};
use crate::reply::{Many, One};
use crate::subjects::SubjectProfile;
use crate::{RoleId, Timestamp, WorkspaceId};

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
        permission: "organization.customRoles.create", also: [409],
    }
    /// Get a custom role
    Get: GET "/organizations/{organizationId}/roles/{roleId}" as "GetCustomRole" {
        path: OfRole, reply: One<RoleWithPermission>,
        permission: "organization.customRoles.get",
    }
    /// Update a custom role
    Update: POST "/organizations/{organizationId}/roles/{roleId}" as "UpdateCustomRole" {
        path: OfRole, body: UpdateCustomRoleRequest, reply: One<RoleWithPermission>,
        permission: "organization.customRoles.update", also: [409],
    }
    /// Delete a custom role
    Delete: DELETE "/organizations/{organizationId}/roles/{roleId}" as "DeleteCustomRole" {
        path: OfRole,
        permission: "organization.customRoles.delete", also: [409, 412],
    }
}

/// How roles can be sorted.
#[derive(Debug)]
pub struct RoleSorts;

impl SortKeys for RoleSorts {
    const KEYS: &'static [&'static str] = &["name", "scopeType", "description", "createdAt", "updatedAt"];
    const LIMIT_IS_BOUNDED: bool = false;
}

/// Which roles to list.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListRoles {
    /// Also list the built-in roles.
    pub include_default_roles: Option<bool>,
    /// Only those of these scopes.
    #[serde(default)]
    pub scope_types: Vec<RoleScope>,
    /// The page of custom roles.
    #[serde(flatten)]
    pub page: Page<RoleSorts>,
}

/// Which templates to list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListRoleTemplates {
    /// Only those of these scopes.
    #[serde(default)]
    pub scope_types: Vec<RoleScope>,
}

/// A custom role.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// Its id.
    pub id: RoleId,
    /// Its name, unique in the organization.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// What it is held on.
    pub scope_type: RoleScope,
    /// The workspaces in which it can be assigned; an empty list means all.
    pub restricted_workspace_ids: Vec<WorkspaceId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: SubjectProfile,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Who last changed it.
    pub updated_by: SubjectProfile,
}

/// A custom role with its permissions.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleWithPermission {
    /// Its id.
    pub id: RoleId,
    /// Its name, unique in the organization.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// What it is held on.
    pub scope_type: RoleScope,
    /// The permissions that it gives.
    pub permissions: Vec<String>,
    /// The workspaces in which it can be assigned; an empty list means all.
    pub restricted_workspace_ids: Vec<WorkspaceId>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: SubjectProfile,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Who last changed it.
    pub updated_by: SubjectProfile,
}

/// A built-in role.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DefaultRole {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: Option<String>,
    /// What it is held on.
    pub scope_type: DefaultRoleScope,
    /// The permissions that it gives.
    pub permissions: Vec<String>,
}

/// A starting point for a custom role.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
