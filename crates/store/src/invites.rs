//! Pending invites.

use podium_api::enums::OrganizationRole;
use podium_api::{InviteId, OrganizationId, SubjectId, Timestamp, UserId};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::record::record;
use crate::{Doorkeeper, Scope};

pub const KIND: &str = "invites";

record! {
    #[derive(Clone, Debug)]
    pub struct InviteRow as columns! {
        pub id: InviteId = id "id",
        pub organization_id: OrganizationId = id "organization_id",
        pub user_id: UserId = id "user_id",
        /// The role once accepted.
        pub role: OrganizationRole = word "role",
        pub inviter_id: SubjectId = id "inviter_id",
        pub expires_at: Timestamp = time "expires_at",
        /// Advanced by every change.
        pub version: i64 = get "version",
    }
}

statements! {
    GET = concat!("SELECT ", columns!(), " FROM invites WHERE id = $1 AND organization_id = $2");
    BY_USER = concat!("SELECT ", columns!(), " FROM invites WHERE organization_id = $1 AND user_id = $2");
    BY_SECRET = concat!("SELECT ", columns!(), " FROM invites WHERE secret_hash = $1");
    OF_USER = concat!("SELECT ", columns!(), " FROM invites WHERE user_id = $1 AND expires_at > $2 ORDER BY id");
    INSERT = "INSERT INTO invites (id, organization_id, user_id, role, inviter_id, secret_hash, expires_at, version, created_at) \
        VALUES ($1, $2, $3, $4, $5, NULL, $6, $7, $8)";
    RENEW = "UPDATE invites SET role = $3, inviter_id = $4, expires_at = $5, secret_hash = NULL, version = version + 1 \
        WHERE id = $1 AND organization_id = $2";
    SET_ROLE = "UPDATE invites SET role = $3 WHERE organization_id = $1 AND user_id = $2";
    SET_SECRET = "UPDATE invites SET secret_hash = $3, expires_at = $4, version = version + 1 WHERE id = $1 AND organization_id = $2";
    DELETE = "DELETE FROM invites WHERE id = $1 AND organization_id = $2";
    DELETE_OF_USER = "DELETE FROM invites WHERE user_id = $1 AND organization_id = $2";
}

pub fn get(conn: &Conn, scope: &Scope, id: InviteId) -> Result<Option<InviteRow>> {
    conn.query_opt(&GET, params![id.as_str(), scope.organization()], InviteRow::read)
}

/// Finds the invite of a user to an organization.
pub fn by_user(conn: &Conn, scope: &Scope, user_id: UserId) -> Result<Option<InviteRow>> {
    conn.query_opt(&BY_USER, params![scope.organization(), user_id.as_str()], InviteRow::read)
}

/// Finds an invite by the hash of its link's secret.
pub fn by_secret(conn: &Conn, _: &Doorkeeper, secret_hash: &str) -> Result<Option<InviteRow>> {
    conn.query_opt(&BY_SECRET, params![secret_hash], InviteRow::read)
}

pub fn of_user(conn: &Conn, _: &Doorkeeper, user_id: UserId, now: Timestamp) -> Result<Vec<InviteRow>> {
    conn.query(&OF_USER, params![user_id.as_str(), now.millis()], InviteRow::read)
}

/// Adds an invite, without a link yet.
pub fn insert(tx: &Tx, scope: &Scope, invite: &InviteRow, at: Timestamp) -> Result<()> {
    let values = params![
        invite.id.as_str(),
        scope.organization(),
        invite.user_id.as_str(),
        invite.role.as_str(),
        invite.inviter_id.as_str(),
        invite.expires_at.millis(),
        invite.version,
        at.millis(),
    ];
    tx.run(&INSERT, values)
}

/// Renews an invite: another end, another role, and no link.
pub fn renew(tx: &Tx, scope: &Scope, invite: &InviteRow) -> Result<()> {
    let values = params![
        invite.id.as_str(),
        scope.organization(),
        invite.role.as_str(),
        invite.inviter_id.as_str(),
        invite.expires_at.millis(),
    ];
    tx.run(&RENEW, values)
}

/// Changes the role of an invited user. Responses do not show it with the invite, so the version stays.
pub fn set_role(tx: &Tx, scope: &Scope, user_id: UserId, role: OrganizationRole) -> Result<()> {
    tx.run(&SET_ROLE, params![scope.organization(), user_id.as_str(), role.as_str()])
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
    tx.run(&SET_SECRET, params)
}

pub fn delete(tx: &Tx, scope: &Scope, id: InviteId) -> Result<()> {
    tx.run(&DELETE, params![id.as_str(), scope.organization()])
}

/// Removes the invite of a user to an organization.
pub fn delete_of_user(tx: &Tx, scope: &Scope, user_id: UserId) -> Result<()> {
    tx.run(&DELETE_OF_USER, params![user_id.as_str(), scope.organization()])
}
