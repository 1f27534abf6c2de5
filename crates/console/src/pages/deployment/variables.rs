//! Variables and connections of a deployment, and where each value comes from.

use podium_api::deployments::Deployment;
use podium_api::enums::{EnvironmentObjectScope, EnvironmentObjectType};
use podium_api::environment_objects::{self, EnvironmentObject};
use podium_api::{DeploymentId, deployments};
use serde_json::{Value, json};

use askama::Template;

use super::Head;
use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Field, FieldKind, Form};
use crate::list::{Cell, Empty, Row, Table};
use crate::shell::Shell;
use crate::view;
use crate::visit::OrganizationVisit;

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
pub(crate) async fn show(
    visit: &OrganizationVisit<'_>,
    id: DeploymentId,
    problem: Option<Problem>,
) -> Result {
    let (of, _) = super::read(visit, id).await?;
    let head = Head::new(visit, &of, "variables").await?;
    let status = problem.as_ref().map_or(200, |problem| problem.status);
    let may_change = visit.calls().may::<deployments::Update>(visit.deployment(id)).await;
    let target = id.to_string();
    let query = [("deploymentId", target.as_str()), ("resolveLinked", "true"), ("limit", "1000")];
    let objects = visit.calls().get::<environment_objects::List>(visit.here(), &query).await;
    let objects = objects.map(|page| page.environment_objects).unwrap_or_default();
    let mut rows: Vec<Row> = own_rows(visit, &of);
    rows.extend(objects.iter().map(|object| object_row(visit, object)));
    let own = of.environment_variables.iter().flatten().map(|variable| variable.key.clone()).collect();
    let empty = Empty {
        title: "No variables and no connections",
        text: "Set a variable below, or create an environment object that is linked to this deployment.",
        command: String::new(),
    };
    let form = may_change.then(|| form(&head.href).after(visit.form(), problem));
    let columns = vec!["Key", "Kind", "Value", "Comes from", "Changed"];
    let remove = format!("{}/variables/remove", head.href);
    let own = if may_change { own } else { Vec::new() };
    let table = Table { columns, rows, pager: None, empty };
    Answer::with_status(status, &VariablesPage { shell: &head.shell, head: &head, table, form, remove, own })
}

fn own_rows(visit: &OrganizationVisit<'_>, of: &Deployment) -> Vec<Row> {
    let variables = of.environment_variables.iter().flatten();
    let row = |variable: &deployments::DeploymentEnvironmentVariable| Row {
        cells: vec![
            Cell::Mono(variable.key.clone()),
            "Environment variable".to_owned().into(),
            shown(variable.is_secret, variable.value.as_deref()),
            "This deployment".to_owned().into(),
            view::time(variable.updated_at, visit.visit.now).into(),
        ],
        actions: Vec::new(),
    };
    variables.map(row).collect()
}

/// A value; a secret is never shown.
fn shown(is_secret: bool, value: Option<&str>) -> Cell {
    if is_secret { "secret".to_owned().into() } else { Cell::Mono(value.unwrap_or_default().to_owned()) }
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
    let changed = of.updated_at.map(|at| view::time(at, visit.visit.now).into());
    let cells = vec![
        key,
        view::words(of.object_type.as_str()).into(),
        value,
        from.to_owned().into(),
        changed.unwrap_or_else(|| String::new().into()),
    ];
    Row { cells, actions: Vec::new() }
}

fn form(href: &str) -> Form {
    Form {
        action: format!("{href}/variables"),
        fields: vec![
            Field::text("key", "Name").required(),
            Field::text("value", "Value").of(FieldKind::Area),
            Field::check("isSecret", "Secret", false)
                .hint("A secret is encrypted, and its value is never shown again."),
        ],
        submit: "See what this changes".to_owned(),
        ..Form::default()
    }
}

/// Plans to set a variable, or to remove one.
pub(crate) async fn change(visit: &OrganizationVisit<'_>, id: DeploymentId, removes: bool) -> Result {
    let (of, etag) = super::read(visit, id).await?;
    let sent = visit.form();
    let key = sent.get("key").trim();
    let mut body = super::settings::kept(&of);
    let variables = body.get_mut("environmentVariables").and_then(Value::as_array_mut);
    if let Some(variables) = variables {
        variables.retain(|variable| variable["key"] != key);
        if !removes {
            variables
                .push(json!({ "key": key, "value": sent.get("value"), "isSecret": sent.is_on("isSecret") }));
        }
    }
    let path = format!("/organizations/{}/deployments/{id}", visit.organization_id);
    let call = json!({ "method": "POST", "path": path, "body": body, "ifMatch": etag });
    let page = visit.link(&format!("/deployments/{id}/variables"));
    match crate::pages::plans::show(visit, call, "Apply the change", &page, &format!("{page}?done=applied"))
        .await
    {
        Err(problem) if problem.status < 500 => show(visit, id, Some(problem)).await,
        shown => shown,
    }
}
