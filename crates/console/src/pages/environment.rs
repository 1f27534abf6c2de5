//! Environment objects: variables and connections that workspaces and deployments share.

use podium_api::EnvironmentObjectId;
use podium_api::enums::EnvironmentObjectType;
use podium_api::environment_objects::{self, EnvironmentObject};
use podium_api::path::OfEnvironmentObject;
use serde_json::{Value, json};

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Field, FieldKind, Form, FormPage};
use crate::list::{Cell, Empty, Filter, ListPage, Pager, Row, Table};
use crate::pages::deployments::workspace_choices;
use crate::view;
use crate::visit::OrganizationVisit;

/// The objects.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let kind = visit.query().get("objectType");
    let query = [("sorts", "objectKey:asc"), ("objectType", kind)];
    let found = visit.list::<environment_objects::List>(visit.here(), &query).await?;
    let rows: Vec<Row> = found.environment_objects.iter().map(|of| row(visit, of)).collect();
    ListPage {
        shell: visit.shell("Environment").await?.live(""),
        lead: "Variables and connections, set once and linked to the deployments that need them.",
        action: Some(("Create object", visit.link("/environment/new"))),
        filters: vec![Filter::words(
            visit,
            "objectType",
            "Kind",
            EnvironmentObjectType::ALL.iter().map(|kind| kind.as_str()),
        )],
        table: Table {
            columns: vec!["Key", "Kind", "Scope", "Linked to", "Changed"],
            pager: Pager::new(visit, rows.len(), found.total_count),
            rows,
            empty: Empty {
                title: "No environment objects",
                text: "Create one to share a variable or a connection between deployments.",
                command: String::new(),
            },
        },
    }
    .answer()
}

fn row(visit: &OrganizationVisit<'_>, of: &EnvironmentObject) -> Row {
    let links = match (of.auto_link_deployments, of.links.len()) {
        (true, _) => "every deployment".to_owned(),
        (false, 0) => "nothing yet".to_owned(),
        (false, count) => podium_api::counted(u64::try_from(count).unwrap_or_default(), "deployment"),
    };
    let key = match of.id {
        Some(id) => Cell::named(
            of.object_key.clone(),
            visit.link(&format!("/environment/{id}")),
            of.description.clone().unwrap_or_default(),
        ),
        None => Cell::Mono(of.object_key.clone()),
    };
    let changed = of.updated_at.map(|at| view::time(at, visit.visit.now).into());
    let cells = vec![
        key,
        view::words(of.object_type.as_str()).into(),
        view::words(of.scope.as_str()).into(),
        links.into(),
        changed.unwrap_or_else(|| String::new().into()),
    ];
    Row { cells, actions: Vec::new() }
}

/// The form that creates one.
pub(crate) async fn new(visit: &OrganizationVisit<'_>, problem: Option<Problem>) -> Result {
    let kinds = [
        ("ENVIRONMENT_VARIABLE", "Environment variable"),
        ("AIRFLOW_VARIABLE", "Airflow variable"),
        ("CONNECTION", "Connection"),
    ];
    let kinds = kinds.map(|(value, label)| (value.to_owned(), label.to_owned()));
    let form = Form {
        action: visit.link("/environment"),
        fields: vec![
            Field::choice("objectType", "Kind", kinds),
            Field::choice("scopeEntityId", "Workspace", workspace_choices(visit).await?),
            Field::text("objectKey", "Key")
                .required()
                .hint("The name of the variable, or the id of the connection."),
            Field::text("value", "Value").of(FieldKind::Area).hint("Of a variable."),
            Field::check("isSecret", "Secret", false).hint("Encrypted, and never shown again."),
            Field::check("autoLinkDeployments", "Link to every deployment of the workspace", true),
        ],
        more: vec![
            Field::text("type", "Connection type").hint("Such as postgres, http or aws."),
            Field::text("host", "Host"),
            Field::text("port", "Port").of(FieldKind::Number),
            Field::text("schema", "Schema"),
            Field::text("login", "Login"),
            Field::text("password", "Password").of(FieldKind::Password),
        ],
        submit: "Create object".to_owned(),
        cancel: visit.link("/environment"),
        ..Form::default()
    };
    let form = form.after(visit.form(), problem);
    let shell =
        visit.shell("Create an environment object").await?.below("Environment", visit.link("/environment"));
    FormPage { shell, lead: String::new(), form }.answer()
}

/// Creates one.
pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let kind = sent.get("objectType");
    let mut body = json!({
        "objectKey": sent.get("objectKey").trim(),
        "objectType": kind,
        "scope": "WORKSPACE",
        "scopeEntityId": sent.get("scopeEntityId"),
        "autoLinkDeployments": sent.is_on("autoLinkDeployments"),
    });
    let variable = json!({ "value": sent.get("value"), "isSecret": sent.is_on("isSecret") });
    match kind {
        "CONNECTION" => body["connection"] = connection(visit),
        "AIRFLOW_VARIABLE" => body["airflowVariable"] = variable,
        _ => body["environmentVariable"] = variable,
    }
    match visit.calls().change::<environment_objects::Create>(visit.here(), body, None).await {
        Ok(made) => Answer::redirect(visit.link(&format!("/environment/{}?done=created", made.value.id))),
        Err(problem) => new(visit, Some(problem)).await,
    }
}

fn connection(visit: &OrganizationVisit<'_>) -> Value {
    let sent = visit.form();
    let mut connection = json!({ "type": sent.get("type").trim() });
    for name in ["host", "schema", "login", "password"] {
        if let Some(value) = sent.filled(name) {
            connection[name] = json!(value);
        }
    }
    if let Some(port) = sent.filled("port") {
        connection["port"] = port.parse::<u16>().map_or_else(|_| json!(port), |port| json!(port));
    }
    connection
}

/// One object, and the way to delete it.
pub(crate) async fn show(
    visit: &OrganizationVisit<'_>,
    id: EnvironmentObjectId,
    problem: Option<Problem>,
) -> Result {
    let path = OfEnvironmentObject { organization_id: visit.organization_id, environment_object_id: id };
    let of = visit.calls().get::<environment_objects::Get>(path, &[]).await?;
    let variable = of.environment_variable.as_ref().or(of.airflow_variable.as_ref());
    let what = match (variable, &of.connection, &of.metrics_export) {
        (Some(variable), _, _) if variable.is_secret => "Its value is a secret.".to_owned(),
        (Some(variable), _, _) => format!("Its value is {}.", variable.value),
        (None, Some(connection), _) => {
            let host = connection.host.as_deref().map(|host| format!(" to {host}")).unwrap_or_default();
            format!("A connection of type {}{host}.", connection.kind)
        }
        (None, None, Some(export)) => format!("Metrics go to {}.", export.endpoint),
        (None, None, None) => String::new(),
    };
    let reach = match (of.auto_link_deployments, of.links.len()) {
        (true, _) => "It reaches every deployment of its workspace.".to_owned(),
        (false, count) => format!(
            "It reaches {}.",
            podium_api::counted(u64::try_from(count).unwrap_or_default(), "deployment")
        ),
    };
    let form = Form {
        action: visit.link(&format!("/environment/{id}/delete")),
        submit: "Delete the object".to_owned(),
        is_danger: true,
        cancel: visit.link("/environment"),
        problem,
        ..Form::default()
    };
    let shell = visit.shell(of.object_key).await?.below("Environment", visit.link("/environment"));
    let lead = format!(
        "{} {what} {reach} Deleting it takes it away from the deployments that it reaches.",
        view::words(of.object_type.as_str())
    );
    FormPage { shell, lead, form }.answer()
}

/// Deletes one.
pub(crate) async fn delete(visit: &OrganizationVisit<'_>, id: EnvironmentObjectId) -> Result {
    let path = OfEnvironmentObject { organization_id: visit.organization_id, environment_object_id: id };
    match visit.calls().act::<environment_objects::Delete>(path, ()).await {
        Ok(_) => Answer::redirect(visit.link("/environment?done=deleted")),
        Err(problem) => show(visit, id, Some(problem)).await,
    }
}
