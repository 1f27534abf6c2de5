//! API tokens; their values are in [`crate::credentials`], as hashes.

use podium_api::enums::{TokenKind, TokenScope};
use podium_api::{DeploymentId, EntityId, Named, Timestamp, TokenId, WorkspaceId};
use podium_db::{Conn, Result, Sql, Tx, params, statements};
use podium_domain::{DeploymentReach, Reach};

use crate::columns::Columns;
use crate::counters;
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::record::{Reader, record};
use crate::stamp::{Stamp, stamp_joins};
use crate::{Housekeeper, Scope};

/// The kind of their counter and their changes.
pub const KIND: &str = "tokens";

record! {
    /// A token, without its roles and its value.
    #[derive(Clone, Debug)]
    pub struct TokenRow as columns! {
        pub id: TokenId = id "t.id",
        pub name: String = get "t.name",
        pub description: String = get "t.description",
        /// What it belongs to.
        pub scope: TokenScope = word "t.scope",
        /// Where it belongs.
        pub home: TokenOwner = owner_by_scope "t.entity_id, t.workspace_id",
        /// How it is meant to be used.
        pub kind: TokenKind = word "t.kind",
        /// The last six characters of its value.
        pub short_token: String = get "t.short_token",
        /// From when it works.
        pub start_at: Timestamp = time "t.start_at",
        pub end_at: Option<Timestamp> = time_opt "t.end_at",
        /// How many days it works after it was made or rotated.
        pub expiry_period_in_days: Option<u32> = get "t.expiry_period_in_days",
        pub last_rotated_at: Option<Timestamp> = time_opt "t.last_rotated_at",
        /// When it was last used, to the minute.
        pub last_used_at: Option<Timestamp> = time_opt "t.last_used_at",
        pub stamp: Stamp = stamp,
    }
}

impl Reader<'_, '_> {
    /// Where a token belongs, whose scope was read before.
    fn owner_by_scope(&mut self) -> Result<TokenOwner> {
        let scope: TokenScope = self.last()?;
        let entity_id: EntityId = self.id()?;
        let deployment_id = (scope == TokenScope::Deployment).then(|| entity_id.as_deployment());
        Ok(TokenOwner { entity_id, workspace_id: self.id_opt()?, deployment_id })
    }
}

const ORGANIZATION: &str = "t.organization_id = {}";
const SCOPE: &str = "t.scope = {}";
const KINDS: &str = "t.kind = {}";
// One list of `SCOPE:entity` and `WITHIN:workspace` keys, so that the condition has one parameter.
const REACHED: &str = "(t.scope || ':' || t.entity_id IN ({}[]) OR 'WITHIN:' || t.workspace_id IN ({}[]) AND t.scope = 'DEPLOYMENT')";
const IN_WORKSPACE: &str = "t.id IN (SELECT g.subject_id FROM grants g WHERE g.organization_id = t.organization_id \
    AND g.workspace_id = {})";
const ON_DEPLOYMENT: &str = "t.id IN (SELECT g.subject_id FROM grants g WHERE g.organization_id = t.organization_id \
    AND g.deployment_id = {})";
const ON_DAG: &str = "t.id IN (SELECT g.subject_id FROM grants g WHERE g.organization_id = t.organization_id \
    AND g.scope_type = 'DAG' AND g.entity_id = {})";
const ON_DAG_TAGS: &str = "t.id IN (SELECT g.subject_id FROM grants g WHERE g.organization_id = t.organization_id \
    AND g.scope_type = 'DAG_TAG' AND g.entity_id IN ({}[]))";

pub(crate) const TABLE: Table = Table {
    name: "api_tokens",
    columns: columns!(),
    sorts: &[
        ("createdAt", "created_at"),
        ("updatedAt", "updated_at"),
        ("name", "name_key"),
        ("description", "description"),
        ("tokenStartAt", "start_at"),
    ],
    filters: &[ORGANIZATION, SCOPE, KINDS, REACHED, IN_WORKSPACE, ON_DEPLOYMENT, ON_DAG, ON_DAG_TAGS],
    ..Table::NAMED
};

statements! {
    GET = concat!("SELECT ", columns!(), " FROM api_tokens t", stamp_joins!(), " WHERE t.id = $1 AND t.organization_id = $2");
    INSERT = "INSERT INTO api_tokens (id, organization_id, scope, entity_id, workspace_id, deployment_id, name, name_key, \
        description, kind, short_token, expiry_period_in_days, start_at, end_at, version, created_at, created_by, updated_at, \
        updated_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)";
    RENAME = "UPDATE api_tokens SET name = $4, name_key = $5, description = $6, version = version + 1, updated_at = $7, \
        updated_by = $8 WHERE id = $1 AND organization_id = $2 AND version = $3";
    ROTATE = "UPDATE api_tokens SET short_token = $4, start_at = $5, end_at = $6, last_rotated_at = $5, \
        version = version + 1, updated_at = $5, updated_by = $7 WHERE id = $1 AND organization_id = $2 AND version = $3";
    TOUCH = "UPDATE api_tokens SET version = version + 1, updated_at = $4, updated_by = $5 \
        WHERE id = $1 AND organization_id = $2 AND version = $3";
    DELETE = "DELETE FROM api_tokens WHERE id = $1 AND organization_id = $2 AND version = $3";
    OF_WORKSPACE = "SELECT id FROM api_tokens WHERE workspace_id = $1 AND organization_id = $2";
    OF_DEPLOYMENT = "SELECT id FROM api_tokens WHERE deployment_id = $1 AND organization_id = $2";
    MOVE_DEPLOYMENT = "UPDATE api_tokens SET workspace_id = $3 WHERE deployment_id = $1 AND organization_id = $2";
    DELETE_BY_ID = "DELETE FROM api_tokens WHERE id = $1 AND organization_id = $2";
    USED = "UPDATE api_tokens SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)";
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenOwner {
    /// The organization, workspace or deployment.
    pub entity_id: EntityId,
    pub workspace_id: Option<WorkspaceId>,
    pub deployment_id: Option<DeploymentId>,
}

pub struct ListFilter<'a> {
    /// Workspaces whose tokens the caller could manage.
    pub workspaces: &'a Reach,
    /// Deployments whose tokens the caller could manage.
    pub deployments: &'a DeploymentReach,
    /// Whether the caller could manage all.
    pub everything: bool,
    /// Only those of scope ORGANIZATION.
    pub only_organization: bool,
    /// Only those of this kind.
    pub kind: Option<TokenKind>,
    /// Only those with a role in this workspace.
    pub workspace_id: Option<&'a Named<WorkspaceId>>,
    /// Only those with a role on this deployment.
    pub deployment_id: Option<&'a Named<DeploymentId>>,
    /// Only those with a role on this DAG.
    pub dag_id: Option<&'a str>,
    /// Only those with a role on one of these tags, if any are given.
    pub dag_tags: &'a [String],
}

/// Reads a page of tokens, and how many there are.
pub fn list(
    conn: &Conn,
    scope: &Scope,
    listed: &ListFilter<'_>,
    paging: &Paging,
) -> Result<Listed<TokenRow>> {
    let reached = reached(listed);
    let mut filter = Filter::new(ORGANIZATION, scope.organization());
    filter.and(REACHED, (!listed.everything).then_some(&reached));
    filter.and(SCOPE, listed.only_organization.then_some("ORGANIZATION"));
    filter.and(KINDS, listed.kind.map(TokenKind::as_str));
    filter.and(IN_WORKSPACE, listed.workspace_id.map(Named::as_str));
    filter.and(ON_DEPLOYMENT, listed.deployment_id.map(Named::as_str));
    filter.and(ON_DAG, listed.dag_id);
    filter.and(ON_DAG_TAGS, Some(listed.dag_tags).filter(|tags| !tags.is_empty()));
    let total = Total::Counter(scope.organization(), KIND);
    TABLE.page(conn, filter, paging, total, TokenRow::read)
}

fn reached(listed: &ListFilter<'_>) -> Vec<String> {
    let mut keys = Vec::new();
    if let Reach::Only(ids) = listed.workspaces {
        keys.extend(ids.iter().map(|id| format!("WORKSPACE:{id}")));
    }
    if let DeploymentReach::Only { workspaces, deployments } = listed.deployments {
        keys.extend(workspaces.iter().map(|id| format!("WITHIN:{id}")));
        keys.extend(deployments.iter().map(|id| format!("DEPLOYMENT:{id}")));
    }
    keys
}

pub fn get(conn: &Conn, scope: &Scope, id: TokenId) -> Result<Option<TokenRow>> {
    conn.query_opt(&GET, params![id.as_str(), scope.organization()], TokenRow::read)
}

pub fn insert(tx: &Tx, scope: &Scope, token: &TokenRow, name_key: &str) -> Result<()> {
    let (organization_id, home, stamp) = (scope.organization_id(), token.home, &token.stamp);
    let values = params![
        token.id.as_str(),
        organization_id.as_str(),
        token.scope.as_str(),
        home.entity_id.as_str(),
        home.workspace_id.as_ref().map_or("", WorkspaceId::as_str),
        home.deployment_id.as_ref().map_or("", DeploymentId::as_str),
        &token.name,
        name_key,
        &token.description,
        token.kind.as_str(),
        &token.short_token,
        token.expiry_period_in_days,
        token.start_at.millis(),
        token.end_at.map(Timestamp::millis),
    ];
    tx.execute(&INSERT, &[values, &stamp.values()].concat())?;
    counters::add(tx, organization_id, KIND, token.id.id(), 1, 0)
}

/// Replaces the name and description of a token whose version is still the one before.
pub fn rename(tx: &Tx, scope: &Scope, token: &TokenRow, name_key: &str) -> Result<()> {
    let stamp = &token.stamp;
    let params = params![
        token.id.as_str(),
        scope.organization(),
        stamp.version - 1,
        &token.name,
        name_key,
        &token.description,
        stamp.updated_at.millis(),
        stamp.updated_by.id.as_str(),
    ];
    tx.run_on_one(&RENAME, params)
}

/// Notes a new value of a token whose version is still the one before.
pub fn rotate(tx: &Tx, scope: &Scope, token: &TokenRow) -> Result<()> {
    let stamp = &token.stamp;
    let params = params![
        token.id.as_str(),
        scope.organization(),
        stamp.version - 1,
        &token.short_token,
        token.start_at.millis(),
        token.end_at.map(Timestamp::millis),
        stamp.updated_by.id.as_str(),
    ];
    tx.run_on_one(&ROTATE, params)
}

/// Advances the version of a token, which is still the one before `stamp`'s.
pub fn touch(tx: &Tx, scope: &Scope, id: TokenId, stamp: &Stamp) -> Result<()> {
    let (organization_id, version) = (scope.organization_id(), stamp.version - 1);
    let (at, by) = (stamp.updated_at.millis(), stamp.updated_by.id);
    tx.run_on_one(&TOUCH, params![id.as_str(), organization_id.as_str(), version, at, by.as_str()])
}

pub fn delete(tx: &Tx, scope: &Scope, id: TokenId, version: i64) -> Result<()> {
    tx.run_on_one(&DELETE, params![id.as_str(), scope.organization(), version])?;
    counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)
}

/// Removes every token of a workspace and its deployments; returns which.
pub fn delete_of_workspace(tx: &Tx, scope: &Scope, workspace_id: WorkspaceId) -> Result<Vec<TokenId>> {
    delete_of(tx, scope, &OF_WORKSPACE, workspace_id.into())
}

/// Removes every token of a deployment; returns which.
pub fn delete_of_deployment(tx: &Tx, scope: &Scope, deployment_id: DeploymentId) -> Result<Vec<TokenId>> {
    delete_of(tx, scope, &OF_DEPLOYMENT, deployment_id.into())
}

pub fn move_deployment(
    tx: &Tx,
    scope: &Scope,
    deployment_id: DeploymentId,
    workspace_id: WorkspaceId,
) -> Result<()> {
    let params = params![deployment_id.as_str(), scope.organization(), workspace_id.as_str()];
    tx.run(&MOVE_DEPLOYMENT, params)
}

fn delete_of(tx: &Tx, scope: &Scope, of: &Sql, entity_id: EntityId) -> Result<Vec<TokenId>> {
    let params = params![entity_id.as_str(), scope.organization()];
    let ids: Vec<TokenId> = tx.query(of, params, |row| row.id(0))?;
    for id in &ids {
        tx.execute(&DELETE_BY_ID, params![id.as_str(), scope.organization()])?;
        counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)?;
    }
    Ok(ids)
}

/// Notes when a token was last used.
pub fn used(tx: &Tx, _: &Housekeeper, id: TokenId, at: Timestamp) -> Result<()> {
    tx.run(&USED, params![id.as_str(), at.millis()])
}
