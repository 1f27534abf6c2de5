//! Environment objects: variables and connections that workspaces and deployments share.

use askama::Template;
use podium_api::deployments::{self, Deployment};
use podium_api::enums::{EnvironmentObjectScope, EnvironmentObjectType};
use podium_api::environment_objects::{self, EnvironmentObject};
use podium_api::path::OfEnvironmentObject;
use podium_api::{DeploymentId, EnvironmentObjectId, WorkspaceId};
use serde_json::{Value, json};

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Field, FieldKind, Form, FormPage};
use crate::list::{Cell, Empty, Filter, ListPage, Pager, Row, Table};
use crate::pages::deployments::workspace_choices;
use crate::shell::Shell;
use crate::view;
use crate::visit::OrganizationVisit;

/// How many deployments of a workspace are offered to be linked.
const TARGETS: usize = 200;

#[derive(Template)]
#[template(path = "environment-object.html")]
struct ObjectPage {
    shell: Shell,
    kind: String,
    facts: Vec<(&'static str, String)>,
    reached: Vec<String>,
    reaches_all: bool,
    targets: Vec<LinkTarget>,
    form: Option<Form>,
    problem: Option<Problem>,
    delete: Option<String>,
}

/// A deployment that an object can be linked to.
struct LinkTarget {
    id: String,
    name: String,
    is_linked: bool,
}

/// The objects.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let kind = visit.query().get("objectType");
    let query = [("sorts", "objectKey:asc"), ("objectType", kind)];
    let found = visit.list::<environment_objects::List>(visit.here(), &query).await?;
    let rows: Vec<Row> = found.environment_objects.iter().map(|of| row(visit, of)).collect();
    ListPage {
        shell: visit.shell("Environment").await?.live(""),
        lead: "Variables and connections, set once and linked to the deployments that need them.",
        action: can_create(visit).await.then(|| ("Create object", visit.link("/environment/new"))),
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
        (false, 0) => "no deployments yet".to_owned(),
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

/// The workspaces that the person may create objects in: ids and names.
async fn creatable_in(visit: &OrganizationVisit<'_>) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (id, name) in workspace_choices(visit).await? {
        if visit.holds("workspace.envObjects.create", crate::visit::id(&id)?).await {
            found.push((id, name));
        }
    }
    Ok(found)
}

/// Whether the person may create an object anywhere.
async fn can_create(visit: &OrganizationVisit<'_>) -> bool {
    let Ok(spaces) = workspace_choices(visit).await else { return false };
    for (id, _) in spaces {
        if let Ok(id) = crate::visit::id(&id)
            && visit.holds("workspace.envObjects.create", id).await
        {
            return true;
        }
    }
    false
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
            Field::choice("scopeEntityId", "Workspace", creatable_in(visit).await?),
            Field::text("objectKey", "Key")
                .required()
                .hint("The name of the variable, or the id of the connection."),
            Field::text("value", "Value").of(FieldKind::Area).hint("For variables."),
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

/// One object: what it is, what it reaches, and the form that changes both.
pub(crate) async fn show(
    visit: &OrganizationVisit<'_>,
    id: EnvironmentObjectId,
    problem: Option<Problem>,
) -> Result {
    let path = OfEnvironmentObject { organization_id: visit.organization_id, environment_object_id: id };
    let read = visit.calls().get_versioned::<environment_objects::Get>(path, &[]).await?;
    let (of, version) = (read.value, read.etag.unwrap_or_default());
    let workspace_id = WorkspaceId::from_raw(of.scope_entity_id.id());
    let is_shared = of.scope == EnvironmentObjectScope::Workspace;
    let may_update = is_shared && visit.holds("workspace.envObjects.update", workspace_id).await;
    let may_delete = match is_shared {
        true => visit.holds("workspace.envObjects.delete", workspace_id).await,
        false => visit.is_owner().await,
    };
    let targets = if is_shared { targets(visit, workspace_id, &of).await? } else { Vec::new() };
    let href = visit.link(&format!("/environment/{id}"));
    let status = problem.as_ref().map_or(200, |problem| problem.status);
    let (form, problem) = match may_update {
        true => (Some(edit_form(&href, &of, version).after(visit.form(), problem)), None),
        false => (None, problem),
    };
    let page = ObjectPage {
        kind: view::words(of.object_type.as_str()),
        facts: facts(&of),
        reached: targets.iter().filter(|target| target.is_linked).map(|target| target.name.clone()).collect(),
        reaches_all: of.auto_link_deployments,
        targets,
        form,
        problem,
        delete: may_delete.then(|| format!("{href}/delete")),
        shell: visit.shell(of.object_key).await?.below("Environment", visit.link("/environment")),
    };
    Answer::with_status(status, &page)
}

fn facts(of: &EnvironmentObject) -> Vec<(&'static str, String)> {
    let variable = of.environment_variable.as_ref().or(of.airflow_variable.as_ref());
    let connection = of.connection.as_ref();
    let facts = [
        ("Value", variable.map(|it| if it.is_secret { "secret".to_owned() } else { it.value.clone() })),
        ("Type", connection.map(|connection| connection.kind.clone())),
        ("Host", connection.and_then(|connection| connection.host.clone())),
        ("Metrics go to", of.metrics_export.as_ref().map(|export| export.endpoint.clone())),
        ("Scope", Some(view::words(of.scope.as_str()))),
        ("Description", of.description.clone()),
        ("Changed by", of.updated_by.as_ref().map(|by| view::subject(Some(by)))),
    ];
    facts
        .into_iter()
        .filter_map(|(term, value)| Some((term, value.filter(|value| !value.is_empty())?)))
        .collect()
}

/// The deployments of the workspace, and those that are linked but not among the first.
async fn targets(
    visit: &OrganizationVisit<'_>,
    workspace_id: WorkspaceId,
    of: &EnvironmentObject,
) -> Result<Vec<LinkTarget>> {
    let (workspace, most) = (workspace_id.to_string(), TARGETS.to_string());
    let query = [("workspaceIds", workspace.as_str()), ("sorts", "name:asc"), ("limit", most.as_str())];
    let found = visit.calls().get::<deployments::List>(visit.here(), &query).await?;
    let read = found.deployments.into_iter().filter_map(|shown| shown.into_value().ok());
    let is_linked = |id: DeploymentId| of.links.iter().any(|link| link.scope_entity_id == id);
    let target =
        |of: Deployment| LinkTarget { id: of.id.to_string(), is_linked: is_linked(of.id), name: of.name };
    let mut targets: Vec<LinkTarget> = read.map(target).collect();
    for link in &of.links {
        let id = link.scope_entity_id.to_string();
        if !targets.iter().any(|target| target.id == id) {
            targets.push(LinkTarget { name: id.clone(), id, is_linked: true });
        }
    }
    Ok(targets)
}

fn edit_form(href: &str, of: &EnvironmentObject, version: String) -> Form {
    let variable = of.environment_variable.as_ref().or(of.airflow_variable.as_ref());
    let mut fields = vec![
        Field::text("description", "Description").value(of.description.clone().unwrap_or_default()),
        Field::hidden("version", version),
    ];
    fields.extend(variable.map(|variable| match variable.is_secret {
        true => Field::text("value", "New value").of(FieldKind::Password).hint("Unchanged if empty."),
        false => Field::text("value", "Value").of(FieldKind::Area).value(variable.value.clone()),
    }));
    let all = "Every deployment of the workspace, including later ones";
    fields.push(Field::check("autoLinkDeployments", all, of.auto_link_deployments));
    Form { action: href.to_owned(), fields, submit: "Save the object".to_owned(), ..Form::default() }
}

/// Changes one: its value, and what it reaches.
pub(crate) async fn update(visit: &OrganizationVisit<'_>, id: EnvironmentObjectId) -> Result {
    let path = OfEnvironmentObject { organization_id: visit.organization_id, environment_object_id: id };
    let of = visit.calls().get::<environment_objects::Get>(path, &[]).await?;
    let sent = visit.form();
    let links = sent.all("links").map(|id| json!({ "scope": "DEPLOYMENT", "scopeEntityId": id }));
    let mut body = json!({
        "description": sent.get("description").trim(),
        "autoLinkDeployments": sent.is_on("autoLinkDeployments"),
        "links": links.collect::<Vec<_>>(),
    });
    let variables =
        [("environmentVariable", &of.environment_variable), ("airflowVariable", &of.airflow_variable)];
    for (name, variable) in variables {
        if let Some(variable) = variable
            && !(variable.is_secret && sent.get("value").is_empty())
        {
            body[name] = json!({ "value": sent.get("value") });
        }
    }
    let version = sent.filled("version").map(str::to_owned);
    match visit.calls().change::<environment_objects::Update>(path, body, version).await {
        Ok(_) => Answer::redirect(visit.link(&format!("/environment/{id}?done=saved"))),
        Err(problem) => show(visit, id, Some(problem)).await,
    }
}

/// Deletes one.
pub(crate) async fn delete(visit: &OrganizationVisit<'_>, id: EnvironmentObjectId) -> Result {
    let path = OfEnvironmentObject { organization_id: visit.organization_id, environment_object_id: id };
    match visit.calls().act::<environment_objects::Delete>(path, ()).await {
        Ok(_) => Answer::redirect(visit.link("/environment?done=deleted")),
        Err(problem) => show(visit, id, Some(problem)).await,
    }
}
