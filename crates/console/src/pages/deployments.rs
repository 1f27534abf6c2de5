//! Deployments: the list, and how one is created.

pub(crate) mod bulk;

use podium_api::deployments::{self, CreateDeploymentRequest, Deployment, ListDeployments};
use podium_api::page::{MAX_LIMIT, Page};
use podium_api::union::OneOf;
use podium_api::workspaces::{self, ListWorkspaces};
use podium_api::{Named, WorkspaceId, options};
use serde_json::json;

use super::{
    Answer, Choice, Field, Filter, Form, OrganizationVisit, Pager, Params, Result, Shell, Template, least,
    readable, view,
};
use crate::pages::overview::DeploymentLine;

#[derive(Template)]
#[template(path = "deployments.html")]
struct DeploymentsPage {
    shell: Shell,
    filters: Vec<Filter>,
    deployments: Vec<DeploymentLine>,
    pager: Option<Pager>,
    can_create: bool,
    /// Where the form goes that changes several.
    bulk: Option<String>,
}

/// The workspaces that the person sees: ids and names.
pub(crate) async fn workspace_choices(visit: &OrganizationVisit<'_>) -> Result<Vec<(String, String)>> {
    let query =
        ListWorkspaces { page: Page::first(MAX_LIMIT).sorted_by("name"), ..ListWorkspaces::default() };
    let found = visit.calls().find::<workspaces::List>(visit.here(), query).await?;
    let read = readable(found.workspaces).into_iter();
    Ok(read.map(|workspace| (workspace.id.to_string(), workspace.name)).collect())
}

/// The first workspaces in which the person may do something: ids and names.
pub(crate) async fn workspaces_where<M: Future<Output = bool>>(
    visit: &OrganizationVisit<'_>,
    most: usize,
    may: impl Fn(WorkspaceId) -> M,
) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for (id, name) in workspace_choices(visit).await? {
        if found.len() < most && may(crate::visit::id(&id)?).await {
            found.push((id, name));
        }
    }
    Ok(found)
}

/// The first workspaces that the person may create deployments in.
async fn creatable_in(visit: &OrganizationVisit<'_>, most: usize) -> Result<Vec<(String, String)>> {
    let may = |id: WorkspaceId| visit.calls().may_on::<deployments::Create>(visit.here(), id.into());
    workspaces_where(visit, most, may).await
}

/// Whether the person may create a deployment anywhere.
pub(crate) async fn can_create(visit: &OrganizationVisit<'_>) -> bool {
    creatable_in(visit, 1).await.is_ok_and(|found| !found.is_empty())
}

pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let workspace_id = visit.query().get("workspaceIds");
    let query = ListDeployments {
        workspace_ids: visit.query().filled("workspaceIds").map(Named::from).into_iter().collect(),
        page: visit.page().sorted_by("name"),
        ..ListDeployments::default()
    };
    let found = visit.calls().find::<deployments::List>(visit.here(), query).await?;
    let read = readable(found.deployments);
    let spaces = workspace_choices(visit).await.unwrap_or_default();
    let any = Choice::new("", "All", workspace_id.is_empty());
    let choices = spaces.iter().map(|(id, name)| Choice::new(id, name, id == workspace_id));
    let choices = std::iter::once(any).chain(choices).collect();
    let changeable = bulk::changeable_in(visit, &read).await;
    let line = |of: &Deployment| {
        let is_choosable = changeable.contains(&of.workspace_id);
        DeploymentLine { choice: is_choosable.then(|| of.id.to_string()), ..DeploymentLine::new(visit, of) }
    };
    let page = DeploymentsPage {
        bulk: (!changeable.is_empty()).then(|| visit.link("/deployments/bulk")),
        shell: visit.shell("Deployments").await?.live(""),
        filters: vec![Filter { name: "workspaceIds", label: "Workspace", choices }],
        pager: Pager::new(visit, read.len(), found.total_count),
        deployments: read.iter().map(line).collect(),
        can_create: can_create(visit).await,
    };
    Answer::page(&page)
}

pub(crate) async fn new(visit: &OrganizationVisit<'_>) -> Result {
    let form = form(visit).await?;
    let lead = "A name and a workspace are enough. The deployment runs the newest stable Apache Airflow, and you can change everything later.";
    visit.ask("Create a deployment", ("Deployments", "/deployments"), lead, form).await
}

async fn form(visit: &OrganizationVisit<'_>) -> Result<Form> {
    let spaces = creatable_in(visit, usize::MAX).await?;
    let chosen = visit.query().get("workspaceId");
    let chosen = spaces.iter().find(|(id, _)| id == chosen).or(spaces.first());
    let chosen = chosen.map(|(id, _)| id.clone()).unwrap_or_default();
    let options = visit.calls().get::<options::ForDeployments>(visit.here()).await;
    let mut more = Vec::new();
    if let Ok(options) = options {
        let releases = options.runtime_releases.into_iter();
        let named = releases.map(|of| {
            (of.version.clone(), format!("{} (Airflow {}, {})", of.version, of.airflow_version, of.channel))
        });
        let runtime = Field::choice("platformRuntimeVersion", "Runtime", named);
        let executors = options.executors.into_iter().map(|of| (of.clone(), view::words(&of)));
        let sizes = options.scheduler_machines.into_iter().map(|of| {
            let name = of.name.as_str();
            (name, format!("{} ({} CPU, {})", view::words(name), of.spec.cpu, of.spec.memory))
        });
        more.push(runtime.or_open("The newest stable runtime"));
        more.push(Field::choice("executor", "Executor", executors).or_open("Default"));
        more.push(Field::choice("schedulerSize", "Scheduler", sizes).or_open("Default"));
    }
    more.push(
        Field::check("isDevelopmentMode", "For development", false)
            .hint("The deployment may hibernate, by hand or on a schedule."),
    );
    more.push(Field::text("description", "Description"));
    let fields = vec![
        Field::text("name", "Name").required(),
        Field::choice("workspaceId", "Workspace", spaces).value(chosen),
    ];
    Ok(Form { more, ..Form::new(visit.link("/deployments"), "Create deployment", fields) })
}

pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let made = visit.change::<deployments::Create>(visit.here(), new_deployment(visit.form())?).await?;
    visit.go(format!("/deployments/{}?done=created", made.id))
}

/// What the form says; everything else is a default.
fn new_deployment(sent: &Params) -> Result<OneOf<CreateDeploymentRequest>> {
    let filled = |name| sent.filled(name).map(str::to_owned);
    let workspace_id: WorkspaceId = sent.required("workspaceId")?;
    let mut body: CreateDeploymentRequest =
        least(json!({ "name": sent.text("name"), "workspaceId": workspace_id }))?;
    body.description = filled("description");
    body.platform_runtime_version = filled("platformRuntimeVersion");
    body.executor = sent.parsed("executor")?;
    body.scheduler_size = sent.parsed("schedulerSize")?;
    body.is_development_mode = sent.is_on("isDevelopmentMode").then_some(true);
    Ok(OneOf(body))
}
