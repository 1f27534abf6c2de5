//! Teams, their members and their roles.

use podium_api::enums::OrganizationRole;
use podium_api::path::OfTeamMember;
use podium_api::subjects::SubjectRoles;
use podium_api::teams::{self as api, Team, TeamMembersPaginated, TeamsPaginated};
use podium_api::{Many, Nothing, One, TeamId, UserId};
use podium_db::{Conn, Tx};
use podium_domain::events::Resource;
use podium_domain::role_updates::{Change, SubjectKind};
use podium_domain::{Fields, Grant, Held, On, Refusal, Target, names, no_escalation, subject_roles};
use podium_store::teams::TeamRow;
use podium_store::{Paging, Scope, Stamp, grants, organizations, team_members, teams, users};

use crate::cx::{Call, Cx};
use crate::error::{OrConflict, Result};
use crate::role_holders;

const MAX_NAME: usize = 128;

pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<TeamsPaginated>> {
    let api::ListTeams { names, workspace_id, deployment_id, page } = call.query;
    let name_keys: Vec<String> = names.iter().map(|name| names::fold(name)).collect();
    let read = move |cx: &Cx<Scope>, conn: &Conn, paging: &Paging| {
        let to = (workspace_id.as_ref(), deployment_id.as_ref());
        let Some(narrowed) = role_holders::narrowed(cx, conn, to, (None, &[]))? else {
            return Ok((Vec::new(), 0));
        };
        let listed = teams::ListFilter {
            name_keys: &name_keys,
            workspace_id: narrowed.workspace_id,
            deployment_id: narrowed.deployment_id,
            user_id: None,
        };
        let (teams, total) = teams::list(conn, cx.scope(), &listed, paging)?;
        Ok((role_holders::show_all(cx, conn, teams)?, total))
    };
    cx.list(&page, read, |team| team).await
}

pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<Team>> {
    let body = call.body;
    let organization_role = body.organization_role.unwrap_or(OrganizationRole::Member);
    let grant = Grant { on: On::Organization, held: Held::Organization(organization_role) };
    no_escalation::may_give(cx.grants(), &grant.held, &grant.on)?;
    let members = body.member_ids.unwrap_or_default();
    let id = cx.new_id();
    let stamp = Stamp::new(cx.profile(), cx.now());
    // A team that nobody is in changes nobody's rights.
    let gives_rights = !members.is_empty();
    let create = move |cx: &Cx<Scope>, tx: &Tx| {
        if gives_rights {
            cx.rights_change(tx)?;
        }
        if is_scim_enabled(tx, cx.scope())? {
            let message = "SCIM is on, so the identity provider creates teams: create the group there.";
            return Err(Refusal::invalid(message).into());
        }
        let mut fields = Fields::new();
        let name = fields.take(names::name("name", &body.name, MAX_NAME));
        check_members(tx, cx.scope(), &members, &mut fields)?;
        let name = fields.finish(name)?;
        let team = TeamRow {
            id,
            name: name.text,
            description: body.description.clone().unwrap_or_default(),
            organization_id: cx.organization_id(),
            is_idp_managed: false,
            stamp: stamp.clone(),
        };
        teams::insert(tx, cx.scope(), &team, &name.key).or_conflict(|| taken(&team.name))?;
        grants::insert(tx, cx.scope(), grants::Subject::Team, id.into(), &grant)?;
        for user_id in &members {
            team_members::add(tx, cx.scope(), id, *user_id, cx.now())?;
        }
        cx.changed(tx, teams::KIND, stamp.version, about(&team))?;
        let body = role_holders::show_holding(cx, team, std::slice::from_ref(&grant));
        Ok(One { version: stamp.version, body })
    };
    if gives_rights { cx.change_rights(create).await } else { cx.mutate(create).await }
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<Team>> {
    cx.read(move |cx, conn| {
        let team = find(conn, cx.scope(), call.path.team_id)?;
        Ok(One { version: team.stamp.version, body: role_holders::show(cx, conn, team)? })
    })
    .await
}

/// Changes a team's name and description.
pub async fn update(cx: Cx<Scope>, call: Call<api::Update>) -> Result<One<Team>> {
    let body = call.body;
    let name = names::name("name", &body.name, MAX_NAME)?;
    cx.mutate(move |cx, tx| {
        let stored = find(tx, cx.scope(), call.path.team_id)?;
        cx.expect_version(stored.stamp.version)?;
        let description = body.description.clone().unwrap_or(stored.description);
        let team = advance(cx, tx, TeamRow { name: name.text.clone(), description, ..stored })?;
        Ok(One { version: team.stamp.version, body: role_holders::show(cx, tx, team)? })
    })
    .await
}

/// Deletes a team, with its roles.
pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    let id = call.path.team_id;
    cx.change_rights(move |cx, tx| {
        cx.rights_change(tx)?;
        let team = find(tx, cx.scope(), id)?;
        let version = team.stamp.version;
        cx.expect_version(version)?;
        grants::delete_subject(tx, cx.scope(), id.into())?;
        team_members::clear(tx, cx.scope(), id)?;
        teams::delete(tx, cx.scope(), id, version)?;
        role_holders::keeps_an_owner(cx, tx)?;
        cx.changed(tx, teams::KIND, version + 1, about(&team))?;
        Ok(Nothing)
    })
    .await
}

pub async fn list_members(cx: Cx<Scope>, call: Call<api::ListMembers>) -> Result<Many<TeamMembersPaginated>> {
    let read = move |cx: &Cx<Scope>, conn: &Conn, paging: &Paging| {
        let team = find(conn, cx.scope(), call.path.team_id)?;
        Ok(team_members::list(conn, cx.scope(), team.id, paging)?)
    };
    cx.list(&call.query.page, read, |member| member).await
}

/// Adds members to a team; those who are members already stay.
pub async fn add_members(cx: Cx<Scope>, call: Call<api::AddMembers>) -> Result<Nothing> {
    let members = call.body.member_ids;
    cx.change_rights(move |cx, tx| {
        cx.rights_change(tx)?;
        let team = find(tx, cx.scope(), call.path.team_id)?;
        cx.expect_version(team.stamp.version)?;
        takes_members_by_hand(tx, cx.scope(), &team)?;
        let mut fields = Fields::new();
        check_members(tx, cx.scope(), &members, &mut fields)?;
        fields.into_result()?;
        let mut is_changed = false;
        for user_id in &members {
            is_changed |= team_members::add(tx, cx.scope(), team.id, *user_id, cx.now())?;
        }
        if is_changed {
            advance(cx, tx, team)?;
        }
        Ok(Nothing)
    })
    .await
}

pub async fn remove_member(cx: Cx<Scope>, call: Call<api::RemoveMember>) -> Result<Nothing> {
    let OfTeamMember { team_id, member_id, .. } = call.path;
    cx.change_rights(move |cx, tx| {
        cx.rights_change(tx)?;
        let team = find(tx, cx.scope(), team_id)?;
        if !team_members::remove(tx, cx.scope(), team_id, member_id)? {
            return Err(Refusal::not_found("member of this team").into());
        }
        cx.expect_version(team.stamp.version)?;
        takes_members_by_hand(tx, cx.scope(), &team)?;
        role_holders::keeps_an_owner(cx, tx)?;
        advance(cx, tx, team)?;
        Ok(Nothing)
    })
    .await
}

pub async fn update_roles(cx: Cx<Scope>, call: Call<api::UpdateRoles>) -> Result<One<SubjectRoles>> {
    let id = call.path.team_id;
    let change = Change::from(call.body);
    let may = role_holders::may_see_reply(SubjectKind::Team, id.into(), &change);
    cx.change_rights_checking_reply(may, move |cx, tx| {
        cx.rights_change(tx)?;
        let team = find(tx, cx.scope(), id)?;
        cx.expect_version(team.stamp.version)?;
        let current = grants::of(tx, cx.scope(), id.into())?;
        let after = role_holders::changed(cx, tx, SubjectKind::Team, &current, &change)?;
        let mut version = team.stamp.version;
        if !role_holders::are_same(&current, &after) {
            grants::replace(tx, cx.scope(), grants::Subject::Team, id.into(), &after)?;
            role_holders::keeps_an_owner(cx, tx)?;
            version = advance(cx, tx, team)?.stamp.version;
        }
        Ok(One { version, body: subject_roles::managed_by(cx.grants(), SubjectKind::Team, &after) })
    })
    .await
}

fn find(conn: &Conn, scope: &Scope, id: TeamId) -> Result<TeamRow> {
    teams::get(conn, scope, id)?.ok_or_else(|| Refusal::not_found("team").into())
}

/// Writes a team under its next version, after a change of its settings, its members or its roles.
fn advance(cx: &Cx<Scope>, tx: &Tx, team: TeamRow) -> Result<TeamRow> {
    let team = TeamRow { stamp: team.stamp.changed(cx.profile(), cx.now()), ..team };
    teams::update(tx, cx.scope(), &team, &names::fold(&team.name)).or_conflict(|| taken(&team.name))?;
    cx.changed(tx, teams::KIND, team.stamp.version, about(&team))?;
    Ok(team)
}

/// A team, as an event names it.
fn about(team: &TeamRow) -> Resource<'_> {
    Resource::new(team.id.id(), Target::Organization).named(&team.name)
}

fn taken(name: &str) -> String {
    format!("A team named `{name}` already exists: choose another name.")
}

/// Members are users of the organization; one who is listed twice is meant once.
fn check_members(conn: &Conn, scope: &Scope, ids: &[UserId], fields: &mut Fields) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let found = users::members(conn, scope, ids)?;
    for (index, _) in ids.iter().enumerate().filter(|(_, id)| !found.contains(id)) {
        fields.push(
            format!("memberIds[{index}]"),
            "notFound",
            "is not a user of the organization: invite the user first",
        );
    }
    Ok(())
}

fn takes_members_by_hand(conn: &Conn, scope: &Scope, team: &TeamRow) -> Result<()> {
    if team.is_idp_managed && is_scim_enabled(conn, scope)? {
        let message = "The identity provider manages the members of this team: change the group there.";
        return Err(Refusal::invalid(message).into());
    }
    Ok(())
}

fn is_scim_enabled(conn: &Conn, scope: &Scope) -> Result<bool> {
    Ok(organizations::is_scim_enabled(conn, scope)?.unwrap_or_default())
}
