//! API tokens.

mod values;

use std::collections::HashMap;
use std::slice;

use podium_api::enums::TokenScope;
use podium_api::subjects::SubjectRoles;
use podium_api::tokens::{self as api, ApiToken, ApiTokenRole, ApiTokensPaginated};
use podium_api::{Id, Many, Nothing, One};
use podium_db::{Conn, Tx};
use podium_domain::tokens::{self as rules, Verb};
use podium_domain::{
    Grant, Permission, Refusal, Scope, Target, names, no_escalation, subject_roles, token_roles,
};
use podium_store::tokens::{self, Listed, TokenRow};
use podium_store::{Paging, Stamp, credentials, grants, subjects};

use crate::cx::{Call, Cx};
use crate::error::{Result, Taken};
use crate::facts;

const IN_ORGANIZATION: Permission = Permission::known("organization.apiTokens.get");
const IN_WORKSPACE: Permission = Permission::known("workspace.apiTokens.get");
const ON_DEPLOYMENT: Permission = Permission::known("deployment.apiTokens.get");

/// Lists the tokens that the caller could manage.
pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<ApiTokensPaginated>> {
    let mut query = call.query;
    let paging = Paging::from(&query.page);
    let (limit, offset) = (paging.limit, paging.offset);
    query.dag_tags.retain(|tag| !tag.is_empty());
    let page = move |cx: &Cx<Scope>, conn: &Conn| {
        let caller = cx.grants();
        let listed = Listed {
            workspaces: &caller.workspaces_with(IN_WORKSPACE),
            deployments: &caller.deployments_with(ON_DEPLOYMENT),
            everything: caller.on_organization().contains(IN_ORGANIZATION),
            only_organization: query.include_only_organization_tokens.unwrap_or_default(),
            kind: query.kind,
            workspace_id: given(&query.workspace_id),
            deployment_id: given(&query.deployment_id),
            dag_id: given(&query.dag_id),
            dag_tags: &query.dag_tags,
        };
        let (mut tokens, total_count) = tokens::list(conn, cx.scope(), &listed, &paging)?;
        fill_roles(conn, cx.scope(), &mut tokens)?;
        Ok((tokens, total_count))
    };
    let (tokens, total_count) = cx.scan(page).await?;
    Ok(Many(ApiTokensPaginated { tokens, limit, offset, total_count }))
}

/// Creates a token; its value is in the reply, and nowhere else.
pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<ApiToken>> {
    let body = call.body;
    let id = cx.new_id();
    let asked_for = values::asked_for(&cx, &body).await?;
    let issued = values::issue(&cx, id, asked_for, body.token_expiry_period_in_days);
    let (mentions, scope) = (rules::mentions(&body), body.scope);
    // Its value is told again to whoever could make it now, as it is now.
    let may = |cx: &Cx<Scope>, tx: &Tx, made: ApiToken| {
        find(cx, tx, made.id, Verb::Create)?;
        may_act_as(cx, &grants::of(tx, cx.scope(), made.id)?)
    };
    let effect = move |cx: &Cx<Scope>, tx: &Tx| {
        cx.rights_change(tx)?;
        let facts = facts::load(tx, cx.scope(), &mentions)?;
        let new = rules::create(cx.organization_id(), &body, cx.grants(), &facts)?;
        let stamp = Stamp::new(cx.profile(), cx.now());
        let token = ApiToken {
            id,
            name: new.name.text,
            description: new.description,
            scope,
            kind: new.kind,
            roles: Some(roles(cx.scope(), vec![new.primary.clone()])),
            token: Some(issued.value.clone()),
            short_token: issued.short(),
            start_at: cx.now(),
            end_at: issued.credential.expires_at,
            expiry_period_in_days: new.expiry_period_in_days,
            last_rotated_at: None,
            last_used_at: None,
            created_at: stamp.created_at,
            created_by: Some(stamp.created_by.clone()),
            updated_at: stamp.updated_at,
            updated_by: Some(stamp.updated_by.clone()),
        };
        let home = values::home(cx.organization_id(), new.belongs_to);
        tokens::insert(tx, cx.scope(), &token, home, &new.name.key, &stamp)
            .or_taken(|| taken(&token.name))?;
        grants::insert(tx, cx.scope(), grants::Subject::Token, id, &new.primary)?;
        subjects::put(tx, &subjects::token_profile(id, &token.name))?;
        issued.store(tx)?;
        cx.changed(tx, tokens::KIND, id, stamp.version)?;
        Ok(One { version: stamp.version, body: token })
    };
    cx.change_rights_told(may, effect).await
}

/// Reads a token.
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
        let mut token = ApiToken { name: name.text.clone(), ..row.token.body };
        if let Some(description) = &body.description {
            description.trim().clone_into(&mut token.description);
        }
        tokens::rename(tx, cx.scope(), &token, &name.key, &stamp).or_taken(|| taken(&token.name))?;
        subjects::put(tx, &subjects::token_profile(id, &token.name))?;
        cx.changed(tx, tokens::KIND, id, stamp.version)?;
        shown(cx, tx, id)
    })
    .await
}

/// Deletes a token: it stops working at once. Its name stays, for what it did.
pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    let id = call.path.token_id;
    cx.change_rights(move |cx, tx| {
        cx.rights_change(tx)?;
        let version = find(cx, tx, id, Verb::Delete)?.stamp.version;
        cx.expect_version(version)?;
        credentials::delete(tx, id)?;
        grants::delete_subject(tx, cx.scope(), id)?;
        tokens::delete(tx, cx.scope(), id, version)?;
        cx.changed(tx, tokens::KIND, id, version + 1)?;
        Ok(Nothing)
    })
    .await
}

/// Replaces a token's roles.
pub async fn update_roles(cx: Cx<Scope>, call: Call<api::UpdateRoles>) -> Result<One<SubjectRoles>> {
    let (id, entries) = (call.path.token_id, call.body.roles);
    let mentions = token_roles::mentions(&entries);
    let may = move |cx: &Cx<Scope>, tx: &Tx| find(cx, tx, id, Verb::Update).map(drop);
    cx.change_rights_where(may, move |cx, tx| {
        cx.rights_change(tx)?;
        let row = find(cx, tx, id, Verb::Update)?;
        cx.expect_version(row.stamp.version)?;
        let facts = facts::load(tx, cx.scope(), &mentions)?;
        let held = grants::of(tx, cx.scope(), id)?;
        let organization_id = cx.organization_id();
        let after =
            token_roles::update(organization_id, belongs_to(&row), &held, &entries, cx.grants(), &facts)?;
        let stamp = row.stamp.changed(cx.profile(), cx.now());
        grants::replace(tx, cx.scope(), grants::Subject::Token, id, &after)?;
        tokens::touch(tx, cx.scope(), id, &stamp)?;
        cx.changed(tx, tokens::KIND, id, stamp.version)?;
        Ok(One { version: stamp.version, body: subject_roles::all(&after) })
    })
    .await
}

/// Gives a token a new value, and the same time to live; the old one stops working at once.
pub async fn rotate(cx: Cx<Scope>, call: Call<api::Rotate>) -> Result<One<ApiToken>> {
    let id = call.path.token_id;
    let row = cx.read(move |cx, conn| find(cx, conn, id, Verb::Rotate)).await?;
    // What a token belongs to and how long it lives never change, so it can be signed before the transaction.
    let issued = values::issue(&cx, id, belongs_to(&row), row.token.body.expiry_period_in_days);
    let may = move |cx: &Cx<Scope>, tx: &Tx| {
        find(cx, tx, id, Verb::Rotate)?;
        may_act_as(cx, &grants::of(tx, cx.scope(), id)?)
    };
    cx.change_rights_where(may, move |cx, tx| {
        cx.rights_change(tx)?;
        let row = find(cx, tx, id, Verb::Rotate)?;
        cx.expect_version(row.stamp.version)?;
        let held = grants::of(tx, cx.scope(), id)?;
        may_act_as(cx, &held)?;
        let stamp = row.stamp.changed(cx.profile(), cx.now());
        let token = ApiToken {
            roles: Some(roles(cx.scope(), held)),
            token: Some(issued.value.clone()),
            short_token: issued.short(),
            start_at: stamp.updated_at,
            end_at: issued.credential.expires_at,
            last_rotated_at: Some(stamp.updated_at),
            updated_at: stamp.updated_at,
            updated_by: Some(stamp.updated_by.clone()),
            ..row.token.body
        };
        credentials::delete(tx, id)?;
        issued.store(tx)?;
        tokens::rotate(tx, cx.scope(), &token, &stamp)?;
        cx.changed(tx, tokens::KIND, id, stamp.version)?;
        Ok(One { version: stamp.version, body: token })
    })
    .await
}

/// A token that the caller may do this to.
fn find(cx: &Cx<Scope>, conn: &Conn, id: Id, verb: Verb) -> Result<TokenRow> {
    let row = tokens::get(conn, cx.scope(), id)?.ok_or_else(|| Refusal::not_found("API token"))?;
    rules::may(cx.grants(), verb, belongs_to(&row))?;
    Ok(row)
}

/// Whoever is given the value of a token can act as it.
fn may_act_as(cx: &Cx<Scope>, held: &[Grant]) -> Result<()> {
    Ok(held.iter().try_for_each(|grant| no_escalation::may_give(cx.grants(), &grant.held, &grant.on))?)
}

/// A token that the caller may see, with its roles.
fn shown(cx: &Cx<Scope>, conn: &Conn, id: Id) -> Result<One<ApiToken>> {
    let mut token = find(cx, conn, id, Verb::Get)?.token;
    fill_roles(conn, cx.scope(), slice::from_mut(&mut token.body))?;
    Ok(token)
}

/// Fills in the roles of tokens, all by one statement.
fn fill_roles(conn: &Conn, scope: &Scope, tokens: &mut [ApiToken]) -> Result<()> {
    let ids: Vec<Id> = tokens.iter().map(|token| token.id).collect();
    let mut held: HashMap<Id, Vec<Grant>> = HashMap::new();
    for (id, grant) in grants::of_each(conn, scope, &ids)? {
        held.entry(id).or_default().push(grant);
    }
    for token in tokens {
        token.roles = Some(roles(scope, held.remove(&token.id).unwrap_or_default()));
    }
    Ok(())
}

/// Roles as on the wire, the primary one first: it is held highest.
fn roles(scope: &Scope, mut held: Vec<Grant>) -> Vec<ApiTokenRole> {
    held.sort_by(|left, right| (&left.on, left.held.name()).cmp(&(&right.on, right.held.name())));
    token_roles::on_the_wire(scope.organization_id(), &held)
}

fn belongs_to(row: &TokenRow) -> Target {
    match (row.token.body.scope, row.workspace_id) {
        (TokenScope::Workspace, _) => Target::Workspace(row.entity_id),
        (TokenScope::Deployment, Some(workspace_id)) => {
            Target::Deployment { id: row.entity_id, workspace_id }
        }
        _ => Target::Organization,
    }
}

fn given(id: &Option<String>) -> Option<&str> {
    id.as_deref().filter(|id| !id.is_empty())
}

fn taken(name: &str) -> String {
    format!("There is an API token named `{name}` there already: choose another name.")
}
