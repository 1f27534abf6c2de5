//! Environment objects. Secrets are stored encrypted; this crate cannot read them.
//!
//! Rows are read with their secrets hidden and the encrypted bytes next to them. Links and exclusions have tables of
//! their own ([`links`]), so that the objects of a deployment are found by an index.

mod links;

use std::collections::{BTreeMap, BTreeSet};

use podium_api::enums::{EnvironmentObjectScope, EnvironmentObjectType};
use podium_api::{DeploymentId, EntityId, EnvironmentObjectId, Named, WorkspaceId};
use podium_db::{Conn, Result, Row, Tx, params, statements};
use podium_domain::environment_objects::{Hidden, Object, Values};
use podium_domain::{DeploymentReach, Reach, Target};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Scope;
use crate::columns::{Columns, document, texts};
use crate::counters;
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::stamp::{Stamp, stamp_columns, stamp_joins};

pub(crate) use links::STATEMENTS as LINK_STATEMENTS;
pub use links::{
    delete_of_deployment, delete_of_workspace, leave_workspace, lock_deployments, lock_workspace,
};

/// The kind of their counter and their changes.
pub const KIND: &str = "environment_objects";

macro_rules! columns {
    () => {
        concat!(
            "t.id, t.scope, t.entity_id, d.workspace_id, t.object_type, t.object_key, t.description, t.auto_link, \
             t.document, t.sealed_secrets, ",
            stamp_columns!()
        )
    };
}

macro_rules! joins {
    () => {
        concat!(" LEFT JOIN deployments d ON d.id = t.entity_id", stamp_joins!())
    };
}

const ORGANIZATION: &str = "t.organization_id = {}";
const TYPES: &str = "t.object_type = {}";
const KEYS: &str = "t.object_key = {}";
const ENTITY: &str = "t.entity_id = {}";
const IN_WORKSPACE: &str = "t.entity_id IN (SELECT e.id FROM deployments e WHERE e.workspace_id = {})";
// The workspaces and deployments whose objects the caller may read, and the workspaces of whose deployments it may.
const REACHED: &str = "(t.entity_id IN ({}[]) OR t.entity_id IN \
    (SELECT e.id FROM deployments e WHERE e.workspace_id IN ({}[])))";

pub(crate) const TABLE: Table = Table {
    name: "environment_objects",
    columns: columns!(),
    joins: joins!(),
    sorts: &[
        ("createdAt", "created_at"),
        ("updatedAt", "updated_at"),
        ("objectType", "object_type"),
        ("objectKey", "object_key"),
    ],
    filters: &[ORGANIZATION, TYPES, KEYS, ENTITY, IN_WORKSPACE, REACHED],
    ..Table::NAMED
};

statements! {
    GET = concat!("SELECT ", columns!(), " FROM environment_objects t", joins!(), " WHERE t.id = $1 AND t.organization_id = $2");
    REACHING = concat!("SELECT ", columns!(), " FROM environment_objects t", joins!(), " WHERE t.organization_id = $3 \
        AND (t.entity_id = $1 OR t.entity_id = $2 AND (EXISTS (SELECT 1 FROM environment_object_links l \
        WHERE l.object_id = t.id AND l.deployment_id = $1) OR t.auto_link AND NOT EXISTS (SELECT 1 \
        FROM environment_object_exclusions x WHERE x.object_id = t.id AND x.deployment_id = $1))) \
        ORDER BY t.created_at DESC, t.id DESC");
    INSERT = "INSERT INTO environment_objects (id, organization_id, scope, entity_id, object_type, object_key, unique_key, \
        description, auto_link, document, sealed_secrets, version, created_at, created_by, updated_at, updated_by) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
    UPDATE = "UPDATE environment_objects SET description = $4, auto_link = $5, document = $6, sealed_secrets = $7, \
        version = version + 1, updated_at = $8, updated_by = $9 WHERE id = $1 AND organization_id = $2 AND version = $3";
    DELETE = "DELETE FROM environment_objects WHERE id = $1 AND organization_id = $2 AND version = $3";
}

#[derive(Clone, Debug)]
pub struct ObjectRow {
    pub id: EnvironmentObjectId,
    /// The workspace or deployment that it belongs to.
    pub entity_id: EntityId,
    pub workspace_id: WorkspaceId,
    pub key: String,
    pub object: Object<Hidden>,
    pub sealed: Sealed,
    pub stamp: Stamp,
}

impl ObjectRow {
    /// What rights on it are held on.
    pub fn belongs_to(&self) -> Target {
        match self.object.scope {
            EnvironmentObjectScope::Workspace => Target::Workspace(self.entity_id.as_workspace()),
            EnvironmentObjectScope::Deployment => {
                Target::Deployment { id: self.entity_id.as_deployment(), workspace_id: self.workspace_id }
            }
        }
    }
}

/// Encrypted secrets, if any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    pub values: Option<Vec<u8>>,
    /// Of the overrides for a deployment.
    pub links: BTreeMap<DeploymentId, Vec<u8>>,
}

/// What an object holds, as it is stored: plain values, and the names of the secret ones.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    is_secret: bool,
    #[serde(default)]
    auth_type_id: Option<String>,
    plain: BTreeMap<String, Value>,
    secrets: BTreeSet<String>,
}

impl Document {
    fn of(values: &Values<Hidden>) -> Self {
        let secrets = values.secret.keys().cloned().collect();
        Self { is_secret: false, auth_type_id: None, plain: values.plain.clone(), secrets }
    }

    fn values(self) -> Values<Hidden> {
        Values { plain: self.plain, secret: self.secrets.into_iter().map(|name| (name, Hidden)).collect() }
    }
}

pub struct ListFilter<'a> {
    /// Workspaces whose objects the caller may read.
    pub workspaces: &'a Reach,
    /// Deployments whose objects the caller may read.
    pub deployments: &'a DeploymentReach,
    pub workspace_id: Option<&'a Named<WorkspaceId>>,
    pub deployment_id: Option<&'a Named<DeploymentId>>,
    pub object_type: Option<EnvironmentObjectType>,
    pub object_key: Option<&'a str>,
}

/// Reads a page of objects, and how many there are.
pub fn list(
    conn: &Conn,
    scope: &Scope,
    listed: &ListFilter<'_>,
    paging: &Paging,
) -> Result<Listed<ObjectRow>> {
    let mut filter = Filter::new(ORGANIZATION, scope.organization());
    let mut entities = Vec::new();
    let mut within = Vec::new();
    let mut is_narrowed = false;
    if let Reach::Only(ids) = listed.workspaces {
        is_narrowed = true;
        entities.extend(texts(ids));
    }
    if let DeploymentReach::Only { workspaces, deployments } = listed.deployments {
        is_narrowed = true;
        entities.extend(texts(deployments));
        within = texts(workspaces);
    }
    if is_narrowed {
        filter.and_either(REACHED, &entities, &within);
    }
    filter.and(TYPES, listed.object_type.map(EnvironmentObjectType::as_str));
    filter.and(KEYS, listed.object_key);
    let deployment_id = listed.deployment_id.map(Named::as_str);
    let workspace_id = listed.workspace_id.map(Named::as_str);
    filter.and(ENTITY, deployment_id.or(workspace_id));
    filter.and(IN_WORKSPACE, workspace_id.filter(|_| deployment_id.is_some()));
    let total = Total::Counter(scope.organization(), KIND);
    let (mut rows, count) = TABLE.page(conn, filter, paging, total, read)?;
    links::fill(conn, &mut rows)?;
    Ok((rows, count))
}

pub fn get(conn: &Conn, scope: &Scope, id: EnvironmentObjectId) -> Result<Option<ObjectRow>> {
    let mut rows: Vec<ObjectRow> =
        conn.query_opt(&GET, params![id.as_str(), scope.organization()], read)?.into_iter().collect();
    links::fill(conn, &mut rows)?;
    Ok(rows.pop())
}

/// The objects of a deployment and those of its workspace that reach it, newest first, with the links to it only.
pub fn reaching(
    conn: &Conn,
    scope: &Scope,
    deployment_id: DeploymentId,
    workspace_id: WorkspaceId,
) -> Result<Vec<ObjectRow>> {
    let params = params![deployment_id.as_str(), workspace_id.as_str(), scope.organization()];
    let mut rows = conn.query(&REACHING, params, read)?;
    links::fill_one(conn, deployment_id, &mut rows)?;
    Ok(rows)
}

pub fn insert(tx: &Tx, scope: &Scope, row: &ObjectRow, unique_key: &str) -> Result<()> {
    let (object, stamp) = (&row.object, &row.stamp);
    let kept = stored(object)?;
    let values = params![
        row.id.as_str(),
        scope.organization(),
        object.scope.as_str(),
        row.entity_id.as_str(),
        object.object_type.as_str(),
        &row.key,
        unique_key,
        &object.description,
        object.auto_link,
        &kept,
        row.sealed.values.as_deref(),
    ];
    tx.execute(&INSERT, &[values, &stamp.values()].concat())?;
    links::insert(tx, row)?;
    counters::add(tx, scope.organization_id(), KIND, row.id.id(), 1, 0)
}

/// Replaces an object whose version is still the one before its stamp's, with its links and exclusions.
pub fn update(tx: &Tx, scope: &Scope, row: &ObjectRow) -> Result<()> {
    let (object, stamp) = (&row.object, &row.stamp);
    let kept = stored(object)?;
    let params = params![
        row.id.as_str(),
        scope.organization(),
        stamp.version - 1,
        &object.description,
        object.auto_link,
        &kept,
        row.sealed.values.as_deref(),
        stamp.updated_at.millis(),
        stamp.updated_by.id.as_str(),
    ];
    tx.run_on_one(&UPDATE, params)?;
    links::delete(tx, row.id)?;
    links::insert(tx, row)
}

pub fn delete(tx: &Tx, scope: &Scope, id: EnvironmentObjectId, version: i64) -> Result<()> {
    tx.run_on_one(&DELETE, params![id.as_str(), scope.organization(), version])?;
    links::delete(tx, id)?;
    counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)
}

fn stored(object: &Object<Hidden>) -> Result<String> {
    let auth_type_id = object.auth_type_id.clone();
    document(&Document { is_secret: object.is_secret, auth_type_id, ..Document::of(&object.values) })
}

fn read(row: &Row<'_>) -> Result<ObjectRow> {
    let (entity_id, kept): (EntityId, Document) = (row.id(2)?, row.document(8)?);
    let object = Object {
        object_type: row.word(4)?,
        scope: row.word(1)?,
        description: row.get(6)?,
        is_secret: kept.is_secret,
        auth_type_id: kept.auth_type_id.clone(),
        values: kept.values(),
        auto_link: row.get(7)?,
        links: BTreeMap::new(),
        exclusions: BTreeSet::new(),
    };
    Ok(ObjectRow {
        id: row.id(0)?,
        entity_id,
        workspace_id: row.id_opt(3)?.unwrap_or(entity_id.as_workspace()),
        key: row.get(5)?,
        object,
        sealed: Sealed { values: row.get(9)?, links: BTreeMap::new() },
        stamp: Stamp::read(row, 10)?,
    })
}
