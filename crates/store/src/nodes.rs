//! Nodes: the machines that run environments, and which deployment is placed on which of them.
//!
//! These functions cover all organizations: a machine runs environments of any.

use podium_api::{DeploymentId, NodeId, Timestamp};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::columns::Columns;
use crate::record::record;
use crate::{Steward, System, deployments, work};

record! {
    /// A machine that runs environments.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct NodeRow as columns! {
        /// Its id, which is stored in its data directory.
        pub id: NodeId = id "n.id",
        pub name: String = get "n.name",
        pub first_seen_at: Timestamp = time "n.first_seen_at",
        pub last_seen_at: Timestamp = time "n.last_seen_at",
        pub deployments: i64 = get "(SELECT COUNT(*) FROM placements p WHERE p.node_id = n.id) AS placed",
    }
}

statements! {
    JOIN = "INSERT INTO nodes (id, name, first_seen_at, last_seen_at) VALUES ($1, $2, $3, $3) \
        ON CONFLICT (id) DO UPDATE SET name = excluded.name, last_seen_at = excluded.last_seen_at";
    HEARTBEAT = "UPDATE nodes SET last_seen_at = $2 WHERE id = $1";
    LIST = concat!("SELECT ", columns!(), " FROM nodes n ORDER BY n.name");
    BY_NAME = concat!("SELECT ", columns!(), " FROM nodes n WHERE n.name = $1");
    LEAST_LOADED = concat!("SELECT ", columns!(), " FROM nodes n \
        WHERE n.last_seen_at >= $1 OR n.id = $2 ORDER BY placed, n.name LIMIT 1");
    PLACEMENT = "SELECT p.node_id, n.name FROM placements p LEFT JOIN nodes n ON n.id = p.node_id \
        WHERE p.deployment_id = $1";
    PLACE = "INSERT INTO placements (deployment_id, node_id) VALUES ($1, $2) \
        ON CONFLICT (deployment_id) DO UPDATE SET node_id = excluded.node_id WHERE placements.node_id = ''";
    UNPLACE = "DELETE FROM placements WHERE deployment_id = $1";
    KNOWN = "SELECT 1 FROM deployments WHERE id = $1 UNION SELECT 1 FROM work WHERE kind = $2 AND id = $1";
    ON_OTHER_NODES = "SELECT deployment_id FROM placements WHERE deployment_id IN ($1[]) AND node_id <> $2 AND node_id <> ''";
    PLACED_ON = "SELECT deployment_id FROM placements WHERE node_id = $1";
    KEEP_ONLY = "DELETE FROM nodes WHERE id <> $1";
    FORGET = "DELETE FROM nodes WHERE id = $1";
    UNASSIGN = "UPDATE placements SET node_id = '' WHERE node_id = $1";
    WITHOUT_PLACEMENT = "SELECT d.id FROM deployments d LEFT JOIN placements p ON p.deployment_id = d.id \
        WHERE p.deployment_id IS NULL ORDER BY d.id";
}

/// Where a deployment runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Not placed yet.
    Unknown,
    /// On a node that was forgotten: another one must be chosen.
    Forgotten,
    On {
        node_id: NodeId,
        /// Its name; empty if the node is unknown.
        name: String,
    },
}

/// Registers a node, or records that it is back; a name that another node has violates a unique index.
pub fn join(tx: &Tx, _: &Steward, id: NodeId, name: &str, now: Timestamp) -> Result<()> {
    tx.run(&JOIN, params![id.as_str(), name, now.millis()])
}

/// Registers the only node, and removes a previous one.
pub fn join_alone(tx: &Tx, system: &Steward, id: NodeId, name: &str, now: Timestamp) -> Result<()> {
    tx.execute(&KEEP_ONLY, params![id.as_str()])?;
    join(tx, system, id, name, now)
}

/// Records a heartbeat; returns whether the node is still registered.
pub fn heartbeat(tx: &Tx, _: &Steward, id: NodeId, now: Timestamp) -> Result<bool> {
    Ok(tx.execute(&HEARTBEAT, params![id.as_str(), now.millis()])? == 1)
}

pub fn list(conn: &Conn, _: &System) -> Result<Vec<NodeRow>> {
    conn.query(&LIST, params![], NodeRow::read)
}

pub fn by_name(conn: &Conn, _: &System, name: &str) -> Result<Option<NodeRow>> {
    conn.query_opt(&BY_NAME, params![name], NodeRow::read)
}

/// The node for a new deployment: of those with a heartbeat since a time, and the asking one, the one with the fewest.
pub fn least_loaded(conn: &Conn, _: &Steward, seen_since: Timestamp, own: NodeId) -> Result<Option<NodeRow>> {
    conn.query_opt(&LEAST_LOADED, params![seen_since.millis(), own.as_str()], NodeRow::read)
}

pub fn placement(conn: &Conn, _: &Steward, deployment_id: DeploymentId) -> Result<Placement> {
    let found = conn.query_opt(&PLACEMENT, params![deployment_id.as_str()], |row| {
        let name: Option<String> = row.get(1)?;
        Ok(match row.id_opt(0)? {
            Some(node_id) => Placement::On { node_id, name: name.unwrap_or_default() },
            None => Placement::Forgotten,
        })
    })?;
    Ok(found.unwrap_or(Placement::Unknown))
}

/// Places a deployment on a node unless it is already placed, and assigns its work to its node; returns the placement.
pub fn place(tx: &Tx, system: &Steward, deployment_id: DeploymentId, node_id: NodeId) -> Result<Placement> {
    tx.execute(&PLACE, params![deployment_id.as_str(), node_id.as_str()])?;
    let placement = placement(tx, system, deployment_id)?;
    if let Placement::On { node_id, .. } = &placement {
        work::assign(tx, deployments::KIND, deployment_id.id(), node_id.as_str())?;
    }
    Ok(placement)
}

/// Places those of these deployments on a node that have none; returns the ids that the database does not know.
pub fn adopt(tx: &Tx, system: &Steward, kept: &[DeploymentId], node_id: NodeId) -> Result<Vec<DeploymentId>> {
    let mut unknown = Vec::new();
    for id in kept {
        let known = tx.query_opt(&KNOWN, params![id.as_str(), deployments::KIND], |_| Ok(()))?;
        if known.is_none() {
            unknown.push(*id);
            continue;
        }
        place(tx, system, *id, node_id)?;
    }
    Ok(unknown)
}

/// Those of these deployments that run on another node.
pub fn on_other_nodes(
    conn: &Conn,
    _: &Steward,
    ids: &[DeploymentId],
    node_id: NodeId,
) -> Result<Vec<DeploymentId>> {
    let ids: Vec<&str> = ids.iter().map(DeploymentId::as_str).collect();
    conn.query(&ON_OTHER_NODES, params![&ids, node_id.as_str()], |row| row.id(0))
}

/// Deletes the placement of a deleted deployment.
pub fn unplace(tx: &Tx, _: &Steward, deployment_id: DeploymentId) -> Result<()> {
    tx.run(&UNPLACE, params![deployment_id.as_str()])
}

/// Deletes a node, and enqueues each of its deployments so that the loops choose another; returns how many.
pub fn forget(tx: &Tx, _: &System, node_id: NodeId, now: Timestamp) -> Result<usize> {
    let placed: Vec<DeploymentId> = tx.query(&PLACED_ON, params![node_id.as_str()], |row| row.id(0))?;
    tx.execute(&UNASSIGN, params![node_id.as_str()])?;
    tx.execute(&FORGET, params![node_id.as_str()])?;
    work::unassign(tx, deployments::KIND, node_id.as_str(), now)?;
    placed.iter().try_for_each(|id| work::add(tx, deployments::KIND, id.id(), now, now))?;
    Ok(placed.len())
}

pub fn without_placement(conn: &Conn, _: &System) -> Result<Vec<DeploymentId>> {
    conn.query(&WITHOUT_PLACEMENT, params![], |row| row.id(0))
}

/// Enqueues these deployments, which have no placement, so that the loops choose a node.
pub fn request_placement(tx: &Tx, _: &System, ids: &[DeploymentId], now: Timestamp) -> Result<()> {
    ids.iter().try_for_each(|id| {
        tx.execute(&PLACE, params![id.as_str(), ""])?;
        work::add(tx, deployments::KIND, id.id(), now, now)
    })
}
