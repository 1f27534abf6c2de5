//! Users: those of an organization, and the caller itself.

use std::collections::BTreeSet;

use podium_api::enums::{EventType, UserStatus, WorkspaceRoleName};
use podium_api::subjects::SubjectRoles;
use podium_api::teams::Team;
use podium_api::users::{
    self as api, SelfUser, SelfUserInvite, SelfUserRole, SelfUserRoleScope, User, UserTeamMembership,
    UserTeamsPaginated, UsersPaginated,
};
use podium_api::{Many, One, OrganizationId, UserId};
use podium_db::{Conn, Tx};
use podium_domain::events::Resource;
use podium_domain::role_updates::{Change, SubjectKind};
use podium_domain::{Grant, Held, On, Refusal, Target, subject_roles};
use podium_store::invites::InviteRow;
use podium_store::users::UserRow;
use podium_store::{Paging, Scope, grants, invites, team_members, teams, users};

use crate::cx::{Call, Cx};
use crate::error::Result;
use crate::{own, role_holders, sessions};

pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<UsersPaginated>> {
    let api::ListUsers { workspace_id, deployment_id, dag_id, dag_tags, page } = call.query;
    let read = move |cx: &Cx<Scope>, conn: &Conn, paging: &Paging| {
        let to = (workspace_id.as_ref(), deployment_id.as_ref());
        let dags = (dag_id.as_deref(), dag_tags.as_slice());
        let Some(narrowed) = role_holders::narrowed(cx, conn, to, dags)? else { return Ok((Vec::new(), 0)) };
        let listed = users::ListFilter {
            workspace_id: narrowed.workspace_id,
            deployment_id: narrowed.deployment_id,
            dags: narrowed.dags.as_deref(),
            dag_tags: narrowed.dag_tags.as_deref(),
        };
        let (users, total) = users::list(conn, cx.scope(), &listed, paging)?;
        Ok((role_holders::show_all(cx, conn, users)?, total))
    };
    cx.list(&page, read, |user| user).await
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<User>> {
    cx.read(move |cx, conn| {
        let user = find(conn, cx.scope(), call.path.user_id)?;
        Ok(One { version: user.version, body: role_holders::show(cx, conn, user)? })
    })
    .await
}

/// Replaces a user's roles, or makes the user leave.
pub async fn update_roles(cx: Cx<Scope>, call: Call<api::UpdateRoles>) -> Result<One<SubjectRoles>> {
    let id = call.path.user_id;
    let change = Change::from(call.body);
    let may = role_holders::may_see_reply(SubjectKind::User, id.into(), &change);
    cx.change_rights_checking_reply(may, move |cx, tx| {
        cx.rights_change(tx)?;
        let user = find(tx, cx.scope(), id)?;
        let (version, promised) = (user.version, user.promised_role);
        cx.expect_version(version)?;
        let mut current = grants::of(tx, cx.scope(), id.into())?;
        current.extend(promised.map(|role| Grant { on: On::Organization, held: Held::Organization(role) }));
        let after = role_holders::changed(cx, tx, SubjectKind::User, &current, &change)?;
        let is_changed = change == Change::Leave || !role_holders::are_same(&current, &after);
        if change == Change::Leave {
            remove(cx, tx, id, version)?;
            cx.event_of(tx, EventType::UserRemoved, about(id, &user.username))?;
        } else if is_changed {
            // Until an invite is accepted, the role in the organization is stored with the invite.
            let (set_role, granted): (Vec<Grant>, Vec<Grant>) =
                after.iter().cloned().partition(|grant| promised.is_some() && grant.on == On::Organization);
            if let Some(role) = role_holders::organization_role(&set_role) {
                invites::set_role(tx, cx.scope(), id, role)?;
            }
            grants::replace(tx, cx.scope(), grants::Subject::User, id.into(), &granted)?;
            users::touch(tx, cx.scope(), id, version, cx.now())?;
            cx.changed(tx, users::KIND, version + 1, about(id, &user.username))?;
        }
        role_holders::keeps_an_owner(cx, tx)?;
        let body = if cx.subject_id() == id.into() {
            subject_roles::all(&after)
        } else {
            subject_roles::managed_by(cx.grants(), SubjectKind::User, &after)
        };
        Ok(One { version: version + i64::from(is_changed), body })
    })
    .await
}

pub async fn list_teams(cx: Cx<Scope>, call: Call<api::ListTeams>) -> Result<Many<UserTeamsPaginated>> {
    let read = move |cx: &Cx<Scope>, conn: &Conn, paging: &Paging| {
        let user = find(conn, cx.scope(), call.path.user_id)?;
        let listed = teams::ListFilter { user_id: Some(user.id), ..Default::default() };
        let (teams, total) = teams::list(conn, cx.scope(), &listed, paging)?;
        Ok((role_holders::show_all(cx, conn, teams)?, total))
    };
    cx.list(&call.query.page, read, membership).await
}

pub async fn get_self(cx: Cx<()>, _: Call<api::GetSelf>) -> Result<One<SelfUser>> {
    if cx.authority().credential.user_id().is_none() {
        let message = "An API token is not a user: sign in as a user to read your own account.";
        return Err(Refusal::Forbidden(message.into()).into());
    }
    cx.read(move |cx, conn| {
        let account = own::account(cx, conn)?.ok_or_else(|| Refusal::not_found("user"))?;
        let memberships = own::memberships(cx, conn)?;
        let is_active = |(_, status): &&(OrganizationId, UserStatus)| *status == UserStatus::Active;
        let mut roles = Vec::new();
        for (organization_id, _) in memberships.iter().filter(is_active) {
            let held = own::grants(cx, conn, *organization_id)?;
            roles.extend(self_roles(*organization_id, &held));
        }
        let invites = own::invites(cx, conn)?.iter().map(self_invite).collect();
        let version = account.version;
        let home = memberships.iter().find(is_active).map(|(id, _)| *id);
        let user = SelfUser {
            id: account.id,
            username: account.username,
            full_name: account.full_name,
            avatar_url: account.avatar_url,
            status: best_status(&memberships),
            organization_id: home,
            roles: Some(roles),
            invites: Some(invites),
            feature_flags: Some(Vec::new()),
            is_idp_managed: Some(false),
            created_at: account.created_at,
            updated_at: account.updated_at,
        };
        Ok(One { version, body: user })
    })
    .await
}

/// Ends a membership, and everything that came with it.
pub(crate) fn remove(cx: &Cx<Scope>, tx: &Tx, id: UserId, version: i64) -> Result<()> {
    grants::delete_subject(tx, cx.scope(), id.into())?;
    team_members::leave_all(tx, cx.scope(), id)?;
    invites::delete_of_user(tx, cx.scope(), id)?;
    users::leave(tx, cx.scope(), id)?;
    sessions::end_all(cx.app(), tx, id.into())?;
    cx.logged(tx, users::KIND, id.id(), version + 1)
}

/// A user, as an event names it.
pub(crate) fn about(id: UserId, username: &str) -> Resource<'_> {
    Resource::new(id.id(), Target::Organization).named(username)
}

fn find(conn: &Conn, scope: &Scope, id: UserId) -> Result<UserRow> {
    users::get(conn, scope, id)?.ok_or_else(|| Refusal::not_found("user").into())
}

fn membership(team: Team) -> UserTeamMembership {
    UserTeamMembership {
        id: team.id,
        name: team.name,
        description: team.description,
        is_idp_managed: team.is_idp_managed,
        organization_role: team.organization_role,
        // A team has no lists that are empty, and a membership has.
        workspace_roles: Some(team.workspace_roles.unwrap_or_default()),
        deployment_roles: Some(team.deployment_roles.unwrap_or_default()),
        dag_roles: Some(team.dag_roles.unwrap_or_default()),
        roles_count: team.roles_count,
    }
}

/// The best of a user's states; one who belongs nowhere is inactive.
fn best_status(memberships: &[(OrganizationId, UserStatus)]) -> UserStatus {
    use UserStatus::{Active, Banned, Inactive, Pending};
    let has = |status: &UserStatus| memberships.iter().any(|(_, held)| held == status);
    [Active, Pending, Inactive, Banned].into_iter().find(has).unwrap_or(Inactive)
}

/// Every role once, however often it is held, with the ACCESSOR that roles further down bring.
fn self_roles(organization_id: OrganizationId, held: &[Grant]) -> Vec<SelfUserRole> {
    let mut roles: BTreeSet<(On, &str)> =
        held.iter().map(|grant| (grant.on.clone(), grant.held.name())).collect();
    let in_workspaces: BTreeSet<&On> = held.iter().map(|grant| &grant.on).collect();
    for grant in held {
        if let On::Deployment { workspace_id, .. }
        | On::Dag { workspace_id, .. }
        | On::DagTag { workspace_id, .. } = grant.on
            && !in_workspaces.contains(&On::Workspace(workspace_id))
        {
            roles.insert((On::Workspace(workspace_id), WorkspaceRoleName::Accessor.as_str()));
        }
    }
    let shown =
        |(on, role): (On, &str)| SelfUserRole { role: role.into(), scope: shown(organization_id, on) };
    roles.into_iter().map(shown).collect()
}

fn shown(organization_id: OrganizationId, on: On) -> SelfUserRoleScope {
    let (kind, entity_id, deployment_id, dag_tag) = match on {
        On::Organization => ("ORGANIZATION", organization_id.to_string(), None, None),
        On::Workspace(id) => ("WORKSPACE", id.to_string(), None, None),
        On::Deployment { id, .. } => ("DEPLOYMENT", id.to_string(), None, None),
        On::Dag { deployment_id, dag_id, .. } => ("DAG", dag_id, Some(deployment_id), None),
        On::DagTag { deployment_id, tag, .. } => ("DAG", tag.clone(), Some(deployment_id), Some(tag)),
    };
    SelfUserRoleScope { kind: kind.into(), entity_id, deployment_id, dag_tag }
}

fn self_invite(invite: &InviteRow) -> SelfUserInvite {
    let InviteRow { id, organization_id, expires_at, .. } = *invite;
    SelfUserInvite { invite_id: id, organization_id, expires_at }
}
