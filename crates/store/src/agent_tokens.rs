//! Agent tokens: the credentials of a deployment's remote workers.

use podium_api::{AgentTokenId, DeploymentId, Timestamp};
use podium_db::{Conn, Error, Result, Row, Tx, params, statements};

use crate::columns::Columns;
use crate::listing::{Filter, Paging, Table, Total};
use crate::stamp::{Stamp, stamp_columns, stamp_joins};
use crate::{Doorkeeper, Scope};

/// The kind of their changes.
pub const KIND: &str = "agent_tokens";

macro_rules! columns {
    () => {
        concat!(
            "t.id, t.name, t.description, t.short_token, t.expiry_period_in_days, t.start_at, t.end_at, t.last_used_at, ",
            stamp_columns!()
        )
    };
}

const DEPLOYMENT: &str = "t.deployment_id = {}";
const ORGANIZATION: &str = "t.organization_id = {}";

pub(crate) const TABLE: Table = Table {
    name: "agent_tokens",
    key: "id",
    on: "t.id = page.key",
    columns: columns!(),
    joins: stamp_joins!(),
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

/// An agent token, without its value.
#[derive(Clone, Debug)]
pub struct AgentTokenRow {
    /// Its id.
    pub id: AgentTokenId,
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The last six characters of its value.
    pub short_token: String,
    /// How many days it works.
    pub expiry_period_in_days: Option<u32>,
    /// From when it works.
    pub start_at: Timestamp,
    /// Until when it works.
    pub end_at: Option<Timestamp>,
    /// When it was last used.
    pub last_used_at: Option<Timestamp>,
    /// Who made it and changed it.
    pub stamp: Stamp,
}

/// Reads a page of a deployment's agent tokens, and how many there are.
pub fn list(
    conn: &Conn,
    scope: &Scope,
    deployment_id: DeploymentId,
    paging: &Paging,
) -> Result<(Vec<AgentTokenRow>, u64)> {
    let mut filter = Filter::new(DEPLOYMENT, deployment_id.as_str());
    filter.and(ORGANIZATION, Some(scope.organization()));
    TABLE.page(conn, filter, paging, Total::Count, read)
}

/// Reads an agent token.
pub fn get(
    conn: &Conn,
    scope: &Scope,
    deployment_id: DeploymentId,
    id: AgentTokenId,
) -> Result<Option<AgentTokenRow>> {
    let params = params![id.as_str(), deployment_id.as_str(), scope.organization()];
    conn.query_opt(&GET, params, read)
}

/// The deployment of an agent token.
pub fn deployment_of(conn: &Conn, _: &Doorkeeper, id: AgentTokenId) -> Result<Option<DeploymentId>> {
    conn.query_opt(&DEPLOYMENT_OF, params![id.as_str()], |row| row.id(0))
}

/// Adds an agent token.
pub fn insert(
    tx: &Tx,
    scope: &Scope,
    deployment_id: DeploymentId,
    token: &AgentTokenRow,
    name_key: &str,
) -> Result<()> {
    let stamp = &token.stamp;
    tx.execute(
        &INSERT,
        params![
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
            stamp.version,
            stamp.created_at.millis(),
            stamp.created_by.id.as_str(),
            stamp.updated_at.millis(),
            stamp.updated_by.id.as_str(),
        ],
    )?;
    Ok(())
}

/// Removes an agent token of this version.
pub fn delete(tx: &Tx, scope: &Scope, id: AgentTokenId, version: i64) -> Result<()> {
    let rows = tx.execute(&DELETE, params![id.as_str(), scope.organization(), version])?;
    if rows == 1 { Ok(()) } else { Err(Error::Lost) }
}

/// Removes every agent token of a deployment; returns which.
pub fn delete_of_deployment(
    tx: &Tx,
    scope: &Scope,
    deployment_id: DeploymentId,
) -> Result<Vec<AgentTokenId>> {
    tx.query(&DELETE_OF, params![deployment_id.as_str(), scope.organization()], |row| row.id(0))
}

fn read(row: &Row<'_>) -> Result<AgentTokenRow> {
    Ok(AgentTokenRow {
        id: row.id(0)?,
        name: row.get(1)?,
        description: row.get(2)?,
        short_token: row.get(3)?,
        expiry_period_in_days: row.get::<Option<i64>>(4)?.and_then(|days| u32::try_from(days).ok()),
        start_at: row.time(5)?,
        end_at: row.time_opt(6)?,
        last_used_at: row.time_opt(7)?,
        stamp: Stamp::read(row, 8)?,
    })
}
