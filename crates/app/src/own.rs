//! What callers may read about themselves regardless of other rights: a valid token is proof enough.

use podium_api::OrganizationId;
use podium_api::enums::{Product, UserStatus};
use podium_db::Conn;
use podium_domain::Grant;
use podium_store::invites::{self, InviteRow};
use podium_store::organizations::{self, OrganizationRow};
use podium_store::users::{self, Account};
use podium_store::{Paging, grants};

use crate::cx::Cx;
use crate::error::Result;

crate::system::acts_for_the_system!();

/// The caller's account; none for an API token.
pub(crate) fn account(cx: &Cx<()>, conn: &Conn) -> Result<Option<Account>> {
    let Some(user_id) = cx.authority().credential.user_id() else { return Ok(None) };
    Ok(users::account(conn, &system(cx.app()), user_id)?)
}

/// The organizations that the caller belongs to as a user, and how; none for an API token.
pub(crate) fn memberships(cx: &Cx<()>, conn: &Conn) -> Result<Vec<(OrganizationId, UserStatus)>> {
    let Some(user_id) = cx.authority().credential.user_id() else { return Ok(Vec::new()) };
    Ok(users::memberships(conn, &system(cx.app()), user_id)?)
}

/// The caller's grants in an organization, directly and through teams.
pub(crate) fn grants(cx: &Cx<()>, conn: &Conn, organization_id: OrganizationId) -> Result<Vec<Grant>> {
    Ok(grants::effective(conn, &system(cx.app()), organization_id, cx.subject_id())?)
}

pub(crate) fn invites(cx: &Cx<()>, conn: &Conn) -> Result<Vec<InviteRow>> {
    let Some(user_id) = cx.authority().credential.user_id() else { return Ok(Vec::new()) };
    Ok(invites::of_user(conn, &system(cx.app()), user_id, cx.now())?)
}

/// A page of the organizations that the caller belongs to: as an active member, or as an API token of one.
pub(crate) fn organizations(
    cx: &Cx<()>,
    conn: &Conn,
    product: Option<Product>,
    paging: &Paging,
) -> Result<(Vec<OrganizationRow>, u64)> {
    let ids: Vec<OrganizationId> = match cx.authority().credential.organization_id {
        Some(own) => vec![own],
        None => {
            let memberships = memberships(cx, conn)?.into_iter();
            let active = memberships.filter(|(_, status)| *status == UserStatus::Active);
            active.map(|(id, _)| id).collect()
        }
    };
    Ok(organizations::list(conn, &system(cx.app()), &ids, product, paging)?)
}
