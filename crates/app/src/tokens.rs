//! API tokens.

mod values;

use std::collections::HashMap;

use podium_api::enums::TokenScope;
use podium_api::subjects::SubjectRoles;
use podium_api::tokens::{self as api, ApiToken, ApiTokenRole, ApiTokensPaginated};
use podium_api::{Many, Nothing, One, SubjectId, TokenId};
use podium_db::{Conn, Tx};
use podium_domain::events::Resource;
use podium_domain::tokens::{self as rules, Verb};
use podium_domain::{Grant, Permission, Refusal, Target, names, no_escalation, subject_roles, token_roles};
use podium_store::credentials::NewToken;
use podium_store::tokens::{self, ListFilter, TokenRow};
use podium_store::{Paging, Scope, Stamp, credentials, grants, subjects};

use crate::cx::{Call, Cx};
use crate::error::{OrConflict, Result};
use crate::facts;
use crate::issued::Issued;

const IN_ORGANIZATION: Permission = Permission::known("organization.apiTokens.get");
const IN_WORKSPACE: Permission = Permission::known("workspace.apiTokens.get");
const ON_DEPLOYMENT: Permission = Permission::known("deployment.apiTokens.get");

/// Lists the tokens that the caller could manage.
pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<ApiTokensPaginated>> {
    let mut query = call.query;
    let page = query.page.clone();
    query.dag_tags.retain(|tag| !tag.is_empty());
    let read = move |cx: &Cx<Scope>, conn: &Conn, paging: &Paging| {
        let caller = cx.grants();
        let listed = ListFilter {
            workspaces: &caller.workspaces_with(IN_WORKSPACE),
            deployments: &caller.deployments_with(ON_DEPLOYMENT),
            everything: caller.on_organization().contains(IN_ORGANIZATION),
            only_organization: query.include_only_organization_tokens.unwrap_or_default(),
            kind: query.kind,
            workspace_id: query.workspace_id.as_ref().filter(|named| named.is_given()),
            deployment_id: query.deployment_id.as_ref().filter(|named| named.is_given()),
            dag_id: query.dag_id.as_deref().filter(|id| !id.is_empty()),
            dag_tags: &query.dag_tags,
        };
        let (tokens, total_count) = tokens::list(conn, cx.scope(), &listed, paging)?;
        Ok((show_all(conn, cx.scope(), tokens)?, total_count))
    };
    cx.list(&page, read, |token| token).await
}

/// Creates a token; its value is in the reply, and nowhere else.
pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<ApiToken>> {
    let body = call.body;
    let id = cx.new_id();
    let asked_for = values::asked_for(&cx, &body).await?;
    let issued = values::issue(&cx, id, asked_for, body.token_expiry_period_in_days);
    let (mentions, scope) = (rules::mentions(&body), body.scope);
    // Its value is repeated only to a caller who could create the token now, as it is now.
    let may = |cx: &Cx<Scope>, tx: &Tx, made: ApiToken| {
        find(cx, tx, made.id, Verb::Create)?;
        may_act_as(cx, &grants::of(tx, cx.scope(), made.id.into())?)
    };
    let effect = move |cx: &Cx<Scope>, tx: &Tx| {
        cx.rights_change(tx)?;
        let facts = facts::load(tx, cx.scope(), &mentions)?;
        let new = rules::create(cx.organization_id(), &body, cx.grants(), &facts)?;
        let token = TokenRow {
            id,
            name: new.name.text,
            description: new.description,
            scope,
            home: values::home(cx.organization_id(), new.belongs_to),
            kind: new.kind,
            short_token: issued.short(),
            start_at: cx.now(),
            end_at: issued.token.expires_at,
            expiry_period_in_days: new.expiry_period_in_days,
            last_rotated_at: None,
            last_used_at: None,
            stamp: Stamp::new(cx.profile(), cx.now()),
        };
        tokens::insert(tx, cx.scope(), &token, &new.name.key).or_conflict(|| taken(&token.name))?;
        grants::insert(tx, cx.scope(), grants::Subject::Token, id.into(), &new.primary)?;
        subjects::put_token(tx, cx.scope(), id)?;
        issued.store(tx, cx.scope())?;
        cx.changed(tx, tokens::KIND, token.stamp.version, about(&token))?;
        Ok(with_value(token, roles(cx.scope(), vec![new.primary]), &issued))
    };
    cx.change_rights_checking_reply(may, effect).await
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<ApiToken>> {
    cx.read(move |cx, conn| shown(cx, conn, call.path.token_id)).await
}

/// Changes a token's name and description.
pub async fn update(cx: Cx<Scope>, call: Call<api::Update>) -> Result<One<ApiToken>> {
    let (id, body) = (call.path.token_id, call.body);
    let name = names::name("name", &body.name, rules::MAX_NAME)?;
    let may = move |cx: &Cx<Scope>, tx: &Tx| find(cx, tx, id, Verb::Update).map(drop);
    cx.change_rights_where(may, move |cx, tx| {
        cx.rights_change(tx)?;
        let row = find(cx, tx, id, Verb::Update)?;
        cx.expect_version(row.stamp.version)?;
        let stamp = row.stamp.changed(cx.profile(), cx.now());
        let mut token = TokenRow { name: name.text.clone(), stamp, ..row };
        if let Some(description) = &body.description {
            description.trim().clone_into(&mut token.description);
        }
        tokens::rename(tx, cx.scope(), &token, &name.key).or_conflict(|| taken(&token.name))?;
        subjects::put_token(tx, cx.scope(), id)?;
        cx.changed(tx, tokens::KIND, token.stamp.version, about(&token))?;
        shown(cx, tx, id)
    })
    .await
}

/// Deletes a token: it stops working at once. Its name is kept for the audit log.
pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    let id = call.path.token_id;
    cx.change_rights(move |cx, tx| {
        cx.rights_change(tx)?;
        let token = find(cx, tx, id, Verb::Delete)?;
        let version = token.stamp.version;
        cx.expect_version(version)?;
        credentials::delete(tx, cx.scope(), id.into())?;
        grants::delete_subject(tx, cx.scope(), id.into())?;
        tokens::delete(tx, cx.scope(), id, version)?;
        cx.changed(tx, tokens::KIND, version + 1, about(&token))?;
        Ok(Nothing)
    })
    .await
}

pub async fn update_roles(cx: Cx<Scope>, call: Call<api::UpdateRoles>) -> Result<One<SubjectRoles>> {
    let (id, entries) = (call.path.token_id, call.body.roles);
    let mentions = token_roles::mentions(&entries);
    let may = move |cx: &Cx<Scope>, tx: &Tx| find(cx, tx, id, Verb::Update).map(drop);
    cx.change_rights_where(may, move |cx, tx| {
        cx.rights_change(tx)?;
        let row = find(cx, tx, id, Verb::Update)?;
        cx.expect_version(row.stamp.version)?;
        let facts = facts::load(tx, cx.scope(), &mentions)?;
        let held = grants::of(tx, cx.scope(), id.into())?;
        let organization_id = cx.organization_id();
        let after =
            token_roles::update(organization_id, belongs_to(&row), &held, &entries, cx.grants(), &facts)?;
        let stamp = row.stamp.clone().changed(cx.profile(), cx.now());
        grants::replace(tx, cx.scope(), grants::Subject::Token, id.into(), &after)?;
        tokens::touch(tx, cx.scope(), id, &stamp)?;
        cx.changed(tx, tokens::KIND, stamp.version, about(&row))?;
        Ok(One { version: stamp.version, body: subject_roles::all(&after) })
    })
    .await
}

/// Gives a token a new value, and the same time to live; the old one stops working at once.
pub async fn rotate(cx: Cx<Scope>, call: Call<api::Rotate>) -> Result<One<ApiToken>> {
    let id = call.path.token_id;
    let row = cx.read(move |cx, conn| find(cx, conn, id, Verb::Rotate)).await?;
    // What a token belongs to and how long it lives never change, so it can be signed before the transaction.
    let issued = values::issue(&cx, id, belongs_to(&row), row.expiry_period_in_days);
    let may = move |cx: &Cx<Scope>, tx: &Tx| {
        find(cx, tx, id, Verb::Rotate)?;
        may_act_as(cx, &grants::of(tx, cx.scope(), id.into())?)
    };
    cx.change_rights_where(may, move |cx, tx| {
        cx.rights_change(tx)?;
        let row = find(cx, tx, id, Verb::Rotate)?;
        cx.expect_version(row.stamp.version)?;
        let held = grants::of(tx, cx.scope(), id.into())?;
        may_act_as(cx, &held)?;
        let stamp = row.stamp.changed(cx.profile(), cx.now());
        let token = TokenRow {
            short_token: issued.short(),
            start_at: stamp.updated_at,
            end_at: issued.token.expires_at,
            last_rotated_at: Some(stamp.updated_at),
            stamp,
            ..row
        };
        credentials::delete(tx, cx.scope(), id.into())?;
        issued.store(tx, cx.scope())?;
        tokens::rotate(tx, cx.scope(), &token)?;
        cx.changed(tx, tokens::KIND, token.stamp.version, about(&token))?;
        Ok(with_value(token, roles(cx.scope(), held), &issued))
    })
    .await
}

/// A token that the caller may do this to.
fn find(cx: &Cx<Scope>, conn: &Conn, id: TokenId, verb: Verb) -> Result<TokenRow> {
    let row = tokens::get(conn, cx.scope(), id)?.ok_or_else(|| Refusal::not_found("API token"))?;
    rules::may(cx.grants(), verb, belongs_to(&row))?;
    Ok(row)
}

/// A token, as an event names it.
fn about(row: &TokenRow) -> Resource<'_> {
    Resource::new(row.id.id(), belongs_to(row)).named(&row.name)
}

/// The value of a token lets its holder act as the token.
fn may_act_as(cx: &Cx<Scope>, held: &[Grant]) -> Result<()> {
    Ok(held.iter().try_for_each(|grant| no_escalation::may_give(cx.grants(), &grant.held, &grant.on))?)
}

/// A token that the caller may see, with its roles. A token may see itself, whatever else it may do.
fn shown(cx: &Cx<Scope>, conn: &Conn, id: TokenId) -> Result<One<ApiToken>> {
    let token = match cx.authority().credential.api_token_id() == Some(id) {
        true => tokens::get(conn, cx.scope(), id)?.ok_or_else(|| Refusal::not_found("API token"))?,
        false => find(cx, conn, id, Verb::Get)?,
    };
    let held = grants::of(conn, cx.scope(), id.into())?;
    Ok(One { version: token.stamp.version, body: show(token, roles(cx.scope(), held)) })
}

/// Shows tokens with their roles, which one statement reads.
fn show_all(conn: &Conn, scope: &Scope, tokens: Vec<TokenRow>) -> Result<Vec<ApiToken>> {
    let ids: Vec<SubjectId> = tokens.iter().map(|token| token.id.into()).collect();
    let mut held: HashMap<SubjectId, Vec<Grant>> = HashMap::new();
    for (id, grant) in grants::of_each(conn, scope, &ids)? {
        held.entry(id).or_default().push(grant);
    }
    let shown = |token: TokenRow| {
        let held = held.remove(&token.id.into()).unwrap_or_default();
        show(token, roles(scope, held))
    };
    Ok(tokens.into_iter().map(shown).collect())
}

/// A token as its readers see it.
fn show(row: TokenRow, roles: Vec<ApiTokenRole>) -> ApiToken {
    ApiToken {
        id: row.id,
        name: row.name,
        description: row.description,
        scope: row.scope,
        kind: row.kind,
        roles: Some(roles),
        token: None,
        short_token: row.short_token,
        start_at: row.start_at,
        end_at: row.end_at,
        expiry_period_in_days: row.expiry_period_in_days,
        last_rotated_at: row.last_rotated_at,
        last_used_at: row.last_used_at,
        created_at: row.stamp.created_at,
        created_by: Some(row.stamp.created_by),
        updated_at: row.stamp.updated_at,
        updated_by: Some(row.stamp.updated_by),
    }
}

/// A token as the one that made or rotated it sees it, once.
fn with_value(row: TokenRow, roles: Vec<ApiTokenRole>, issued: &Issued<NewToken>) -> One<ApiToken> {
    let version = row.stamp.version;
    One { version, body: ApiToken { token: Some(issued.value.clone()), ..show(row, roles) } }
}

/// Roles as on the wire, the primary one first: it is held highest.
fn roles(scope: &Scope, mut held: Vec<Grant>) -> Vec<ApiTokenRole> {
    held.sort_by(|left, right| (&left.on, left.held.name()).cmp(&(&right.on, right.held.name())));
    token_roles::on_the_wire(scope.organization_id(), &held)
}

fn belongs_to(row: &TokenRow) -> Target {
    match (row.scope, row.home.workspace_id) {
        (TokenScope::Workspace, _) => Target::Workspace(row.home.entity_id.as_workspace()),
        (TokenScope::Deployment, Some(workspace_id)) => {
            Target::Deployment { id: row.home.entity_id.as_deployment(), workspace_id }
        }
        _ => Target::Organization,
    }
}

fn taken(name: &str) -> String {
    format!("An API token named `{name}` already exists there: choose another name.")
}
