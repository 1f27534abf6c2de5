//! Allowed address ranges.

use podium_api::allowed_ip_address_ranges::AllowedIpAddressRange;
use podium_api::{AllowedIpAddressRangeId, One, OrganizationId};
use podium_db::{Conn, Result, Row, Tx, params, statements};

use crate::columns::Columns;
use crate::counters;
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::stamp::{Stamp, stamp_columns, stamp_joins};
use crate::{Scope, System};

/// The kind of their counter and their changes.
pub const KIND: &str = "allowed_ip_address_ranges";

macro_rules! columns {
    () => {
        concat!("t.id, t.ip_address_range, t.organization_id, ", stamp_columns!())
    };
}

const ORGANIZATION: &str = "t.organization_id = {}";

pub(crate) const TABLE: Table = Table {
    name: "allowed_ip_address_ranges",
    columns: columns!(),
    sorts: &[("createdAt", "created_at"), ("updatedAt", "updated_at"), ("ipAddress", "ip_address_key")],
    filters: &[ORGANIZATION],
    ..Table::NAMED
};

statements! {
    GET = concat!("SELECT ", columns!(), " FROM allowed_ip_address_ranges t", stamp_joins!(),
        " WHERE t.id IN ($1[]) AND t.organization_id = $2");
    ALL = "SELECT ip_address_range FROM allowed_ip_address_ranges WHERE organization_id = $1";
    INSERT = "INSERT INTO allowed_ip_address_ranges (id, organization_id, ip_address_range, ip_address_key, version, created_at, \
        created_by, updated_at, updated_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    DELETE = "DELETE FROM allowed_ip_address_ranges WHERE id = $1 AND organization_id = $2";
    ORGANIZATIONS = "SELECT DISTINCT organization_id FROM allowed_ip_address_ranges";
    CLEAR = "DELETE FROM allowed_ip_address_ranges WHERE organization_id = $1";
}

/// Reads a page of ranges, and how many there are.
pub fn list(conn: &Conn, scope: &Scope, paging: &Paging) -> Result<Listed<AllowedIpAddressRange>> {
    let filter = Filter::new(ORGANIZATION, scope.organization());
    TABLE.page(conn, filter, paging, Total::Counter(scope.organization(), KIND), read)
}

pub fn get_each(
    conn: &Conn,
    scope: &Scope,
    ids: &[AllowedIpAddressRangeId],
) -> Result<Vec<One<AllowedIpAddressRange>>> {
    let ids: Vec<&str> = ids.iter().map(AllowedIpAddressRangeId::as_str).collect();
    conn.query(&GET, params![&ids, scope.organization()], |row| {
        Ok(One { version: row.get(3)?, body: read(row)? })
    })
}

pub fn all(conn: &Conn, scope: &Scope) -> Result<Vec<String>> {
    conn.query(&ALL, params![scope.organization()], |row| row.get(0))
}

/// Every organization that lists any.
pub fn organizations(conn: &Conn, _: &System) -> Result<Vec<OrganizationId>> {
    conn.query(&ORGANIZATIONS, &[], |row| row.id(0))
}

pub fn insert(tx: &Tx, scope: &Scope, range: &AllowedIpAddressRange, key: &str, stamp: &Stamp) -> Result<()> {
    let values = params![range.id.as_str(), scope.organization(), &range.ip_address_range, key];
    tx.execute(&INSERT, &[values, &stamp.values()].concat())?;
    counters::add(tx, scope.organization_id(), KIND, range.id.id(), 1, 0)
}

pub fn delete(tx: &Tx, scope: &Scope, id: AllowedIpAddressRangeId) -> Result<()> {
    if tx.execute(&DELETE, params![id.as_str(), scope.organization()])? == 1 {
        counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)?;
    }
    Ok(())
}

/// Removes every range; returns how many there were.
pub fn clear(tx: &Tx, scope: &Scope) -> Result<u64> {
    let organization_id = scope.organization_id();
    let removed = tx.execute(&CLEAR, params![organization_id.as_str()])?;
    counters::add(tx, organization_id, KIND, organization_id.id(), -removed.cast_signed(), 1)?;
    Ok(removed)
}

fn read(row: &Row<'_>) -> Result<AllowedIpAddressRange> {
    let stamp = Stamp::read(row, 3)?;
    Ok(AllowedIpAddressRange {
        id: row.id(0)?,
        ip_address_range: row.get(1)?,
        organization_id: row.id(2)?,
        created_at: stamp.created_at,
        created_by: Some(stamp.created_by),
        updated_at: stamp.updated_at,
        updated_by: Some(stamp.updated_by),
    })
}
