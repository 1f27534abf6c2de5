//! Pending invites.

use podium_api::enums::OrganizationRole;
use podium_api::{InviteId, OrganizationId, SubjectId, Timestamp, UserId};
use podium_db::{Conn, Result, Row, Tx, params, statements};

use crate::columns::Columns;
use crate::{Doorkeeper, Scope};

/// The kind of their changes.
pub const KIND: &str = "invites";

macro_rules! columns {
    () => {
        "SELECT id, organization_id, user_id, role, inviter_id, expires_at, version FROM invites"
    };
}

statements! {
    GET = concat!(columns!(), " WHERE id = $1 AND organization_id = $2");
    BY_USER = concat!(columns!(), " WHERE organization_id = $1 AND user_id = $2");
    BY_SECRET = concat!(columns!(), " WHERE secret_hash = $1");
    OF_USER = concat!(columns!(), " WHERE user_id = $1 AND expires_at > $2 ORDER BY id");
    INSERT = "INSERT INTO invites (id, organization_id, user_id, role, inviter_id, secret_hash, expires_at, version, created_at) \
        VALUES ($1, $2, $3, $4, $5, NULL, $6, $7, $8)";
    RENEW = "UPDATE invites SET role = $3, inviter_id = $4, expires_at = $5, secret_hash = NULL, version = version + 1 \
        WHERE id = $1 AND organization_id = $2";
    SET_ROLE = "UPDATE invites SET role = $3 WHERE organization_id = $1 AND user_id = $2";
    SET_SECRET = "UPDATE invites SET secret_hash = $3, expires_at = $4, version = version + 1 WHERE id = $1 AND organization_id = $2";
    DELETE = "DELETE FROM invites WHERE id = $1 AND organization_id = $2";
    DELETE_OF_USER = "DELETE FROM invites WHERE user_id = $1 AND organization_id = $2";
}

/// A stored invite.
#[derive(Clone, Debug)]
pub struct InviteRow {
    /// Its id.
    pub id: InviteId,
    /// To which organization.
    pub organization_id: OrganizationId,
    /// Who is invited.
    pub user_id: UserId,
    /// The role once accepted.
    pub role: OrganizationRole,
    /// Who invited.
    pub inviter_id: SubjectId,
    /// When it expires.
    pub expires_at: Timestamp,
    /// Advanced by every change.
    pub version: i64,
}

/// Finds an invite of an organization.
pub fn get(conn: &Conn, scope: &Scope, id: InviteId) -> Result<Option<InviteRow>> {
    conn.query_opt(&GET, params![id.as_str(), scope.organization()], read)
}

/// Finds the invite of a user to an organization.
pub fn by_user(conn: &Conn, scope: &Scope, user_id: UserId) -> Result<Option<InviteRow>> {
    conn.query_opt(&BY_USER, params![scope.organization(), user_id.as_str()], read)
}

/// Finds an invite by the hash of its link's secret.
pub fn by_secret(conn: &Conn, _: &Doorkeeper, secret_hash: &str) -> Result<Option<InviteRow>> {
    conn.query_opt(&BY_SECRET, params![secret_hash], read)
}

/// The open invites of a user.
pub fn of_user(conn: &Conn, _: &Doorkeeper, user_id: UserId, now: Timestamp) -> Result<Vec<InviteRow>> {
    conn.query(&OF_USER, params![user_id.as_str(), now.millis()], read)
}

/// Adds an invite, without a link yet.
pub fn insert(tx: &Tx, scope: &Scope, invite: &InviteRow, at: Timestamp) -> Result<()> {
    tx.execute(
        &INSERT,
        params![
            invite.id.as_str(),
            scope.organization(),
            invite.user_id.as_str(),
            invite.role.as_str(),
            invite.inviter_id.as_str(),
            invite.expires_at.millis(),
            invite.version,
            at.millis(),
        ],
    )?;
    Ok(())
}

/// Renews an invite: another end, another role, and no link.
pub fn renew(tx: &Tx, scope: &Scope, invite: &InviteRow) -> Result<()> {
    tx.execute(
        &RENEW,
        params![
            invite.id.as_str(),
            scope.organization(),
            invite.role.as_str(),
            invite.inviter_id.as_str(),
            invite.expires_at.millis(),
        ],
    )?;
    Ok(())
}

/// Changes the role of an invited user. Responses do not show it with the invite, so the version stays.
pub fn set_role(tx: &Tx, scope: &Scope, user_id: UserId, role: OrganizationRole) -> Result<()> {
    tx.execute(&SET_ROLE, params![scope.organization(), user_id.as_str(), role.as_str()])?;
    Ok(())
}

/// Gives an invite another link, in place of the one before.
pub fn set_secret(
    tx: &Tx,
    scope: &Scope,
    id: InviteId,
    secret_hash: &str,
    expires_at: Timestamp,
) -> Result<()> {
    let params = params![id.as_str(), scope.organization(), secret_hash, expires_at.millis()];
    tx.execute(&SET_SECRET, params)?;
    Ok(())
}

/// Removes an invite.
pub fn delete(tx: &Tx, scope: &Scope, id: InviteId) -> Result<()> {
    tx.execute(&DELETE, params![id.as_str(), scope.organization()])?;
    Ok(())
}

/// Removes the invite of a user to an organization.
pub fn delete_of_user(tx: &Tx, scope: &Scope, user_id: UserId) -> Result<()> {
    tx.execute(&DELETE_OF_USER, params![user_id.as_str(), scope.organization()])?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<InviteRow> {
    Ok(InviteRow {
        id: row.id(0)?,
        organization_id: row.id(1)?,
        user_id: row.id(2)?,
        role: row.word(3)?,
        inviter_id: row.id(4)?,
        expires_at: row.time(5)?,
        version: row.get(6)?,
    })
}
