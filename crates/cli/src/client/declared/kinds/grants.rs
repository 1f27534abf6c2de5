//! Roles of users, teams and tokens: one list in the files, several on the wire.

use podium_api::declarations::Grant;
use podium_api::enums::{OrganizationRole, TokenEntity, WorkspaceRoleName};
use podium_api::subjects::{DagRole, DeploymentRole, SubjectRoles, WorkspaceRole};
use podium_api::tokens::ApiTokenRole;
use podium_api::{DeploymentId, Endpoint, WorkspaceId};
use serde::Deserialize;
use serde_json::Value;

use super::{Difference, Entry, Failed, Kind, Names, Outcome, Planner, read};
use crate::client::grants::HeldByToken;

/// The roles that a user or a team holds.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Held {
    organization_role: Option<String>,
    workspace_roles: Vec<InWorkspace>,
    deployment_roles: Vec<DeploymentRole>,
    dag_roles: Vec<DagRole>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InWorkspace {
    workspace_id: WorkspaceId,
    role: String,
}

impl Names {
    fn in_workspace(&self, workspace_id: &str, role: String) -> Grant {
        Grant { workspace: self.of(workspace_id), deployment: None, dag: None, dag_tag: None, role }
    }

    fn on_deployment(&self, id: &str, role: String) -> Grant {
        let (workspace, deployment) = (self.workspace_of(id), Some(self.of(id)));
        Grant { workspace, deployment, dag: None, dag_tag: None, role }
    }
}

/// The roles of a user or a team beyond that in the organization, in order.
pub(super) fn of_subject(names: &Names, wire: &Value) -> Outcome<Vec<Grant>> {
    let Held { workspace_roles, deployment_roles, dag_roles, .. } = read(wire)?;
    let workspaces =
        workspace_roles.into_iter().map(|held| names.in_workspace(held.workspace_id.as_str(), held.role));
    let deployments =
        deployment_roles.into_iter().map(|held| names.on_deployment(held.deployment_id.as_str(), held.role));
    let dags = dag_roles.into_iter().map(|DagRole { dag_id: dag, dag_tag, deployment_id, role }| Grant {
        dag,
        dag_tag,
        ..names.on_deployment(deployment_id.as_str(), role)
    });
    Ok(in_order(workspaces.chain(deployments).chain(dags)))
}

/// Roles of a token in the form of the files, in order, without those on the organization.
pub(super) fn of_token(names: &Names, held: Vec<HeldByToken>) -> Vec<Grant> {
    let grant = |HeldByToken { entity_type, entity_id, deployment_id, role }| {
        let on_dag = |role| Some(names.on_deployment(deployment_id?.as_str(), role));
        match entity_type.known()? {
            TokenEntity::Organization => None,
            TokenEntity::Workspace => Some(names.in_workspace(&entity_id, role)),
            TokenEntity::Deployment => Some(names.on_deployment(&entity_id, role)),
            TokenEntity::Dag => Some(Grant { dag: Some(entity_id), ..on_dag(role)? }),
            TokenEntity::DagTag => Some(Grant { dag_tag: Some(entity_id), ..on_dag(role)? }),
        }
    };
    in_order(held.into_iter().filter_map(grant))
}

fn in_order(grants: impl Iterator<Item = Grant>) -> Vec<Grant> {
    let mut grants: Vec<Grant> = grants.collect();
    grants.sort_by_cached_key(|grant| serde_json::to_string(grant).unwrap_or_default());
    grants
}

/// Gives roles to a user or a team that is new.
pub(super) fn give<E: Endpoint>(
    planner: &mut Planner<'_>,
    entry: &Entry,
    role: OrganizationRole,
    grants: Option<Vec<Grant>>,
) -> Outcome {
    let Some(grants) = grants.filter(|grants| !grants.is_empty()) else { return Ok(()) };
    let lists = lists(planner, &grants, &entry.at)?;
    let body = SubjectRoles { organization_role: Some(role.to_string()), ..lists };
    planner.change_made::<E>(entry, &body)?.after = Some(Kind::Deployment);
    Ok(())
}

/// Changes the roles of a user or a team, where they differ.
pub(super) fn change<E: Endpoint, R>(
    planner: &mut Planner<'_>,
    entry: &Entry,
    found: &Difference<R>,
    role: Option<OrganizationRole>,
    grants: Option<&[Grant]>,
) -> Outcome {
    if role.is_none() && grants.is_none() {
        return Ok(());
    }
    let organization_role = role.map(|role| role.to_string());
    let mut body = SubjectRoles {
        organization_role: organization_role.or(found.now::<Held>()?.organization_role),
        workspace_roles: None,
        deployment_roles: None,
        dag_roles: None,
    };
    if let Some(grants) = grants {
        body =
            SubjectRoles { organization_role: body.organization_role, ..lists(planner, grants, &entry.at)? };
    }
    planner.change::<E, R>(entry, found, &body)?.after = Some(Kind::Deployment);
    Ok(())
}

enum On {
    Workspace(WorkspaceId),
    Deployment(DeploymentId),
    Dag(DeploymentId, String),
    DagTag(DeploymentId, String),
}

fn on(planner: &Planner<'_>, grant: &Grant, at: &str) -> Outcome<On> {
    let Some(deployment) = &grant.deployment else {
        if grant.dag.is_some() || grant.dag_tag.is_some() {
            return Err(Failed::usage(format!(
                "{at}.roles: a role on a DAG must name the deployment of the DAG too"
            )));
        }
        return Ok(On::Workspace(planner.id(Kind::Workspace, &grant.workspace, at)?));
    };
    let id = planner.deployment(&grant.workspace, deployment, at)?;
    Ok(match (&grant.dag, &grant.dag_tag) {
        (Some(dag), _) => On::Dag(id, dag.clone()),
        (None, Some(tag)) => On::DagTag(id, tag.clone()),
        (None, None) => On::Deployment(id),
    })
}

/// The role lists of a user or a team.
fn lists(planner: &Planner<'_>, grants: &[Grant], at: &str) -> Outcome<SubjectRoles> {
    let (mut workspaces, mut deployments, mut dags) = (Vec::new(), Vec::new(), Vec::new());
    for grant in grants {
        let role = grant.role.clone();
        match on(planner, grant, at)? {
            On::Workspace(workspace_id) => {
                let role = role.parse().map_err(|_| {
                    let known = WorkspaceRoleName::ALL.iter().map(|role| role.as_str());
                    let known = known.collect::<Vec<_>>().join(", ");
                    Failed::usage(format!(
                        "{at}.roles: {role:?} is no role in a workspace: write one of {known}"
                    ))
                })?;
                workspaces.push(WorkspaceRole { role, workspace_id });
            }
            On::Deployment(deployment_id) => deployments.push(DeploymentRole { deployment_id, role }),
            On::Dag(deployment_id, _) | On::DagTag(deployment_id, _) => {
                let (dag_id, dag_tag) = (grant.dag.clone(), grant.dag_tag.clone());
                dags.push(DagRole { dag_id, dag_tag, deployment_id, role });
            }
        }
    }
    Ok(SubjectRoles {
        organization_role: None,
        workspace_roles: Some(workspaces),
        deployment_roles: Some(deployments),
        dag_roles: Some(dags),
    })
}

pub(super) fn entries(planner: &Planner<'_>, grants: &[Grant], at: &str) -> Outcome<Vec<ApiTokenRole>> {
    let entry = |grant: &Grant| {
        let (entity_type, entity_id, deployment_id) = match on(planner, grant, at)? {
            On::Workspace(id) => (TokenEntity::Workspace, id.to_string(), None),
            On::Deployment(id) => (TokenEntity::Deployment, id.to_string(), None),
            On::Dag(id, dag) => (TokenEntity::Dag, dag, Some(id)),
            On::DagTag(id, tag) => (TokenEntity::DagTag, tag, Some(id)),
        };
        Ok(ApiTokenRole { entity_type, entity_id, deployment_id, role: grant.role.clone() })
    };
    grants.iter().map(entry).collect()
}
