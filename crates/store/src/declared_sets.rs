//! Sets of declared resources.

use podium_api::declared_sets::DeclaredSet;
use podium_api::{DeclaredSetId, One};
use podium_db::{Conn, Result, Row, Tx, params, statements};

use crate::Scope;
use crate::columns::{Columns, document};
use crate::counters;
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::stamp::{Stamp, stamp_columns, stamp_joins};

/// The kind of their counter and their changes.
pub const KIND: &str = "declared_sets";

macro_rules! columns {
    () => {
        concat!("t.id, t.name, t.members, ", stamp_columns!())
    };
}

const STAMP: usize = 3;

const ORGANIZATION: &str = "t.organization_id = {}";
const NAMES: &str = "t.name_key IN ({}[])";

pub(crate) const TABLE: Table =
    Table { name: "declared_sets", columns: columns!(), filters: &[ORGANIZATION, NAMES], ..Table::NAMED };

statements! {
    GET = concat!("SELECT ", columns!(), " FROM declared_sets t", stamp_joins!(), " WHERE t.id = $1 AND t.organization_id = $2");
    INSERT = "INSERT INTO declared_sets (id, organization_id, name, name_key, members, version, created_at, created_by, \
        updated_at, updated_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    UPDATE = "UPDATE declared_sets SET members = $4, version = version + 1, updated_at = $5, updated_by = $6 \
        WHERE id = $1 AND organization_id = $2 AND version = $3";
    DELETE = "DELETE FROM declared_sets WHERE id = $1 AND organization_id = $2 AND version = $3";
}

/// Reads a page of sets, and how many there are.
pub fn list(
    conn: &Conn,
    scope: &Scope,
    name_keys: &[String],
    paging: &Paging,
) -> Result<Listed<DeclaredSet>> {
    let mut filter = Filter::new(ORGANIZATION, scope.organization());
    filter.and(NAMES, Some(name_keys).filter(|keys| !keys.is_empty()));
    TABLE.page(conn, filter, paging, Total::Counter(scope.organization(), KIND), read)
}

pub fn get(conn: &Conn, scope: &Scope, id: DeclaredSetId) -> Result<Option<One<DeclaredSet>>> {
    conn.query_opt(&GET, params![id.as_str(), scope.organization()], |row| {
        Ok(One { version: row.get(STAMP)?, body: read(row)? })
    })
}

pub fn insert(tx: &Tx, scope: &Scope, set: &DeclaredSet, name_key: &str, stamp: &Stamp) -> Result<()> {
    let members = document(&set.members)?;
    let values = params![set.id.as_str(), scope.organization(), &set.name, name_key, &members];
    tx.execute(&INSERT, &[values, &stamp.values()].concat())?;
    counters::add(tx, scope.organization_id(), KIND, set.id.id(), 1, 0)
}

/// Replaces the members of a set of this version.
pub fn update(tx: &Tx, scope: &Scope, set: &DeclaredSet, version: i64) -> Result<()> {
    let members = document(&set.members)?;
    let params = params![
        set.id.as_str(),
        scope.organization(),
        version,
        &members,
        set.updated_at.millis(),
        set.updated_by.id.as_str(),
    ];
    tx.run_on_one(&UPDATE, params)
}

pub fn delete(tx: &Tx, scope: &Scope, id: DeclaredSetId, version: i64) -> Result<()> {
    tx.run_on_one(&DELETE, params![id.as_str(), scope.organization(), version])?;
    counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)
}

fn read(row: &Row<'_>) -> Result<DeclaredSet> {
    let stamp = Stamp::read(row, STAMP)?;
    Ok(DeclaredSet {
        id: row.id(0)?,
        name: row.get(1)?,
        members: row.document(2)?,
        created_at: stamp.created_at,
        created_by: stamp.created_by,
        updated_at: stamp.updated_at,
        updated_by: stamp.updated_by,
    })
}
