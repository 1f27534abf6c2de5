//! New roles for an API token: one primary role where the token belongs, and further ones below it.
//!
//! The list replaces everything that the token held, except that an omitted primary role is kept.

use std::collections::BTreeSet;

use podium_api::enums::TokenEntity;
use podium_api::tokens::ApiTokenRole;
use podium_api::{DeploymentId, EntityId, FieldError, OrganizationId, WorkspaceId};

use crate::assignable::{self, Facts, MAX_DAG_ID, MAX_DAG_TAG, Mentions, dag_name, no_such};
use crate::authorize::Target;
use crate::grants::{Grant, Grants, On};
use crate::no_escalation::may_give;
use crate::refusal::{Fields, Result};
use crate::tokens::{Verb, may};

/// What has to be looked up before new roles can be judged.
pub fn mentions(entries: &[ApiTokenRole]) -> Mentions {
    let mut mentions = Mentions::default();
    for entry in entries {
        match entry.entity_type {
            TokenEntity::Organization => {}
            TokenEntity::Workspace => mentions.workspaces.extend(entry.entity_id.parse::<WorkspaceId>()),
            TokenEntity::Deployment => mentions.deployments.extend(entry.entity_id.parse::<DeploymentId>()),
            TokenEntity::Dag | TokenEntity::DagTag => mentions.deployments.extend(entry.deployment_id),
        }
        mentions.role(&entry.role);
    }
    mentions
}

/// Everything that the token holds after the change, the primary role first; or every reason against it.
pub fn update(
    organization_id: OrganizationId,
    belongs_to: Target,
    current: &[Grant],
    entries: &[ApiTokenRole],
    caller: &Grants,
    facts: &Facts,
) -> Result<Vec<Grant>> {
    may(caller, Verb::Update, belongs_to)?;
    let reader = Reader { organization_id, belongs_to, caller, facts };
    let mut fields = Fields::new();
    let mut after = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, entry) in entries.iter().enumerate() {
        let path = format!("roles[{index}]");
        match reader.grant(entry) {
            Err(error) => fields.push(format!("{path}.{}", error.field), &error.code, error.message),
            Ok(grant) if !seen.insert(identity(&grant)) => {
                fields.push(path, "duplicate", "must not be listed twice: a token holds one role there");
            }
            Ok(grant) => after.push(grant),
        }
    }
    fields.into_result()?;
    let primary = On::from(belongs_to);
    if !after.iter().any(|grant| grant.on == primary) {
        after.extend(current.iter().find(|grant| grant.on == primary).cloned());
    }
    for grant in &after {
        let is_held = current.iter().any(|held| held.on == grant.on && held.held.name() == grant.held.name());
        if !is_held {
            may_give(caller, &grant.held, &grant.on)?;
        }
    }
    after.sort_by(|left, right| (&left.on, left.held.name()).cmp(&(&right.on, right.held.name())));
    Ok(after)
}

/// What may be there once: any number of DAG roles, one of each other.
fn identity(grant: &Grant) -> (On, Option<String>) {
    let is_dag = matches!(grant.on, On::Dag { .. } | On::DagTag { .. });
    (grant.on.clone(), is_dag.then(|| grant.held.name().to_owned()))
}

pub fn on_the_wire(organization_id: OrganizationId, grants: &[Grant]) -> Vec<ApiTokenRole> {
    let entry = |Grant { on, held }: &Grant| {
        let (entity_type, entity_id, deployment_id) = match on {
            On::Organization => (TokenEntity::Organization, organization_id.to_string(), None),
            On::Workspace(id) => (TokenEntity::Workspace, id.to_string(), None),
            On::Deployment { id, .. } => (TokenEntity::Deployment, id.to_string(), None),
            On::Dag { deployment_id, dag_id, .. } => (TokenEntity::Dag, dag_id.clone(), Some(*deployment_id)),
            On::DagTag { deployment_id, tag, .. } => (TokenEntity::DagTag, tag.clone(), Some(*deployment_id)),
        };
        ApiTokenRole { entity_type, entity_id, deployment_id, role: held.name().to_owned() }
    };
    grants.iter().map(entry).collect()
}

/// Reads entries for one token and one caller; a wrong field is named within its entry.
struct Reader<'a> {
    organization_id: OrganizationId,
    belongs_to: Target,
    caller: &'a Grants,
    facts: &'a Facts,
}

type Read<T> = std::result::Result<T, FieldError>;

impl Reader<'_> {
    fn grant(&self, entry: &ApiTokenRole) -> Read<Grant> {
        let on = self.on(entry)?;
        self.fits(&on)?;
        let held = assignable::role(&entry.role, &on, self.facts);
        Ok(Grant { on, held: held.map_err(|unfit| unfit.at("role"))? })
    }

    /// What an entry is about: something that exists and that the caller may see.
    fn on(&self, entry: &ApiTokenRole) -> Read<On> {
        if let TokenEntity::Dag | TokenEntity::DagTag = entry.entity_type {
            return self.dag_or_tag(entry);
        }
        if entry.deployment_id.is_some_and(|id| id.as_str() != entry.entity_id) {
            let message = "must be omitted unless entityType is DAG or DAG_TAG";
            return Err(FieldError::new("deploymentId", "conflict", message));
        }
        let id = entry.entity_id.parse::<EntityId>().ok();
        let (thing, found) = match entry.entity_type {
            TokenEntity::Workspace => {
                let seen =
                    id.map(EntityId::as_workspace).filter(|id| self.facts.shows_workspace(*id, self.caller));
                ("workspace", seen.map(On::Workspace))
            }
            TokenEntity::Deployment => {
                let seen = id.map(EntityId::as_deployment).and_then(|id| {
                    let workspace_id = self.facts.workspace_of(id, self.caller)?;
                    Some(On::Deployment { id, workspace_id })
                });
                ("deployment", seen)
            }
            _ if id == Some(self.organization_id.into()) => return Ok(On::Organization),
            _ => {
                let message = format!("must be the id of this organization, {}", self.organization_id);
                return Err(FieldError::new("entityId", "unknown", message));
            }
        };
        found.ok_or_else(|| FieldError::new("entityId", "unknown", no_such(thing, &entry.entity_id)))
    }

    fn dag_or_tag(&self, entry: &ApiTokenRole) -> Read<On> {
        let name = entry.entity_id.clone();
        if name.trim().is_empty() {
            return Err(FieldError::new("entityId", "required", "must be the id of a DAG, or a tag"));
        }
        let is_tag = entry.entity_type == TokenEntity::DagTag;
        dag_name("entityId", &name, if is_tag { MAX_DAG_TAG } else { MAX_DAG_ID })?;
        let Some(deployment_id) = entry.deployment_id else {
            let message = format!("is required when entityType is {}", entry.entity_type);
            return Err(FieldError::new("deploymentId", "required", message));
        };
        let Some(workspace_id) = self.facts.workspace_of(deployment_id, self.caller) else {
            return Err(FieldError::new("deploymentId", "unknown", no_such("deployment", &deployment_id)));
        };
        Ok(match entry.entity_type {
            TokenEntity::DagTag => On::DagTag { deployment_id, workspace_id, tag: name },
            _ => On::Dag { deployment_id, workspace_id, dag_id: name },
        })
    }

    /// Whether a token that belongs where this one does can hold a role there.
    fn fits(&self, on: &On) -> Read<()> {
        let (fits, rule) = match self.belongs_to {
            Target::Organization => (true, ""),
            Target::Workspace(own) => {
                let inside = match on {
                    On::Workspace(id) | On::Deployment { workspace_id: id, .. } => own == *id,
                    _ => false,
                };
                (inside, "must be the workspace that the token belongs to, or a deployment of it")
            }
            Target::Deployment { id: own, .. } => {
                let inside = match on {
                    On::Deployment { id, .. }
                    | On::Dag { deployment_id: id, .. }
                    | On::DagTag { deployment_id: id, .. } => own == *id,
                    _ => false,
                };
                (inside, "must be the deployment that the token belongs to, or a DAG or tag of it")
            }
        };
        if fits { Ok(()) } else { Err(FieldError::new("entityId", "scope", rule)) }
    }
}

#[cfg(test)]
mod tests;
