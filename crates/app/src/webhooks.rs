//! Webhooks: where an organization's events are sent.

mod deliveries;
mod signing;
pub(crate) mod wakes;

use podium_api::webhooks::{self as api, Webhook, WebhooksPaginated};
use podium_api::{Many, Nothing, One, WebhookId};
use podium_db::{Conn, Tx};
use podium_domain::webhooks::{self as rules, SECRET_OVERLAP};
use podium_domain::{Fields, Refusal, UserText, names};
use podium_store::alerts;
use podium_store::events::{self, Start};
use podium_store::webhooks::{self, EventFilter, StoredUrl, WebhookRow};
use podium_store::{Paging, Scope, Stamp};

use crate::App;
use crate::cx::{Call, Cx};
use crate::error::{Error, OrConflict, Result};
use signing::Secret;

pub use deliveries::{get_delivery, list_deliveries, redeliver};
pub use podium_domain::webhooks::Destinations;
pub use signing::SignedEvent;
pub use wakes::{WebhookNotifier, enqueue_behind, run};

pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<WebhooksPaginated>> {
    let paging = Paging::from(&call.query.page);
    let (limit, offset) = (paging.limit, paging.offset);
    let page = cx.scan(move |cx, conn| Ok(webhooks::list(conn, cx.scope(), &paging)?));
    let (rows, total_count) = page.await?;
    let webhooks = rows.into_iter().map(|row| show(cx.app(), row)).collect::<Result<_>>()?;
    Ok(Many(WebhooksPaginated { webhooks, limit, offset, total_count }))
}

/// Creates a webhook; its secret is in the reply, and nowhere else.
pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<Webhook>> {
    let body = call.body;
    let mut fields = Fields::new();
    let name = fields.take(names::name("name", &body.name, rules::MAX_NAME));
    let url = fields.take(rules::url("url", &body.url, &cx.app().config.webhook_destinations));
    let event_types = event_types(&mut fields, body.event_types);
    let (name, url) = fields.finish(name.zip(url))?;
    let filter = EventFilter {
        event_types,
        workspace_ids: body.workspace_ids.unwrap_or_default(),
        deployment_ids: body.deployment_ids.unwrap_or_default(),
    };
    let id: WebhookId = cx.new_id();
    let secret = Secret::generate(&cx.app().world);
    let (sealed_secret, sealed_url) = (secret.seal(cx.app(), id), cx.app().seal_url(id, &url));
    let (description, is_enabled) = (body.description.unwrap_or_default(), body.is_enabled.unwrap_or(true));
    cx.mutate(move |cx, tx| {
        check_places(cx, tx, &filter)?;
        if webhooks::count(tx, cx.scope(), rules::MOST)? >= rules::MOST {
            let most = rules::MOST;
            let message = format!("The organization already has {most} webhooks: delete one first.");
            return Err(Refusal::Conflict(message).into());
        }
        let webhook = WebhookRow {
            id,
            organization_id: cx.organization_id(),
            name: name.text.clone(),
            description: description.clone(),
            url: StoredUrl::Sealed(sealed_url.clone()),
            filter: filter.clone(),
            is_enabled,
            disabled_reason: UserText::EMPTY,
            failing_since: None,
            sealed_secret: sealed_secret.clone(),
            previous_secret: None,
            position: newest(cx, tx)?,
            pending: 0,
            kept: 0,
            stamp: Stamp::new(cx.profile(), cx.now()),
        };
        webhooks::insert(tx, cx.scope(), &webhook, &name.key).or_conflict(|| taken(&webhook.name))?;
        let version = webhook.stamp.version;
        cx.changed(tx, webhooks::KIND, version, webhook.about())?;
        Ok(One { version, body: Webhook { secret: Some(secret.text()), ..show(cx.app(), webhook)? } })
    })
    .await
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<Webhook>> {
    let id = call.path.webhook_id;
    cx.read(move |cx, conn| {
        let webhook = find(conn, cx.scope(), id)?;
        Ok(One { version: webhook.stamp.version, body: show(cx.app(), webhook)? })
    })
    .await
}

/// Changes a webhook. One that is switched on begins with what happens from now on.
pub async fn update(cx: Cx<Scope>, call: Call<api::Update>) -> Result<One<Webhook>> {
    let (id, body) = (call.path.webhook_id, call.body);
    let mut fields = Fields::new();
    let name = body.name.as_deref().map(|name| fields.take(names::name("name", name, rules::MAX_NAME)));
    let destinations = &cx.app().config.webhook_destinations;
    let url = body.url.as_deref().map(|url| fields.take(rules::url("url", url, destinations)));
    let changes_types = body.event_types.is_some();
    let event_types = event_types(&mut fields, body.event_types);
    fields.into_result()?;
    let (name, url) = (name.flatten(), url.flatten());
    cx.mutate(move |cx, tx| {
        let stored = find(tx, cx.scope(), id)?;
        cx.expect_version(stored.stamp.version)?;
        let mut webhook = stored.clone();
        if let Some(name) = &name {
            webhook.name.clone_from(&name.text);
        }
        if let Some(description) = &body.description {
            webhook.description.clone_from(description);
        }
        let is_moved = match &url {
            Some(url) => *url != cx.app().url_of(&stored)?,
            None => false,
        };
        if let Some(url) = url.as_ref().filter(|_| is_moved) {
            webhook.url = StoredUrl::Sealed(cx.app().seal_url(id, url));
        }
        if changes_types {
            webhook.filter.event_types.clone_from(&event_types);
        }
        if let Some(ids) = &body.workspace_ids {
            webhook.filter.workspace_ids.clone_from(ids);
        }
        if let Some(ids) = &body.deployment_ids {
            webhook.filter.deployment_ids.clone_from(ids);
        }
        if body.workspace_ids.is_some() || body.deployment_ids.is_some() {
            check_places(cx, tx, &webhook.filter)?;
        }
        if let Some(is_enabled) = body.is_enabled {
            webhook.is_enabled = is_enabled;
            webhook.disabled_reason = UserText::EMPTY;
        }
        let mut webhook = advance(cx, tx, webhook)?;
        if webhook.is_enabled && !stored.is_enabled {
            webhooks::skip_to(tx, cx.scope(), id, newest(cx, tx)?)?;
        }
        if is_moved || webhook.is_enabled != stored.is_enabled {
            webhooks::forgive(tx, cx.scope(), id)?;
            webhook.failing_since = None;
        }
        Ok(One { version: webhook.stamp.version, body: show(cx.app(), webhook)? })
    })
    .await
}

/// Deletes a webhook, with its deliveries: nothing more is sent.
pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    let id = call.path.webhook_id;
    cx.mutate(move |cx, tx| {
        let webhook = find(tx, cx.scope(), id)?;
        let version = webhook.stamp.version;
        cx.expect_version(version)?;
        // An alert that is just being created or changed holds the webhooks that it names: it is there after this wait.
        alerts::hold_webhooks(tx, cx.scope(), &[id])?;
        if let Some(alert) = alerts::naming(tx, cx.scope(), id)? {
            let message = format!("The alert `{alert}` sends to this webhook: change the alert first.");
            return Err(Refusal::Conflict(message).into());
        }
        webhooks::delete(tx, cx.scope(), id, version, cx.now())?;
        cx.changed(tx, webhooks::KIND, version + 1, webhook.about())?;
        Ok(Nothing)
    })
    .await
}

/// Gives a webhook another secret. For a day deliveries are signed with both.
pub async fn rotate_secret(cx: Cx<Scope>, call: Call<api::RotateSecret>) -> Result<One<Webhook>> {
    let id = call.path.webhook_id;
    let secret = Secret::generate(&cx.app().world);
    let sealed_secret = secret.seal(cx.app(), id);
    cx.mutate(move |cx, tx| {
        let stored = find(tx, cx.scope(), id)?;
        cx.expect_version(stored.stamp.version)?;
        if let Some((_, until)) = stored.previous_secret.as_ref().filter(|(_, until)| *until > cx.now()) {
            let message = format!(
                "The secret was rotated less than a day ago, and receivers may still know only the one before it: \
                 rotate again after {until}."
            );
            return Err(Refusal::Conflict(message).into());
        }
        let previous_secret = Some((stored.sealed_secret.clone(), cx.now() + SECRET_OVERLAP));
        let webhook =
            advance(cx, tx, WebhookRow { sealed_secret: sealed_secret.clone(), previous_secret, ..stored })?;
        let version = webhook.stamp.version;
        Ok(One { version, body: Webhook { secret: Some(secret.text()), ..show(cx.app(), webhook)? } })
    })
    .await
}

/// Makes an event that is sent to this webhook, whatever it asks for.
pub async fn test(cx: Cx<Scope>, call: Call<api::Test>) -> Result<Nothing> {
    let id = call.path.webhook_id;
    cx.mutate(move |cx, tx| {
        let webhook = find(tx, cx.scope(), id)?;
        cx.expect_version(webhook.stamp.version)?;
        must_be_enabled(&webhook)?;
        cx.changed(tx, webhooks::KIND, webhook.stamp.version, webhook.about())?;
        Ok(Nothing)
    })
    .await
}

fn find(conn: &Conn, scope: &Scope, id: WebhookId) -> Result<WebhookRow> {
    webhooks::get(conn, scope, id)?.ok_or_else(|| Refusal::not_found("webhook").into())
}

/// Writes a webhook under its next version.
fn advance(cx: &Cx<Scope>, tx: &Tx, webhook: WebhookRow) -> Result<WebhookRow> {
    let mut webhook = WebhookRow { stamp: webhook.stamp.changed(cx.profile(), cx.now()), ..webhook };
    if let StoredUrl::Plain(url) = &webhook.url {
        webhook.url = StoredUrl::Sealed(cx.app().seal_url(webhook.id, url));
    }
    let name_key = names::fold(&webhook.name);
    webhooks::update(tx, cx.scope(), &webhook, &name_key).or_conflict(|| taken(&webhook.name))?;
    cx.changed(tx, webhooks::KIND, webhook.stamp.version, webhook.about())?;
    Ok(webhook)
}

fn must_be_enabled(webhook: &WebhookRow) -> Result<()> {
    if webhook.is_enabled {
        return Ok(());
    }
    Err(Refusal::Conflict("The webhook is switched off: enable it first.".into()).into())
}

fn taken(name: &str) -> String {
    format!("The organization already has a webhook named `{name}`: choose another name.")
}

/// The end of the stream, where a webhook or an alert begins.
pub(crate) fn newest(cx: &Cx<Scope>, conn: &Conn) -> Result<podium_domain::events::Cursor> {
    let newest = events::position(conn, cx.scope(), Start::Newest)?;
    newest.ok_or_else(|| Error::Internal("the stream of events has no end".into()))
}

fn event_types(fields: &mut Fields, patterns: Option<Vec<String>>) -> Vec<String> {
    let checked = rules::event_types("eventTypes", &patterns.unwrap_or_default());
    checked.unwrap_or_else(|errors| {
        for error in errors {
            let _ = fields.take::<()>(Err(error));
        }
        Vec::new()
    })
}

/// Workspaces and deployments that a webhook or an alert names must be of the organization.
pub(crate) fn check_places(cx: &Cx<Scope>, conn: &Conn, filter: &EventFilter) -> Result<()> {
    let (workspaces, deployments) = webhooks::known_places(conn, cx.scope(), filter)?;
    let mut fields = Fields::new();
    let mut check = |field: &str, thing: &str, index: usize, is_known: bool, is_repeated: bool| {
        let field = format!("{field}[{index}]");
        if !is_known {
            fields.push(field, "notFound", format!("is not the id of a {thing}"));
        } else if is_repeated {
            fields.push(field, "duplicate", "is listed twice");
        }
    };
    for (index, id) in filter.workspace_ids.iter().enumerate() {
        let is_repeated = filter.workspace_ids[..index].contains(id);
        check("workspaceIds", "workspace", index, workspaces.contains(id), is_repeated);
    }
    for (index, id) in filter.deployment_ids.iter().enumerate() {
        let is_repeated = filter.deployment_ids[..index].contains(id);
        check("deploymentIds", "deployment", index, deployments.contains(id), is_repeated);
    }
    Ok(fields.into_result()?)
}

/// A webhook as its readers see it.
fn show(app: &App, row: WebhookRow) -> Result<Webhook> {
    let url = app.url_of(&row)?;
    let EventFilter { event_types, workspace_ids, deployment_ids } = row.filter;
    Ok(Webhook {
        id: row.id,
        name: row.name,
        description: row.description,
        organization_id: row.organization_id,
        url,
        event_types,
        workspace_ids,
        deployment_ids,
        is_enabled: row.is_enabled,
        disabled_reason: Some(row.disabled_reason).filter(|it| !it.is_empty()).map(|it| it.to_string()),
        failing_since: row.failing_since,
        secret: None,
        previous_secret_expires_at: row.previous_secret.map(|(_, until)| until),
        created_at: row.stamp.created_at,
        created_by: Some(row.stamp.created_by),
        updated_at: row.stamp.updated_at,
        updated_by: Some(row.stamp.updated_by),
    })
}
