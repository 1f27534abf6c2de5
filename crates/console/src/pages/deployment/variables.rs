//! Variables and connections of a deployment, and where each value comes from.

use podium_api::DeploymentId;
use podium_api::deployments::{self, Deployment, DeploymentEnvironmentVariableRequest};
use podium_api::enums::{EnvironmentObjectScope, EnvironmentObjectType};
use podium_api::environment_objects::{self, EnvironmentObject, ListEnvironmentObjects};
use podium_api::page::{MAX_LIMIT, Page};

use super::Head;
use super::settings::{kept, plan_change};
use crate::pages::{
    Answer, Cell, Field, FieldKind, Form, OrganizationVisit, Result, Row, Shell, Table, Template, view,
};

#[derive(Template)]
#[template(path = "deployment/variables.html")]
struct VariablesPage<'a> {
    shell: &'a Shell,
    head: &'a Head,
    table: Table,
    form: Option<Form>,
    remove: String,
    own: Vec<String>,
}

/// What the deployment has: its own variables, and the objects that reach it.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, head) = Head::read(visit, id, "variables").await?;
    let may_change = visit.calls().may::<deployments::Update>(visit.deployment(id)).await;
    let query = ListEnvironmentObjects {
        deployment_id: Some(id.into()),
        resolve_linked: Some(true),
        page: Page::first(MAX_LIMIT),
        ..ListEnvironmentObjects::default()
    };
    let objects = visit.calls().find::<environment_objects::List>(visit.here(), query).await;
    let objects = objects.map(|page| page.environment_objects).unwrap_or_default();
    let rows = own_rows(visit, &of).into_iter().chain(objects.iter().map(|object| object_row(visit, object)));
    let table = Table::whole(["Key", "Kind", "Value", "Comes from", "Changed"], rows).or(
        "No variables and no connections",
        "Set a variable below, or create an environment object that is linked to this deployment.",
    );
    let own = of.environment_variables.iter().flatten().filter(|_| may_change);
    let own = own.map(|variable| variable.key.clone()).collect();
    let form = may_change.then(|| form(&head.href).after(visit));
    let remove = format!("{}/variables/remove", head.href);
    Answer::page(&VariablesPage { shell: &head.shell, head: &head, table, form, remove, own })
}

fn own_rows(visit: &OrganizationVisit<'_>, of: &Deployment) -> Vec<Row> {
    let variables = of.environment_variables.iter().flatten();
    let row = |variable: &deployments::DeploymentEnvironmentVariable| {
        Row::of(vec![
            Cell::Mono(variable.key.clone()),
            "Environment variable".into(),
            shown(variable.is_secret, variable.value.as_deref()),
            "This deployment".into(),
            view::time(variable.updated_at, visit.visit.now).into(),
        ])
    };
    variables.map(row).collect()
}

/// A value; a secret is never shown.
fn shown(is_secret: bool, value: Option<&str>) -> Cell {
    if is_secret { "secret".into() } else { Cell::Mono(value.unwrap_or_default().to_owned()) }
}

fn object_row(visit: &OrganizationVisit<'_>, of: &EnvironmentObject) -> Row {
    let value = match of.object_type {
        EnvironmentObjectType::EnvironmentVariable | EnvironmentObjectType::AirflowVariable => {
            let variable = of.environment_variable.as_ref().or(of.airflow_variable.as_ref());
            shown(variable.is_some_and(|it| it.is_secret), variable.map(|it| it.value.as_str()))
        }
        EnvironmentObjectType::Connection => {
            Cell::Mono(of.connection.as_ref().map(|it| it.kind.clone()).unwrap_or_default())
        }
        EnvironmentObjectType::MetricsExport => {
            Cell::Mono(of.metrics_export.as_ref().map(|it| it.endpoint.clone()).unwrap_or_default())
        }
    };
    let from = match of.source_scope.unwrap_or(of.scope) {
        EnvironmentObjectScope::Workspace => "The workspace",
        EnvironmentObjectScope::Deployment => "This deployment",
    };
    let key = match of.id {
        Some(id) => Cell::link(of.object_key.clone(), visit.link(&format!("/environment/{id}"))),
        None => Cell::Mono(of.object_key.clone()),
    };
    Row::of(vec![
        key,
        view::words(of.object_type.as_str()).into(),
        value,
        from.into(),
        of.updated_at.map(|at| view::time(at, visit.visit.now)).into(),
    ])
}

fn form(href: &str) -> Form {
    let fields = vec![
        Field::text("key", "Name").required(),
        Field::text("value", "Value").of(FieldKind::Area),
        Field::check("isSecret", "Secret", false)
            .hint("A secret is encrypted, and its value is never shown again."),
    ];
    Form::new(format!("{href}/variables"), "See what this changes", fields)
}

/// Plans to set a variable, or to remove one.
pub(crate) async fn change(visit: &OrganizationVisit<'_>, id: DeploymentId, removes: bool) -> Result {
    let (of, version) = super::read(visit, id).await?;
    let sent = visit.form();
    let key = sent.text("key");
    let mut body = kept(&of)?;
    body.environment_variables.retain(|variable| variable.key != key);
    let (value, is_secret) = (Some(sent.get("value").to_owned()), sent.is_on("isSecret"));
    let set = DeploymentEnvironmentVariableRequest { key, value, is_secret };
    body.environment_variables.extend((!removes).then_some(set));
    let page = visit.link(&format!("/deployments/{id}/variables"));
    plan_change(visit, id, (body, version), (&page, &format!("{page}?done=applied"))).await
}
