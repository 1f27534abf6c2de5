//! Workspaces.

use podium_api::WorkspaceId;
use podium_api::path::OfWorkspace;
use podium_api::workspaces::{self, Workspace};
use serde_json::json;

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Field, Form, FormPage};
use crate::list::{Cell, Empty, ListPage, Pager, Row, Table};
use crate::view;
use crate::visit::OrganizationVisit;

/// The workspaces.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let found = visit.list::<workspaces::List>(visit.here(), &[("sorts", "name:asc")]).await?;
    let read: Vec<Workspace> =
        found.workspaces.into_iter().filter_map(|shown| shown.into_value().ok()).collect();
    let mut rows = Vec::new();
    for of in &read {
        rows.push(row(visit, of).await);
    }
    let may_create = visit.calls().may::<workspaces::Create>(visit.here()).await;
    ListPage {
        shell: visit.shell("Workspaces").await?.live(""),
        lead: "A workspace groups deployments and the people who work on them.",
        action: may_create.then(|| ("Create workspace", visit.link("/workspaces/new"))),
        filters: Vec::new(),
        table: Table {
            columns: vec!["Name", "Deploys", "Changed by", "Changed"],
            pager: Pager::new(visit, rows.len(), found.total_count),
            rows,
            empty: Empty {
                title: "No workspaces",
                text: "You are not in any workspace yet: ask an owner to add you.",
                command: String::new(),
            },
        },
    }
    .answer()
}

async fn row(visit: &OrganizationVisit<'_>, of: &Workspace) -> Row {
    let path = OfWorkspace { organization_id: visit.organization_id, workspace_id: of.id };
    let href = visit.link(&format!("/workspaces/{}", of.id));
    let may_update = visit.calls().may::<workspaces::Update>(path).await;
    let may_delete = visit.calls().may::<workspaces::Delete>(path).await;
    let edit = may_update.then(|| ("Edit", href.clone()));
    let delete = may_delete.then(|| ("Delete", format!("{href}/delete")));
    Row {
        cells: vec![
            Cell::named(
                of.name.clone(),
                visit.link(&format!("/deployments?workspaceIds={}", of.id)),
                of.description.clone().unwrap_or_default(),
            ),
            if of.cicd_enforced_default { "through CI" } else { "by anybody" }.to_owned().into(),
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

/// The form that creates one.
pub(crate) async fn new(visit: &OrganizationVisit<'_>, problem: Option<Problem>) -> Result {
    let form = Form {
        action: visit.link("/workspaces"),
        fields: fields("", "", false),
        submit: "Create workspace".to_owned(),
        cancel: visit.link("/workspaces"),
        ..Form::default()
    };
    let form = form.after(visit.form(), problem);
    let shell = visit.shell("Create a workspace").await?.below("Workspaces", visit.link("/workspaces"));
    FormPage { shell, lead: String::new(), form }.answer()
}

/// Creates one.
pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    match visit.calls().change::<workspaces::Create>(visit.here(), body(visit), None).await {
        Ok(_) => Answer::redirect(visit.link("/workspaces?done=created")),
        Err(problem) => new(visit, Some(problem)).await,
    }
}

fn body(visit: &OrganizationVisit<'_>) -> serde_json::Value {
    let sent = visit.form();
    json!({
        "name": sent.get("name").trim(),
        "description": sent.get("description").trim(),
        "cicdEnforcedDefault": sent.is_on("cicdEnforcedDefault"),
    })
}

async fn read(visit: &OrganizationVisit<'_>, path: OfWorkspace) -> Result<(Workspace, Option<String>)> {
    let read = visit.calls().get_versioned::<workspaces::Get>(path, &[]).await?;
    let unreadable = |_| Problem::new(500, "The workspace could not be read.");
    Ok((read.value.into_value().map_err(unreadable)?, read.etag))
}

/// The form that changes one.
pub(crate) async fn edit(
    visit: &OrganizationVisit<'_>,
    workspace_id: WorkspaceId,
    problem: Option<Problem>,
) -> Result {
    let path = OfWorkspace { organization_id: visit.organization_id, workspace_id };
    let (of, etag) = read(visit, path).await?;
    let mut fields =
        fields(&of.name, of.description.as_deref().unwrap_or_default(), of.cicd_enforced_default);
    fields.push(Field::hidden("version", etag.unwrap_or_default()));
    let form = Form {
        action: visit.link(&format!("/workspaces/{workspace_id}")),
        fields,
        submit: "Save the workspace".to_owned(),
        cancel: visit.link("/workspaces"),
        ..Form::default()
    };
    let form = form.after(visit.form(), problem);
    let shell = visit.shell(of.name).await?.below("Workspaces", visit.link("/workspaces"));
    FormPage { shell, lead: String::new(), form }.answer()
}

/// Changes the version that was shown.
pub(crate) async fn update(visit: &OrganizationVisit<'_>, workspace_id: WorkspaceId) -> Result {
    let path = OfWorkspace { organization_id: visit.organization_id, workspace_id };
    let version = visit.form().filled("version").map(str::to_owned);
    match visit.calls().change::<workspaces::Update>(path, body(visit), version).await {
        Ok(_) => Answer::redirect(visit.link("/workspaces?done=saved")),
        Err(problem) => edit(visit, workspace_id, Some(problem)).await,
    }
}

/// Asks before one is deleted.
pub(crate) async fn ask_to_delete(
    visit: &OrganizationVisit<'_>,
    workspace_id: WorkspaceId,
    problem: Option<Problem>,
) -> Result {
    let path = OfWorkspace { organization_id: visit.organization_id, workspace_id };
    let (of, _) = read(visit, path).await?;
    let form = Form {
        action: visit.link(&format!("/workspaces/{workspace_id}/delete")),
        submit: "Delete the workspace".to_owned(),
        is_danger: true,
        cancel: visit.link("/workspaces"),
        problem,
        ..Form::default()
    };
    let shell =
        visit.shell(format!("Delete {}", of.name)).await?.below("Workspaces", visit.link("/workspaces"));
    let lead = "Its deployments must be deleted or moved first. Roles and environment objects in it are deleted with it.".to_owned();
    FormPage { shell, lead, form }.answer()
}

/// Deletes one.
pub(crate) async fn delete(visit: &OrganizationVisit<'_>, workspace_id: WorkspaceId) -> Result {
    let path = OfWorkspace { organization_id: visit.organization_id, workspace_id };
    match visit.calls().act::<workspaces::Delete>(path, ()).await {
        Ok(_) => Answer::redirect(visit.link("/workspaces?done=deleted")),
        Err(problem) => ask_to_delete(visit, workspace_id, Some(problem)).await,
    }
}
