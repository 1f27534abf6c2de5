//! API tokens: the rules for creating one, and who may manage it.
//!
//! A token belongs to the organization, a workspace or a deployment, and the permission to manage it is required
//! there. Creating, hashing and expiring the value is not done here; neither is changing roles
//! ([`crate::token_roles`]).

use podium_api::enums::{TokenKind, TokenScope};
use podium_api::tokens::CreateApiTokenRequest;
use podium_api::{EntityId, Id, OrganizationId, WorkspaceId};

use crate::assignable::{self, Facts, Mentions, no_such};
use crate::authorize::{Target, require};
use crate::grants::{Grant, Grants, Held, On};
use crate::names::{Name, name};
use crate::no_escalation::{may_give, only_owners};
use crate::refusal::{Fields, Result};
use crate::verbs::{self, verbs};

pub const MAX_NAME: usize = 256;

verbs! {
    "What is done to a token.", "apiTokens":
    Get = "get", Create = "create", Update = "update", Delete = "delete", Rotate = "rotate"
}

/// Checks the right on a token that exists: a caller who could not manage it does not see it.
pub fn may(caller: &Grants, verb: Verb, belongs_to: Target) -> Result<()> {
    let permissions = [Verb::Get, verb].map(|verb| verb.permission(belongs_to));
    verbs::may(caller, "API token", permissions, belongs_to)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    pub name: Name,
    pub description: String,
    pub kind: TokenKind,
    pub belongs_to: Target,
    pub primary: Grant,
    /// How many days it works; none means forever.
    pub expiry_period_in_days: Option<u32>,
}

/// What has to be loaded before a new token can be checked.
pub fn mentions(request: &CreateApiTokenRequest) -> Mentions {
    let mut mentions = Mentions::default();
    match request.scope {
        TokenScope::Organization => {}
        TokenScope::Workspace => mentions.workspaces.extend(request.entity_id.map(EntityId::as_workspace)),
        TokenScope::Deployment => mentions.deployments.extend(request.entity_id.map(EntityId::as_deployment)),
    }
    mentions.role(&request.role);
    mentions
}

/// Checks a new token: its fields, then the caller's right to make it and to give its role.
pub fn create(
    organization_id: OrganizationId,
    request: &CreateApiTokenRequest,
    caller: &Grants,
    facts: &Facts,
) -> Result<NewToken> {
    let mut fields = Fields::new();
    let name = fields.take(name("name", &request.name, MAX_NAME));
    let belongs_to = belongs_to(organization_id, request, caller, facts, &mut fields);
    let held = role(request, belongs_to, facts, &mut fields);
    let ((name, belongs_to), held) = fields.finish(name.zip(belongs_to).zip(held))?;
    if belongs_to == Target::Organization {
        only_owners(
            caller,
            "create API tokens of the organization; create one of a workspace or deployment instead",
        )?;
    }
    require(caller, Verb::Create.permission(belongs_to), belongs_to)?;
    let primary = Grant { on: belongs_to.into(), held };
    may_give(caller, &primary.held, &primary.on)?;
    Ok(NewToken {
        name,
        description: request.description.as_deref().unwrap_or_default().trim().to_owned(),
        kind: request.kind.unwrap_or(TokenKind::Standard),
        belongs_to,
        primary,
        expiry_period_in_days: request.token_expiry_period_in_days,
    })
}

fn belongs_to(
    organization_id: OrganizationId,
    request: &CreateApiTokenRequest,
    caller: &Grants,
    facts: &Facts,
    fields: &mut Fields,
) -> Option<Target> {
    let (thing, found) = match (request.scope, request.entity_id) {
        (TokenScope::Organization, entity) if entity.is_none_or(|id| id == organization_id.into()) => {
            return Some(Target::Organization);
        }
        (TokenScope::Organization, _) => {
            let message = "must be omitted, or be the organization's id, for a token of scope ORGANIZATION";
            fields.push("entityId", "conflict", message);
            return None;
        }
        (scope, None) => {
            let thing = if scope == TokenScope::Workspace { "workspace" } else { "deployment" };
            let message = format!("must be the id of a {thing} for a token of scope {scope}");
            fields.push("entityId", "required", message);
            return None;
        }
        (TokenScope::Workspace, Some(id)) => {
            let id = id.as_workspace();
            ("workspace", facts.shows_workspace(id, caller).then_some(Target::Workspace(id)))
        }
        (TokenScope::Deployment, Some(id)) => {
            let id = id.as_deployment();
            let workspace_id = facts.workspace_of(id, caller);
            ("deployment", workspace_id.map(|workspace_id| Target::Deployment { id, workspace_id }))
        }
    };
    if let (None, Some(id)) = (found, request.entity_id) {
        fields.push("entityId", "unknown", no_such(thing, &id));
    }
    found
}

fn role(
    request: &CreateApiTokenRequest,
    belongs_to: Option<Target>,
    facts: &Facts,
    fields: &mut Fields,
) -> Option<Held> {
    let on = match (request.scope, belongs_to) {
        (_, Some(target)) => On::from(target),
        (TokenScope::Organization, None) => On::Organization,
        // The same roles are held in every workspace.
        (TokenScope::Workspace, None) => On::Workspace(WorkspaceId::from_raw(Id::from_parts(0, 0, 0))),
        // Without the deployment its role cannot be checked.
        (TokenScope::Deployment, None) => return None,
    };
    fields.take(assignable::role(&request.role, &on, facts).map_err(|unfit| unfit.at("role")))
}

#[cfg(test)]
mod tests;
