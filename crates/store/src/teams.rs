//! Teams.

use podium_api::{DeploymentId, Named, OrganizationId, TeamId, UserId, WorkspaceId};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::Scope;
use crate::counters;
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::record::record;
use crate::stamp::{Stamp, stamp_joins};

/// The kind of their counter and their changes.
pub const KIND: &str = "teams";

record! {
    #[derive(Clone, Debug)]
    pub struct TeamRow as columns! {
        pub id: TeamId = id "t.id",
        pub name: String = get "t.name",
        pub description: String = get "t.description",
        pub organization_id: OrganizationId = id "t.organization_id",
        pub is_idp_managed: bool = get "t.is_idp_managed",
        pub stamp: Stamp = stamp,
    }
}

const ORGANIZATION: &str = "t.organization_id = {}";
const NAMES: &str = "t.name_key IN ({}[])";
const IN_WORKSPACE: &str = "t.id IN (SELECT g.subject_id FROM grants g WHERE g.organization_id = t.organization_id \
    AND g.workspace_id = {})";
const ON_DEPLOYMENT: &str = "t.id IN (SELECT g.subject_id FROM grants g WHERE g.organization_id = t.organization_id \
    AND g.deployment_id = {})";
const OF_USER: &str = "t.id IN (SELECT m.team_id FROM team_members m WHERE m.user_id = {})";

pub(crate) const TABLE: Table = Table {
    name: "teams",
    columns: columns!(),
    sorts: &[
        ("createdAt", "created_at"),
        ("updatedAt", "updated_at"),
        ("name", "name_key"),
        ("description", "description"),
    ],
    filters: &[ORGANIZATION, NAMES, IN_WORKSPACE, ON_DEPLOYMENT, OF_USER],
    ..Table::NAMED
};

statements! {
    GET = concat!("SELECT ", columns!(), " FROM teams t", stamp_joins!(), " WHERE t.id = $1 AND t.organization_id = $2");
    INSERT = "INSERT INTO teams (id, organization_id, name, name_key, description, is_idp_managed, version, created_at, \
        created_by, updated_at, updated_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    UPDATE = "UPDATE teams SET name = $4, name_key = $5, description = $6, version = version + 1, updated_at = $7, \
        updated_by = $8 WHERE id = $1 AND organization_id = $2 AND version = $3";
    DELETE = "DELETE FROM teams WHERE id = $1 AND organization_id = $2 AND version = $3";
}

#[derive(Default)]
pub struct ListFilter<'a> {
    /// Only those with one of these folded names, if any are given.
    pub name_keys: &'a [String],
    /// Only those with a role in this workspace.
    pub workspace_id: Option<&'a Named<WorkspaceId>>,
    /// Only those with a role on this deployment.
    pub deployment_id: Option<&'a Named<DeploymentId>>,
    pub user_id: Option<UserId>,
}

/// Reads a page of teams, and how many there are.
pub fn list(conn: &Conn, scope: &Scope, listed: &ListFilter<'_>, paging: &Paging) -> Result<Listed<TeamRow>> {
    let mut filter = Filter::new(ORGANIZATION, scope.organization());
    filter.and(NAMES, Some(listed.name_keys).filter(|keys| !keys.is_empty()));
    filter.and(IN_WORKSPACE, listed.workspace_id.map(Named::as_str));
    filter.and(ON_DEPLOYMENT, listed.deployment_id.map(Named::as_str));
    filter.and(OF_USER, listed.user_id.as_ref().map(UserId::as_str));
    TABLE.page(conn, filter, paging, Total::Counter(scope.organization(), KIND), TeamRow::read)
}

pub fn get(conn: &Conn, scope: &Scope, id: TeamId) -> Result<Option<TeamRow>> {
    conn.query_opt(&GET, params![id.as_str(), scope.organization()], TeamRow::read)
}

pub fn insert(tx: &Tx, scope: &Scope, team: &TeamRow, name_key: &str) -> Result<()> {
    let stamp = &team.stamp;
    let values = params![
        team.id.as_str(),
        scope.organization(),
        &team.name,
        name_key,
        &team.description,
        team.is_idp_managed,
    ];
    tx.execute(&INSERT, &[values, &stamp.values()].concat())?;
    counters::add(tx, scope.organization_id(), KIND, team.id.id(), 1, 0)
}

/// Replaces the name and description of a team whose version is still the one before.
pub fn update(tx: &Tx, scope: &Scope, team: &TeamRow, name_key: &str) -> Result<()> {
    let stamp = &team.stamp;
    let values = params![
        team.id.as_str(),
        scope.organization(),
        stamp.version - 1,
        &team.name,
        name_key,
        &team.description,
        stamp.updated_at.millis(),
        stamp.updated_by.id.as_str(),
    ];
    tx.run_on_one(&UPDATE, values)
}

pub fn delete(tx: &Tx, scope: &Scope, id: TeamId, version: i64) -> Result<()> {
    tx.run_on_one(&DELETE, params![id.as_str(), scope.organization(), version])?;
    counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)
}
