//! API tokens.

use podium_api::declarations::Token;
use podium_api::enums::{TokenEntity, TokenScope};
use podium_api::tokens::{self as api, ApiTokenRole, UpdateApiTokenRolesRequest};
use podium_api::{EntityId, WorkspaceId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Difference, Entry, Failed, Kind, Names, Outcome, Planner, Resource, grants, read};
use crate::client::answer::Word;
use crate::client::grants::HeldByToken;

/// What is read of a token to show it as files do.
#[derive(Deserialize)]
struct Shown {
    scope: Word<TokenEntity>,
    #[serde(default)]
    roles: Vec<HeldByToken>,
}

impl Resource for Token {
    type List = api::List;
    type Get = api::Get;

    const FIXED: &'static [&'static str] = &["kind", "expiryPeriodInDays"];

    fn reshaped(names: &Names, wire: &Value) -> Outcome<Value> {
        let Shown { scope, mut roles } = read(wire)?;
        let Some(primary) = roles.iter().position(|held| held.entity_type == scope) else {
            return Ok(json!({ "roles": grants::of_token(names, roles) }));
        };
        let HeldByToken { entity_id: id, role, .. } = roles.remove(primary);
        let (workspace, deployment) = match scope.known() {
            Some(TokenEntity::Workspace) => (Some(names.of(&id)), None),
            Some(TokenEntity::Deployment) => (Some(names.workspace_of(&id)), Some(names.of(&id))),
            _ => (None, None),
        };
        let roles = grants::of_token(names, roles);
        Ok(json!({ "workspace": workspace, "deployment": deployment, "role": role, "roles": roles }))
    }

    fn create(self, planner: &mut Planner<'_>, entry: &Entry) -> Outcome {
        let Some(role) = self.role.clone() else {
            return Err(Failed::usage(format!("{}.role is missing: a new token needs a role", entry.at)));
        };
        let (scope, entity_id) = home(planner, entry, &self)?;
        let body = api::CreateApiTokenRequest {
            name: self.name,
            description: self.description,
            scope,
            entity_id,
            role,
            kind: self.kind,
            token_expiry_period_in_days: self.expiry_period_in_days,
        };
        planner.create::<api::Create>(entry, &body)?;
        let roles = grants::entries(planner, self.roles.as_deref().unwrap_or_default(), &entry.at)?;
        if !roles.is_empty() {
            planner.change_made::<api::UpdateRoles>(entry, &UpdateApiTokenRolesRequest { roles })?;
        }
        Ok(())
    }

    fn change(planner: &mut Planner<'_>, entry: &Entry, found: Difference<Self>) -> Outcome {
        let Token { name, description, role, roles, .. } = &found.changed;
        if description.is_some() {
            let body = api::UpdateApiTokenRequest { name: name.clone(), description: description.clone() };
            planner.change::<api::Update, _>(entry, &found, &body)?;
        }
        if role.is_some() || roles.is_some() {
            let held: Option<Vec<ApiTokenRole>> = read(&found.existing.wire["roles"])?;
            let mut held = held.unwrap_or_default();
            let (scope, id) = home(planner, entry, &found.declared)?;
            let is_primary = |held: &ApiTokenRole| held.entity_type.as_str() == scope.as_str();
            let Some(primary) = held.iter().position(is_primary) else {
                return Err(Failed::because(format!("the token {name} holds no role in what it belongs to")));
            };
            let now = held.remove(primary);
            let primary = ApiTokenRole {
                entity_id: id.map_or(now.entity_id, |id| id.to_string()),
                role: role.clone().unwrap_or(now.role),
                ..now
            };
            let others = match &found.declared.roles {
                Some(declared) => grants::entries(planner, declared, &entry.at)?,
                None => held,
            };
            let roles = std::iter::once(primary).chain(others).collect();
            let body = UpdateApiTokenRolesRequest { roles };
            planner.change::<api::UpdateRoles, _>(entry, &found, &body)?;
        }
        Ok(())
    }
}

/// What a token belongs to: the organization unless a workspace or deployment is named.
fn home(planner: &Planner<'_>, entry: &Entry, token: &Token) -> Outcome<(TokenScope, Option<EntityId>)> {
    Ok(match (&token.workspace, &token.deployment) {
        (Some(workspace), Some(name)) => {
            (TokenScope::Deployment, Some(planner.deployment(workspace, name, &entry.at)?.into()))
        }
        (Some(workspace), None) => (
            TokenScope::Workspace,
            Some(planner.id::<WorkspaceId>(Kind::Workspace, workspace, &entry.at)?.into()),
        ),
        (None, Some(_)) => {
            return Err(Failed::usage(format!(
                "{}.workspace is missing: give the workspace of the deployment",
                entry.at
            )));
        }
        (None, None) => (TokenScope::Organization, None),
    })
}
