//! Webhooks: where events are sent, and what has become of each.

use askama::Template;
use podium_api::enums::WebhookDeliveryState;
use podium_api::path::{OfWebhook, OfWebhookDelivery};
use podium_api::webhooks::{self, Webhook, WebhookDelivery};
use podium_api::{WebhookDeliveryId, WebhookId};
use serde_json::{Value, json};

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Field, FieldKind, Form, FormPage};
use crate::list::{Cell, Empty, ListPage, Pager, Row, Table};
use crate::shell::Shell;
use crate::view::{self, Html, Tone};
use crate::visit::OrganizationVisit;

#[derive(Template)]
#[template(path = "webhook.html")]
struct WebhookPage {
    shell: Shell,
    status: Html,
    reason: Option<String>,
    facts: Vec<(&'static str, String)>,
    deliveries: Vec<DeliveryLine>,
    /// The page of older deliveries.
    older: Option<String>,
    href: String,
    form: Option<Form>,
    may_delete: bool,
}

/// An event on its way.
struct DeliveryLine {
    event: String,
    state: Html,
    attempts: u32,
    answer: String,
    created: Html,
    next: Option<Html>,
    /// Where the form that sends it again goes.
    again: Option<String>,
}

/// A secret right after it was made.
#[derive(Template)]
#[template(path = "webhook-secret.html")]
struct SecretPage {
    shell: Shell,
    secret: String,
    back: String,
}

impl OrganizationVisit<'_> {
    fn webhook(&self, webhook_id: WebhookId) -> OfWebhook {
        OfWebhook { organization_id: self.organization_id, webhook_id }
    }
}

fn status(of: &Webhook) -> Html {
    match (of.is_enabled, of.failing_since.is_some()) {
        (false, _) => view::status(Tone::Asleep, "Off"),
        (true, true) => view::status(Tone::Warning, "Failing"),
        (true, false) => view::status(Tone::Good, "On"),
    }
}

fn events(of: &Webhook) -> String {
    if of.event_types.is_empty() { "all events".to_owned() } else { of.event_types.join(", ") }
}

/// The webhooks.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let found = visit.list::<webhooks::List>(visit.here(), &[("sorts", "name:asc")]).await?;
    let row = |of: &Webhook| Row {
        cells: vec![
            Cell::named(of.name.clone(), visit.link(&format!("/webhooks/{}", of.id)), of.description.clone()),
            status(of).into(),
            Cell::Mono(of.url.clone()),
            events(of).into(),
            view::time(of.updated_at, visit.visit.now).into(),
        ],
        actions: Vec::new(),
    };
    let rows: Vec<Row> = found.webhooks.iter().map(row).collect();
    let may_create = visit.calls().may::<webhooks::Create>(visit.here()).await;
    ListPage {
        shell: visit.shell("Webhooks").await?.live(""),
        lead: "Events are sent to these addresses as they happen, signed, and tried again until they arrive.",
        action: may_create.then(|| ("Create webhook", visit.link("/webhooks/new"))),
        filters: Vec::new(),
        table: Table {
            columns: vec!["Name", "State", "Address", "Events", "Changed"],
            pager: Pager::new(visit, rows.len(), found.total_count),
            rows,
            empty: Empty {
                title: "No webhooks",
                text: "Create one to send events to a chat, a pager or your own program.",
                command: String::new(),
            },
        },
    }
    .answer()
}

fn fields() -> Vec<Field> {
    vec![
        Field::text("name", "Name").required(),
        Field::text("url", "Address").required().hint("An https URL. Events are sent to it with POST."),
        Field::text("eventTypes", "Events").of(FieldKind::Area).hint(
            "One type on each line, such as podium.deploy.failed, or a prefix of types, such as podium.deployment.*. All events if empty.",
        ),
        Field::text("description", "Description"),
    ]
}

/// What the form says.
fn body(visit: &OrganizationVisit<'_>) -> Value {
    let sent = visit.form();
    let types: Vec<&str> = sent.get("eventTypes").split_whitespace().collect();
    json!({
        "name": sent.get("name").trim(),
        "url": sent.get("url").trim(),
        "description": sent.get("description").trim(),
        "eventTypes": types,
    })
}

/// The form that creates one.
pub(crate) async fn new(visit: &OrganizationVisit<'_>, problem: Option<Problem>) -> Result {
    let form = Form {
        action: visit.link("/webhooks"),
        fields: fields(),
        submit: "Create webhook".to_owned(),
        cancel: visit.link("/webhooks"),
        ..Form::default()
    };
    let form = form.after(visit.form(), problem);
    let shell = visit.shell("Create a webhook").await?.below("Webhooks", visit.link("/webhooks"));
    FormPage { shell, lead: "Its secret is shown once, on the next page.".to_owned(), form }.answer()
}

/// Creates one, and shows its secret once.
pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    match visit.calls().change::<webhooks::Create>(visit.here(), body(visit), None).await {
        Ok(made) => show_secret(visit, made.value, "Webhook created").await,
        Err(problem) => new(visit, Some(problem)).await,
    }
}

async fn show_secret(visit: &OrganizationVisit<'_>, of: Webhook, title: &str) -> Result {
    let page = SecretPage {
        shell: visit.shell(title).await?.below("Webhooks", visit.link("/webhooks")),
        back: visit.link(&format!("/webhooks/{}", of.id)),
        secret: of.secret.unwrap_or_default(),
    };
    Answer::page(&page)
}

/// One webhook, with its newest deliveries.
pub(crate) async fn show(
    visit: &OrganizationVisit<'_>,
    webhook_id: WebhookId,
    problem: Option<Problem>,
) -> Result {
    let (calls, path) = (visit.calls(), visit.webhook(webhook_id));
    let read = calls.get_versioned::<webhooks::Get>(path, &[]).await?;
    let (of, version) = (read.value, read.etag.unwrap_or_default());
    let cursor = visit.query().get("cursor");
    let query = [("limit", "50"), ("cursor", cursor)];
    let query = if cursor.is_empty() { &query[..1] } else { &query[..] };
    let found = calls.get::<webhooks::ListDeliveries>(path, query).await?;
    let may_update = calls.may::<webhooks::Update>(path).await;
    let may_delete = calls.may::<webhooks::Delete>(path).await;
    let href = visit.link(&format!("/webhooks/{webhook_id}"));
    let code = problem.as_ref().map_or(200, |problem| problem.status);
    let values = [of.name.clone(), of.url.clone(), of.event_types.join("\n"), of.description.clone()];
    let mut shown: Vec<Field> =
        fields().into_iter().zip(values).map(|(field, value)| field.value(value)).collect();
    shown.push(Field::check("isEnabled", "Send events", of.is_enabled));
    shown.push(Field::hidden("version", version));
    let form = may_update.then(|| Form {
        action: href.clone(),
        fields: shown,
        submit: "Save the webhook".to_owned(),
        ..Form::default()
    });
    let facts = [
        ("Address", of.url.clone()),
        ("Events", events(&of)),
        ("Description", of.description.clone()),
        ("Created by", view::subject(of.created_by.as_ref())),
    ];
    let line = |delivery: &WebhookDelivery| line(visit, &href, delivery, may_update && of.is_enabled);
    let page = WebhookPage {
        status: status(&of),
        reason: of.disabled_reason.clone(),
        facts: facts.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
        deliveries: found.deliveries.iter().map(line).collect(),
        older: found.next_cursor.map(|cursor| format!("?{}", visit.query().with("cursor", &cursor))),
        form: form.map(|form| form.after(visit.form(), problem)),
        may_delete,
        shell: visit.shell(of.name.clone()).await?.below("Webhooks", visit.link("/webhooks")).live(""),
        href,
    };
    Answer::with_status(code, &page)
}

fn line(visit: &OrganizationVisit<'_>, href: &str, of: &WebhookDelivery, may_send: bool) -> DeliveryLine {
    let (tone, word) = match of.state {
        WebhookDeliveryState::Succeeded => (Tone::Good, "Delivered"),
        WebhookDeliveryState::Pending => (Tone::Changing, "Pending"),
        WebhookDeliveryState::Failed => (Tone::Failed, "Given up"),
    };
    let status = of.last_status.map(|status| status.to_string());
    let took = of.last_duration_millis.map(|millis| format!("{millis} ms"));
    let said: Vec<String> = status.into_iter().chain(of.last_error.clone()).chain(took).collect();
    let now = visit.visit.now;
    let is_over = of.state != WebhookDeliveryState::Pending;
    DeliveryLine {
        event: of.event_type.as_str().to_owned(),
        state: view::status(tone, word),
        attempts: of.attempts,
        answer: said.join(", "),
        created: view::time(of.created_at, now),
        next: of.next_attempt_at.map(|at| view::time(at, now)),
        again: (may_send && is_over).then(|| format!("{href}/deliveries/{}/redeliver", of.id)),
    }
}

/// Changes one.
pub(crate) async fn update(visit: &OrganizationVisit<'_>, webhook_id: WebhookId) -> Result {
    let version = visit.form().filled("version").map(str::to_owned);
    let mut body = body(visit);
    body["isEnabled"] = json!(visit.form().is_on("isEnabled"));
    match visit.calls().change::<webhooks::Update>(visit.webhook(webhook_id), body, version).await {
        Ok(_) => Answer::redirect(visit.link(&format!("/webhooks/{webhook_id}?done=saved"))),
        Err(problem) => show(visit, webhook_id, Some(problem)).await,
    }
}

/// Replaces the secret, and shows the new one once.
pub(crate) async fn rotate(visit: &OrganizationVisit<'_>, webhook_id: WebhookId) -> Result {
    let path = visit.webhook(webhook_id);
    let made = visit.calls().change::<webhooks::RotateSecret>(path, json!({}), None).await?;
    show_secret(visit, made.value, "Secret replaced").await
}

/// Sends a test event.
pub(crate) async fn test(visit: &OrganizationVisit<'_>, webhook_id: WebhookId) -> Result {
    match visit.calls().act::<webhooks::Test>(visit.webhook(webhook_id), ()).await {
        Ok(_) => Answer::redirect(visit.link(&format!("/webhooks/{webhook_id}?done=sent"))),
        Err(problem) => show(visit, webhook_id, Some(problem)).await,
    }
}

/// Sends an event again.
pub(crate) async fn redeliver(
    visit: &OrganizationVisit<'_>,
    webhook_id: WebhookId,
    delivery_id: WebhookDeliveryId,
) -> Result {
    let path = OfWebhookDelivery { organization_id: visit.organization_id, webhook_id, delivery_id };
    match visit.calls().act::<webhooks::Redeliver>(path, ()).await {
        Ok(_) => Answer::redirect(visit.link(&format!("/webhooks/{webhook_id}?done=sent"))),
        Err(problem) => show(visit, webhook_id, Some(problem)).await,
    }
}

/// Deletes one.
pub(crate) async fn delete(visit: &OrganizationVisit<'_>, webhook_id: WebhookId) -> Result {
    visit.calls().act::<webhooks::Delete>(visit.webhook(webhook_id), ()).await?;
    Answer::redirect(visit.link("/webhooks?done=deleted"))
}
