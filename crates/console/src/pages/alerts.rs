//! Alerts: what people are told about, whom they tell, and what they have found.

mod fields;

use std::collections::HashSet;

use podium_api::alerts::{self, Alert, AlertFiring, ListAlertFirings, ListAlerts};
use podium_api::deployments::{self, ListDeployments};
use podium_api::enums::{AlertFiringState, AlertKind, AlertSubjectType};
use podium_api::page::{MAX_LIMIT, Page};
use podium_api::path::OfAlert;
use podium_api::{AlertId, DeploymentId, Named, tokens};

use self::fields::Places;
use super::{
    Answer, Cell, Field, Filter, Form, Html, ListPage, OrganizationVisit, Result, Row, Shell, Table,
    Template, Tone, readable, view,
};

#[derive(Template)]
#[template(path = "alert.html")]
struct AlertPage {
    shell: Shell,
    status: Html,
    /// Since when its mails fail.
    failing: Option<Html>,
    facts: Vec<(&'static str, String)>,
    filters: Vec<Filter>,
    table: Table,
    form: Option<Form>,
    /// Where the form that deletes it goes.
    delete: Option<String>,
}

/// What an alert of a kind watches for, in words.
pub(super) const fn watches_for(kind: AlertKind) -> &'static str {
    match kind {
        AlertKind::DeploymentUnhealthy => "A deployment stays unhealthy",
        AlertKind::DeployFailed => "A deploy fails",
        AlertKind::OperationFailed => "An operation fails",
        AlertKind::DagRunFailed => "A DAG run fails",
        AlertKind::DagRunTooSlow => "A DAG run takes too long",
        AlertKind::TokenExpiring => "An API token is about to expire",
    }
}

fn status(of: &Alert) -> Html {
    match (of.is_enabled, of.mail_failing_since.is_some()) {
        (false, _) => view::status(Tone::Asleep, "Off"),
        (true, true) => view::status(Tone::Warning, "Mails fail"),
        (true, false) => view::status(Tone::Good, "On"),
    }
}

/// How much of what it watches for is too much.
fn threshold(of: &Alert) -> String {
    let minutes = of.after_minutes.map(|minutes| match minutes {
        0 => "at once".to_owned(),
        minutes => format!("after {minutes} min"),
    });
    let days = of.days_before.map(|days| format!("{} before", podium_api::counted(days.into(), "day")));
    let dag = of.dag_id.as_ref().map(|dag| format!("only {dag}"));
    minutes.into_iter().chain(days).chain(dag).collect::<Vec<_>>().join(", ")
}

fn tells(of: &Alert) -> String {
    let hooks = u64::try_from(of.webhook_ids.len()).unwrap_or_default();
    let mails = match of.mail_addresses.len() {
        0 => None,
        1 => Some("1 address".to_owned()),
        count => Some(format!("{count} addresses")),
    };
    let hooks =
        if hooks > 0 { podium_api::counted(hooks, "webhook") } else { "subscribed webhooks".to_owned() };
    mails.into_iter().chain([hooks]).collect::<Vec<_>>().join(", ")
}

fn places(of: &Alert) -> String {
    let count = |of: usize, what| podium_api::counted(u64::try_from(of).unwrap_or_default(), what);
    match (of.workspace_ids.len(), of.deployment_ids.len()) {
        (0, 0) => "everywhere".to_owned(),
        (spaces, 0) => count(spaces, "workspace"),
        (0, deployments) => count(deployments, "deployment"),
        (spaces, deployments) => {
            format!("{}, {}", count(spaces, "workspace"), count(deployments, "deployment"))
        }
    }
}

pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = ListAlerts { page: visit.page().sorted_by("name") };
    let found = visit.calls().find::<alerts::List>(visit.here(), query).await?;
    let row = |of: &Alert| {
        let href = visit.link(&format!("/alerts/{}", of.id));
        Row::of(vec![
            Cell::named(of.name.clone(), href, of.description.clone()),
            status(of).into(),
            Cell::Lines(watches_for(of.kind).to_owned(), threshold(of)),
            places(of).into(),
            tells(of).into(),
        ])
    };
    let may_create = visit.calls().may::<alerts::Create>(visit.here()).await;
    let columns = ["Name", "State", "Condition", "Where", "Notifies"];
    let none =
        "Create one to be notified by mail or in a chat when a deployment stays unhealthy or a run fails.";
    let table = Table::paged(visit, columns, found.alerts.iter().map(row), found.total_count);
    let lead = "Alerts tell people when something needs attention, and when it is over.";
    ListPage::new(visit.shell("Alerts").await?.live(""), lead, table.or("No alerts", none))
        .offer(may_create, "Create alert", visit.link("/alerts/new"))
        .answer()
}

pub(crate) async fn new(visit: &OrganizationVisit<'_>) -> Result {
    let places =
        Places::read(visit, &visit.query().all("deploymentIds").map(str::to_owned).collect::<Vec<_>>()).await;
    let asked = fields::new(visit).into_iter().chain(places.webhook_field(None)).collect();
    let form =
        Form { more: places.place_fields(None), ..Form::new(visit.link("/alerts"), "Create alert", asked) };
    let lead = "An alert needs a mail address or a webhook to notify. It covers events from now on.";
    visit.ask("Create an alert", ("Alerts", "/alerts"), lead, form).await
}

pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let made = visit.change::<alerts::Create>(visit.here(), fields::new_body(visit.form())?).await?;
    visit.go(format!("/alerts/{}?done=created", made.id))
}

/// One alert, and what it has found.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, id: AlertId) -> Result {
    let (calls, path) = (visit.calls(), visit.at::<_, OfAlert>(id));
    let (of, version) = calls.get_versioned::<alerts::Get>(path).await?;
    let query = ListAlertFirings { page: visit.page(), state: visit.query().parsed("state")? };
    let found = calls.find::<alerts::ListFirings>(path, query).await?;
    let reachable = Reachable::read(visit, &found.firings).await;
    let columns = ["What", "State", "Since", "Until", "Happened", "Why"];
    let row = |firing: &AlertFiring| firing_row(visit, firing, reachable.href(visit, firing));
    let table = Table::paged(visit, columns, found.firings.iter().map(row), found.total_count)
        .or("No firings", "The firings of this alert are listed here.");
    let chosen: Vec<String> = of.deployment_ids.iter().map(ToString::to_string).collect();
    let places = Places::read(visit, &chosen).await;
    let href = visit.link(&format!("/alerts/{id}"));
    let form = calls.may::<alerts::Update>(path).await.then(|| {
        let mut shown = fields::of(&of);
        shown.extend(places.webhook_field(Some(&of)));
        shown.push(
            Field::check("isEnabled", "Watch", of.is_enabled)
                .hint("When switched off, the alert closes its firings and notifies nobody."),
        );
        shown.push(Field::hidden("version", version));
        Form { more: places.place_fields(Some(&of)), ..Form::new(href.clone(), "Save the alert", shown) }
    });
    let facts = [
        ("Condition", watches_for(of.kind).to_owned()),
        ("Threshold", threshold(&of)),
        ("Where", places.names(&of)),
        ("Mails to", of.mail_addresses.join(", ")),
        ("Webhooks", places.webhook_names(&of)),
        ("Description", of.description.clone()),
        ("Created by", view::subject(of.created_by.as_ref())),
    ];
    let page = AlertPage {
        status: status(&of),
        failing: of.mail_failing_since.filter(|_| of.is_enabled).map(|at| view::time(at, visit.visit.now)),
        facts: view::facts(facts),
        filters: vec![Filter::words(
            visit,
            "state",
            "State",
            AlertFiringState::ALL.iter().map(|state| state.as_str()),
        )],
        table,
        form: form.map(|form| form.after(visit)),
        delete: calls.may::<alerts::Delete>(path).await.then(|| format!("{href}/delete")),
        shell: visit.shell(of.name.clone()).await?.below("Alerts", visit.link("/alerts")).live(""),
    };
    Answer::page(&page)
}

/// What firings are about, as far as the person may see it.
struct Reachable {
    deployments: HashSet<DeploymentId>,
    tokens: bool,
}

impl Reachable {
    async fn read(visit: &OrganizationVisit<'_>, firings: &[AlertFiring]) -> Self {
        let ids: HashSet<DeploymentId> = firings.iter().filter_map(|of| of.subject.deployment_id).collect();
        let query = ListDeployments {
            deployment_ids: ids.iter().copied().map(Named::from).collect(),
            page: Page::first(MAX_LIMIT),
            ..ListDeployments::default()
        };
        let found = match ids.is_empty() {
            true => None,
            false => visit.calls().find::<deployments::List>(visit.here(), query).await.ok(),
        };
        let read = found.into_iter().flat_map(|found| readable(found.deployments));
        let tokens = visit.calls().may::<tokens::List>(visit.here()).await;
        Self { deployments: read.map(|of| of.id).collect(), tokens }
    }

    fn href(&self, visit: &OrganizationVisit<'_>, of: &AlertFiring) -> Option<String> {
        let deployment = of.subject.deployment_id.filter(|id| self.deployments.contains(id));
        match of.subject.r#type {
            AlertSubjectType::Token => self.tokens.then(|| visit.link(&format!("/tokens/{}", of.subject.id))),
            AlertSubjectType::Deployment => deployment.map(|id| visit.link(&format!("/deployments/{id}"))),
            AlertSubjectType::Dag => deployment.map(|id| visit.link(&format!("/deployments/{id}/dags"))),
        }
    }
}

fn firing_row(visit: &OrganizationVisit<'_>, of: &AlertFiring, href: Option<String>) -> Row {
    let now = visit.visit.now;
    let (tone, word) = match of.state {
        AlertFiringState::Firing => (Tone::Warning, "Firing"),
        AlertFiringState::Resolved => (Tone::Good, "Resolved"),
    };
    let sub = match &of.subject.dag_id {
        Some(dag) => format!("DAG {}", crate::airflow::plain(dag, 250)),
        None => view::words(of.subject.r#type.as_str()),
    };
    let what = match href {
        Some(href) => Cell::named(of.subject.name.clone(), href, sub),
        None => Cell::Lines(of.subject.name.clone(), sub),
    };
    let why = crate::airflow::plain(of.reason.as_deref().unwrap_or_default(), 500);
    Row::of(vec![
        what,
        view::status(tone, word).into(),
        view::time(of.since, now).into(),
        of.until.map(|until| view::time(until, now)).into(),
        podium_api::counted(of.count, "time").into(),
        why.into(),
    ])
}

pub(crate) async fn update(visit: &OrganizationVisit<'_>, id: AlertId) -> Result {
    let of = visit.calls().get::<alerts::Get>(visit.at(id)).await?;
    let body = fields::changed_body(visit.form(), of.kind)?;
    visit.change::<alerts::Update>(visit.at(id), body).await?;
    visit.go(format!("/alerts/{id}?done=saved"))
}
