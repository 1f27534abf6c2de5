//! Members of teams.

use podium_api::teams::TeamMember;
use podium_api::{TeamId, Timestamp, UserId};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::columns::Columns;
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::{Scope, pictures};

const TEAM: &str = "t.team_id = {}";
const ORGANIZATION: &str = "t.organization_id = {}";

// Sorting by a name reads the team's members and their users: a team is small, and the names belong to the users.
pub(crate) const TABLE: Table = Table {
    name: "(SELECT m.team_id, m.organization_id, m.user_id, m.created_at, k.username_key, k.full_name_key, u.username, u.full_name, \
        u.avatar_url FROM team_members m JOIN users u ON u.id = m.user_id \
        JOIN memberships k ON k.user_id = m.user_id AND k.organization_id = m.organization_id)",
    key: "user_id",
    on: "t.user_id = page.key AND t.team_id = $1",
    columns: "t.user_id, t.username, t.full_name, t.avatar_url, t.created_at",
    joins: "",
    sorts: &[
        ("createdAt", "created_at"),
        ("userId", "user_id"),
        ("username", "username_key"),
        ("fullName", "full_name_key"),
    ],
    filters: &[TEAM, ORGANIZATION],
};

statements! {
    ADD = "INSERT INTO team_members (team_id, user_id, organization_id, created_at) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (team_id, user_id) DO NOTHING";
    REMOVE = "DELETE FROM team_members WHERE team_id = $1 AND user_id = $2 AND organization_id = $3";
    CLEAR = "DELETE FROM team_members WHERE team_id = $1 AND organization_id = $2";
    LEAVE = "DELETE FROM team_members WHERE user_id = $1 AND organization_id = $2";
}

/// Reads a page of a team's members, and how many there are.
pub fn list(conn: &Conn, scope: &Scope, team_id: TeamId, paging: &Paging) -> Result<Listed<TeamMember>> {
    let mut filter = Filter::new(TEAM, team_id.as_str());
    filter.and(ORGANIZATION, Some(scope.organization()));
    TABLE.page(conn, filter, paging, Total::Count, |row| {
        Ok(TeamMember {
            user_id: row.id(0)?,
            username: row.get(1)?,
            full_name: row.get(2)?,
            avatar_url: Some(pictures::url(row.text(2)?, row.text(1)?)),
            created_at: Some(row.time(4)?),
        })
    })
}

/// Adds a member, unless it already is one; returns whether it was added.
pub fn add(tx: &Tx, scope: &Scope, team_id: TeamId, user_id: UserId, at: Timestamp) -> Result<bool> {
    let params = params![team_id.as_str(), user_id.as_str(), scope.organization(), at.millis()];
    Ok(tx.execute(&ADD, params)? == 1)
}

/// Removes a member; returns whether it was one.
pub fn remove(tx: &Tx, scope: &Scope, team_id: TeamId, user_id: UserId) -> Result<bool> {
    Ok(tx.execute(&REMOVE, params![team_id.as_str(), user_id.as_str(), scope.organization()])? == 1)
}

pub fn clear(tx: &Tx, scope: &Scope, team_id: TeamId) -> Result<()> {
    tx.run(&CLEAR, params![team_id.as_str(), scope.organization()])
}

/// Removes a user from every team of an organization.
pub fn leave_all(tx: &Tx, scope: &Scope, user_id: UserId) -> Result<()> {
    tx.run(&LEAVE, params![user_id.as_str(), scope.organization()])
}
