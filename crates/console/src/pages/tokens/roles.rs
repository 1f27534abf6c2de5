//! The roles of a token: what it holds, and one more.

use podium_api::TokenId;
use podium_api::enums::{OrganizationRole, TokenEntity, TokenScope, WorkspaceRoleName};
use podium_api::tokens::{self, ApiToken, ApiTokenRole, UpdateApiTokenRolesRequest};
use serde_json::json;

use crate::pages::deployments::workspace_choices;
use crate::pages::{Choice, OrganizationVisit, Problem, Result, view};

pub(super) struct RolesForm {
    pub(super) action: String,
    pub(super) version: String,
    pub(super) held: Vec<HeldRole>,
    /// Places with the roles that can be held there.
    pub(super) more: Vec<(String, Vec<Choice>)>,
    pub(super) problem: Option<Problem>,
}

/// A role that the token holds, and what it can be replaced with.
pub(super) struct HeldRole {
    pub(super) label: String,
    pub(super) choices: Vec<Choice>,
}

fn choice(of: &ApiTokenRole, is_chosen: bool) -> Choice {
    Choice::new(json!(of).to_string(), view::words(&of.role), is_chosen)
}

/// The built-in roles that can be held on something.
fn offered(entity_type: TokenEntity, entity_id: &str) -> Vec<ApiTokenRole> {
    let names: Vec<&str> = match entity_type {
        TokenEntity::Organization => OrganizationRole::ALL.iter().map(|role| role.as_str()).collect(),
        TokenEntity::Workspace => WorkspaceRoleName::ALL.iter().map(|role| role.as_str()).collect(),
        TokenEntity::Deployment | TokenEntity::Dag | TokenEntity::DagTag => Vec::new(),
    };
    let role = |name: &str| ApiTokenRole {
        entity_type,
        entity_id: entity_id.to_owned(),
        deployment_id: None,
        role: name.to_owned(),
    };
    names.into_iter().map(role).collect()
}

impl RolesForm {
    pub(super) async fn new(visit: &OrganizationVisit<'_>, of: &ApiToken, version: String) -> Self {
        let spaces = workspace_choices(visit).await.unwrap_or_default();
        let held: Vec<&ApiTokenRole> = of.roles.iter().flatten().collect();
        let primary = match of.scope {
            TokenScope::Organization => TokenEntity::Organization,
            TokenScope::Workspace => TokenEntity::Workspace,
            TokenScope::Deployment => TokenEntity::Deployment,
        };
        let has_one = held.iter().filter(|role| role.entity_type == primary).count() == 1;
        let row = |role: &&ApiTokenRole| {
            let mut choices = vec![choice(role, true)];
            let others = offered(role.entity_type, &role.entity_id);
            choices.extend(
                others.iter().filter(|other| other.role != role.role).map(|other| choice(other, false)),
            );
            // The role that it was made with can be replaced, not taken away.
            if !(has_one && role.entity_type == primary) {
                choices.push(Choice::new("", "None: remove this role", false));
            }
            HeldRole { label: place(role, &spaces), choices }
        };
        let is_free = |id: &str| !held.iter().any(|role| role.entity_id == id);
        let more = spaces.iter().filter(|(id, _)| of.scope == TokenScope::Organization && is_free(id));
        let more = more.map(|(id, name)| {
            (
                name.clone(),
                offered(TokenEntity::Workspace, id).iter().map(|role| choice(role, false)).collect(),
            )
        });
        Self {
            action: visit.link(&format!("/tokens/{}/roles", of.id)),
            version,
            more: more.collect(),
            held: held.iter().map(row).collect(),
            problem: visit.problem.clone(),
        }
    }
}

/// What a role is held on.
fn place(of: &ApiTokenRole, spaces: &[(String, String)]) -> String {
    let kind = view::words(of.entity_type.as_str());
    let name = spaces.iter().find(|(id, _)| *id == of.entity_id).map(|(_, name)| name.as_str());
    match of.entity_type {
        TokenEntity::Organization => "The whole organization".to_owned(),
        TokenEntity::Workspace | TokenEntity::Deployment => {
            format!("{kind} {}", name.map_or_else(|| view::short(&of.entity_id), str::to_owned))
        }
        TokenEntity::Dag | TokenEntity::DagTag => format!("{kind} {}", of.entity_id),
    }
}

pub(crate) async fn update(visit: &OrganizationVisit<'_>, token_id: TokenId) -> Result {
    let chosen = visit.form().all("roles").filter(|value| !value.is_empty());
    let roles: serde_json::Result<Vec<ApiTokenRole>> = chosen.map(serde_json::from_str).collect();
    let unreadable = |_| Problem::new(400, "The form could not be read: open its page again.");
    let body = UpdateApiTokenRolesRequest { roles: roles.map_err(unreadable)? };
    visit.change::<tokens::UpdateRoles>(visit.at(token_id), body).await?;
    visit.go(format!("/tokens/{token_id}?done=saved"))
}
