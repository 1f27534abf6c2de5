//! Permission groups: what custom roles are made of.

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

wire! {
    /// Which groups to list.
    #[derive(Default)]
    pub struct ListPermissionGroups {
        /// Only groups of one scope; DEPLOYMENT and DAG have any.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub scope_type: Option<RoleScope>,
    }

    /// Permissions on one kind of resource.
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
    pub struct PermissionEntry {
        /// The last part of the permission's name.
        pub action: String,
        /// What the permission allows.
        pub description: String,
    }
}
