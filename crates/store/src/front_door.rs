//! The front door: one-time codes, the passes that browsers hold on the origins of environments, and the ports of
//! those origins.
//!
//! These functions cover all organizations: the caller is not known yet when a code or a port is looked up.

use podium_api::enums::DeploymentStatus;
use podium_api::{DeploymentId, OrganizationId, SessionId, Timestamp, WorkspaceId};
use podium_db::{Conn, Result, Row, Tx, Value, params, statements};
use podium_domain::UserText;
use podium_domain::planes::Location;

use crate::columns::Columns;
use crate::record::record;
use crate::{Doorkeeper, Housekeeper, InScope, Membership, Scope, deployments};

record! {
    /// The access that a code or a pass gives: to what, for whom, and until when.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EnvironmentAccess as access_columns! {
        pub deployment_id: DeploymentId = id "deployment_id",
        /// The hash of the token that it refers to.
        pub credential_hash: String = get "credential_hash",
        pub expires_at: Timestamp = time "expires_at",
        /// The hash of the browser session that it came from; `None` if a program created the link.
        pub session_hash: Option<String> = get "session_hash",
    }
}

/// A deployment `d` as it is identified by its address, with its cluster `c`.
macro_rules! deployment_ref {
    () => {
        "d.id, d.organization_id, d.namespace, d.cluster_id, c.plane"
    };
}

/// A deployment, if it is of the organization.
macro_rules! deployment {
    () => {
        "deployment_id IN (SELECT id FROM deployments WHERE id = $1 AND organization_id = $2)"
    };
}

statements! {
    BY_NAMESPACE = concat!("SELECT ", deployment_ref!(), " FROM deployments d LEFT JOIN clusters c ON c.id = d.cluster_id \
        WHERE d.namespace = $1");
    SUMMARY = concat!("SELECT ", deployment_ref!(), ", d.name, d.status, d.status_reason FROM deployments d \
        LEFT JOIN clusters c ON c.id = d.cluster_id WHERE d.id = $1");
    BY_PORT = concat!("SELECT ", deployment_ref!(), " FROM door_ports p JOIN deployments d ON d.id = p.deployment_id \
        LEFT JOIN clusters c ON c.id = d.cluster_id WHERE p.port = $1");
    AT_DOOR = "SELECT workspace_id, status FROM deployments WHERE id = $1";
    ADD_CODE = "INSERT INTO door_codes (hash, deployment_id, credential_hash, expires_at, session_hash) \
        VALUES ($1, $2, $3, $4, $5)";
    CODE = concat!("SELECT ", access_columns!(), " FROM door_codes WHERE hash = $1");
    TAKE_CODE = concat!("DELETE FROM door_codes WHERE hash = $1 RETURNING ", access_columns!());
    PRUNE_CODES = "DELETE FROM door_codes WHERE hash IN (SELECT hash FROM door_codes WHERE expires_at < $1 LIMIT $2)";
    ADD_PASS = "INSERT INTO door_passes (hash, deployment_id, credential_hash, expires_at, session_hash) \
        VALUES ($1, $2, $3, $4, $5)";
    PASS = "SELECT p.deployment_id, p.credential_hash, p.expires_at, p.session_hash, COALESCE(s.id, s.token_id) \
        FROM door_passes p \
        LEFT JOIN browser_sessions s ON s.hash = p.session_hash \
        WHERE p.hash = $1 AND (p.session_hash IS NULL OR s.hash IS NOT NULL)";
    DROP_PASS = "DELETE FROM door_passes WHERE hash = $1";
    PRUNE_PASSES = "DELETE FROM door_passes WHERE hash IN (SELECT hash FROM door_passes WHERE expires_at < $1 LIMIT $2)";
    PORT_OF = "SELECT port FROM door_ports WHERE deployment_id = $1";
    PORTS = "SELECT port FROM door_ports ORDER BY port";
    TAKE_PORT = "INSERT INTO door_ports (port, deployment_id) VALUES ($1, $2)";
    FREE_PORT = "DELETE FROM door_ports WHERE deployment_id = $1 AND port = $2";
    REST_PORT = "INSERT INTO resting_ports (port, deployment_id, released_at) \
        SELECT port, deployment_id, $3 FROM door_ports WHERE deployment_id = $1 AND port = $2 \
        ON CONFLICT (port) DO UPDATE SET deployment_id = excluded.deployment_id, released_at = excluded.released_at";
    RESTING = "SELECT port, released_at FROM resting_ports ORDER BY released_at, port";
    END_REST = "DELETE FROM resting_ports WHERE port = $1";
    DROP_CODES_OF_PORT = "DELETE FROM door_codes \
        WHERE deployment_id IN (SELECT deployment_id FROM resting_ports WHERE port = $1)";
    DROP_PASSES_OF_PORT = "DELETE FROM door_passes \
        WHERE deployment_id IN (SELECT deployment_id FROM resting_ports WHERE port = $1)";
    REST_PORT_OF = concat!("INSERT INTO resting_ports (port, deployment_id, released_at) \
        SELECT port, deployment_id, $3 FROM door_ports WHERE ", deployment!(), " \
        ON CONFLICT (port) DO UPDATE SET deployment_id = excluded.deployment_id, released_at = excluded.released_at");
    DROP_CODES_OF = concat!("DELETE FROM door_codes WHERE ", deployment!());
    DROP_PASSES_OF = concat!("DELETE FROM door_passes WHERE ", deployment!());
    DROP_PORT_OF = concat!("DELETE FROM door_ports WHERE ", deployment!());
}

/// A deployment as identified by its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentRef {
    location: Location,
    organization_id: OrganizationId,
}

impl DeploymentRef {
    pub const fn id(&self) -> DeploymentId {
        self.location.id
    }

    pub const fn organization_id(&self) -> OrganizationId {
        self.organization_id
    }

    /// Its name in the data plane.
    pub fn namespace(&self) -> &str {
        &self.location.namespace
    }
}

/// A deployment at whose door somebody is, who may not be let in.
#[derive(Clone, Debug)]
pub struct DoorRow {
    deployment: DeploymentRef,
    workspace_id: WorkspaceId,
    status: DeploymentStatus,
}

impl DoorRow {
    /// Proof that a member may see it.
    pub fn seen_by(self, member: &Membership) -> Option<InScope<Self>> {
        let is_seen = member.organization_id() == self.deployment.organization_id
            && member.grants().sees_deployment(self.deployment.id(), self.workspace_id);
        is_seen.then(|| InScope::found(self))
    }

    pub const fn deployment(&self) -> &DeploymentRef {
        &self.deployment
    }

    pub const fn workspace_id(&self) -> WorkspaceId {
        self.workspace_id
    }

    pub const fn status(&self) -> DeploymentStatus {
        self.status
    }
}

impl InScope<DoorRow> {
    pub fn location(&self) -> InScope<Location> {
        InScope::found(self.get().deployment.location.clone())
    }
}

pub fn by_namespace(conn: &Conn, _: &Doorkeeper, namespace: &str) -> Result<Option<DeploymentRef>> {
    conn.query_opt(&BY_NAMESPACE, params![namespace], deployment_ref)
}

pub fn by_port(conn: &Conn, _: &Doorkeeper, port: u16) -> Result<Option<DeploymentRef>> {
    conn.query_opt(&BY_PORT, params![i64::from(port)], deployment_ref)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentSummary {
    pub deployment: DeploymentRef,
    pub name: String,
    pub status: DeploymentStatus,
    pub status_reason: UserText,
}

/// A deployment with what its page shows.
pub fn summary(conn: &Conn, _: &Doorkeeper, id: DeploymentId) -> Result<Option<DeploymentSummary>> {
    conn.query_opt(&SUMMARY, params![id.as_str()], |row| {
        Ok(DeploymentSummary {
            deployment: deployment_ref(row)?,
            name: row.get(5)?,
            status: row.word(6)?,
            status_reason: UserText::from_stored(row.get(7)?),
        })
    })
}

/// A deployment for somebody at its door. Looking for one that does not exist takes as long.
pub fn at_door(conn: &Conn, _: &Doorkeeper, deployment: Option<&DeploymentRef>) -> Result<Option<DoorRow>> {
    let id = deployment.map_or("", |deployment| deployment.location.id.as_str());
    let found = conn.query_opt(&AT_DOOR, params![id], |row| Ok((row.id(0)?, row.word(1)?)))?;
    Ok(deployment.zip(found).map(|(deployment, (workspace_id, status))| DoorRow {
        deployment: deployment.clone(),
        workspace_id,
        status,
    }))
}

pub fn add_code(tx: &Tx, _: &Doorkeeper, hash: &str, access: &EnvironmentAccess) -> Result<()> {
    tx.run(&ADD_CODE, &values(hash, access))
}

/// Finds a one-time code without using it.
pub fn code(conn: &Conn, _: &Doorkeeper, hash: &str) -> Result<Option<EnvironmentAccess>> {
    conn.query_opt(&CODE, params![hash], EnvironmentAccess::read)
}

/// Uses up a one-time code; of two concurrent attempts, one gets it.
pub fn take_code(tx: &Tx, _: &Doorkeeper, hash: &str) -> Result<Option<EnvironmentAccess>> {
    Ok(tx.query(&TAKE_CODE, params![hash], EnvironmentAccess::read)?.pop())
}

pub fn add_pass(tx: &Tx, _: &Doorkeeper, hash: &str, access: &EnvironmentAccess) -> Result<()> {
    tx.run(&ADD_PASS, &values(hash, access))
}

/// Finds a pass and the session that it came from, without which it is invalid.
pub fn pass(
    conn: &Conn,
    _: &Doorkeeper,
    hash: &str,
) -> Result<Option<(EnvironmentAccess, Option<SessionId>)>> {
    conn.query_opt(&PASS, params![hash], |row| Ok((EnvironmentAccess::read(row)?, row.id_opt(4)?)))
}

pub fn drop_pass(tx: &Tx, _: &Doorkeeper, hash: &str) -> Result<()> {
    tx.run(&DROP_PASS, params![hash])
}

/// Drops some codes that expired before a time; returns how many.
pub fn prune_codes(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE_CODES, params![before.millis(), limit])
}

/// Drops some passes that expired before a time; returns how many.
pub fn prune_passes(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE_PASSES, params![before.millis(), limit])
}

pub fn port_of(conn: &Conn, _: &Doorkeeper, deployment_id: DeploymentId) -> Result<Option<u16>> {
    Ok(conn.query_opt(&PORT_OF, params![deployment_id.as_str()], port)?.flatten())
}

/// Every port that belongs to a deployment, in order.
pub fn ports(conn: &Conn, _: &Doorkeeper) -> Result<Vec<u16>> {
    Ok(conn.query(&PORTS, params![], port)?.into_iter().flatten().collect())
}

/// The ports that belong to no deployment any more and when they were released, those that have rested longest first.
pub fn resting_ports(conn: &Conn, _: &Doorkeeper) -> Result<Vec<(u16, Timestamp)>> {
    let found = conn.query(&RESTING, params![], |row| Ok((port(row)?, row.time(1)?)))?;
    Ok(found.into_iter().filter_map(|(port, at)| Some((port?, at))).collect())
}

/// Assigns a port to a deployment; violates a unique index if either is already assigned. What browsers hold for the
/// deployment that had it before ends.
pub fn take_port(tx: &Tx, _: &Doorkeeper, port: u16, deployment_id: DeploymentId) -> Result<()> {
    for statement in [&DROP_CODES_OF_PORT, &DROP_PASSES_OF_PORT, &END_REST] {
        tx.execute(statement, params![i64::from(port)])?;
    }
    tx.run(&TAKE_PORT, params![i64::from(port), deployment_id.as_str()])
}

/// Releases the port of a deployment, which rests from now on, unless the deployment has another one by now.
pub fn free_port(
    tx: &Tx,
    _: &Doorkeeper,
    (deployment_id, port): (DeploymentId, u16),
    now: Timestamp,
) -> Result<()> {
    tx.execute(&REST_PORT, params![deployment_id.as_str(), i64::from(port), now.millis()])?;
    tx.run(&FREE_PORT, params![deployment_id.as_str(), i64::from(port)])
}

pub fn delete_of_deployment(
    tx: &Tx,
    scope: &Scope,
    deployment_id: DeploymentId,
    now: Timestamp,
) -> Result<()> {
    tx.execute(&REST_PORT_OF, params![deployment_id.as_str(), scope.organization(), now.millis()])?;
    for statement in [&DROP_CODES_OF, &DROP_PASSES_OF, &DROP_PORT_OF] {
        tx.execute(statement, params![deployment_id.as_str(), scope.organization()])?;
    }
    Ok(())
}

fn values<'a>(hash: &'a str, access: &'a EnvironmentAccess) -> [Value<'a>; 5] {
    [
        hash.into(),
        access.deployment_id.as_str().into(),
        access.credential_hash.as_str().into(),
        access.expires_at.millis().into(),
        access.session_hash.as_deref().into(),
    ]
}

fn deployment_ref(row: &Row<'_>) -> Result<DeploymentRef> {
    Ok(DeploymentRef { location: deployments::location(row, 0, 2)?, organization_id: row.id(1)? })
}

fn port(row: &Row<'_>) -> Result<Option<u16>> {
    Ok(u16::try_from(row.get::<i64>(0)?).ok())
}
