//! New roles for a user or a team: which of them the caller may set, and what the subject holds afterwards.
//!
//! A list replaces what the caller manages and leaves the rest unchanged. Loading facts and storing the result is done
//! elsewhere, as is the check for the last owner ([`crate::last_owner`]), which needs a count from the store.

mod entries;
mod replacement;

use podium_api::enums::WorkspaceRoleName;
use podium_api::subjects::SubjectRoles;
use podium_api::teams::UpdateTeamRolesRequest;
use podium_api::users::UpdateUserRolesRequest;
use podium_api::{DeploymentId, Patch};

use crate::assignable::{Facts, Mentions};
use crate::grants::{Grant, Grants, On};
use crate::no_escalation::only_owners;
use crate::permissions::Permission;
use crate::refusal::Result;
use replacement::Replacement;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    User,
    Team,
}

impl SubjectKind {
    /// The permission to manage the roles of such subjects there; organization roles are for owners only.
    fn managing(self, on: &On) -> Option<Permission> {
        const IN_WORKSPACE: [Permission; 2] =
            [Permission::known("workspace.users.update"), Permission::known("workspace.teams.update")];
        const ON_DEPLOYMENT: [Permission; 2] =
            [Permission::known("deployment.users.update"), Permission::known("deployment.teams.update")];
        match on {
            On::Organization => None,
            On::Workspace(_) => Some(IN_WORKSPACE[self as usize]),
            On::Deployment { .. } | On::Dag { .. } | On::DagTag { .. } => Some(ON_DEPLOYMENT[self as usize]),
        }
    }

    /// Whether the caller manages the roles of such subjects there.
    pub fn is_managed_by(self, caller: &Grants, on: &On) -> bool {
        self.managing(on).map_or(caller.is_owner(), |permission| caller.at(on).contains(permission))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The user leaves the organization, and every role and team with it.
    Leave,
    /// An organization role or none to keep the held one; each list, or none to keep it.
    Set(SubjectRoles),
}

impl From<UpdateUserRolesRequest> for Change {
    fn from(request: UpdateUserRolesRequest) -> Self {
        let UpdateUserRolesRequest { organization_role, workspace_roles, deployment_roles, dag_roles } =
            request;
        let no_list = workspace_roles.is_keep() && deployment_roles.is_keep() && dag_roles.is_keep();
        let organization_role = match organization_role {
            Patch::Clear if no_list => return Self::Leave,
            Patch::Clear | Patch::Keep => None,
            Patch::Set(role) => Some(role).filter(|role| !role.is_empty()),
        };
        Self::Set(SubjectRoles {
            organization_role,
            workspace_roles: workspace_roles.apply(None),
            deployment_roles: deployment_roles.apply(None),
            dag_roles: dag_roles.apply(None),
        })
    }
}

impl From<UpdateTeamRolesRequest> for Change {
    fn from(request: UpdateTeamRolesRequest) -> Self {
        let UpdateTeamRolesRequest { organization_role, workspace_roles, deployment_roles, dag_roles } =
            request;
        let organization_role = Some(organization_role);
        Self::Set(SubjectRoles { organization_role, workspace_roles, deployment_roles, dag_roles })
    }
}

impl Change {
    /// What has to be loaded before the change can be checked.
    pub fn mentions(&self) -> Mentions {
        let mut mentions = Mentions::default();
        let Self::Set(roles) = self else { return mentions };
        mentions.workspaces.extend(roles.workspace_roles.iter().flatten().map(|entry| entry.workspace_id));
        for entry in roles.deployment_roles.iter().flatten() {
            mentions.deployments.insert(entry.deployment_id);
            mentions.role(&entry.role);
        }
        for entry in roles.dag_roles.iter().flatten() {
            mentions.deployments.insert(entry.deployment_id);
            mentions.role(&entry.role);
        }
        mentions
    }

    /// Where its roles are held, below the organization and as far as that is still there. An ACCESSOR is one through a
    /// role on something in the workspace.
    pub fn places(&self, facts: &Facts) -> Vec<On> {
        let Self::Set(roles) = self else { return Vec::new() };
        let workspaces = roles.workspace_roles.iter().flatten();
        let held = workspaces.filter(|entry| entry.role != WorkspaceRoleName::Accessor);
        let mut places: Vec<On> = held
            .filter(|entry| facts.workspaces.contains(&entry.workspace_id))
            .map(|entry| On::Workspace(entry.workspace_id))
            .collect();
        let of = |id: &DeploymentId| facts.deployments.get(id).copied();
        places.extend(roles.deployment_roles.iter().flatten().filter_map(|entry| {
            let id = entry.deployment_id;
            Some(On::Deployment { id, workspace_id: of(&id)? })
        }));
        places.extend(roles.dag_roles.iter().flatten().filter_map(|entry| {
            let (deployment_id, workspace_id) = (entry.deployment_id, of(&entry.deployment_id)?);
            match (&entry.dag_id, &entry.dag_tag) {
                (Some(dag_id), _) => Some(On::Dag { deployment_id, workspace_id, dag_id: dag_id.clone() }),
                (None, Some(tag)) => Some(On::DagTag { deployment_id, workspace_id, tag: tag.clone() }),
                (None, None) => None,
            }
        }));
        places
    }
}

/// All grants of the subject after the change, in a stable order; or all objections to it.
pub fn update(
    kind: SubjectKind,
    current: &[Grant],
    change: &Change,
    caller: &Grants,
    facts: &Facts,
) -> Result<Vec<Grant>> {
    let Change::Set(roles) = change else {
        only_owners(caller, "remove somebody from the organization")?;
        return Ok(Vec::new());
    };
    let mut replacement = Replacement::new(kind, current, caller, facts);
    replacement.organization(roles.organization_role.as_deref());
    replacement.workspaces(roles);
    replacement.deployments(roles.deployment_roles.as_deref());
    replacement.dags(roles.dag_roles.as_deref());
    replacement.finish()
}

#[cfg(test)]
mod entry_tests;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod requested;
#[cfg(test)]
mod tests;
