//! Environment objects: variables and connections that workspaces and deployments share.

use podium_api::deployments::{self, Deployment, ListDeployments};
use podium_api::enums::{EnvironmentObjectScope, EnvironmentObjectType, LinkScope};
use podium_api::environment_objects::bodies::{
    ConnectionRequest, EnvironmentObjectVariable, VariableRequest, VariableValue,
};
use podium_api::environment_objects::links::UpdateEnvironmentObjectLinkRequest;
use podium_api::environment_objects::{
    self, CreateEnvironmentObjectRequest, EnvironmentObject, ListEnvironmentObjects,
    UpdateEnvironmentObjectRequest,
};
use podium_api::page::Page;
use podium_api::{DeploymentId, EnvironmentObjectId, WorkspaceId};

use super::{
    Answer, Cell, Field, FieldKind, Filter, Form, ListPage, OrganizationVisit, Params, Problem, Result, Row,
    Shell, Table, Template, readable, view,
};
use crate::pages::deployments::workspaces_where;

/// How many deployments of a workspace are offered to be linked.
const TARGETS: u32 = 200;

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

pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = ListEnvironmentObjects {
        object_type: visit.query().parsed("objectType")?,
        page: visit.page().sorted_by("objectKey"),
        ..ListEnvironmentObjects::default()
    };
    let found = visit.calls().find::<environment_objects::List>(visit.here(), query).await?;
    let columns = ["Key", "Kind", "Scope", "Linked to", "Changed"];
    let rows = found.environment_objects.iter().map(|of| row(visit, of));
    let table = Table::paged(visit, columns, rows, found.total_count)
        .or("No environment objects", "Create one to share a variable or a connection between deployments.");
    let kinds = EnvironmentObjectType::ALL.iter().map(|kind| kind.as_str());
    let lead = "Variables and connections, set once and linked to the deployments that need them.";
    let can_create = creatable_in(visit, 1).await.is_ok_and(|found| !found.is_empty());
    ListPage::new(visit.shell("Environment").await?.live(""), lead, table)
        .offer(can_create, "Create object", visit.link("/environment/new"))
        .narrowed_by(Filter::words(visit, "objectType", "Kind", kinds))
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
    Row::of(vec![
        key,
        view::words(of.object_type.as_str()).into(),
        view::words(of.scope.as_str()).into(),
        links.into(),
        of.updated_at.map(|at| view::time(at, visit.visit.now)).into(),
    ])
}

/// The first workspaces that the person may create objects in: ids and names.
async fn creatable_in(visit: &OrganizationVisit<'_>, most: usize) -> Result<Vec<(String, String)>> {
    workspaces_where(visit, most, |id| visit.holds("workspace.envObjects.create", id)).await
}

pub(crate) async fn new(visit: &OrganizationVisit<'_>) -> Result {
    let kinds = [
        ("ENVIRONMENT_VARIABLE", "Environment variable"),
        ("AIRFLOW_VARIABLE", "Airflow variable"),
        ("CONNECTION", "Connection"),
    ];
    let fields = vec![
        Field::choice("objectType", "Kind", kinds),
        Field::choice("scopeEntityId", "Workspace", creatable_in(visit, usize::MAX).await?),
        Field::text("objectKey", "Key")
            .required()
            .hint("The name of the variable, or the id of the connection."),
        Field::text("value", "Value").of(FieldKind::Area).hint("For variables."),
        Field::check("isSecret", "Secret", false).hint("Encrypted, and never shown again."),
        Field::check("autoLinkDeployments", "Link to every deployment of the workspace", true),
    ];
    let more = vec![
        Field::text("type", "Connection type").hint("Such as postgres, http or aws."),
        Field::text("host", "Host"),
        Field::text("port", "Port").of(FieldKind::Number),
        Field::text("schema", "Schema"),
        Field::text("login", "Login"),
        Field::text("password", "Password").of(FieldKind::Password),
    ];
    let form = Form { more, ..Form::new(visit.link("/environment"), "Create object", fields) };
    visit.ask("Create an environment object", ("Environment", "/environment"), "", form).await
}

pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let object_type = sent.required("objectType")?;
    let variable = VariableRequest {
        value: Some(sent.get("value").to_owned()),
        is_secret: Some(sent.is_on("isSecret")),
    };
    let (mut connection, mut environment_variable, mut airflow_variable) = (None, None, None);
    match object_type {
        EnvironmentObjectType::Connection => connection = Some(new_connection(sent)?),
        EnvironmentObjectType::AirflowVariable => airflow_variable = Some(variable),
        _ => environment_variable = Some(variable),
    }
    let body = CreateEnvironmentObjectRequest {
        object_key: sent.text("objectKey"),
        object_type,
        scope: EnvironmentObjectScope::Workspace,
        scope_entity_id: sent.required("scopeEntityId")?,
        description: None,
        auto_link_deployments: Some(sent.is_on("autoLinkDeployments")),
        links: None,
        exclude_links: None,
        connection,
        environment_variable,
        airflow_variable,
        metrics_export: None,
    };
    let made = visit.change::<environment_objects::Create>(visit.here(), body).await?;
    visit.go(format!("/environment/{}?done=created", made.id))
}

fn new_connection(sent: &Params) -> Result<ConnectionRequest> {
    let filled = |name| sent.filled(name).map(str::to_owned);
    Ok(ConnectionRequest {
        kind: sent.text("type"),
        auth_type_id: None,
        host: filled("host"),
        port: sent.parsed("port")?,
        schema: filled("schema"),
        login: filled("login"),
        password: filled("password"),
        extra: None,
    })
}

/// One object: what it is, what it reaches, and the form that changes both.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, id: EnvironmentObjectId) -> Result {
    let (of, version) = visit.calls().get_versioned::<environment_objects::Get>(visit.at(id)).await?;
    let workspace_id = WorkspaceId::from_raw(of.scope_entity_id.id());
    let is_shared = of.scope == EnvironmentObjectScope::Workspace;
    let may_update = is_shared && visit.holds("workspace.envObjects.update", workspace_id).await;
    let may_delete = match is_shared {
        true => visit.holds("workspace.envObjects.delete", workspace_id).await,
        false => visit.is_owner().await,
    };
    let targets = if is_shared { targets(visit, workspace_id, &of).await? } else { Vec::new() };
    let href = visit.link(&format!("/environment/{id}"));
    let form = may_update.then(|| edit_form(&href, &of, version).after(visit));
    let problem = visit.problem.clone().filter(|_| !may_update);
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
    Answer::page(&page)
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
    view::facts(facts.map(|(term, value)| (term, value.unwrap_or_default())))
}

/// The deployments of the workspace, and those that are linked but not among the first.
async fn targets(
    visit: &OrganizationVisit<'_>,
    workspace_id: WorkspaceId,
    of: &EnvironmentObject,
) -> Result<Vec<LinkTarget>> {
    let query = ListDeployments {
        workspace_ids: vec![workspace_id.into()],
        page: Page::first(TARGETS).sorted_by("name"),
        ..ListDeployments::default()
    };
    let found = visit.calls().find::<deployments::List>(visit.here(), query).await?;
    let is_linked = |id: DeploymentId| of.links.iter().any(|link| link.scope_entity_id == id);
    let target =
        |of: Deployment| LinkTarget { id: of.id.to_string(), is_linked: is_linked(of.id), name: of.name };
    let mut targets: Vec<LinkTarget> = readable(found.deployments).into_iter().map(target).collect();
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
    Form::new(href.to_owned(), "Save the object", fields)
}

/// Changes one: its value, and what it reaches.
pub(crate) async fn update(visit: &OrganizationVisit<'_>, id: EnvironmentObjectId) -> Result {
    let of = visit.calls().get::<environment_objects::Get>(visit.at(id)).await?;
    let sent = visit.form();
    let link = |scope_entity_id| UpdateEnvironmentObjectLinkRequest {
        scope: LinkScope::Deployment,
        scope_entity_id,
        overrides: None,
    };
    // A secret that is left empty stays as it is.
    let value = |variable: Option<EnvironmentObjectVariable>| {
        let is_given = |of: &EnvironmentObjectVariable| !(of.is_secret && sent.get("value").is_empty());
        let value = Some(sent.get("value").to_owned());
        variable.filter(is_given).map(|_| VariableValue { value })
    };
    let links: Vec<DeploymentId> = sent.parsed_all("links")?;
    let body = UpdateEnvironmentObjectRequest {
        description: Some(sent.text("description")),
        auto_link_deployments: Some(sent.is_on("autoLinkDeployments")),
        links: Some(links.into_iter().map(link).collect()),
        environment_variable: value(of.environment_variable),
        airflow_variable: value(of.airflow_variable),
        ..UpdateEnvironmentObjectRequest::default()
    };
    visit.change::<environment_objects::Update>(visit.at(id), body).await?;
    visit.go(format!("/environment/{id}?done=saved"))
}
