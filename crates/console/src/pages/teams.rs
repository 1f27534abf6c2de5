//! Teams and their members.

use podium_api::page::{MAX_LIMIT, Page};
use podium_api::path::OfTeam;
use podium_api::teams::{self, AddTeamMembersRequest, CreateTeamRequest, ListTeamMembers, ListTeams};
use podium_api::{TeamId, UserId, users};

use super::{
    Answer, Cell, Field, Form, ListPage, OrganizationVisit, Result, Row, Shell, Table, Template, view,
};
use crate::pages::users::everybody;

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

pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let query = ListTeams { page: visit.page().sorted_by("name"), ..ListTeams::default() };
    let found = visit.calls().find::<teams::List>(visit.here(), query).await?;
    let row = |of: &teams::Team| {
        let href = visit.link(&format!("/teams/{}", of.id));
        Row::of(vec![
            Cell::named(of.name.clone(), href, of.description.clone().unwrap_or_default()),
            view::words(of.organization_role.as_str()).into(),
            view::subject(of.updated_by.as_ref()).into(),
            view::time(of.updated_at, visit.visit.now).into(),
        ])
    };
    let columns = ["Name", "Organization role", "Changed by", "Changed"];
    let table = Table::paged(visit, columns, found.teams.iter().map(row), found.total_count)
        .or("No teams", "Give a role to a team once instead of to each person.");
    let lead = "A team holds roles for all of its members.";
    ListPage::new(visit.shell("Teams").await?.live(""), lead, table)
        .offer(visit.is_owner().await, "Create team", visit.link("/teams/new"))
        .answer()
}

pub(crate) async fn new(visit: &OrganizationVisit<'_>) -> Result {
    let fields = vec![Field::text("name", "Name").required(), Field::text("description", "Description")];
    let form = Form::new(visit.link("/teams"), "Create team", fields);
    visit.ask("Create a team", ("Teams", "/teams"), "", form).await
}

pub(crate) async fn create(visit: &OrganizationVisit<'_>) -> Result {
    let sent = visit.form();
    let body = CreateTeamRequest {
        name: sent.text("name"),
        description: Some(sent.text("description")),
        member_ids: None,
        organization_role: None,
    };
    let made = visit.change::<teams::Create>(visit.here(), body).await?;
    visit.go(format!("/teams/{}?done=created", made.id))
}

pub(crate) async fn show(visit: &OrganizationVisit<'_>, team_id: TeamId) -> Result {
    let (calls, path) = (visit.calls(), visit.at::<_, OfTeam>(team_id));
    let of = calls.get::<teams::Get>(path).await?;
    let query = ListTeamMembers { page: Page::first(MAX_LIMIT).sorted_by("username") };
    let members = calls.find::<teams::ListMembers>(path, query).await?.team_members;
    let may_update = calls.may::<teams::Update>(path).await && !of.is_idp_managed;
    let mut candidates = Vec::new();
    if may_update && calls.may::<users::List>(visit.here()).await {
        let is_new = |user: &users::User| members.iter().all(|member| member.user_id != user.id);
        let others = everybody(visit).await?.into_iter().filter(is_new);
        candidates.extend(others.map(|user| (user.id.to_string(), user.username)));
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

pub(crate) async fn add(visit: &OrganizationVisit<'_>, team_id: TeamId) -> Result {
    let body = AddTeamMembersRequest { member_ids: vec![visit.form().required("member")?] };
    visit.calls().change::<teams::AddMembers>(visit.at(team_id), body, None).await?;
    visit.go(format!("/teams/{team_id}?done=saved"))
}

pub(crate) async fn remove(visit: &OrganizationVisit<'_>, team_id: TeamId) -> Result {
    let member_id: UserId = crate::visit::id(visit.form().get("member"))?;
    visit.calls().act::<teams::RemoveMember>((visit.organization_id, team_id, member_id).into()).await?;
    visit.go(format!("/teams/{team_id}?done=saved"))
}
