//! A subject's roles in responses: all of them, or those at scopes that the viewer manages.
//!
//! A deployment or DAG role also lets its holder see the workspace, so ACCESSOR is shown if the subject has no
//! workspace role. It is computed here, every time, and never stored.

use std::collections::BTreeSet;

use podium_api::enums::WorkspaceRoleName;
use podium_api::subjects::{DagRole, DeploymentRole, SubjectRoles, WorkspaceRole};

use crate::grants::{Grant, Grants, Held, On};
use crate::permissions::Permission;
use crate::role_updates::SubjectKind;

const SEE_WORKSPACE: Permission = Permission::known("workspace.get");
const SEE_DEPLOYMENT: Permission = Permission::known("deployment.get");
const SEE_DAG: Permission = Permission::known("dag.airflow.dag.get");

/// All roles: for an organization owner, and for subjects reading their own.
pub fn all(grants: &[Grant]) -> SubjectRoles {
    shown(grants, |_| true)
}

/// The organization role, and what is held at scopes that the viewer manages.
pub fn managed_by(viewer: &Grants, kind: SubjectKind, grants: &[Grant]) -> SubjectRoles {
    shown(grants, |on| *on == On::Organization || kind.is_managed_by(viewer, on))
}

/// Roles at scopes that the viewer manages, and roles on resources that it can see anyway.
pub fn visible_to(viewer: &Grants, kind: SubjectKind, grants: &[Grant]) -> SubjectRoles {
    shown(grants, |on| is_seen_by(viewer, on) || kind.is_managed_by(viewer, on))
}

/// Whether a viewer may see the resource of a role: others' roles must not reveal resources that it cannot see.
pub fn is_seen_by(viewer: &Grants, on: &On) -> bool {
    match on {
        On::Organization => true,
        On::Workspace(_) => viewer.at(on).contains(SEE_WORKSPACE),
        On::Deployment { .. } => viewer.at(on).contains(SEE_DEPLOYMENT),
        On::Dag { .. } | On::DagTag { .. } => viewer.at(on).contains(SEE_DAG),
    }
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
        workspace_roles: unless_empty(workspaces),
        deployment_roles: unless_empty(deployments),
        dag_roles: unless_empty(dags),
    }
}

/// Clients take the presence of a list of roles as a statement, and an empty one as another than none.
fn unless_empty<T>(list: Vec<T>) -> Option<Vec<T>> {
    Some(list).filter(|list| !list.is_empty())
}

#[cfg(test)]
mod tests {
    use podium_api::WorkspaceId;

    use super::*;
    use crate::fixtures::{d1, d2, holder, in_workspace, member, on_dag, on_deployment, on_tag, w1, w2};

    fn held() -> Vec<Grant> {
        vec![
            on_tag(d2(), "daily", "DAG_AUTHOR"),
            on_dag(d1(), "etl", "DAG_VIEWER"),
            on_deployment(d1(), "Tuner"),
            in_workspace(w1(), "WORKSPACE_MEMBER"),
            member(),
        ]
    }

    fn workspaces(roles: &SubjectRoles) -> Vec<(WorkspaceId, &str)> {
        roles
            .workspace_roles
            .iter()
            .flatten()
            .map(|entry| (entry.workspace_id, entry.role.as_str()))
            .collect()
    }

    type Shown<'a> = &'a [(WorkspaceId, &'a str)];

    /// What holders of a role are shown: roles in workspaces, and how many on deployments and on DAGs.
    fn are_shown(
        shown: fn(&Grants, SubjectKind, &[Grant]) -> SubjectRoles,
        table: &[(&str, Shown<'_>, usize, usize)],
    ) {
        for (viewer, in_workspaces, on_deployments, on_dags) in table {
            let roles = shown(&holder(viewer), SubjectKind::User, &held());
            assert_eq!(roles.organization_role.as_deref(), Some("ORGANIZATION_MEMBER"), "{viewer}");
            assert_eq!(workspaces(&roles), *in_workspaces, "{viewer}");
            assert_eq!(roles.deployment_roles.iter().flatten().count(), *on_deployments, "{viewer}");
            assert_eq!(roles.dag_roles.iter().flatten().count(), *on_dags, "{viewer}");
        }
    }

    #[test]
    fn everything_is_shown_with_the_computed_accessor() {
        let roles = all(&held());
        assert_eq!(roles.organization_role.as_deref(), Some("ORGANIZATION_MEMBER"));
        assert_eq!(workspaces(&roles), [(w1(), "WORKSPACE_MEMBER"), (w2(), "WORKSPACE_ACCESSOR")]);
        assert_eq!(roles.deployment_roles.unwrap()[0].role, "Tuner");
        let dags = roles.dag_roles.unwrap();
        assert_eq!((dags[0].dag_id.as_deref(), dags[0].dag_tag.as_deref()), (Some("etl"), None));
        assert_eq!((dags[1].dag_id.as_deref(), dags[1].dag_tag.as_deref()), (None, Some("daily")));
    }

    #[test]
    fn members_see_what_they_could_see_anyway() {
        let both: Shown = &[(w1(), "WORKSPACE_MEMBER"), (w2(), "WORKSPACE_ACCESSOR")];
        let table: [(&str, Shown, usize, usize); 7] = [
            ("ORGANIZATION_OWNER", both, 1, 2),
            ("ORGANIZATION_MEMBER", &[], 0, 0),
            ("WORKSPACE_OWNER", &[(w1(), "WORKSPACE_MEMBER")], 1, 1),
            ("WORKSPACE_MEMBER", &[(w1(), "WORKSPACE_MEMBER")], 1, 1),
            ("WORKSPACE_ACCESSOR", &[(w1(), "WORKSPACE_MEMBER")], 0, 0),
            ("DEPLOYMENT_ACCESSOR", &[(w1(), "WORKSPACE_MEMBER")], 1, 0),
            ("DAG_VIEWER", &[(w1(), "WORKSPACE_MEMBER")], 1, 1),
        ];
        are_shown(visible_to, &table);
    }

    #[test]
    fn others_see_what_they_manage() {
        let table: [(&str, Shown, usize, usize); 4] = [
            ("ORGANIZATION_OWNER", &[(w1(), "WORKSPACE_MEMBER"), (w2(), "WORKSPACE_ACCESSOR")], 1, 2),
            ("WORKSPACE_OWNER", &[(w1(), "WORKSPACE_MEMBER")], 1, 1),
            ("DEPLOYMENT_ADMIN", &[], 1, 1),
            ("WORKSPACE_MEMBER", &[], 0, 0),
        ];
        are_shown(managed_by, &table);
    }

    #[test]
    fn lists_without_entries_are_absent() {
        let roles = all(&[]);
        assert_eq!(roles.organization_role, None);
        assert_eq!((roles.workspace_roles, roles.deployment_roles, roles.dag_roles), (None, None, None));
    }
}
