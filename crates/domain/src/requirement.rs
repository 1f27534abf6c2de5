//! What an endpoint requires of its callers: a permission, and its target.
//!
//! It is resolved once, when the endpoint is bound, and checked for every endpoint when this crate is compiled: a
//! permission that does not exist, or whose target neither path nor body names, is a compile error.

use podium_api::enums::RoleScope;
use podium_api::{Access, Description, ENDPOINTS, const_text};

use crate::permissions::Permission;

/// What an endpoint requires of its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirement {
    pub permission: Permission,
    /// A weaker permission that admits callers to what they made themselves.
    pub of_creators: Option<Permission>,
    pub on: RequiredOn,
}

/// The target of a permission, and where its id is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequiredOn {
    Organization,
    Workspace(Named),
    Deployment(Named),
}

/// Where the id of a target is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// Among the ids of the path, at this index.
    InPath(usize),
    /// In a field of the body.
    InBody,
}

impl Requirement {
    /// What an endpoint requires; `None` if it needs no permission. Panics where that makes no sense, which does
    /// not happen at run time for any of [`ENDPOINTS`].
    pub const fn of(endpoint: &Description) -> Option<Self> {
        let Access::Permission(name) = endpoint.access else { return None };
        let permission = known(name);
        let on = match permission.scope() {
            RoleScope::Organization => RequiredOn::Organization,
            RoleScope::Workspace => RequiredOn::Workspace(named(endpoint, "workspaceId")),
            RoleScope::Deployment => RequiredOn::Deployment(named(endpoint, "deploymentId")),
            RoleScope::Dag => permission_on_a_dag(name),
        };
        let of_creators = match endpoint.makers_permission {
            Some(name) => Some(known(name)),
            None => None,
        };
        Some(Self { permission, of_creators, on })
    }
}

const _: () = {
    let mut index = 0;
    while index < ENDPOINTS.len() {
        Requirement::of(&ENDPOINTS[index]);
        index += 1;
    }
};

const fn known(name: &str) -> Permission {
    match Permission::named(name) {
        Some(permission) => permission,
        None => no_such_permission(name),
    }
}

/// Where an endpoint names the target of its permission.
const fn named(endpoint: &Description, parameter: &str) -> Named {
    if let Some(field) = endpoint.target_in_body
        && const_text::same(field, parameter)
    {
        return Named::InBody;
    }
    match const_text::index_in(endpoint.path_params, parameter) {
        Some(index) => Named::InPath(index),
        None => permission_without_target(endpoint.id),
    }
}

// The names of these functions are what a failed build shows beside the name that is wrong.

const fn no_such_permission(name: &str) -> ! {
    panic!("{}", name)
}

const fn permission_on_a_dag(name: &str) -> ! {
    panic!("{}", name)
}

const fn permission_without_target(endpoint: &str) -> ! {
    panic!("{}", endpoint)
}

#[cfg(test)]
mod tests {
    use podium_api::{Endpoint, auth, deployments, deploys, endpoints, organizations, path, workspaces};

    use super::*;

    #[test]
    fn a_permission_is_required_on_what_its_name_says() {
        let of = |endpoint: &Description| Requirement::of(endpoint).map(|required| required.on);
        for (endpoint, on) in [
            (auth::SignOut::DESCRIPTION, None),
            (organizations::Update::DESCRIPTION, Some(RequiredOn::Organization)),
            (workspaces::Update::DESCRIPTION, Some(RequiredOn::Workspace(Named::InPath(1)))),
            (deployments::Create::DESCRIPTION, Some(RequiredOn::Workspace(Named::InBody))),
            (deployments::Update::DESCRIPTION, Some(RequiredOn::Deployment(Named::InPath(1)))),
        ] {
            assert_eq!(of(endpoint), on, "{}", endpoint.id);
        }
        let finalizing = Requirement::of(deploys::Finalize::DESCRIPTION).unwrap();
        assert_eq!(finalizing.of_creators, Some(Permission::known("deployment.deploys.create")));
        assert_eq!(finalizing.permission, Permission::known("deployment.deploys.update"));
    }

    endpoints! {
        tag "Wrong";

        /// Ask for a permission that does not exist
        Misspelt: GET "/organizations/{organizationId}" as "Misspelt" {
            path: path::InOrganization,
            permission: "organization.gett",
        }
        /// Ask for a permission on a workspace that nobody names
        Nameless: GET "/organizations/{organizationId}" as "Nameless" {
            path: path::InOrganization,
            permission: "workspace.get",
        }
        /// Say that makers need a permission that does not exist
        Makers: GET "/organizations/{organizationId}" as "Makers" {
            path: path::InOrganization,
            permission: "organization.get", or_creator_with: "organization.make",
        }
    }

    #[test]
    #[should_panic(expected = "organization.gett")]
    fn a_permission_that_does_not_exist_is_an_error() {
        Requirement::of(Misspelt::DESCRIPTION);
    }

    #[test]
    #[should_panic(expected = "Nameless")]
    fn a_permission_without_a_target_is_an_error() {
        Requirement::of(Nameless::DESCRIPTION);
    }

    #[test]
    #[should_panic(expected = "organization.make")]
    fn a_makers_permission_that_does_not_exist_is_an_error() {
        Requirement::of(Makers::DESCRIPTION);
    }
}
