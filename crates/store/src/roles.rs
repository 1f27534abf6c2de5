//! Custom roles.

use std::collections::BTreeMap;

use podium_api::enums::{CustomRoleScope, RoleScope};
use podium_api::roles::RoleWithPermission;
use podium_api::{One, RoleId, WorkspaceId};
use podium_db::{Conn, Result, Row, Tx, params, statements};
use podium_domain::Permission;
use podium_domain::assignable::CustomRole;

use crate::Scope;
use crate::columns::{Columns, document};
use crate::counters;
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::stamp::{Stamp, stamp_columns, stamp_joins};

/// The kind of their counter and their changes.
pub const KIND: &str = "roles";

macro_rules! columns {
    () => {
        concat!("t.id, t.name, t.description, t.scope_type, t.permissions, ", stamp_columns!())
    };
}

const ORGANIZATION: &str = "t.organization_id = {}";
const SCOPES: &str = "t.scope_type IN ({}[])";

pub(crate) const TABLE: Table = Table {
    name: "custom_roles",
    columns: columns!(),
    sorts: &[
        ("createdAt", "created_at"),
        ("updatedAt", "updated_at"),
        ("name", "name_key"),
        ("scopeType", "scope_type"),
        ("description", "description"),
    ],
    filters: &[ORGANIZATION, SCOPES],
    ..Table::NAMED
};

statements! {
    GET = concat!("SELECT ", columns!(), " FROM custom_roles t", stamp_joins!(), " WHERE t.id = $1 AND t.organization_id = $2");
    BY_NAMES = "SELECT id, name, scope_type, permissions FROM custom_roles WHERE organization_id = $1 AND name IN ($2[])";
    WORKSPACES = "SELECT role_id, workspace_id FROM custom_role_workspaces WHERE role_id IN ($1[]) ORDER BY role_id, workspace_id";
    INSERT = "INSERT INTO custom_roles (id, organization_id, name, name_key, description, scope_type, permissions, version, \
        created_at, created_by, updated_at, updated_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    UPDATE = "UPDATE custom_roles SET name = $4, name_key = $5, description = $6, permissions = $7, version = version + 1, \
        updated_at = $8, updated_by = $9 WHERE id = $1 AND organization_id = $2 AND version = $3";
    DELETE = "DELETE FROM custom_roles WHERE id = $1 AND organization_id = $2 AND version = $3";
    CLEAR_WORKSPACES = "DELETE FROM custom_role_workspaces WHERE role_id = $1";
    ADD_WORKSPACE = "INSERT INTO custom_role_workspaces (role_id, workspace_id) VALUES ($1, $2) \
        ON CONFLICT (role_id, workspace_id) DO NOTHING";
    LEAVE = "DELETE FROM custom_role_workspaces WHERE workspace_id = $1 \
        AND role_id IN (SELECT id FROM custom_roles WHERE organization_id = $2)";
}

/// Reads a page of custom roles, and how many there are.
pub fn list(
    conn: &Conn,
    scope: &Scope,
    scopes: &[RoleScope],
    paging: &Paging,
) -> Result<Listed<RoleWithPermission>> {
    let scopes: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    let mut filter = Filter::new(ORGANIZATION, scope.organization());
    filter.and(SCOPES, Some(scopes.as_slice()).filter(|scopes| !scopes.is_empty()));
    let total = Total::Counter(scope.organization(), KIND);
    let (mut roles, total) = TABLE.page(conn, filter, paging, total, read)?;
    fill_workspaces(conn, &mut roles)?;
    Ok((roles, total))
}

pub fn get(conn: &Conn, scope: &Scope, id: RoleId) -> Result<Option<One<RoleWithPermission>>> {
    let role = conn.query_opt(&GET, params![id.as_str(), scope.organization()], |row| {
        Ok(One { version: row.get(5)?, body: read(row)? })
    })?;
    let Some(mut role) = role else { return Ok(None) };
    fill_workspaces(conn, std::slice::from_mut(&mut role.body))?;
    Ok(Some(role))
}

/// The custom roles of these names, as far as giving them is concerned.
pub fn by_names(conn: &Conn, scope: &Scope, names: &[&str]) -> Result<BTreeMap<String, CustomRole>> {
    let mut roles = conn.query(&BY_NAMES, params![scope.organization(), names], |row| {
        let role = CustomRole {
            id: row.id(0)?,
            scope: row.word::<CustomRoleScope>(2)?,
            permissions: row
                .document::<Vec<String>>(3)?
                .iter()
                .filter_map(|name| Permission::named(name))
                .collect(),
            restricted_workspace_ids: Vec::new(),
        };
        Ok((row.get::<String>(1)?, role))
    })?;
    let ids: Vec<RoleId> = roles.iter().map(|(_, role)| role.id).collect();
    let mut workspaces = workspaces(conn, &ids)?;
    for (_, role) in &mut roles {
        role.restricted_workspace_ids = workspaces.remove(&role.id).unwrap_or_default();
    }
    Ok(roles.into_iter().collect())
}

pub fn insert(
    tx: &Tx,
    scope: &Scope,
    role: &RoleWithPermission,
    name_key: &str,
    stamp: &Stamp,
) -> Result<()> {
    let permissions = document(&role.permissions)?;
    let values = params![
        role.id.as_str(),
        scope.organization(),
        &role.name,
        name_key,
        role.description.as_deref().unwrap_or_default(),
        role.scope_type.as_str(),
        &permissions,
    ];
    tx.execute(&INSERT, &[values, &stamp.values()].concat())?;
    set_workspaces(tx, role)?;
    counters::add(tx, scope.organization_id(), KIND, role.id.id(), 1, 0)
}

pub fn update(tx: &Tx, scope: &Scope, role: &RoleWithPermission, name_key: &str, version: i64) -> Result<()> {
    let permissions = document(&role.permissions)?;
    let values = params![
        role.id.as_str(),
        scope.organization(),
        version,
        &role.name,
        name_key,
        role.description.as_deref().unwrap_or_default(),
        &permissions,
        role.updated_at.millis(),
        role.updated_by.id.as_str(),
    ];
    tx.run_on_one(&UPDATE, values)?;
    set_workspaces(tx, role)
}

pub fn delete(tx: &Tx, scope: &Scope, id: RoleId, version: i64) -> Result<()> {
    tx.run_on_one(&DELETE, params![id.as_str(), scope.organization(), version])?;
    tx.execute(&CLEAR_WORKSPACES, params![id.as_str()])?;
    counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)
}

/// Takes a workspace off every role's list.
pub fn forget_workspace(tx: &Tx, scope: &Scope, workspace_id: WorkspaceId) -> Result<()> {
    tx.run(&LEAVE, params![workspace_id.as_str(), scope.organization()])
}

fn set_workspaces(tx: &Tx, role: &RoleWithPermission) -> Result<()> {
    tx.execute(&CLEAR_WORKSPACES, params![role.id.as_str()])?;
    for workspace_id in &role.restricted_workspace_ids {
        tx.execute(&ADD_WORKSPACE, params![role.id.as_str(), workspace_id.as_str()])?;
    }
    Ok(())
}

fn fill_workspaces(conn: &Conn, roles: &mut [RoleWithPermission]) -> Result<()> {
    let ids: Vec<RoleId> = roles.iter().map(|role| role.id).collect();
    let mut workspaces = workspaces(conn, &ids)?;
    for role in roles {
        role.restricted_workspace_ids = workspaces.remove(&role.id).unwrap_or_default();
    }
    Ok(())
}

fn workspaces(conn: &Conn, role_ids: &[RoleId]) -> Result<BTreeMap<RoleId, Vec<WorkspaceId>>> {
    let mut by_role = BTreeMap::<RoleId, Vec<WorkspaceId>>::new();
    if !role_ids.is_empty() {
        let ids: Vec<&str> = role_ids.iter().map(RoleId::as_str).collect();
        conn.query(&WORKSPACES, params![&ids], |row| {
            by_role.entry(row.id(0)?).or_default().push(row.id(1)?);
            Ok(())
        })?;
    }
    Ok(by_role)
}

fn read(row: &Row<'_>) -> Result<RoleWithPermission> {
    let stamp = Stamp::read(row, 5)?;
    Ok(RoleWithPermission {
        id: row.id(0)?,
        name: row.get(1)?,
        description: row.get(2)?,
        scope_type: row.word(3)?,
        permissions: row.document(4)?,
        restricted_workspace_ids: Vec::new(),
        created_at: stamp.created_at,
        created_by: stamp.created_by,
        updated_at: stamp.updated_at,
        updated_by: stamp.updated_by,
    })
}
