//! Permission groups: what custom roles are made of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::enums::RoleScope;
use crate::reply::Many;

endpoints! {
    tag "Authorization";

    /// List the permissions that custom roles are made of
    ListGroups: GET "/authorization/permission-groups" as "ListPermissionGroups" {
        query: ListPermissionGroups, reply: Many<Vec<PermissionGroup>>,
        open_to: SignedIn,
    }
}

/// Which groups to list.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListPermissionGroups {
    /// Only those of one scope; DEPLOYMENT and DAG have any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope_type: Option<RoleScope>,
}

/// Permissions on one kind of resource.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PermissionGroup {
    /// The first part of the permissions' names.
    pub name: String,
    /// What a role with these permissions is held on.
    pub scope: String,
    /// What the group is about.
    pub description: String,
    /// The permissions.
    pub permissions: Vec<PermissionEntry>,
}

/// A permission of a group; its full name is `group.action`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PermissionEntry {
    /// The last part of the permission's name.
    pub action: String,
    /// What it allows.
    pub description: String,
}
