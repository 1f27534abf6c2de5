//! Resolves the name of a role: whether it exists, and whether it can be held at that scope.
//!
//! Whether the caller may grant it is checked by [`crate::no_escalation`].

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use podium_api::enums::{CustomRoleScope, OrganizationRole, WorkspaceRoleName};
use podium_api::{DeploymentId, FieldError, RoleId, WorkspaceId};

use crate::grants::{Grants, Held, On};
use crate::permissions::PermissionSet;
use crate::roles::{DagRoleName, DeploymentRoleName, is_built_in};

/// A custom role, as far as giving it is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomRole {
    pub id: RoleId,
    /// What it is held on.
    pub scope: CustomRoleScope,
    pub permissions: PermissionSet,
    /// The only workspaces in which it can be held; none means everywhere.
    pub restricted_workspace_ids: Vec<WorkspaceId>,
}

/// What a request mentions, and somebody has to look up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mentions {
    pub workspaces: BTreeSet<WorkspaceId>,
    pub deployments: BTreeSet<DeploymentId>,
    /// Names of roles that are not built in.
    pub custom_roles: BTreeSet<String>,
}

impl Mentions {
    /// Notes the name of a role, unless it is built in.
    pub(crate) fn role(&mut self, name: &str) {
        if !is_built_in(name) {
            self.custom_roles.insert(name.to_owned());
        }
    }
}

/// What was found of it in the organization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub workspaces: BTreeSet<WorkspaceId>,
    pub deployments: BTreeMap<DeploymentId, WorkspaceId>,
    /// The custom roles that exist, by their exact names.
    pub custom_roles: BTreeMap<String, CustomRole>,
}

impl Facts {
    /// Whether the workspace exists and the caller may know it: an unseen one is as unknown as an absent one.
    pub fn shows_workspace(&self, id: WorkspaceId, caller: &Grants) -> bool {
        self.workspaces.contains(&id) && caller.sees_workspace(id)
    }

    /// The workspace of a deployment that exists and that the caller may know.
    pub fn workspace_of(&self, deployment_id: DeploymentId, caller: &Grants) -> Option<WorkspaceId> {
        let workspace_id = *self.deployments.get(&deployment_id)?;
        caller.sees_deployment(deployment_id, workspace_id).then_some(workspace_id)
    }
}

/// What to say of a thing that is absent, or that the caller may not see.
pub(crate) fn no_such(thing: &str, id: &dyn Display) -> String {
    format!(
        "must be the id of a {thing} of this organization that you may see; there is no such {thing}: {id}"
    )
}

/// The longest id of a DAG and the longest tag, as Airflow keeps them.
pub(crate) const MAX_DAG_ID: usize = 250;
pub(crate) const MAX_DAG_TAG: usize = 100;

/// Checks that the name of a DAG or tag is not too long.
pub(crate) fn dag_name(field: impl Into<String>, name: &str, max: usize) -> Result<(), FieldError> {
    match name.chars().count() {
        length if length > max => {
            let message = format!("must have at most {max} characters, has {length}");
            Err(FieldError::new(field, "maxLength", message))
        }
        _ => Ok(()),
    }
}

/// Why a role cannot be assigned there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleError {
    /// A code that a program can act on.
    pub code: &'static str,
    /// What was wrong, and what is expected.
    pub message: String,
}

impl RoleError {
    fn new(code: &'static str, message: String) -> Self {
        Self { code, message }
    }

    pub fn at(self, field: impl Into<String>) -> FieldError {
        FieldError::new(field, self.code, self.message)
    }
}

pub fn role(name: &str, on: &On, facts: &Facts) -> Result<Held, RoleError> {
    let none = |choices: String| RoleError::new("enum", format!("must be one of {choices}; it is `{name}`"));
    match (Held::built_in(on, name), on) {
        (Some(held), _) => Ok(held),
        (None, On::Organization) => Err(none(listed(OrganizationRole::ALL, OrganizationRole::as_str))),
        (None, On::Workspace(_)) => Err(none(listed(WorkspaceRoleName::ALL, WorkspaceRoleName::as_str))),
        (None, On::Deployment { workspace_id, .. }) => {
            facts.custom_role(name, CustomRoleScope::Deployment, *workspace_id)
        }
        (None, On::Dag { workspace_id, .. } | On::DagTag { workspace_id, .. }) => {
            facts.custom_role(name, CustomRoleScope::Dag, *workspace_id)
        }
    }
}

impl Facts {
    fn custom_role(
        &self,
        name: &str,
        scope: CustomRoleScope,
        workspace_id: WorkspaceId,
    ) -> Result<Held, RoleError> {
        let Some(role) = self.custom_roles.get(name) else {
            let built_in = match scope {
                CustomRoleScope::Deployment => listed(DeploymentRoleName::ALL, DeploymentRoleName::as_str),
                CustomRoleScope::Dag => listed(DagRoleName::ALL, DagRoleName::as_str),
            };
            let message =
                format!("must be {built_in} or the name of a custom role of scope {scope}; it is `{name}`");
            return Err(RoleError::new("unknown", message));
        };
        if role.scope != scope {
            let message = format!("must be a role of scope {scope}; `{name}` is of scope {}", role.scope);
            return Err(RoleError::new("scope", message));
        }
        let is_restricted = !role.restricted_workspace_ids.is_empty();
        if is_restricted && !role.restricted_workspace_ids.contains(&workspace_id) {
            let message = format!(
                "must be a role that can be held in workspace {workspace_id}; `{name}` is restricted to others"
            );
            return Err(RoleError::new("restricted", message));
        }
        Ok(Held::Custom { id: role.id, name: name.to_owned(), permissions: role.permissions })
    }
}

fn listed<R: Copy>(roles: &[R], name: fn(R) -> &'static str) -> String {
    roles.iter().map(|role| name(*role)).collect::<Vec<_>>().join(", ")
}
