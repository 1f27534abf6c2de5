//! Short forms of role update requests and their outcomes, for tests.

use podium_api::subjects::{DagRole, DeploymentRole, SubjectRoles, WorkspaceRole};
use podium_api::{DeploymentId, WorkspaceId};

use super::{Change, SubjectKind, update};
use crate::fixtures::{facts, told};
use crate::grants::{Grant, Grants};

pub(super) const KEEP: SubjectRoles =
    SubjectRoles { organization_role: None, workspace_roles: None, deployment_roles: None, dag_roles: None };

pub(super) fn organization(role: &str) -> SubjectRoles {
    SubjectRoles { organization_role: Some(role.into()), ..KEEP }
}

pub(super) fn workspaces(entries: &[(WorkspaceId, &str)]) -> SubjectRoles {
    let entry =
        |(id, role): &(WorkspaceId, &str)| WorkspaceRole { role: role.parse().unwrap(), workspace_id: *id };
    SubjectRoles { workspace_roles: Some(entries.iter().map(entry).collect()), ..KEEP }
}

pub(super) fn deployments(entries: &[(DeploymentId, &str)]) -> SubjectRoles {
    let entry =
        |(id, role): &(DeploymentId, &str)| DeploymentRole { deployment_id: *id, role: (*role).into() };
    SubjectRoles { deployment_roles: Some(entries.iter().map(entry).collect()), ..KEEP }
}

/// Entries of deployment, DAG, tag and role; an empty DAG or tag is sent as clients send it.
pub(super) fn dags(entries: &[(DeploymentId, &str, &str, &str)]) -> SubjectRoles {
    let entry = |(id, dag, tag, role): &(DeploymentId, &str, &str, &str)| DagRole {
        dag_id: Some((*dag).into()),
        dag_tag: Some((*tag).into()).filter(|tag: &String| !tag.is_empty()),
        deployment_id: *id,
        role: (*role).into(),
    };
    SubjectRoles { dag_roles: Some(entries.iter().map(entry).collect()), ..KEEP }
}

pub(super) type Outcome = std::result::Result<Vec<Grant>, Vec<String>>;

pub(super) fn outcome(caller: &Grants, current: &[Grant], roles: SubjectRoles) -> Outcome {
    update(SubjectKind::User, current, &Change::Set(roles), caller, &facts())
        .map_err(|refusal| told(&refusal))
}

pub(super) fn refused(reasons: &[&str]) -> Outcome {
    Err(reasons.iter().map(|reason| (*reason).to_owned()).collect())
}
