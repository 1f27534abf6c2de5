//! Roles and what they permit.

use podium_api::enums::CustomRoleScope;
use podium_api::page::{MAX_LIMIT, Page};
use podium_api::roles::{
    self, CreateCustomRoleRequest, DefaultRole, ListRoles, Role, RolesPaginated, UpdateCustomRoleRequest,
};
use podium_api::{RoleId, authorization};

use super::{Answer, Cell, ListPage, OrganizationVisit, Problem, Result, Row, Shell, Table, Template, view};

#[derive(Default, Template)]
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
    version: String,
}

/// Permissions on one kind of thing.
struct Group {
    name: String,
    is_held: bool,
    permissions: Vec<Permission>,
}

struct Permission {
    name: String,
    about: String,
    is_held: bool,
}

/// Custom roles, and those that are always there.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let found = read(visit, Page::first(MAX_LIMIT).sorted_by("name")).await?;
    let named = |name: &str, href: &str, of: &Option<String>| {
        Cell::named(name, visit.link(&format!("/roles/{href}")), of.clone().unwrap_or_default())
    };
    let custom = |of: &Role| {
        Row::of(vec![
            named(&of.name, &of.id.to_string(), &of.description),
            view::words(of.scope_type.as_str()).into(),
            "custom".into(),
            view::time(of.updated_at, visit.visit.now).into(),
        ])
    };
    let default = |of: &DefaultRole| {
        Row::of(vec![
            named(&view::words(&of.name), &format!("default/{}", of.name), &of.description),
            view::words(of.scope_type.as_str()).into(),
            "built in".into(),
            "".into(),
        ])
    };
    let rows = found.roles.iter().map(custom).chain(found.default_roles.iter().flatten().map(default));
    let table = Table::whole(["Name", "Scope", "Kind", "Changed"], rows).or("No roles", "");
    let lead = "Roles are given to people, teams and tokens.";
    ListPage::new(visit.shell("Roles").await?.live(""), lead, table)
        .offer(visit.is_owner().await, "Create role", visit.link("/roles/new"))
        .answer()
}

/// The custom roles of a page, and all that are built in.
async fn read(visit: &OrganizationVisit<'_>, page: Page<ListRoles>) -> Result<RolesPaginated> {
    let query = ListRoles { include_default_roles: Some(true), page, ..ListRoles::default() };
    visit.calls().find::<roles::List>(visit.here(), query).await
}

async fn groups(visit: &OrganizationVisit<'_>, held: impl Fn(&str) -> bool) -> Result<Vec<Group>> {
    let groups = visit.calls().get::<authorization::ListGroups>(()).await?;
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

pub(crate) async fn show_default(visit: &OrganizationVisit<'_>, name: &str) -> Result {
    let found = read(visit, Page::first(1)).await?;
    let of = found.default_roles.into_iter().flatten().find(|role| role.name == name);
    let of = of.ok_or_else(|| Problem::new(404, "There is no such role."))?;
    let page = RolePage {
        shell: visit.shell(view::words(&of.name)).await?.below("Roles", visit.link("/roles")),
        lead: of.description.unwrap_or_default(),
        name: of.name,
        groups: groups(visit, |name| of.permissions.iter().any(|held| held == name)).await?,
        ..RolePage::default()
    };
    Answer::page(&page)
}

/// A custom role: the form that changes it.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, role_id: RoleId) -> Result {
    let (of, version) = visit.calls().get_versioned::<roles::Get>(visit.at(role_id)).await?;
    let href = visit.link(&format!("/roles/{role_id}"));
    let is_owner = visit.is_owner().await;
    let page = RolePage {
        shell: visit.shell(of.name.clone()).await?.below("Roles", visit.link("/roles")),
        lead: format!("A role of the {}.", view::words(of.scope_type.as_str()).to_lowercase()),
        problem: visit.problem.clone(),
        name: of.name,
        description: of.description.unwrap_or_default(),
        groups: groups(visit, |name| of.permissions.iter().any(|held| held == name)).await?,
        delete: is_owner.then(|| format!("{href}/delete")),
        action: is_owner.then_some(href),
        submit: "Save the role",
        version,
        ..RolePage::default()
    };
    Answer::page(&page)
}

pub(crate) async fn new(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let page = RolePage {
        shell: visit.shell("Create a role").await?.below("Roles", visit.link("/roles")),
        lead: "Give it exactly the permissions that its holders need.".to_owned(),
        problem: visit.problem.clone(),
        name: sent.get("name").to_owned(),
        description: sent.get("description").to_owned(),
        scopes: CustomRoleScope::ALL.iter().map(|scope| scope.as_str()).collect(),
        groups: groups(visit, |name| sent.all("permissions").any(|held| held == name)).await?,
        action: Some(visit.link("/roles")),
        submit: "Create role",
        ..RolePage::default()
    };
    Answer::page(&page)
}

pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let body = CreateCustomRoleRequest {
        name: sent.text("name"),
        description: Some(sent.text("description")),
        scope_type: sent.required("scopeType")?,
        permissions: sent.all("permissions").map(str::to_owned).collect(),
        restricted_workspace_ids: None,
    };
    let made = visit.change::<roles::Create>(visit.here(), body).await?;
    visit.go(format!("/roles/{}?done=created", made.id))
}

pub(crate) async fn update(visit: &OrganizationVisit<'_>, role_id: RoleId) -> Result {
    let sent = visit.form();
    let body = UpdateCustomRoleRequest {
        name: sent.text("name"),
        description: Some(sent.text("description")),
        permissions: sent.all("permissions").map(str::to_owned).collect(),
        restricted_workspace_ids: None,
    };
    visit.change::<roles::Update>(visit.at(role_id), body).await?;
    visit.go(format!("/roles/{role_id}?done=saved"))
}
