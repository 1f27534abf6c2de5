//! Roles and what they permit.

use askama::Template;
use podium_api::path::OfRole;
use podium_api::roles::{self, DefaultRole, Role};
use podium_api::{RoleId, authorization};
use serde_json::json;

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::list::{Cell, Empty, ListPage, Row, Table};
use crate::shell::Shell;
use crate::view;
use crate::visit::OrganizationVisit;

#[derive(Template)]
#[template(path = "role.html")]
struct RolePage {
    shell: Shell,
    lead: String,
    problem: Option<Problem>,
    name: String,
    description: String,
    scopes: Vec<&'static str>,
    groups: Vec<Group>,
    /// Where the form is sent; without it the role is only shown.
    action: Option<String>,
    delete: Option<String>,
    submit: &'static str,
    /// The version that is changed.
    version: String,
}

/// Permissions on one kind of thing.
struct Group {
    name: String,
    /// Whether the role has one of them.
    is_held: bool,
    permissions: Vec<Permission>,
}

/// A permission, and whether the role has it.
struct Permission {
    name: String,
    about: String,
    is_held: bool,
}

/// Custom roles, and those that are always there.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = [("includeDefaultRoles", "true"), ("limit", "1000"), ("sorts", "name:asc")];
    let found = visit.calls().get::<roles::List>(visit.here(), &query).await?;
    let custom = |of: &Role| Row {
        cells: vec![
            Cell::named(
                of.name.clone(),
                visit.link(&format!("/roles/{}", of.id)),
                of.description.clone().unwrap_or_default(),
            ),
            view::words(of.scope_type.as_str()).into(),
            "custom".to_owned().into(),
            view::time(of.updated_at, visit.visit.now).into(),
        ],
        actions: Vec::new(),
    };
    let default = |of: &DefaultRole| Row {
        cells: vec![
            Cell::named(
                view::words(&of.name),
                visit.link(&format!("/roles/default/{}", of.name)),
                of.description.clone().unwrap_or_default(),
            ),
            view::words(of.scope_type.as_str()).into(),
            "built in".to_owned().into(),
            String::new().into(),
        ],
        actions: Vec::new(),
    };
    let rows: Vec<Row> =
        found.roles.iter().map(custom).chain(found.default_roles.iter().flatten().map(default)).collect();
    let may_create = visit.is_owner().await;
    ListPage {
        shell: visit.shell("Roles").await?.live(""),
        lead: "Roles are given to people, teams and tokens.",
        action: may_create.then(|| ("Create role", visit.link("/roles/new"))),
        filters: Vec::new(),
        table: Table {
            columns: vec!["Name", "Scope", "Kind", "Changed"],
            rows,
            pager: None,
            empty: Empty { title: "No roles", text: "", command: String::new() },
        },
    }
    .answer()
}

async fn groups(visit: &OrganizationVisit<'_>, held: impl Fn(&str) -> bool) -> Result<Vec<Group>> {
    let groups = visit.calls().get::<authorization::ListGroups>((), &[]).await?;
    let group = |group: authorization::PermissionGroup| {
        let permissions = group.permissions.into_iter().map(|of| {
            let name = format!("{}.{}", group.name, of.action);
            Permission { is_held: held(&name), about: of.description, name }
        });
        let permissions: Vec<Permission> = permissions.collect();
        Group { is_held: permissions.iter().any(|it| it.is_held), name: group.name.clone(), permissions }
    };
    Ok(groups.into_iter().map(group).collect())
}

/// A role that is always there.
pub(crate) async fn show_default(visit: &OrganizationVisit<'_>, name: &str) -> Result {
    let query = [("includeDefaultRoles", "true"), ("limit", "1")];
    let found = visit.calls().get::<roles::List>(visit.here(), &query).await?;
    let of = found.default_roles.into_iter().flatten().find(|role| role.name == name);
    let of = of.ok_or_else(|| Problem::new(404, "There is no such role."))?;
    let page = RolePage {
        shell: visit.shell(view::words(&of.name)).await?.below("Roles", visit.link("/roles")),
        lead: of.description.unwrap_or_default(),
        problem: None,
        name: of.name,
        description: String::new(),
        scopes: Vec::new(),
        groups: groups(visit, |name| of.permissions.iter().any(|held| held == name)).await?,
        action: None,
        delete: None,
        submit: "",
        version: String::new(),
    };
    Answer::page(&page)
}

/// A custom role: the form that changes it.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, role_id: RoleId, problem: Option<Problem>) -> Result {
    let path = OfRole { organization_id: visit.organization_id, role_id };
    let read = visit.calls().get_versioned::<roles::Get>(path, &[]).await?;
    let (of, version) = (read.value, read.etag.unwrap_or_default());
    let href = visit.link(&format!("/roles/{role_id}"));
    let is_owner = visit.is_owner().await;
    let status = problem.as_ref().map_or(200, |problem| problem.status);
    let page = RolePage {
        shell: visit.shell(of.name.clone()).await?.below("Roles", visit.link("/roles")),
        lead: format!("A role of the {}.", view::words(of.scope_type.as_str()).to_lowercase()),
        problem,
        name: of.name,
        description: of.description.unwrap_or_default(),
        scopes: Vec::new(),
        groups: groups(visit, |name| of.permissions.iter().any(|held| held == name)).await?,
        action: is_owner.then(|| href.clone()),
        delete: is_owner.then(|| format!("{href}/delete")),
        submit: "Save the role",
        version,
    };
    Answer::with_status(status, &page)
}

/// The form that creates one.
pub(crate) async fn new(visit: &OrganizationVisit<'_>, problem: Option<Problem>) -> Result {
    let sent = visit.form();
    let status = problem.as_ref().map_or(200, |problem| problem.status);
    let page = RolePage {
        shell: visit.shell("Create a role").await?.below("Roles", visit.link("/roles")),
        lead: "Give it exactly the permissions that its holders need.".to_owned(),
        problem,
        name: sent.get("name").to_owned(),
        description: sent.get("description").to_owned(),
        scopes: vec!["DEPLOYMENT", "DAG"],
        groups: groups(visit, |name| sent.all("permissions").any(|held| held == name)).await?,
        action: Some(visit.link("/roles")),
        delete: None,
        submit: "Create role",
        version: String::new(),
    };
    Answer::with_status(status, &page)
}

/// Creates one.
pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let permissions: Vec<&str> = sent.all("permissions").collect();
    let body = json!({
        "name": sent.get("name").trim(),
        "description": sent.get("description").trim(),
        "scopeType": sent.get("scopeType"),
        "permissions": permissions,
    });
    match visit.calls().change::<roles::Create>(visit.here(), body, None).await {
        Ok(made) => Answer::redirect(visit.link(&format!("/roles/{}?done=created", made.value.id))),
        Err(problem) => new(visit, Some(problem)).await,
    }
}

/// Changes one.
pub(crate) async fn update(visit: &OrganizationVisit<'_>, role_id: RoleId) -> Result {
    let sent = visit.form();
    let path = OfRole { organization_id: visit.organization_id, role_id };
    let permissions: Vec<&str> = sent.all("permissions").collect();
    let body = json!({ "name": sent.get("name").trim(), "description": sent.get("description").trim(), "permissions": permissions });
    let version = sent.filled("version").map(str::to_owned);
    match visit.calls().change::<roles::Update>(path, body, version).await {
        Ok(_) => Answer::redirect(visit.link(&format!("/roles/{role_id}?done=saved"))),
        Err(problem) => show(visit, role_id, Some(problem)).await,
    }
}

/// Deletes one.
pub(crate) async fn delete(visit: &OrganizationVisit<'_>, role_id: RoleId) -> Result {
    let path = OfRole { organization_id: visit.organization_id, role_id };
    match visit.calls().act::<roles::Delete>(path, ()).await {
        Ok(_) => Answer::redirect(visit.link("/roles?done=deleted")),
        Err(problem) => show(visit, role_id, Some(problem)).await,
    }
}
