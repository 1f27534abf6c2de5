//! Alerts: what an organization wants to be told about, and whom to tell.

use podium_api::alerts::{self as api, Alert, AlertFiringsPaginated, AlertsPaginated};
use podium_api::enums::AlertKind;
use podium_api::{AlertId, Many, Nothing, One, WebhookId};
use podium_db::{Conn, Tx};
use podium_domain::alerts::{self as rules, Notices, Threshold};
use podium_domain::{Fields, Refusal, names};
use podium_store::alerts::{self, AlertRow, Rule};
use podium_store::webhooks::EventFilter;
use podium_store::{Paging, Scope, Stamp, alert_firings, alert_mails, alert_watches};

use crate::App;
use crate::cx::{Call, Cx};
use crate::error::{OrConflict, Result};
use crate::webhooks::{check_places, newest};

pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<AlertsPaginated>> {
    cx.list(&call.query.page, |cx, conn, paging| Ok(alerts::list(conn, cx.scope(), paging)?), show).await
}

/// Creates an alert. It begins with what happens from now on, and with deployments and tokens as they are now.
pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<Alert>> {
    let body = call.body;
    let mut fields = Fields::new();
    let name = fields.take(names::name("name", &body.name, rules::MAX_NAME));
    let (webhook_ids, addresses) =
        (body.webhook_ids.unwrap_or_default(), body.mail_addresses.unwrap_or_default());
    let mail_addresses = mail_addresses(cx.app(), &mut fields, &addresses);
    let Threshold { after_minutes, days_before, dag_id } = Threshold::new(
        &mut fields,
        body.kind,
        Threshold { after_minutes: body.after_minutes, days_before: body.days_before, dag_id: body.dag_id },
    );
    must_tell(&mut fields, &webhook_ids, &addresses);
    let name = fields.finish(name)?;
    let rule = Rule {
        after_minutes,
        days_before,
        dag_id,
        workspace_ids: body.workspace_ids.unwrap_or_default(),
        deployment_ids: body.deployment_ids.unwrap_or_default(),
        webhook_ids,
        mail_addresses,
    };
    let id: AlertId = cx.new_id();
    let (kind, is_enabled) = (body.kind, body.is_enabled.unwrap_or(true));
    let description = body.description.unwrap_or_default();
    cx.mutate(move |cx, tx| {
        check_where(cx, tx, &rule)?;
        check_webhooks(cx, tx, &rule)?;
        if alerts::count(tx, cx.scope(), rules::MOST)? >= rules::MOST {
            let most = rules::MOST;
            let message = format!("The organization already has {most} alerts: delete one first.");
            return Err(Refusal::Conflict(message).into());
        }
        let alert = AlertRow {
            id,
            organization_id: cx.organization_id(),
            name: name.text.clone(),
            description: description.clone(),
            kind,
            rule: rule.clone(),
            is_enabled,
            mail_failing_since: None,
            position: newest(cx, tx)?,
            notices: Notices::full(cx.now()),
            stamp: Stamp::new(cx.profile(), cx.now()),
        };
        alerts::insert(tx, cx.scope(), &alert, &name.key).or_conflict(|| taken(&alert.name))?;
        watch_what_is(cx, tx, &alert)?;
        let version = alert.stamp.version;
        cx.changed(tx, alerts::KIND, version, alert.about())?;
        Ok(One { version, body: show(alert) })
    })
    .await
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<Alert>> {
    let id = call.path.alert_id;
    cx.read(move |cx, conn| {
        let alert = find(conn, cx.scope(), id)?;
        Ok(One { version: alert.stamp.version, body: show(alert) })
    })
    .await
}

/// Changes an alert. One that is switched off closes what it has found; one that is switched on begins anew.
pub async fn update(cx: Cx<Scope>, call: Call<api::Update>) -> Result<One<Alert>> {
    let (id, body) = (call.path.alert_id, call.body);
    let mut fields = Fields::new();
    let name = body.name.as_deref().map(|name| fields.take(names::name("name", name, rules::MAX_NAME)));
    let addresses = body.mail_addresses.as_deref();
    let addresses = addresses.map(|addresses| mail_addresses(cx.app(), &mut fields, addresses));
    fields.into_result()?;
    let name = name.flatten();
    cx.mutate(move |cx, tx| {
        let stored = find(tx, cx.scope(), id)?;
        cx.expect_version(stored.stamp.version)?;
        let mut alert = stored.clone();
        if let Some(name) = &name {
            alert.name.clone_from(&name.text);
        }
        if let Some(description) = &body.description {
            alert.description.clone_from(description);
        }
        alert.is_enabled = body.is_enabled.unwrap_or(alert.is_enabled);
        change_rule(&mut alert, &body, addresses.as_deref())?;
        if body.workspace_ids.is_some() || body.deployment_ids.is_some() {
            check_where(cx, tx, &alert.rule)?;
        }
        if body.webhook_ids.is_some() {
            check_webhooks(cx, tx, &alert.rule)?;
        }
        alert.stamp = alert.stamp.changed(cx.profile(), cx.now());
        let name_key = names::fold(&alert.name);
        alerts::update(tx, cx.scope(), &alert, &name_key).or_conflict(|| taken(&alert.name))?;
        follow_change(cx, tx, &stored, &alert)?;
        let version = alert.stamp.version;
        cx.changed(tx, alerts::KIND, version, alert.about())?;
        Ok(One { version, body: show(alert) })
    })
    .await
}

/// Deletes an alert, with what it has found: nobody is told anything more.
pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    let id = call.path.alert_id;
    cx.mutate(move |cx, tx| {
        let alert = find(tx, cx.scope(), id)?;
        let version = alert.stamp.version;
        cx.expect_version(version)?;
        alerts::delete(tx, cx.scope(), id, version, cx.now())?;
        cx.changed(tx, alerts::KIND, version + 1, alert.about())?;
        Ok(Nothing)
    })
    .await
}

pub async fn list_firings(
    cx: Cx<Scope>,
    call: Call<api::ListFirings>,
) -> Result<Many<AlertFiringsPaginated>> {
    let (id, state) = (call.path.alert_id, call.query.state);
    let read = move |cx: &Cx<Scope>, conn: &Conn, paging: &Paging| {
        find(conn, cx.scope(), id)?;
        Ok(alert_firings::list(conn, cx.scope(), id, state, paging)?)
    };
    cx.list(&call.query.page, read, |firing| firing).await
}

fn find(conn: &Conn, scope: &Scope, id: AlertId) -> Result<AlertRow> {
    alerts::get(conn, scope, id)?.ok_or_else(|| Refusal::not_found("alert").into())
}

fn taken(name: &str) -> String {
    format!("The organization already has an alert named `{name}`: choose another name.")
}

fn must_tell(fields: &mut Fields, webhook_ids: &[WebhookId], mail_addresses: &[String]) {
    if webhook_ids.is_empty() && mail_addresses.is_empty() {
        fields.push("webhookIds", "required", "name a webhook here, or an address in mailAddresses");
    }
}

fn mail_addresses(app: &App, fields: &mut Fields, addresses: &[String]) -> Vec<String> {
    if app.config.mailer.is_none() && !addresses.is_empty() {
        let message = "this server has no mail server: name a webhook, or ask its operator for --smtp-url";
        fields.push("mailAddresses", "notAllowed", message);
    }
    rules::mail_addresses("mailAddresses", addresses).unwrap_or_else(|errors| {
        for error in errors {
            let _ = fields.take::<()>(Err(error));
        }
        Vec::new()
    })
}

/// Merges what was given into the rule of an alert.
fn change_rule(
    alert: &mut AlertRow,
    body: &api::UpdateAlertRequest,
    addresses: Option<&[String]>,
) -> Result<()> {
    let (kind, rule) = (alert.kind, &mut alert.rule);
    let mut fields = Fields::new();
    let dag_id = match &body.dag_id {
        None => rule.dag_id.clone(),
        Some(dag_id) => Some(dag_id.clone()).filter(|text| !text.is_empty()),
    };
    let after_minutes = body.after_minutes.or(rule.after_minutes);
    let days_before = body.days_before.or(rule.days_before);
    let given = Threshold { after_minutes, days_before, dag_id };
    let threshold = Threshold::new(&mut fields, kind, given);
    let webhook_ids = body.webhook_ids.as_ref().unwrap_or(&rule.webhook_ids).clone();
    let mail_addresses = addresses.unwrap_or(&rule.mail_addresses).to_vec();
    must_tell(&mut fields, &webhook_ids, &mail_addresses);
    fields.into_result()?;
    *rule = Rule {
        after_minutes: threshold.after_minutes,
        days_before: threshold.days_before,
        dag_id: threshold.dag_id,
        workspace_ids: body.workspace_ids.as_ref().unwrap_or(&rule.workspace_ids).clone(),
        deployment_ids: body.deployment_ids.as_ref().unwrap_or(&rule.deployment_ids).clone(),
        webhook_ids,
        mail_addresses,
    };
    Ok(())
}

/// Workspaces and deployments that a rule names must be of the organization.
fn check_where(cx: &Cx<Scope>, tx: &Tx, rule: &Rule) -> Result<()> {
    let (workspace_ids, deployment_ids) = (rule.workspace_ids.clone(), rule.deployment_ids.clone());
    check_places(cx, tx, &EventFilter { event_types: Vec::new(), workspace_ids, deployment_ids })
}

/// Webhooks that a rule names must be of the organization.
fn check_webhooks(cx: &Cx<Scope>, tx: &Tx, rule: &Rule) -> Result<()> {
    let known = alerts::hold_webhooks(tx, cx.scope(), &rule.webhook_ids)?;
    let mut fields = Fields::new();
    for (index, id) in rule.webhook_ids.iter().enumerate() {
        let field = format!("webhookIds[{index}]");
        if !known.contains(id) {
            fields.push(field, "notFound", "is not the id of a webhook");
        } else if rule.webhook_ids[..index].contains(id) {
            fields.push(field, "duplicate", "is listed twice");
        }
    }
    Ok(fields.into_result()?)
}

/// Begins, ends or goes on to watch as an alert that was changed says.
fn follow_change(cx: &Cx<Scope>, tx: &Tx, before: &AlertRow, after: &AlertRow) -> Result<()> {
    alert_mails::keep_to_recipients(tx, cx.scope(), after)?;
    if !after.is_enabled {
        alert_watches::clear(tx, cx.scope(), after)?;
        return Ok(alert_firings::close(tx, cx.scope(), after, cx.now())?);
    }
    if !before.is_enabled {
        alerts::skip_to(tx, cx.scope(), after.id, newest(cx, tx)?)?;
    }
    if before.rule.after_minutes != after.rule.after_minutes {
        alert_watches::change_patience(tx, cx.scope(), after)?;
    }
    alert_watches::narrow(tx, cx.scope(), after)?;
    watch_what_is(cx, tx, after)
}

/// Watches deployments that are unhealthy already: no event will tell of them. Tokens are looked at by the loop.
fn watch_what_is(cx: &Cx<Scope>, tx: &Tx, alert: &AlertRow) -> Result<()> {
    if alert.is_enabled && alert.kind == AlertKind::DeploymentUnhealthy {
        alert_watches::seed(tx, cx.scope(), alert, cx.now())?;
    }
    Ok(())
}

/// An alert as its readers see it.
fn show(row: AlertRow) -> Alert {
    let Rule { after_minutes, days_before, dag_id, .. } = row.rule;
    Alert {
        id: row.id,
        name: row.name,
        description: row.description,
        organization_id: row.organization_id,
        kind: row.kind,
        after_minutes,
        days_before,
        dag_id,
        workspace_ids: row.rule.workspace_ids,
        deployment_ids: row.rule.deployment_ids,
        webhook_ids: row.rule.webhook_ids,
        mail_addresses: row.rule.mail_addresses,
        is_enabled: row.is_enabled,
        mail_failing_since: row.mail_failing_since,
        created_at: row.stamp.created_at,
        created_by: Some(row.stamp.created_by),
        updated_at: row.stamp.updated_at,
        updated_by: Some(row.stamp.updated_by),
    }
}
