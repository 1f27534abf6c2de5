//! A subject's roles as they are shown: all of them, or those at scopes that the viewer manages.
//!
//! A deployment or DAG role shows its holder the workspace too, so an ACCESSOR is shown where no workspace role is
//! held. It is computed here, every time, and never stored.

use std::collections::BTreeSet;

use podium_api::enums::WorkspaceRoleName;
use podium_api::subjects::{DagRole, DeploymentRole, SubjectRoles, WorkspaceRole};

use crate::grants::{Grant, Grants, Held, On};
use crate::role_updates::SubjectKind;

/// Everything: for an organization owner, and for subjects that look at themselves.
pub fn all(grants: &[Grant]) -> SubjectRoles {
    shown(grants, |_| true)
}

/// The organization role, and what is held at scopes that the viewer manages.
pub fn managed_by(viewer: &Grants, kind: SubjectKind, grants: &[Grant]) -> SubjectRoles {
    shown(grants, |on| *on == On::Organization || kind.is_managed_by(viewer, on))
}

fn shown(grants: &[Grant], is_shown: impl Fn(&On) -> bool) -> SubjectRoles {
    let mut sorted: Vec<&Grant> = grants.iter().filter(|grant| is_shown(&grant.on)).collect();
    sorted.sort_by_key(|grant| (&grant.on, grant.held.name()));
    let (mut organization_role, mut workspaces) = (None, Vec::new());
    let (mut deployments, mut dags) = (Vec::new(), Vec::new());
    let mut seen_through_lower_roles = BTreeSet::new();
    for Grant { on, held } in sorted {
        let role = held.name().to_owned();
        match (on, held) {
            (On::Organization, _) => organization_role = Some(role),
            (On::Workspace(id), Held::Workspace(role)) => {
                workspaces.push(WorkspaceRole { role: *role, workspace_id: *id });
            }
            (On::Workspace(_), _) => {}
            (On::Deployment { id, workspace_id }, _) => {
                seen_through_lower_roles.insert(*workspace_id);
                deployments.push(DeploymentRole { deployment_id: *id, role });
            }
            (On::Dag { deployment_id, workspace_id, dag_id }, _) => {
                seen_through_lower_roles.insert(*workspace_id);
                let dag_id = Some(dag_id.clone());
                dags.push(DagRole { dag_id, dag_tag: None, deployment_id: *deployment_id, role });
            }
            (On::DagTag { deployment_id, workspace_id, tag }, _) => {
                seen_through_lower_roles.insert(*workspace_id);
                let dag_tag = Some(tag.clone());
                dags.push(DagRole { dag_id: None, dag_tag, deployment_id: *deployment_id, role });
            }
        }
    }
    for grant in grants {
        if let On::Workspace(id) = &grant.on {
            seen_through_lower_roles.remove(id);
        }
    }
    let computed = |workspace_id| WorkspaceRole { role: WorkspaceRoleName::Accessor, workspace_id };
    workspaces.extend(seen_through_lower_roles.into_iter().map(computed));
    workspaces.sort_by_key(|entry| entry.workspace_id);
    SubjectRoles {
        organization_role,
        workspace_roles: Some(workspaces),
        deployment_roles: Some(deployments),
        dag_roles: Some(dags),
    }
}
