//! Reads the entries of a request: each names an existing resource, once, and a role that can be held there.

use std::collections::BTreeSet;

use podium_api::enums::WorkspaceRoleName;
use podium_api::subjects::{DagRole, DeploymentRole, SubjectRoles, WorkspaceRole};
use podium_api::{DeploymentId, WorkspaceId};

use crate::assignable::{self, MAX_DAG_ID, MAX_DAG_TAG};
use crate::grants::{Grant, Held, On};
use crate::no_escalation::only_owners;

use super::replacement::Replacement;

impl Replacement<'_> {
    pub(super) fn organization(&mut self, wanted: Option<&str>) {
        let held = self.current.iter().find(|grant| grant.on == On::Organization).cloned();
        self.in_organization = held.is_some() || wanted.is_some();
        let differs = |name: &&str| held.as_ref().is_none_or(|grant| grant.held.name() != *name);
        let Some(name) = wanted.filter(differs) else { return self.after.extend(held) };
        let role = self.resolved("organizationRole", On::Organization, name);
        self.after.extend(role.or(held));
        self.attempt(only_owners(self.caller, "change organization roles"));
    }

    pub(super) fn workspaces(&mut self, roles: &SubjectRoles) {
        let of_kind = |on: &On| matches!(on, On::Workspace(_));
        let Some(entries) = &roles.workspace_roles else { return self.keep(of_kind) };
        let brought = self.workspaces_brought_by_lower_roles(roles);
        let mut wanted = Vec::new();
        let mut seen = BTreeSet::new();
        for (index, WorkspaceRole { role, workspace_id: id }) in entries.iter().enumerate() {
            let path = format!("workspaceRoles[{index}].workspaceId");
            let is_held = self.current.iter().any(|grant| grant.on == On::Workspace(*id));
            if !self.facts.shows_workspace(*id, self.caller) {
                self.fields.push(path, "unknown", assignable::no_such("workspace", id));
            } else if !seen.insert(*id) {
                self.fields.push(path, "duplicate", "must not be listed twice: a workspace takes one role");
            } else if *role != WorkspaceRoleName::Accessor || is_held || !brought.contains(id) {
                wanted.push(Grant { on: On::Workspace(*id), held: Held::Workspace(*role) });
            }
        }
        self.replace(of_kind, &wanted);
    }

    pub(super) fn deployments(&mut self, entries: Option<&[DeploymentRole]>) {
        let of_kind = |on: &On| matches!(on, On::Deployment { .. });
        let Some(entries) = entries else { return self.keep(of_kind) };
        let mut wanted = Vec::new();
        let mut seen = BTreeSet::new();
        for (index, DeploymentRole { deployment_id: id, role }) in entries.iter().enumerate() {
            let path = format!("deploymentRoles[{index}]");
            let Some(workspace_id) = self.workspace_of(*id, &path) else { continue };
            if !seen.insert(*id) {
                let message = "must not be listed twice: a deployment takes one role";
                self.fields.push(format!("{path}.deploymentId"), "duplicate", message);
                continue;
            }
            let on = On::Deployment { id: *id, workspace_id };
            wanted.extend(self.resolved(&format!("{path}.role"), on, role));
        }
        self.replace(of_kind, &wanted);
    }

    pub(super) fn dags(&mut self, entries: Option<&[DagRole]>) {
        let of_kind = |on: &On| matches!(on, On::Dag { .. } | On::DagTag { .. });
        let Some(entries) = entries else { return self.keep(of_kind) };
        let mut wanted = Vec::new();
        let mut seen = BTreeSet::new();
        for (index, entry) in entries.iter().enumerate() {
            let path = format!("dagRoles[{index}]");
            let workspace_id = self.workspace_of(entry.deployment_id, &path);
            let is_named = self.names_a_dag_or_a_tag(entry, &path);
            let Some(workspace_id) = workspace_id.filter(|_| is_named) else { continue };
            let on = dag_or_tag(entry, workspace_id);
            if !seen.insert((on.clone(), &entry.role)) {
                self.fields.push(path, "duplicate", "must not be listed twice");
                continue;
            }
            wanted.extend(self.resolved(&format!("{path}.role"), on, &entry.role));
        }
        self.replace(of_kind, &wanted);
    }

    /// Workspaces that deployment and DAG roles, held or asked for, show to the subject: an ACCESSOR there is computed,
    /// so one that is sent back asks for nothing.
    fn workspaces_brought_by_lower_roles(&self, roles: &SubjectRoles) -> BTreeSet<WorkspaceId> {
        let held = self.current.iter().filter_map(|grant| match &grant.on {
            On::Organization | On::Workspace(_) => None,
            On::Deployment { workspace_id, .. }
            | On::Dag { workspace_id, .. }
            | On::DagTag { workspace_id, .. } => Some(*workspace_id),
        });
        let on_deployments = roles.deployment_roles.iter().flatten().map(|entry| entry.deployment_id);
        let on_dags = roles.dag_roles.iter().flatten().map(|entry| entry.deployment_id);
        let requested =
            on_deployments.chain(on_dags).filter_map(|id| self.facts.deployments.get(&id).copied());
        held.chain(requested).collect()
    }

    fn workspace_of(&mut self, deployment_id: DeploymentId, path: &str) -> Option<WorkspaceId> {
        let found = self.facts.workspace_of(deployment_id, self.caller);
        if found.is_none() {
            let message = assignable::no_such("deployment", &deployment_id);
            self.fields.push(format!("{path}.deploymentId"), "unknown", message);
        }
        found
    }

    fn names_a_dag_or_a_tag(&mut self, entry: &DagRole, path: &str) -> bool {
        let given = |name: &Option<String>| name.as_ref().is_some_and(|name| !name.trim().is_empty());
        let wrong = match (given(&entry.dag_id), given(&entry.dag_tag)) {
            (true, true) => Some(("conflict", "must be omitted when `dagId` is given")),
            (false, false) => Some(("required", "is required without a `dagId`")),
            _ => None,
        };
        if let Some((code, message)) = wrong {
            self.fields.push(format!("{path}.dagTag"), code, message);
            return false;
        }
        let (dag_id, tag) = (entry.dag_id.as_deref().unwrap_or(""), entry.dag_tag.as_deref().unwrap_or(""));
        let checked = assignable::dag_name(format!("{path}.dagId"), dag_id, MAX_DAG_ID)
            .and_then(|()| assignable::dag_name(format!("{path}.dagTag"), tag, MAX_DAG_TAG));
        self.fields.take(checked).is_some()
    }

    fn resolved(&mut self, path: &str, on: On, role: &str) -> Option<Grant> {
        let held = assignable::role(role, &on, self.facts).map_err(|unfit| unfit.at(path));
        self.fields.take(held).map(|held| Grant { on, held })
    }
}

/// What an entry that names exactly one of the two is about.
fn dag_or_tag(entry: &DagRole, workspace_id: WorkspaceId) -> On {
    let deployment_id = entry.deployment_id;
    match (&entry.dag_id, &entry.dag_tag) {
        (Some(dag_id), _) if !dag_id.trim().is_empty() => {
            On::Dag { deployment_id, workspace_id, dag_id: dag_id.clone() }
        }
        (_, tag) => On::DagTag { deployment_id, workspace_id, tag: tag.clone().unwrap_or_default() },
    }
}
