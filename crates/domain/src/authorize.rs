//! Authorization: may this subject do this here? Decided in one place, so that the answer is always the same.
//!
//! What a subject may not see does not exist for it (404); what it sees and may not change is forbidden (403). Whether
//! the resource really exists is not checked here: the store reports a missing one with the same message. Membership
//! of the organization is checked before.

use podium_api::{DeploymentId, WorkspaceId};

use crate::grants::{Grants, On};
use crate::permissions::Permission;
use crate::refusal::{Refusal, Result};

/// What a permission is needed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Organization,
    Workspace(WorkspaceId),
    Deployment { id: DeploymentId, workspace_id: WorkspaceId },
}

/// Checks that the subject holds the permission on the target. The store mints the proof of this check.
pub fn require(grants: &Grants, permission: Permission, target: Target) -> Result<()> {
    let (seen, held) = match target {
        Target::Organization => (true, grants.on_organization()),
        Target::Workspace(id) => (grants.sees_workspace(id), grants.on_workspace(id)),
        Target::Deployment { id, workspace_id } => {
            (grants.sees_deployment(id, workspace_id), grants.on_deployment(id, workspace_id))
        }
    };
    if held.contains(permission) {
        Ok(())
    } else if seen {
        Err(target.forbid(permission))
    } else {
        Err(target.unseen())
    }
}

impl From<Target> for On {
    fn from(target: Target) -> Self {
        match target {
            Target::Organization => Self::Organization,
            Target::Workspace(id) => Self::Workspace(id),
            Target::Deployment { id, workspace_id } => Self::Deployment { id, workspace_id },
        }
    }
}

impl Target {
    /// What an absent target and an unseen one are both answered with.
    pub fn unseen(self) -> Refusal {
        Refusal::not_found(match self {
            Self::Organization => "organization",
            Self::Workspace(_) => "workspace",
            Self::Deployment { .. } => "deployment",
        })
    }

    fn forbid(self, permission: Permission) -> Refusal {
        let (place, giver) = match self {
            Self::Organization => ("in this organization", "An organization owner"),
            Self::Workspace(_) => ("in this workspace", "An owner of the workspace or of the organization"),
            Self::Deployment { .. } => (
                "on this deployment",
                "An admin of the deployment, or an owner of its workspace or of the organization,",
            ),
        };
        Refusal::Forbidden(format!(
            "You need the permission `{permission}` {place}. {giver} can give you a role that has it."
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{d1, d2, deployment, holder, w1, w2};

    const SETTINGS: Permission = Permission::known("workspace.settings.update");

    #[test]
    fn unseen_is_not_found_and_seen_is_forbidden() {
        let organization = Target::Organization;
        let (here, there) = (Target::Workspace(w1()), Target::Workspace(w2()));
        let (on_d1, on_d2) = (deployment(d1()), deployment(d2()));
        let table = [
            ("ORGANIZATION_OWNER", "workspace.delete", here, 200),
            ("ORGANIZATION_OWNER", "deployment.delete", on_d2, 200),
            ("ORGANIZATION_MEMBER", "organization.get", organization, 200),
            ("ORGANIZATION_MEMBER", "organization.settings.update", organization, 403),
            ("ORGANIZATION_BILLING_ADMIN", "organization.settings.update", organization, 200),
            ("ORGANIZATION_BILLING_ADMIN", "workspace.get", here, 404),
            ("ORGANIZATION_MEMBER", "deployment.get", on_d1, 404),
            ("WORKSPACE_OWNER", "workspace.settings.update", here, 200),
            ("WORKSPACE_OWNER", "workspace.settings.update", there, 404),
            ("WORKSPACE_OWNER", "organization.get", organization, 403),
            ("WORKSPACE_MEMBER", "workspace.settings.update", here, 403),
            ("WORKSPACE_MEMBER", "deployment.get", on_d1, 200),
            ("WORKSPACE_MEMBER", "deployment.update", on_d1, 403),
            ("WORKSPACE_MEMBER", "deployment.get", on_d2, 404),
            ("WORKSPACE_ACCESSOR", "workspace.get", here, 200),
            ("WORKSPACE_ACCESSOR", "workspace.delete", here, 403),
            ("WORKSPACE_ACCESSOR", "deployment.get", on_d1, 404),
            ("DEPLOYMENT_ADMIN", "deployment.delete", on_d1, 200),
            ("DEPLOYMENT_ADMIN", "workspace.get", here, 200),
            ("DEPLOYMENT_ADMIN", "workspace.delete", here, 403),
            ("DEPLOYMENT_ADMIN", "deployment.get", on_d2, 404),
            ("Local", "deployment.logs.get", on_d1, 200),
            ("Local", "deployment.get", on_d1, 403),
            ("DAG_VIEWER", "deployment.get", on_d1, 200),
            ("DAG_VIEWER", "deployment.logs.get", on_d1, 403),
        ];
        for (role, permission, target, expected) in table {
            let answer = require(&holder(role), Permission::known(permission), target);
            let status = answer.map_or_else(|refusal| refusal.status(), |()| 200);
            assert_eq!(status, expected, "{role} asks for {permission} on {target:?}");
        }
    }

    #[test]
    fn refusals_say_what_to_do() {
        let member = holder("WORKSPACE_MEMBER");
        let forbidden = require(&member, SETTINGS, Target::Workspace(w1())).unwrap_err();
        assert_eq!(
            forbidden.message(),
            "You need the permission `workspace.settings.update` in this workspace. \
             An owner of the workspace or of the organization can give you a role that has it."
        );
        let unseen = require(&member, SETTINGS, Target::Workspace(w2())).unwrap_err();
        assert_eq!(unseen, Target::Workspace(w1()).unseen());
        assert_eq!(unseen.message(), "There is no such workspace, or you may not see it.");
    }
}
