//! The built-in roles, as data, and templates to copy into custom roles.
//!
//! The roles are in `data/built-in-roles.json`. Each contains the one above it in its hierarchy and adds some permissions, written as in the documentation.
//! [`crate::grants`] derives what a role gives on the resources below it.

use std::fmt::Write;
use std::sync::LazyLock;

use podium_api::enums::{DefaultRoleScope, OrganizationRole, RoleScope, WorkspaceRoleName};
use podium_api::roles::{DefaultRole, RoleTemplate};
use serde::Deserialize;

use crate::patterns::matching;
use crate::permissions::{Permission, PermissionSet};

pub use podium_api::enums::{DagRoleName, DeploymentRoleName};

#[derive(Debug, Deserialize)]
pub struct BuiltIn {
    pub name: &'static str,
    pub scope: RoleScope,
    pub description: &'static str,
    adds: Vec<String>,
}

/// The built-in roles by hierarchy, the weakest first: each holds what the one before it in its scope holds, and more.
pub static BUILT_IN: LazyLock<Vec<BuiltIn>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../data/built-in-roles.json"))
        .expect("built-in-roles.json is a list of roles")
});

/// Reads the roles; a server whose built-in roles cannot be read does not start.
pub fn load() {
    LazyLock::force(&PERMISSIONS);
}

static PERMISSIONS: LazyLock<Vec<PermissionSet>> = LazyLock::new(|| {
    let mut sets: Vec<PermissionSet> = Vec::new();
    for (index, role) in BUILT_IN.iter().enumerate() {
        let weaker = match index.checked_sub(1) {
            Some(above) if BUILT_IN[above].scope == role.scope => sets[above],
            _ => PermissionSet::EMPTY,
        };
        sets.push(weaker.union(matching(&role.adds)));
    }
    sets
});

impl BuiltIn {
    pub fn permissions(&self) -> PermissionSet {
        named(self.name)
    }
}

pub fn of_organization(role: OrganizationRole) -> PermissionSet {
    PERMISSIONS[role as usize]
}

pub fn of_workspace(role: WorkspaceRoleName) -> PermissionSet {
    PERMISSIONS[OrganizationRole::ALL.len() + role as usize]
}

pub fn of_deployment(role: DeploymentRoleName) -> PermissionSet {
    named(role.as_str())
}

/// The permissions of a built-in role on a DAG or tag.
pub fn of_dag(role: DagRoleName) -> PermissionSet {
    named(role.as_str())
}

fn named(name: &str) -> PermissionSet {
    let index = BUILT_IN.iter().position(|role| role.name == name);
    index.map_or(PermissionSet::EMPTY, |index| PERMISSIONS[index])
}

/// Whether a name is taken by a built-in role, however it is capitalized.
pub fn is_built_in(name: &str) -> bool {
    BUILT_IN.iter().any(|role| role.name.eq_ignore_ascii_case(name))
}

pub fn default_roles() -> Vec<DefaultRole> {
    let on_the_wire = |role: &BuiltIn| DefaultRole {
        name: role.name.into(),
        description: Some(role.description.into()),
        scope_type: match role.scope {
            RoleScope::Organization => DefaultRoleScope::Organization,
            RoleScope::Workspace => DefaultRoleScope::Workspace,
            RoleScope::Deployment => DefaultRoleScope::Deployment,
            RoleScope::Dag => DefaultRoleScope::Dag,
        },
        permissions: role.permissions().names(),
    };
    BUILT_IN.iter().map(on_the_wire).collect()
}

/// Starting points for custom roles, as on the wire: what workspace roles give on deployments.
pub fn templates() -> Vec<RoleTemplate> {
    use WorkspaceRoleName::{Author, Member, Operator};
    let template = |name: &str, description: &str, role| RoleTemplate {
        name: name.into(),
        description: Some(description.into()),
        scope_type: DefaultRoleScope::Deployment,
        permissions: of_workspace(role).of_scope(RoleScope::Deployment).names(),
    };
    let operator = "Changes and deletes the deployment and what it uses.";
    vec![
        template("Deployment_Viewer", "Sees the deployment, its DAGs and its logs.", Member),
        template("Deployment_Author", "Deploys code and works with DAGs, runs and tasks.", Author),
        template("Deployment_Operator", operator, Operator),
    ]
}

/// Which built-in role gives which permission: a line for each permission, a column for each role.
pub fn matrix() -> String {
    let width = Permission::all().map(|permission| permission.name().len()).max().unwrap_or_default();
    let letters = || ('a'..='z').zip(&*BUILT_IN);
    let mut text = String::from("# The built-in roles, and the permissions that each of them gives.\n\n");
    for (letter, role) in letters() {
        let _ = writeln!(text, "{letter}  {}", role.name);
    }
    let heading: Vec<String> = letters().map(|(letter, _)| letter.to_string()).collect();
    let _ = writeln!(text, "\n{:width$}  {}", "", heading.join(" "));
    for permission in Permission::all() {
        let held = |set: &PermissionSet| if set.contains(permission) { "x" } else { "." };
        let marks: Vec<&str> = PERMISSIONS.iter().map(held).collect();
        let _ = writeln!(text, "{:width$}  {}", permission.name(), marks.join(" "));
    }
    text
}

#[cfg(test)]
mod tests;
