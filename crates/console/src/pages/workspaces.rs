//! Workspaces.

use podium_api::path::OfWorkspace;
use podium_api::workspaces::{
    self, CreateWorkspaceRequest, ListWorkspaces, UpdateWorkspaceRequest, Workspace,
};
use podium_api::{Patch, WorkspaceId};

use super::{Cell, Field, Form, ListPage, OrganizationVisit, Problem, Result, Row, Table, readable, view};

const LIST: (&str, &str) = ("Workspaces", "/workspaces");

pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = ListWorkspaces { page: visit.page().sorted_by("name"), ..ListWorkspaces::default() };
    let found = visit.calls().find::<workspaces::List>(visit.here(), query).await?;
    let mut rows = Vec::new();
    for of in &readable(found.workspaces) {
        rows.push(row(visit, of).await);
    }
    let may_create = visit.calls().may::<workspaces::Create>(visit.here()).await;
    let table = Table::paged(visit, ["Name", "Deploys", "Changed by", "Changed"], rows, found.total_count)
        .or("No workspaces", "You are not in any workspace yet: ask an owner to add you.");
    let lead = "A workspace groups deployments and the people who work on them.";
    ListPage::new(visit.shell("Workspaces").await?.live(""), lead, table)
        .offer(may_create, "Create workspace", visit.link("/workspaces/new"))
        .answer()
}

async fn row(visit: &OrganizationVisit<'_>, of: &Workspace) -> Row {
    let path: OfWorkspace = visit.at(of.id);
    let href = visit.link(&format!("/workspaces/{}", of.id));
    let may_update = visit.calls().may::<workspaces::Update>(path).await;
    let may_delete = visit.calls().may::<workspaces::Delete>(path).await;
    let edit = may_update.then(|| ("Edit", href.clone()));
    let delete = may_delete.then(|| ("Delete", format!("{href}/delete")));
    let deployments = visit.link(&format!("/deployments?workspaceIds={}", of.id));
    Row {
        cells: vec![
            Cell::named(of.name.clone(), deployments, of.description.clone().unwrap_or_default()),
            if of.cicd_enforced_default { "through CI" } else { "by anybody" }.into(),
            view::subject(of.updated_by.as_ref()).into(),
            view::time(of.updated_at, visit.visit.now).into(),
        ],
        actions: edit.into_iter().chain(delete).collect(),
    }
}

fn fields(name: &str, description: &str, is_enforced: bool) -> Vec<Field> {
    vec![
        Field::text("name", "Name").required().value(name),
        Field::text("description", "Description").value(description),
        Field::check("cicdEnforcedDefault", "Only API tokens may deploy", is_enforced)
            .hint("The default for new deployments in this workspace."),
    ]
}

pub(crate) async fn new(visit: &OrganizationVisit<'_>) -> Result {
    let form = Form::new(visit.link("/workspaces"), "Create workspace", fields("", "", false));
    visit.ask("Create a workspace", LIST, "", form).await
}

pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let body = CreateWorkspaceRequest {
        name: sent.text("name"),
        description: Some(sent.text("description")),
        cicd_enforced_default: Some(sent.is_on("cicdEnforcedDefault")),
        ..CreateWorkspaceRequest::default()
    };
    visit.change::<workspaces::Create>(visit.here(), body).await?;
    visit.go("/workspaces?done=created")
}

async fn read(visit: &OrganizationVisit<'_>, id: WorkspaceId) -> Result<(Workspace, String)> {
    let (of, version) = visit.calls().get_versioned::<workspaces::Get>(visit.at(id)).await?;
    let unreadable = |_| Problem::new(500, "The workspace could not be read.");
    Ok((of.into_value().map_err(unreadable)?, version))
}

pub(crate) async fn edit(visit: &OrganizationVisit<'_>, id: WorkspaceId) -> Result {
    let (of, version) = read(visit, id).await?;
    let description = of.description.as_deref().unwrap_or_default();
    let mut fields = fields(&of.name, description, of.cicd_enforced_default);
    fields.push(Field::hidden("version", version));
    let form = Form::new(visit.link(&format!("/workspaces/{id}")), "Save the workspace", fields);
    visit.ask(of.name, LIST, "", form).await
}

/// Changes the version that was shown.
pub(crate) async fn update(visit: &OrganizationVisit<'_>, id: WorkspaceId) -> Result {
    let sent = visit.form();
    let body = UpdateWorkspaceRequest {
        name: sent.text("name"),
        description: sent.text("description"),
        cicd_enforced_default: sent.is_on("cicdEnforcedDefault"),
        default_cluster_id: Patch::Keep,
        default_cloud_provider: Patch::Keep,
        default_region: Patch::Keep,
    };
    visit.change::<workspaces::Update>(visit.at(id), body).await?;
    visit.go("/workspaces?done=saved")
}

pub(crate) async fn ask_to_delete(visit: &OrganizationVisit<'_>, id: WorkspaceId) -> Result {
    let (of, _) = read(visit, id).await?;
    let action = visit.link(&format!("/workspaces/{id}/delete"));
    let form = Form { is_danger: true, ..Form::new(action, "Delete the workspace", Vec::new()) };
    let lead = "Its deployments must be deleted or moved first. Roles and environment objects in it are deleted with it.";
    visit.ask(format!("Delete {}", of.name), LIST, lead, form).await
}
