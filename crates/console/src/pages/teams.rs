//! Teams and their members.

use askama::Template;
use podium_api::path::{OfTeam, OfTeamMember};
use podium_api::{TeamId, UserId, teams, users};
use serde_json::json;

use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::{Field, Form, FormPage};
use crate::list::{Cell, Empty, ListPage, Pager, Row, Table};
use crate::shell::Shell;
use crate::view;
use crate::visit::OrganizationVisit;

#[derive(Template)]
#[template(path = "team.html")]
struct TeamPage {
    shell: Shell,
    lead: String,
    members: Vec<(String, String, String)>,
    candidates: Vec<(String, String)>,
    href: String,
    may_update: bool,
    may_delete: bool,
}

/// The teams.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let found = visit.list::<teams::List>(visit.here(), &[("sorts", "name:asc")]).await?;
    let row = |of: &teams::Team| Row {
        cells: vec![
            Cell::named(
                of.name.clone(),
                visit.link(&format!("/teams/{}", of.id)),
                of.description.clone().unwrap_or_default(),
            ),
            view::words(of.organization_role.as_str()).into(),
            view::subject(of.updated_by.as_ref()).into(),
            view::time(of.updated_at, visit.visit.now).into(),
        ],
        actions: Vec::new(),
    };
    let rows: Vec<Row> = found.teams.iter().map(row).collect();
    let may_create = visit.is_owner().await;
    ListPage {
        shell: visit.shell("Teams").await?.live(""),
        lead: "A team holds roles for all of its members.",
        action: may_create.then(|| ("Create team", visit.link("/teams/new"))),
        filters: Vec::new(),
        table: Table {
            columns: vec!["Name", "Organization role", "Changed by", "Changed"],
            pager: Pager::new(visit, rows.len(), found.total_count),
            rows,
            empty: Empty {
                title: "No teams",
                text: "Give a role to a team once instead of to each person.",
                command: String::new(),
            },
        },
    }
    .answer()
}

/// The form that creates one.
pub(crate) async fn new(visit: &OrganizationVisit<'_>, problem: Option<Problem>) -> Result {
    let form = Form {
        action: visit.link("/teams"),
        fields: vec![Field::text("name", "Name").required(), Field::text("description", "Description")],
        submit: "Create team".to_owned(),
        cancel: visit.link("/teams"),
        ..Form::default()
    };
    let form = form.after(visit.form(), problem);
    let shell = visit.shell("Create a team").await?.below("Teams", visit.link("/teams"));
    FormPage { shell, lead: String::new(), form }.answer()
}

/// Creates one.
pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let body = json!({ "name": sent.get("name").trim(), "description": sent.get("description").trim() });
    match visit.calls().change::<teams::Create>(visit.here(), body, None).await {
        Ok(made) => Answer::redirect(visit.link(&format!("/teams/{}?done=created", made.value.id))),
        Err(problem) => new(visit, Some(problem)).await,
    }
}

/// A team and its members.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, team_id: TeamId) -> Result {
    let path = OfTeam { organization_id: visit.organization_id, team_id };
    let calls = visit.calls();
    let of = calls.get::<teams::Get>(path, &[]).await?;
    let members = calls
        .get::<teams::ListMembers>(path, &[("limit", "1000"), ("sorts", "username:asc")])
        .await?
        .team_members;
    let may_update = calls.may::<teams::Update>(path).await && !of.is_idp_managed;
    let mut candidates = Vec::new();
    if may_update && calls.may::<users::List>(visit.here()).await {
        let all = calls
            .get::<users::List>(visit.here(), &[("limit", "1000"), ("sorts", "username:asc")])
            .await?
            .users;
        let is_new = |user: &users::User| members.iter().all(|member| member.user_id != user.id);
        candidates.extend(all.into_iter().filter(is_new).map(|user| (user.id.to_string(), user.username)));
    }
    let role = format!("Organization role: {}.", view::words(of.organization_role.as_str()));
    let page = TeamPage {
        shell: visit.shell(of.name).await?.below("Teams", visit.link("/teams")).live(""),
        lead: of
            .description
            .filter(|text| !text.is_empty())
            .map_or(role.clone(), |text| format!("{text} {role}")),
        members: members
            .into_iter()
            .map(|member| (member.user_id.to_string(), member.username, member.full_name.unwrap_or_default()))
            .collect(),
        candidates,
        href: visit.link(&format!("/teams/{team_id}")),
        may_update,
        may_delete: calls.may::<teams::Delete>(path).await,
    };
    Answer::page(&page)
}

/// Adds a member.
pub(crate) async fn add(visit: &OrganizationVisit<'_>, team_id: TeamId) -> Result {
    let path = OfTeam { organization_id: visit.organization_id, team_id };
    visit
        .calls()
        .act::<teams::AddMembers>(path, json!({ "memberIds": [visit.form().get("member")] }))
        .await?;
    Answer::redirect(visit.link(&format!("/teams/{team_id}?done=saved")))
}

/// Removes a member.
pub(crate) async fn remove(visit: &OrganizationVisit<'_>, team_id: TeamId) -> Result {
    let member_id: UserId = crate::visit::id(visit.form().get("member"))?;
    let path = OfTeamMember { organization_id: visit.organization_id, team_id, member_id };
    visit.calls().act::<teams::RemoveMember>(path, ()).await?;
    Answer::redirect(visit.link(&format!("/teams/{team_id}?done=saved")))
}

/// Deletes a team.
pub(crate) async fn delete(visit: &OrganizationVisit<'_>, team_id: TeamId) -> Result {
    let path = OfTeam { organization_id: visit.organization_id, team_id };
    visit.calls().act::<teams::Delete>(path, ()).await?;
    Answer::redirect(visit.link("/teams?done=deleted"))
}
