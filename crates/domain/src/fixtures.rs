//! Test fixtures: one organization, two workspaces, and deployments in each of them.

use std::collections::{BTreeMap, BTreeSet};

use podium_api::enums::{CustomRoleScope, OrganizationRole, WorkspaceRoleName};
use podium_api::{DeploymentId, Id, OrganizationId, TypedId, WorkspaceId};
use proptest::prelude::*;
use serde_json::Value;

use crate::assignable::{self, CustomRole, Facts};
use crate::authorize::Target;
use crate::grants::{Grant, Grants, Held, On};
use crate::patterns::matching;
use crate::refusal::{Refusal, Result};

fn id<I: TypedId>(number: u64) -> I {
    I::from_raw(Id::from_parts(1_800_000_000_000, 0, number))
}

pub(crate) fn org() -> OrganizationId {
    id(1)
}

pub(crate) fn w1() -> WorkspaceId {
    id(11)
}

pub(crate) fn w2() -> WorkspaceId {
    id(12)
}

pub(crate) fn d1() -> DeploymentId {
    id(111)
}

/// Another deployment of the first workspace.
pub(crate) fn d1b() -> DeploymentId {
    id(112)
}

/// A deployment of the second workspace.
pub(crate) fn d2() -> DeploymentId {
    id(121)
}

/// Neither a workspace nor a deployment.
pub(crate) fn nothing<I: TypedId>() -> I {
    id(999)
}

pub(crate) fn workspace_of(deployment: DeploymentId) -> WorkspaceId {
    if deployment == d2() { w2() } else { w1() }
}

pub(crate) fn deployment(id: DeploymentId) -> Target {
    Target::Deployment { id, workspace_id: workspace_of(id) }
}

/// Everything there is. Of the custom roles, `Host` lets others in without holding much itself, and `Local` is
/// restricted to the first workspace.
pub(crate) fn facts() -> Facts {
    let role = |number, scope, pattern: &str, restricted: &[WorkspaceId]| CustomRole {
        id: id(number),
        scope,
        permissions: matching(&[pattern]),
        restricted_workspace_ids: restricted.to_vec(),
    };
    let custom_roles = [
        ("Tuner", role(901, CustomRoleScope::Deployment, "deployment.{get,update}", &[])),
        ("Host", role(904, CustomRoleScope::Deployment, "deployment.{get,users.update,teams.update}", &[])),
        ("Reviewer", role(902, CustomRoleScope::Dag, "dag.airflow.dag.get", &[])),
        ("Local", role(903, CustomRoleScope::Deployment, "deployment.logs.get", &[w1()])),
    ];
    Facts {
        workspaces: BTreeSet::from([w1(), w2()]),
        deployments: BTreeMap::from([d1(), d1b(), d2()].map(|id| (id, workspace_of(id)))),
        custom_roles: custom_roles.map(|(name, role)| (name.to_owned(), role)).into(),
    }
}

pub(crate) fn in_organization(role: OrganizationRole) -> Grant {
    Grant { on: On::Organization, held: Held::Organization(role) }
}

pub(crate) fn owner() -> Grant {
    in_organization(OrganizationRole::Owner)
}

pub(crate) fn member() -> Grant {
    in_organization(OrganizationRole::Member)
}

pub(crate) fn in_workspace(id: WorkspaceId, role: &str) -> Grant {
    Grant { on: On::Workspace(id), held: Held::Workspace(role.parse().unwrap()) }
}

fn on(on: On, role: &str) -> Grant {
    let held = assignable::role(role, &on, &facts()).unwrap();
    Grant { on, held }
}

pub(crate) fn on_deployment(id: DeploymentId, role: &str) -> Grant {
    on(deployment(id).into(), role)
}

pub(crate) fn on_dag(deployment_id: DeploymentId, dag_id: &str, role: &str) -> Grant {
    on(On::Dag { deployment_id, workspace_id: workspace_of(deployment_id), dag_id: dag_id.into() }, role)
}

pub(crate) fn on_tag(deployment_id: DeploymentId, tag: &str, role: &str) -> Grant {
    on(On::DagTag { deployment_id, workspace_id: workspace_of(deployment_id), tag: tag.into() }, role)
}

/// This one role, in the first workspace, on its first deployment or on the DAG `etl` there.
fn role(name: &str) -> Grant {
    let dag = On::Dag { deployment_id: d1(), workspace_id: w1(), dag_id: "etl".into() };
    let places = [On::Organization, On::Workspace(w1()), deployment(d1()).into(), dag];
    let built_in = |on: &On| Some(Grant { on: on.clone(), held: Held::built_in(on, name)? });
    places.iter().find_map(built_in).unwrap_or_else(|| on_deployment(d1(), name))
}

/// A subject with only this role.
pub(crate) fn holder(name: &str) -> Grants {
    Grants::new([role(name)])
}

/// A member of the organization with this role.
pub(crate) fn member_with(name: &str) -> Grants {
    Grants::new([member(), role(name)])
}

/// `403`, or `400` and every wrong field as `path code`.
pub(crate) fn told(refusal: &Refusal) -> Vec<String> {
    match refusal {
        Refusal::Invalid { fields, .. } => fields.iter().map(|e| format!("{} {}", e.field, e.code)).collect(),
        other => vec![other.status().to_string()],
    }
}

pub(crate) fn any_grant() -> impl Strategy<Value = Grant> {
    let deployments = || prop::sample::select(vec![d1(), d1b(), d2()]);
    let dag_roles = || prop::sample::select(vec!["DAG_VIEWER", "DAG_AUTHOR", "Reviewer"]);
    let names = || prop::sample::select(vec!["etl", "daily"]);
    prop_oneof![
        prop::sample::select(OrganizationRole::ALL).prop_map(in_organization),
        (prop::sample::select(vec![w1(), w2()]), prop::sample::select(WorkspaceRoleName::ALL))
            .prop_map(|(id, role)| in_workspace(id, role.as_str())),
        (
            deployments(),
            prop::sample::select(vec!["DEPLOYMENT_ADMIN", "DEPLOYMENT_ACCESSOR", "Tuner", "Host"])
        )
            .prop_map(|(id, role)| on_deployment(id, role)),
        (deployments(), names(), dag_roles()).prop_map(|(id, dag, role)| on_dag(id, dag, role)),
        (deployments(), names(), dag_roles()).prop_map(|(id, tag, role)| on_tag(id, tag, role)),
    ]
}

/// A request with some fields replaced; `null` removes one.
pub(crate) fn with(mut body: Value, changes: Value) -> Value {
    let Value::Object(changes) = changes else { panic!("changes are an object") };
    for (field, value) in changes {
        if value.is_null() {
            body.as_object_mut().unwrap().remove(&field);
        } else {
            body[field] = value;
        }
    }
    body
}

/// `field: code` of each wrong field; the message where no field is named, the status where it is another refusal.
pub(crate) fn wrong<T>(result: Result<T>) -> Vec<String> {
    match result {
        Ok(_) => Vec::new(),
        Err(Refusal::Invalid { fields, message }) if fields.is_empty() => vec![message],
        Err(Refusal::Invalid { fields, .. }) => {
            fields.iter().map(|error| format!("{}: {}", error.field, error.code)).collect()
        }
        Err(other) => vec![other.status().to_string()],
    }
}
