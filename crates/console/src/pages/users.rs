//! Users and invites.

use podium_api::enums::{OrganizationRole, UserStatus};
use podium_api::invites::{self, CreateUserInviteRequest};
use podium_api::page::{MAX_LIMIT, Page};
use podium_api::users::{self, ListUsers, UpdateUserRolesRequest, User};
use podium_api::{Patch, UserId};

use super::{
    Answer, Cell, Choice, Field, FieldKind, Form, FormPage, Html, ListPage, OrganizationVisit, Result, Row,
    Shell, Table, Template, Tone, view,
};

#[derive(Template)]
#[template(path = "invited.html")]
struct InvitedPage {
    shell: Shell,
    email: String,
    link: Option<String>,
    ends: Html,
    back: String,
}

pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = ListUsers { page: visit.page().sorted_by("username"), ..ListUsers::default() };
    let found = visit.calls().find::<users::List>(visit.here(), query).await?;
    let columns = ["User", "State", "Organization role", "Workspaces", "Joined"];
    let rows = found.users.iter().map(|of| row(visit, of));
    let table = Table::paged(visit, columns, rows, found.total_count)
        .or("No users", "There are no users that you can see.");
    let lead = "Everybody who can sign in, and what they may do in the organization.";
    ListPage::new(visit.shell("Users").await?.live(""), lead, table)
        .offer(visit.is_owner().await, "Invite somebody", visit.link("/users/invite"))
        .answer()
}

/// Every user, as far as one page of the API has them.
pub(crate) async fn everybody(visit: &OrganizationVisit<'_>) -> Result<Vec<User>> {
    let query = ListUsers { page: Page::first(MAX_LIMIT).sorted_by("username"), ..ListUsers::default() };
    Ok(visit.calls().find::<users::List>(visit.here(), query).await?.users)
}

fn row(visit: &OrganizationVisit<'_>, of: &User) -> Row {
    let (tone, word) = match of.status {
        UserStatus::Active => (Tone::Good, "Active"),
        _ => (Tone::Unknown, "Invited"),
    };
    let role = of.organization_role.map(|role| view::words(role.as_str())).unwrap_or_default();
    let count = of.workspace_roles.as_ref().map_or(0, Vec::len);
    Row::of(vec![
        Cell::named(of.username.clone(), visit.link(&format!("/users/{}", of.id)), of.full_name.clone()),
        view::status(tone, word).into(),
        role.into(),
        if count == 0 { String::new() } else { count.to_string() }.into(),
        view::time(of.created_at, visit.visit.now).into(),
    ])
}

fn role_field() -> Field {
    let roles = OrganizationRole::ALL.iter().map(|role| role.as_str());
    Field::choice("role", "Organization role", Choice::words(roles))
}

/// The form that invites somebody.
pub(crate) async fn ask_whom(visit: &OrganizationVisit<'_>) -> Result {
    let fields = vec![
        Field::text("inviteeEmail", "E-mail address").of(FieldKind::Email).required(),
        role_field()
            .value("ORGANIZATION_MEMBER")
            .hint("A member sees nothing until a team, a workspace or a deployment gives them a role."),
    ];
    let form = Form::new(visit.link("/users/invite"), "Send the invite", fields);
    visit.ask("Invite somebody", ("Users", "/users"), "", form).await
}

/// Invites somebody, and shows the link if the person may hand it out.
pub(crate) async fn invite(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let email = sent.text("inviteeEmail");
    let body = CreateUserInviteRequest { invitee_email: email.clone(), role: sent.required("role")? };
    let made = visit.change::<invites::Create>(visit.here(), body).await?;
    let link = visit.calls().act::<invites::CreateLink>(visit.at(made.invite_id)).await.ok();
    let page = InvitedPage {
        shell: visit.shell("Invited").await?.below("Users", visit.link("/users")),
        email,
        link: link.map(|link| link.url),
        ends: view::time(made.expires_at, visit.visit.now),
        back: visit.link("/users"),
    };
    Answer::page(&page)
}

/// A user, and the form that changes their organization role.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, user_id: UserId) -> Result {
    let (of, version) = visit.calls().get_versioned::<users::Get>(visit.at(user_id)).await?;
    let role = of.organization_role.map(OrganizationRole::as_str).unwrap_or_default();
    let may_change = visit.is_owner().await;
    let fields = vec![role_field().value(role), Field::hidden("version", version)];
    let form = Form::new(visit.link(&format!("/users/{user_id}")), "Save the role", fields);
    let form = form.or(visit.link("/users")).after(visit);
    let shell = visit.shell(of.username.clone()).await?.below("Users", visit.link("/users"));
    let spaces = of.workspace_roles.iter().flatten().map(|role| view::words(role.role.as_str()));
    let roles: Vec<String> =
        spaces.chain(of.deployment_roles.iter().flatten().map(|role| role.role.clone())).collect();
    let lead = if roles.is_empty() {
        of.full_name
    } else {
        format!("{} Other roles: {}.", of.full_name, roles.join(", "))
    };
    if may_change {
        return FormPage { shell, lead, form }.answer();
    }
    let row = Row::of(vec!["Organization role".into(), view::words(role).into()]);
    ListPage::new(shell, "", Table::whole(["", ""], [row])).answer()
}

pub(crate) async fn update(visit: &OrganizationVisit<'_>, user_id: UserId) -> Result {
    let organization_role = Patch::Set(visit.form().text("role"));
    let body = UpdateUserRolesRequest { organization_role, ..UpdateUserRolesRequest::default() };
    visit.change::<users::UpdateRoles>(visit.at(user_id), body).await?;
    visit.go("/users?done=saved")
}
