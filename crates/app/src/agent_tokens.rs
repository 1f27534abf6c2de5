//! Agent tokens.

use std::time::Duration;

use podium_api::agent_tokens as api;
use podium_api::enums::{TokenKind, TokenScope};
use podium_api::tokens::{ApiToken, ApiTokensPaginated};
use podium_api::{AgentTokenId, Many, Nothing, One, TokenId};
use podium_db::Conn;
use podium_domain::events::Resource;
use podium_domain::tokens::MAX_NAME;
use podium_domain::{Refusal, names};
use podium_store::agent_tokens::AgentTokenRow;
use podium_store::credentials::{NewToken, TokenOf};
use podium_store::{Paging, Scope, Stamp, agent_tokens, credentials};

use crate::cx::{Call, Cx};
use crate::deployments;
use crate::error::{OrConflict, Result};

pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<ApiTokensPaginated>> {
    let id = call.path.deployment_id;
    let read = move |cx: &Cx<Scope>, conn: &Conn, paging: &Paging| {
        Ok(agent_tokens::list(conn, cx.scope(), id, paging)?)
    };
    cx.list(&call.query.page, read, show).await
}

/// Creates an agent token; its value is in the reply, and nowhere else.
pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<ApiToken>> {
    let (deployment_id, body) = (call.path.deployment_id, call.body);
    let name = names::name("name", &body.name, MAX_NAME)?;
    let id: AgentTokenId = cx.new_id();
    let period = body.token_expiry_period_in_days;
    let expires_at = period.map(|days| cx.now() + Duration::from_hours(24 * u64::from(days)));
    let token = NewToken { id: TokenOf::Agent(id), expires_at };
    let place = format!("deploymentId:{deployment_id}");
    let issued = cx.app().issue_token(token, vec![place], cx.now());
    cx.mutate(move |cx, tx| {
        let deployment = deployments::find(tx, cx.scope(), deployment_id)?;
        cx.expect_version(deployment.stamp.version)?;
        if deployment.spec.remote_execution.is_none() {
            let message = "Remote execution is off for this deployment: enable `remoteExecution` first.";
            return Err(Refusal::invalid(message).into());
        }
        let token = AgentTokenRow {
            id,
            name: name.text.clone(),
            description: body.description.clone().unwrap_or_default(),
            short_token: issued.short(),
            start_at: cx.now(),
            end_at: issued.token.expires_at,
            expiry_period_in_days: period,
            last_used_at: None,
            stamp: Stamp::new(cx.profile(), cx.now()),
        };
        let taken = || {
            format!("The deployment already has an agent token named `{}`: choose another name.", token.name)
        };
        agent_tokens::insert(tx, cx.scope(), deployment_id, &token, &name.key).or_conflict(taken)?;
        issued.store(tx, cx.scope())?;
        let version = token.stamp.version;
        cx.changed(tx, agent_tokens::KIND, version, about(cx, &token))?;
        Ok(One { version, body: ApiToken { token: Some(issued.value.clone()), ..show(token) } })
    })
    .await
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<ApiToken>> {
    let path = call.path;
    cx.read(move |cx, conn| {
        let found = agent_tokens::get(conn, cx.scope(), path.deployment_id, path.agent_token_id)?;
        let row = found.ok_or_else(|| Refusal::not_found("agent token"))?;
        Ok(One { version: row.stamp.version, body: show(row) })
    })
    .await
}

/// Deletes an agent token: it stops working at once.
pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    let path = call.path;
    cx.mutate(move |cx, tx| {
        let found = agent_tokens::get(tx, cx.scope(), path.deployment_id, path.agent_token_id)?;
        let token = found.ok_or_else(|| Refusal::not_found("agent token"))?;
        let version = token.stamp.version;
        cx.expect_version(version)?;
        credentials::delete(tx, cx.scope(), path.agent_token_id.into())?;
        agent_tokens::delete(tx, cx.scope(), path.agent_token_id, version)?;
        cx.changed(tx, agent_tokens::KIND, version + 1, about(cx, &token))?;
        Ok(Nothing)
    })
    .await
}

/// An agent token, as an event names it.
fn about<'a>(cx: &Cx<Scope>, token: &'a AgentTokenRow) -> Resource<'a> {
    Resource::new(token.id.id(), cx.scope().target()).named(&token.name)
}

/// An agent token as its readers see it: in the shape of an API token, and without roles.
fn show(row: AgentTokenRow) -> ApiToken {
    ApiToken {
        id: TokenId::from_raw(row.id.id()),
        name: row.name,
        description: row.description,
        scope: TokenScope::Deployment,
        kind: TokenKind::Standard,
        roles: Some(Vec::new()),
        token: None,
        short_token: row.short_token,
        start_at: row.start_at,
        end_at: row.end_at,
        expiry_period_in_days: row.expiry_period_in_days,
        last_rotated_at: None,
        last_used_at: row.last_used_at,
        created_at: row.stamp.created_at,
        created_by: Some(row.stamp.created_by),
        updated_at: row.stamp.updated_at,
        updated_by: Some(row.stamp.updated_by),
    }
}
