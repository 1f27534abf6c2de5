//! Who and what the tests are about: one organization, two workspaces, and deployments in each of them.

use std::collections::{BTreeMap, BTreeSet};

use podium_api::Id;
use podium_api::enums::{CustomRoleScope, OrganizationRole};

use crate::assignable::{self, CustomRole, Facts};
use crate::authorize::Target;
use crate::grants::{Grant, Held, On};
use crate::patterns::matching;
use crate::refusal::Refusal;

fn id(number: u64) -> Id {
    Id::from_parts(1_800_000_000_000, 0, number)
}

/// The organization.
pub(crate) fn org() -> Id {
    id(1)
}

/// A workspace.
pub(crate) fn w1() -> Id {
    id(11)
}

/// Another workspace.
pub(crate) fn w2() -> Id {
    id(12)
}

/// A deployment of the first workspace.
pub(crate) fn d1() -> Id {
    id(111)
}

/// Another deployment of the first workspace.
pub(crate) fn d1b() -> Id {
    id(112)
}

/// A deployment of the second workspace.
pub(crate) fn d2() -> Id {
    id(121)
}

/// Neither a workspace nor a deployment.
pub(crate) fn nothing() -> Id {
    id(999)
}

/// The workspace of a deployment.
pub(crate) fn workspace_of(deployment: Id) -> Id {
    if deployment == d2() { w2() } else { w1() }
}

pub(crate) fn deployment(id: Id) -> Target {
    Target::Deployment { id, workspace_id: workspace_of(id) }
}

/// Everything there is: `Tuner` (deployments), `Reviewer` (DAGs), and `Local` (deployments of the first workspace).
pub(crate) fn facts() -> Facts {
    let role = |number, scope, pattern: &str, restricted: &[Id]| CustomRole {
        id: id(number),
        scope,
        permissions: matching(&[pattern]),
        restricted_workspace_ids: restricted.to_vec(),
    };
    let custom_roles = [
        ("Tuner", role(901, CustomRoleScope::Deployment, "deployment.{get,update}", &[])),
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

pub(crate) fn in_workspace(id: Id, role: &str) -> Grant {
    Grant { on: On::Workspace(id), held: Held::Workspace(role.parse().unwrap()) }
}

pub(crate) fn on_deployment(id: Id, role: &str) -> Grant {
    let workspace_id = workspace_of(id);
    let held = assignable::deployment_role(role, workspace_id, &facts()).unwrap();
    Grant { on: On::Deployment { id, workspace_id }, held }
}

pub(crate) fn on_dag(deployment_id: Id, dag_id: &str, role: &str) -> Grant {
    let workspace_id = workspace_of(deployment_id);
    let held = assignable::dag_role(role, workspace_id, &facts()).unwrap();
    Grant { on: On::Dag { deployment_id, workspace_id, dag_id: dag_id.into() }, held }
}

pub(crate) fn on_tag(deployment_id: Id, tag: &str, role: &str) -> Grant {
    let workspace_id = workspace_of(deployment_id);
    let held = assignable::dag_role(role, workspace_id, &facts()).unwrap();
    Grant { on: On::DagTag { deployment_id, workspace_id, tag: tag.into() }, held }
}

/// `403`, or `400` and every wrong field as `path code`.
pub(crate) fn told(refusal: &Refusal) -> Vec<String> {
    match refusal {
        Refusal::Invalid { fields, .. } => fields.iter().map(|e| format!("{} {}", e.field, e.code)).collect(),
        other => vec![other.status().to_string()],
    }
}
