//! Workspaces.

use podium_api::enums::CloudProvider;
use podium_api::workspaces::Workspace;
use podium_api::{ClusterId, Named, One, WorkspaceId};
use podium_db::{Conn, JoinedRow, Result, Row, Tx, params, statements};
use podium_domain::Reach;

use crate::Scope;
use crate::columns::{Columns, named};
use crate::counters::{self, count_new};
use crate::landmarks::{self, Landmarks};
use crate::lazy_row::{Cached, Layout, LazyRow, Render};
use crate::listing::{Filter, Paging, Table, reached};
use crate::stamp::{Stamp, stamp_columns, stamp_joins};

/// The kind of their counter and their changes.
pub const KIND: &str = "workspaces";

macro_rules! columns {
    () => {
        concat!(
            "t.id, t.name, t.description, t.organization_id, o.name, t.cicd_enforced_default, t.default_cluster_id, \
             t.default_cloud_provider, t.default_region, ",
            stamp_columns!(),
            ", ROWID(t), ROWID(o), ROWID(c), ROWID(u)"
        )
    };
}

macro_rules! joins {
    () => {
        concat!(" JOIN organizations o ON o.id = t.organization_id", stamp_joins!())
    };
}

const STAMP: usize = 9;

pub(crate) static LAYOUT: Layout = Layout {
    organization: 3,
    workspace: None,
    version: STAMP,
    rows: &[
        JoinedRow { table: "workspaces", key: 0, rowid: 24 },
        JoinedRow { table: "organizations", key: 3, rowid: 25 },
        JoinedRow { table: "subjects", key: STAMP + 2, rowid: 26 },
        JoinedRow { table: "subjects", key: STAMP + 9, rowid: 27 },
    ],
};

const ORGANIZATION: &str = "t.organization_id = {}";
const IDS: &str = "t.id IN ({}[])";
const NAMES: &str = "t.name_key IN ({}[])";

pub(crate) const TABLE: Table = Table {
    name: "workspaces",
    columns: columns!(),
    joins: joins!(),
    filters: &[ORGANIZATION, IDS, NAMES],
    ..Table::NAMED
};

statements! {
    GET = concat!("SELECT ", columns!(), " FROM workspaces t", joins!(), " WHERE t.id = $1 AND t.organization_id = $2");
    INSERT = "INSERT INTO workspaces (id, organization_id, name, name_key, description, cicd_enforced_default, \
        default_cluster_id, default_cloud_provider, default_region, version, created_at, created_by, updated_at, updated_by) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
    COUNT_NEW = count_new!("workspaces");
    UPDATE = "UPDATE workspaces SET name = $4, name_key = $5, description = $6, cicd_enforced_default = $7, \
        default_cluster_id = $8, default_cloud_provider = $9, default_region = $10, version = version + 1, \
        updated_at = $11, updated_by = $12 WHERE id = $1 AND organization_id = $2 AND version = $3";
    DELETE = "DELETE FROM workspaces WHERE id = $1 AND organization_id = $2 AND version = $3";
    UNSET_DEFAULT_CLUSTER = "UPDATE workspaces SET default_cluster_id = NULL \
        WHERE default_cluster_id = $1 AND organization_id = $2 AND id NOT IN ($3[]) RETURNING id, version, name";
    EXIST = "SELECT id FROM workspaces WHERE id IN ($1[]) AND organization_id = $2";
}

pub struct ListFilter<'a> {
    /// Those that the caller may see.
    pub reach: &'a Reach,
    pub ids: &'a [Named<WorkspaceId>],
    /// Only those with one of these folded names, if any are given.
    pub name_keys: &'a [String],
}

/// Renders a page of workspaces, and counts them; `None` if that needs a long scan and `walk_far` is false.
pub fn list<T>(
    conn: &Conn,
    scope: &Scope,
    listed: &ListFilter<'_>,
    paging: &Paging,
    landmarks: &Landmarks,
    walk_far: bool,
    rendering: &impl Render<Workspace, T>,
) -> Result<Option<(Vec<T>, u64)>> {
    let cached = |conn: &Conn, id| rendering.cached(conn, id);
    let row = |row: &Row<'_>| rendering.render(&found(row));
    let read = Cached { cached: &cached, row: &row, one: &GET };
    let organization_id = scope.organization_id();
    let reach = reached(listed.reach);
    let mut filter = Filter::new(ORGANIZATION, organization_id.as_str());
    filter.and(IDS, reach.as_deref());
    let ids = named(listed.ids);
    filter.and(IDS, Some(&*ids).filter(|ids| !ids.is_empty()));
    filter.and(NAMES, Some(listed.name_keys).filter(|keys| !keys.is_empty()));
    landmarks::list(conn, (&TABLE, KIND), organization_id, filter, paging, landmarks, walk_far, read)
}

pub fn shown<T>(
    conn: &Conn,
    scope: &Scope,
    id: WorkspaceId,
    mut show: impl FnMut(&LazyRow<'_, Workspace>) -> Result<T>,
) -> Result<Option<One<T>>> {
    conn.query_opt(&GET, params![id.as_str(), scope.organization()], |row| {
        let found = found(row);
        Ok(One { version: found.version()?, body: show(&found)? })
    })
}

pub fn get(conn: &Conn, scope: &Scope, id: WorkspaceId) -> Result<Option<One<Workspace>>> {
    conn.query_opt(&GET, params![id.as_str(), scope.organization()], |row| {
        Ok(One { version: row.get(STAMP)?, body: read(row)? })
    })
}

pub fn exist(conn: &Conn, scope: &Scope, ids: &[WorkspaceId]) -> Result<Vec<WorkspaceId>> {
    let ids: Vec<&str> = ids.iter().map(WorkspaceId::as_str).collect();
    conn.query(&EXIST, params![&ids, scope.organization()], |row| row.id(0))
}

pub fn insert(tx: &Tx, scope: &Scope, workspace: &Workspace, name_key: &str, stamp: &Stamp) -> Result<()> {
    let values = params![
        workspace.id.as_str(),
        scope.organization(),
        &workspace.name,
        name_key,
        workspace.description.as_deref().unwrap_or_default(),
        workspace.cicd_enforced_default,
        workspace.default_cluster_id.as_ref().map(ClusterId::as_str),
        workspace.default_cloud_provider.map(CloudProvider::as_str),
        &workspace.default_region,
    ];
    tx.post(&INSERT, &[values, &stamp.values()].concat())?;
    counters::added(tx, &COUNT_NEW, scope.organization_id(), workspace.id.id(), stamp.created_at)
}

pub fn update(tx: &Tx, scope: &Scope, workspace: &Workspace, name_key: &str, version: i64) -> Result<()> {
    let values = params![
        workspace.id.as_str(),
        scope.organization(),
        version,
        &workspace.name,
        name_key,
        workspace.description.as_deref().unwrap_or_default(),
        workspace.cicd_enforced_default,
        workspace.default_cluster_id.as_ref().map(ClusterId::as_str),
        workspace.default_cloud_provider.map(CloudProvider::as_str),
        &workspace.default_region,
        workspace.updated_at.millis(),
        workspace.updated_by.as_ref().map(|by| by.id.as_str()),
    ];
    tx.run_on_one(&UPDATE, values)
}

pub fn delete(tx: &Tx, scope: &Scope, id: WorkspaceId, version: i64) -> Result<()> {
    tx.run_on_one(&DELETE, params![id.as_str(), scope.organization(), version])?;
    counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)
}

/// Unsets a cluster as the default of all workspaces except these; returns the changed ones, with versions.
pub fn unset_default_cluster(
    tx: &Tx,
    scope: &Scope,
    cluster_id: ClusterId,
    keep: &[WorkspaceId],
) -> Result<Vec<(WorkspaceId, i64, String)>> {
    let keep: Vec<&str> = keep.iter().map(WorkspaceId::as_str).collect();
    let params = params![cluster_id.as_str(), scope.organization(), &keep];
    tx.query(&UNSET_DEFAULT_CLUSTER, params, |row| Ok((row.id(0)?, row.get(1)?, row.get(2)?)))
}

fn found<'r>(row: &'r Row<'r>) -> LazyRow<'r, Workspace> {
    LazyRow::new(row, &LAYOUT, read)
}

fn read(row: &Row<'_>) -> Result<Workspace> {
    let stamp = Stamp::read(row, STAMP)?;
    Ok(Workspace {
        id: row.id(0)?,
        name: row.get(1)?,
        description: row.get(2)?,
        organization_id: row.id(3)?,
        organization_name: row.get(4)?,
        cicd_enforced_default: row.get(5)?,
        default_cluster_id: row.id_opt(6)?,
        default_cloud_provider: row.word_opt(7)?,
        default_region: row.get(8)?,
        created_at: stamp.created_at,
        created_by: Some(stamp.created_by),
        updated_at: stamp.updated_at,
        updated_by: Some(stamp.updated_by),
    })
}
