//! Organizations, and the epoch that every change of rights in one advances.

use podium_api::OrganizationId;
use podium_api::enums::Product;
use podium_db::{Conn, Result, Tx, params, statements};

use crate::columns::{Columns, texts};
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::record::record;
use crate::stamp::{Stamp, stamp_joins};
use crate::{Doorkeeper, Founder, Scope};

pub const KIND: &str = "organizations";

record! {
    #[derive(Clone, Debug)]
    pub struct OrganizationRow as columns! {
        pub id: OrganizationId = id "t.id",
        pub name: String = get "t.name",
        /// The e-mail address for bills, or empty.
        pub billing_email: String = get "t.billing_email",
        pub product: Product = word "t.product",
        /// Whether it has allowed address ranges; derived, never written.
        pub has_allowed_ip_address_ranges: bool = get "EXISTS (SELECT 1 FROM allowed_ip_address_ranges r WHERE r.organization_id = t.id)",
        /// Whether an identity provider manages its teams.
        pub is_scim_enabled: bool = get "t.is_scim_enabled",
        /// Whether deployments may only run on dedicated clusters.
        pub should_enforce_dedicated_clusters: bool = get "t.should_enforce_dedicated_clusters",
        pub allow_enhanced_support_access: bool = get "t.allow_enhanced_support_access",
        pub has_ai_features_disabled: bool = get "t.has_ai_features_disabled",
        pub stamp: Stamp = stamp,
    }
}

const IDS: &str = "t.id IN ({}[])";
const PRODUCT: &str = "t.product = {}";

pub(crate) const TABLE: Table =
    Table { name: "organizations", columns: columns!(), filters: &[IDS, PRODUCT], ..Table::NAMED };

statements! {
    GET = concat!("SELECT ", columns!(), " FROM organizations t", stamp_joins!(), " WHERE t.id = $1");
    INSERT = "INSERT INTO organizations (id, name, name_key, billing_email, product, is_scim_enabled, \
        should_enforce_dedicated_clusters, allow_enhanced_support_access, has_ai_features_disabled, authorization_epoch, \
        version, created_at, created_by, updated_at, updated_by) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, $11, $12, $13, $14)";
    UPDATE = "UPDATE organizations SET name = $3, name_key = $4, billing_email = $5, is_scim_enabled = $6, \
        should_enforce_dedicated_clusters = $7, allow_enhanced_support_access = $8, has_ai_features_disabled = $9, \
        version = version + 1, updated_at = $10, updated_by = $11 WHERE id = $1 AND version = $2";
    ADVANCE = "UPDATE organizations SET authorization_epoch = authorization_epoch + 1 WHERE id = $1";
    LOCK = "UPDATE organizations SET authorization_epoch = authorization_epoch WHERE id = $1";
    EPOCH = "SELECT authorization_epoch FROM organizations WHERE id = $1";
    NAME = "SELECT name FROM organizations WHERE id = $1";
    IS_SCIM_ENABLED = "SELECT is_scim_enabled FROM organizations WHERE id = $1";
    ONLY_DEDICATED = "SELECT should_enforce_dedicated_clusters FROM organizations WHERE id = $1";
    FIRST = "SELECT id FROM organizations ORDER BY created_at, id LIMIT 1";
}

/// Reads a page of the given organizations, and how many there are.
pub fn list(
    conn: &Conn,
    _: &Doorkeeper,
    ids: &[OrganizationId],
    product: Option<Product>,
    paging: &Paging,
) -> Result<Listed<OrganizationRow>> {
    let ids = texts(ids);
    let mut filter = Filter::new(IDS, &ids);
    filter.and(PRODUCT, product.map(Product::as_str));
    TABLE.page(conn, filter, paging, Total::Count, OrganizationRow::read)
}

pub fn get(conn: &Conn, scope: &Scope) -> Result<Option<OrganizationRow>> {
    conn.query_opt(&GET, params![scope.organization()], OrganizationRow::read)
}

pub fn insert(tx: &Tx, _: &Founder, organization: &OrganizationRow, name_key: &str) -> Result<()> {
    let stamp = &organization.stamp;
    let values = params![
        organization.id.as_str(),
        &organization.name,
        name_key,
        &organization.billing_email,
        organization.product.as_str(),
        organization.is_scim_enabled,
        organization.should_enforce_dedicated_clusters,
        organization.allow_enhanced_support_access,
        organization.has_ai_features_disabled,
    ];
    tx.run(&INSERT, &[values, &stamp.values()].concat())
}

/// Replaces the settings of an organization whose version is still the one before its stamp's.
pub fn update(tx: &Tx, scope: &Scope, organization: &OrganizationRow, name_key: &str) -> Result<()> {
    let stamp = &organization.stamp;
    let values = params![
        scope.organization(),
        stamp.version - 1,
        &organization.name,
        name_key,
        &organization.billing_email,
        organization.is_scim_enabled,
        organization.should_enforce_dedicated_clusters,
        organization.allow_enhanced_support_access,
        organization.has_ai_features_disabled,
        stamp.updated_at.millis(),
        stamp.updated_by.id.as_str(),
    ];
    tx.run_on_one(&UPDATE, values)
}

/// Announces that rights in the organization change. Must come first in a transaction that changes any: it also makes
/// such transactions of one organization wait for each other.
pub fn advance_epoch(tx: &Tx, scope: &Scope) -> Result<()> {
    tx.run(&ADVANCE, params![scope.organization()])
}

/// Locks rights in the organization, and what depends on them, until the transaction ends.
pub fn lock(tx: &Tx, scope: &Scope) -> Result<()> {
    tx.run(&LOCK, params![scope.organization()])
}

/// The epoch of rights in an organization; `None` if there is no such organization.
pub fn epoch(conn: &Conn, _: &Doorkeeper, organization_id: OrganizationId) -> Result<Option<i64>> {
    conn.query_opt(&EPOCH, params![organization_id.as_str()], |row| row.get(0))
}

pub fn name(conn: &Conn, scope: &Scope) -> Result<Option<String>> {
    conn.query_opt(&NAME, params![scope.organization()], |row| row.get(0))
}

/// Whether an identity provider keeps users and teams; `None` where the organization is gone.
pub fn is_scim_enabled(conn: &Conn, scope: &Scope) -> Result<Option<bool>> {
    conn.query_opt(&IS_SCIM_ENABLED, params![scope.organization()], |row| row.get(0))
}

/// Whether deployments have to run on clusters of the organization's own; `None` where the organization is gone.
pub fn only_dedicated_clusters(conn: &Conn, scope: &Scope) -> Result<Option<bool>> {
    conn.query_opt(&ONLY_DEDICATED, params![scope.organization()], |row| row.get(0))
}

/// The oldest organization: the one made at first start.
pub fn first(conn: &Conn, _: &Doorkeeper) -> Result<Option<OrganizationId>> {
    conn.query_opt(&FIRST, &[], |row| row.id(0))
}
