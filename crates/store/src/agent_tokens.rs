//! Agent tokens: the credentials of a deployment's remote workers.

use podium_api::{AgentTokenId, DeploymentId, Timestamp};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::columns::Columns;
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::record::record;
use crate::stamp::{Stamp, stamp_joins};
use crate::{Doorkeeper, Scope};

pub const KIND: &str = "agent_tokens";

record! {
    #[derive(Clone, Debug)]
    pub struct AgentTokenRow as columns! {
        pub id: AgentTokenId = id "t.id",
        pub name: String = get "t.name",
        pub description: String = get "t.description",
        /// The last six characters of its value.
        pub short_token: String = get "t.short_token",
        pub expiry_period_in_days: Option<u32> = get "t.expiry_period_in_days",
        /// From when it works.
        pub start_at: Timestamp = time "t.start_at",
        pub end_at: Option<Timestamp> = time_opt "t.end_at",
        pub last_used_at: Option<Timestamp> = time_opt "t.last_used_at",
        pub stamp: Stamp = stamp,
    }
}

const DEPLOYMENT: &str = "t.deployment_id = {}";
const ORGANIZATION: &str = "t.organization_id = {}";

pub(crate) const TABLE: Table = Table {
    name: "agent_tokens",
    columns: columns!(),
    sorts: &[
        ("createdAt", "created_at"),
        ("updatedAt", "updated_at"),
        ("name", "name_key"),
        ("description", "description"),
        ("createdById", "created_by"),
        ("updatedById", "updated_by"),
        ("tokenStartAt", "start_at"),
    ],
    filters: &[DEPLOYMENT, ORGANIZATION],
    ..Table::NAMED
};

statements! {
    GET = concat!("SELECT ", columns!(), " FROM agent_tokens t", stamp_joins!(),
        " WHERE t.id = $1 AND t.deployment_id = $2 AND t.organization_id = $3");
    DEPLOYMENT_OF = "SELECT deployment_id FROM agent_tokens WHERE id = $1";
    INSERT = "INSERT INTO agent_tokens (id, organization_id, deployment_id, name, name_key, description, short_token, \
        expiry_period_in_days, start_at, end_at, version, created_at, created_by, updated_at, updated_by) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
    DELETE = "DELETE FROM agent_tokens WHERE id = $1 AND organization_id = $2 AND version = $3";
    DELETE_OF = "DELETE FROM agent_tokens WHERE deployment_id = $1 AND organization_id = $2 RETURNING id";
}

/// Reads a page of a deployment's agent tokens, and how many there are.
pub fn list(
    conn: &Conn,
    scope: &Scope,
    deployment_id: DeploymentId,
    paging: &Paging,
) -> Result<Listed<AgentTokenRow>> {
    let mut filter = Filter::new(DEPLOYMENT, deployment_id.as_str());
    filter.and(ORGANIZATION, Some(scope.organization()));
    TABLE.page(conn, filter, paging, Total::Count, AgentTokenRow::read)
}

pub fn get(
    conn: &Conn,
    scope: &Scope,
    deployment_id: DeploymentId,
    id: AgentTokenId,
) -> Result<Option<AgentTokenRow>> {
    let params = params![id.as_str(), deployment_id.as_str(), scope.organization()];
    conn.query_opt(&GET, params, AgentTokenRow::read)
}

pub fn deployment_of(conn: &Conn, _: &Doorkeeper, id: AgentTokenId) -> Result<Option<DeploymentId>> {
    conn.query_opt(&DEPLOYMENT_OF, params![id.as_str()], |row| row.id(0))
}

pub fn insert(
    tx: &Tx,
    scope: &Scope,
    deployment_id: DeploymentId,
    token: &AgentTokenRow,
    name_key: &str,
) -> Result<()> {
    let stamp = &token.stamp;
    let values = params![
        token.id.as_str(),
        scope.organization(),
        deployment_id.as_str(),
        &token.name,
        name_key,
        &token.description,
        &token.short_token,
        token.expiry_period_in_days,
        token.start_at.millis(),
        token.end_at.map(Timestamp::millis),
    ];
    tx.run(&INSERT, &[values, &stamp.values()].concat())
}

pub fn delete(tx: &Tx, scope: &Scope, id: AgentTokenId, version: i64) -> Result<()> {
    tx.run_on_one(&DELETE, params![id.as_str(), scope.organization(), version])
}

/// Removes every agent token of a deployment; returns which.
pub fn delete_of_deployment(
    tx: &Tx,
    scope: &Scope,
    deployment_id: DeploymentId,
) -> Result<Vec<AgentTokenId>> {
    tx.query(&DELETE_OF, params![deployment_id.as_str(), scope.organization()], |row| row.id(0))
}
