//! Users and invites.

use askama::Template;
use podium_api::UserId;
use podium_api::enums::{OrganizationRole, UserStatus};
use podium_api::invites;
use podium_api::path::{OfInvite, OfUser};
use podium_api::users::{self, User};
use serde_json::json;

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Field, FieldKind, Form, FormPage};
use crate::list::{Cell, Empty, ListPage, Pager, Row, Table};
use crate::shell::Shell;
use crate::view::{self, Html, Tone};
use crate::visit::OrganizationVisit;

#[derive(Template)]
#[template(path = "invited.html")]
struct InvitedPage {
    shell: Shell,
    email: String,
    link: Option<String>,
    ends: Html,
    back: String,
}

/// The users.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let found = visit.list::<users::List>(visit.here(), &[("sorts", "username:asc")]).await?;
    let rows: Vec<Row> = found.users.iter().map(|of| row(visit, of)).collect();
    let may_invite = visit.is_owner().await;
    ListPage {
        shell: visit.shell("Users").await?.live(""),
        lead: "Everybody who can sign in, and what they may do in the organization.",
        action: may_invite.then(|| ("Invite somebody", visit.link("/users/invite"))),
        filters: Vec::new(),
        table: Table {
            columns: vec!["User", "State", "Organization role", "Workspaces", "Joined"],
            pager: Pager::new(visit, rows.len(), found.total_count),
            rows,
            empty: Empty {
                title: "No users",
                text: "There are no users that you can see.",
                command: String::new(),
            },
        },
    }
    .answer()
}

fn row(visit: &OrganizationVisit<'_>, of: &User) -> Row {
    let (tone, word) = match of.status {
        UserStatus::Active => (Tone::Good, "Active"),
        _ => (Tone::Unknown, "Invited"),
    };
    let role = of.organization_role.map(|role| view::words(role.as_str())).unwrap_or_default();
    let count = of.workspace_roles.as_ref().map_or(0, Vec::len);
    Row {
        cells: vec![
            Cell::named(of.username.clone(), visit.link(&format!("/users/{}", of.id)), of.full_name.clone()),
            view::status(tone, word).into(),
            role.into(),
            if count == 0 { String::new() } else { count.to_string() }.into(),
            view::time(of.created_at, visit.visit.now).into(),
        ],
        actions: Vec::new(),
    }
}

fn role_field() -> Field {
    let roles =
        OrganizationRole::ALL.iter().map(|role| (role.as_str().to_owned(), view::words(role.as_str())));
    Field::choice("role", "Organization role", roles)
}

/// The form that invites somebody.
pub(crate) async fn ask_whom(visit: &OrganizationVisit<'_>, problem: Option<Problem>) -> Result {
    let form = Form {
        action: visit.link("/users/invite"),
        fields: vec![
            Field::text("inviteeEmail", "E-mail address").of(FieldKind::Email).required(),
            role_field()
                .value("ORGANIZATION_MEMBER")
                .hint("A member sees nothing until a team, a workspace or a deployment gives them a role."),
        ],
        submit: "Send the invite".to_owned(),
        cancel: visit.link("/users"),
        ..Form::default()
    };
    let form = form.after(visit.form(), problem);
    let shell = visit.shell("Invite somebody").await?.below("Users", visit.link("/users"));
    FormPage { shell, lead: String::new(), form }.answer()
}

/// Invites somebody, and shows the link if the person may hand it out.
pub(crate) async fn invite(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let body = json!({ "inviteeEmail": sent.get("inviteeEmail").trim(), "role": sent.get("role") });
    let made = match visit.calls().change::<invites::Create>(visit.here(), body, None).await {
        Ok(made) => made.value,
        Err(problem) => return ask_whom(visit, Some(problem)).await,
    };
    let path = OfInvite { organization_id: visit.organization_id, invite_id: made.invite_id };
    let link = visit.calls().change::<invites::CreateLink>(path, json!({}), None).await.ok();
    let page = InvitedPage {
        shell: visit.shell("Invited").await?.below("Users", visit.link("/users")),
        email: sent.get("inviteeEmail").trim().to_owned(),
        link: link.map(|link| link.value.url),
        ends: view::time(made.expires_at, visit.visit.now),
        back: visit.link("/users"),
    };
    Answer::page(&page)
}

/// A user, and the form that changes their organization role.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, user_id: UserId, problem: Option<Problem>) -> Result {
    let path = OfUser { organization_id: visit.organization_id, user_id };
    let read = visit.calls().get_versioned::<users::Get>(path, &[]).await?;
    let of = read.value;
    let role = of.organization_role.map(OrganizationRole::as_str).unwrap_or_default();
    let may_change = visit.is_owner().await;
    let form = Form {
        action: visit.link(&format!("/users/{user_id}")),
        fields: vec![role_field().value(role), Field::hidden("version", read.etag.unwrap_or_default())],
        submit: "Save the role".to_owned(),
        cancel: visit.link("/users"),
        ..Form::default()
    };
    let form = form.after(visit.form(), problem);
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
    let row = Row {
        cells: vec![Cell::Text("Organization role".to_owned()), view::words(role).into()],
        actions: Vec::new(),
    };
    let table = Table { columns: vec!["", ""], rows: vec![row], ..Table::default() };
    ListPage { shell, lead: "", action: None, filters: Vec::new(), table }.answer()
}

/// Changes the organization role of a user.
pub(crate) async fn update(visit: &OrganizationVisit<'_>, user_id: UserId) -> Result {
    let path = OfUser { organization_id: visit.organization_id, user_id };
    let version = visit.form().filled("version").map(str::to_owned);
    let body = json!({ "organizationRole": visit.form().get("role") });
    match visit.calls().change::<users::UpdateRoles>(path, body, version).await {
        Ok(_) => Answer::redirect(visit.link("/users?done=saved")),
        Err(problem) => show(visit, user_id, Some(problem)).await,
    }
}
