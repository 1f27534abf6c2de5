//! Webhooks: where events are sent, and what has become of each.

use podium_api::enums::WebhookDeliveryState;
use podium_api::path::OfWebhook;
use podium_api::webhooks::{
    self, CreateWebhookRequest, ListWebhookDeliveries, ListWebhooks, UpdateWebhookRequest, Webhook,
    WebhookDelivery,
};
use podium_api::{WebhookDeliveryId, WebhookId};

use super::{
    Answer, Cell, Field, FieldKind, Form, Html, ListPage, OrganizationVisit, Result, Row, Shell, Table,
    Template, Tone, view,
};

#[derive(Template)]
#[template(path = "webhook.html")]
struct WebhookPage {
    shell: Shell,
    status: Html,
    reason: Option<String>,
    facts: Vec<(&'static str, String)>,
    deliveries: Vec<DeliveryLine>,
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

pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = ListWebhooks { page: visit.page().sorted_by("name") };
    let found = visit.calls().find::<webhooks::List>(visit.here(), query).await?;
    let row = |of: &Webhook| {
        let href = visit.link(&format!("/webhooks/{}", of.id));
        Row::of(vec![
            Cell::named(of.name.clone(), href, of.description.clone()),
            status(of).into(),
            Cell::Mono(of.url.clone()),
            events(of).into(),
            view::time(of.updated_at, visit.visit.now).into(),
        ])
    };
    let may_create = visit.calls().may::<webhooks::Create>(visit.here()).await;
    let columns = ["Name", "State", "Address", "Events", "Changed"];
    let table = Table::paged(visit, columns, found.webhooks.iter().map(row), found.total_count)
        .or("No webhooks", "Create one to send events to a chat, a pager or your own program.");
    let lead =
        "Events are sent to these addresses as they happen, signed, and tried again until they arrive.";
    ListPage::new(visit.shell("Webhooks").await?.live(""), lead, table)
        .offer(may_create, "Create webhook", visit.link("/webhooks/new"))
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

pub(crate) async fn new(visit: &OrganizationVisit<'_>) -> Result {
    let form = Form::new(visit.link("/webhooks"), "Create webhook", fields());
    let lead = "Its secret is shown once, on the next page.";
    visit.ask("Create a webhook", ("Webhooks", "/webhooks"), lead, form).await
}

/// Creates one, and shows its secret once.
pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let body = CreateWebhookRequest {
        name: sent.text("name"),
        description: Some(sent.text("description")),
        url: sent.text("url"),
        event_types: Some(sent.words("eventTypes")),
        workspace_ids: None,
        deployment_ids: None,
        is_enabled: None,
    };
    let made = visit.change::<webhooks::Create>(visit.here(), body).await?;
    show_secret(visit, made, "Webhook created").await
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
pub(crate) async fn show(visit: &OrganizationVisit<'_>, webhook_id: WebhookId) -> Result {
    let (calls, path) = (visit.calls(), visit.at::<_, OfWebhook>(webhook_id));
    let (of, version) = calls.get_versioned::<webhooks::Get>(path).await?;
    let cursor = visit.query().filled("cursor").map(str::to_owned);
    let query = ListWebhookDeliveries { cursor, limit: 50, state: None };
    let found = calls.find::<webhooks::ListDeliveries>(path, query).await?;
    let may_update = calls.may::<webhooks::Update>(path).await;
    let may_delete = calls.may::<webhooks::Delete>(path).await;
    let href = visit.link(&format!("/webhooks/{webhook_id}"));
    let values = [of.name.clone(), of.url.clone(), of.event_types.join("\n"), of.description.clone()];
    let mut shown: Vec<Field> =
        fields().into_iter().zip(values).map(|(field, value)| field.value(value)).collect();
    shown.push(Field::check("isEnabled", "Send events", of.is_enabled));
    shown.push(Field::hidden("version", version));
    let form = may_update.then(|| Form::new(href.clone(), "Save the webhook", shown));
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
        facts: view::facts(facts),
        deliveries: found.deliveries.iter().map(line).collect(),
        older: found.next_cursor.map(|cursor| format!("?{}", visit.query().with("cursor", &cursor))),
        form: form.map(|form| form.after(visit)),
        may_delete,
        shell: visit.shell(of.name.clone()).await?.below("Webhooks", visit.link("/webhooks")).live(""),
        href,
    };
    Answer::page(&page)
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

pub(crate) async fn update(visit: &OrganizationVisit<'_>, webhook_id: WebhookId) -> Result {
    let sent = visit.form();
    let body = UpdateWebhookRequest {
        name: Some(sent.text("name")),
        description: Some(sent.text("description")),
        url: Some(sent.text("url")),
        event_types: Some(sent.words("eventTypes")),
        workspace_ids: None,
        deployment_ids: None,
        is_enabled: Some(sent.is_on("isEnabled")),
    };
    visit.change::<webhooks::Update>(visit.at(webhook_id), body).await?;
    visit.go(format!("/webhooks/{webhook_id}?done=saved"))
}

/// Replaces the secret, and shows the new one once.
pub(crate) async fn rotate(visit: &OrganizationVisit<'_>, webhook_id: WebhookId) -> Result {
    let made = visit.calls().act::<webhooks::RotateSecret>(visit.at(webhook_id)).await?;
    show_secret(visit, made, "Secret replaced").await
}

pub(crate) async fn test(visit: &OrganizationVisit<'_>, webhook_id: WebhookId) -> Result {
    visit.calls().act::<webhooks::Test>(visit.at(webhook_id)).await?;
    visit.go(format!("/webhooks/{webhook_id}?done=sent"))
}

/// Sends an event again.
pub(crate) async fn redeliver(
    visit: &OrganizationVisit<'_>,
    webhook_id: WebhookId,
    delivery_id: WebhookDeliveryId,
) -> Result {
    let path = (visit.organization_id, webhook_id, delivery_id).into();
    visit.calls().act::<webhooks::Redeliver>(path).await?;
    visit.go(format!("/webhooks/{webhook_id}?done=sent"))
}
