//! Clusters: their columns, the document of their settings, and their observed state.

use std::collections::{BTreeMap, BTreeSet};

use podium_api::clusters::{Cluster, ClusterDetails};
use podium_api::enums::{CloudProvider, ClusterStatus, OperationCause, PlaneKind};
use podium_api::{ClusterId, DeploymentId, One, OperationId, OrganizationId, Timestamp, WorkspaceId};
use podium_db::{Change, Conn, Error, Result, Row, Tx, params, statements};
use podium_domain::clusters::plan::{Desired, Settled};
use podium_domain::events::{NewEvent, Resource, of_cluster};
use podium_domain::options;
use podium_domain::planes::ClusterLocation;
use podium_domain::{Reach, Target, UserText};

use crate::columns::{Columns, document};
use crate::deployments::RollOut;
use crate::listing::{Filter, Listed, Paging, Table, Total, reached};
use crate::{Scope, Steward, System};
use crate::{changes, counters, deployments, events, work};

/// The kind of their counter, their changes and their work.
pub const KIND: &str = "clusters";

macro_rules! columns {
    () => {
        "t.id, t.organization_id, t.name, t.cluster_type, t.cloud_provider, t.region, t.details, t.wants_failed_over, \
         t.generation, t.status, t.status_reason, t.is_failed_over, t.health, t.metadata, t.observed_generation, \
         t.version, t.created_at, t.updated_at, t.plane"
    };
}

macro_rules! visible {
    ($ids:literal) => {
        concat!(
            "(NOT EXISTS (SELECT 1 FROM cluster_workspaces w WHERE w.cluster_id = t.id) \
             OR EXISTS (SELECT 1 FROM cluster_workspaces w WHERE w.cluster_id = t.id AND w.workspace_id IN (",
            $ids,
            "[])))"
        )
    };
}

const ORGANIZATION: &str = "t.organization_id = {}";
const VISIBLE: &str = visible!("{}");
const NAMES: &str = "t.name_key IN ({}[])";
const PROVIDER: &str = "t.cloud_provider = {}";

pub(crate) const TABLE: Table = Table {
    name: "clusters",
    columns: columns!(),
    joins: "",
    filters: &[ORGANIZATION, VISIBLE, NAMES, PROVIDER],
    ..Table::NAMED
};

statements! {
    GET = concat!("SELECT ", columns!(), " FROM clusters t WHERE t.id = $1 AND t.organization_id = $2");
    GET_VISIBLE = concat!("SELECT ", columns!(), " FROM clusters t WHERE t.id = $1 AND t.organization_id = $2 AND ", visible!("$3"));
    STATE = concat!("SELECT ", columns!(), " FROM clusters t WHERE t.id = $1");
    FIRST_TWO = "SELECT id FROM clusters WHERE organization_id = $1 ORDER BY created_at, id LIMIT 2";
    NAMES_FOR = "SELECT c.name FROM clusters c WHERE c.organization_id = $1 AND (NOT EXISTS \
        (SELECT 1 FROM cluster_workspaces w WHERE w.cluster_id = c.id) OR EXISTS \
        (SELECT 1 FROM cluster_workspaces w WHERE w.cluster_id = c.id AND w.workspace_id = $2)) \
        ORDER BY c.name_key LIMIT 20";
    WORKSPACES = "SELECT cluster_id, workspace_id FROM cluster_workspaces WHERE cluster_id IN ($1[]) \
        ORDER BY cluster_id, workspace_id";
    ADMITS = "SELECT (NOT EXISTS (SELECT 1 FROM cluster_workspaces w WHERE w.cluster_id = c.id)) \
        OR EXISTS (SELECT 1 FROM cluster_workspaces w WHERE w.cluster_id = c.id AND w.workspace_id = $3) \
        FROM clusters c WHERE c.id = $1 AND c.organization_id = $2";
    LOCK = "UPDATE clusters SET version = version WHERE id = $1 AND organization_id = $2";
    INSERT = "INSERT INTO clusters (id, organization_id, name, name_key, cluster_type, cloud_provider, region, details, \
        wants_failed_over, generation, status, status_reason, is_failed_over, health, metadata, observed_generation, \
        version, created_at, updated_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, FALSE, 1, $9, '', FALSE, $10, $11, 0, 1, $12, $12)";
    UPDATE = "UPDATE clusters SET name = $4, name_key = $5, details = $6, wants_failed_over = $7, status = $8, \
        status_reason = '', generation = generation + 1, version = version + 1, updated_at = $9 \
        WHERE id = $1 AND organization_id = $2 AND version = $3";
    SETTLE = "UPDATE clusters SET status = $3, status_reason = $4, is_failed_over = $5, health = $6, metadata = $7, \
        observed_generation = $2 WHERE id = $1 AND generation = $2";
    MOVED = "SELECT organization_id, version, is_failed_over, status, name FROM clusters WHERE id = $1 AND generation = $2";
    NAMES_FOR_MACHINE = "SELECT name FROM clusters WHERE COALESCE(plane, 'LOCAL') = 'LOCAL' \
        AND status <> 'CREATING' AND status <> 'CREATE_FAILED' ORDER BY name_key, id LIMIT 20";
    CHOOSE_PLANE = "UPDATE clusters SET plane = $2 WHERE id = $1 AND plane IS NULL";
    DELETE = "DELETE FROM clusters WHERE id = $1 AND organization_id = $2 AND version = $3 RETURNING plane";
    CLEAR_WORKSPACES = "DELETE FROM cluster_workspaces WHERE cluster_id = $1";
    ADD_WORKSPACE = "INSERT INTO cluster_workspaces (cluster_id, workspace_id) VALUES ($1, $2)";
    LEAVE = "DELETE FROM cluster_workspaces WHERE workspace_id = $1 \
        AND cluster_id IN (SELECT id FROM clusters WHERE organization_id = $2)";
    COUNT_DEPLOYMENTS = "SELECT COUNT(*) FROM deployments WHERE cluster_id = $1 AND organization_id = $2";
    DEPLOYMENTS = "SELECT id FROM deployments WHERE cluster_id = $1 ORDER BY id";
    DEPLOYMENTS_ON = "SELECT id, workspace_id, name FROM deployments WHERE cluster_id = $1 AND organization_id = $2 \
        ORDER BY name_key, id";
    IN_USE_BY = "SELECT DISTINCT workspace_id FROM deployments WHERE cluster_id = $1 AND organization_id = $2";
}

pub struct ListFilter<'a> {
    /// The workspaces that the caller may see: a cluster for others only is not shown.
    pub reach: &'a Reach,
    /// Only those with one of these folded names, if any are given.
    pub name_keys: &'a [String],
    /// Only those of this provider.
    pub provider: Option<CloudProvider>,
}

#[derive(Clone, Debug)]
pub struct ClusterState {
    pub organization_id: OrganizationId,
    pub cluster: Cluster,
    /// Advanced by every change of the desired state.
    pub generation: i64,
    /// The generation that the status refers to.
    pub observed_generation: i64,
    /// Whether its deployments are to run in the other region.
    pub wants_failed_over: bool,
    /// Why it is in its state.
    pub status_reason: UserText,
}

impl ClusterState {
    pub fn location(&self) -> ClusterLocation {
        ClusterLocation { id: self.cluster.id, plane: self.cluster.data_plane }
    }

    /// The desired state, as input for the plan.
    pub fn desired(&self) -> Desired {
        Desired {
            status: self.cluster.status,
            generation: self.generation,
            wants_failed_over: self.wants_failed_over,
            is_failed_over: self.cluster.is_failed_over,
            reason: self.status_reason.clone(),
            health: self.cluster.health_status.clone(),
            metadata: self.cluster.metadata.clone(),
        }
    }
}

/// Reads a page of clusters, and how many there are.
pub fn list(conn: &Conn, scope: &Scope, listed: &ListFilter<'_>, paging: &Paging) -> Result<Listed<Cluster>> {
    let reach = reached(listed.reach);
    let mut filter = Filter::new(ORGANIZATION, scope.organization());
    filter.and(VISIBLE, reach.as_deref());
    filter.and(NAMES, Some(listed.name_keys).filter(|keys| !keys.is_empty()));
    filter.and(PROVIDER, listed.provider.map(CloudProvider::as_str));
    let total = Total::Counter(scope.organization(), KIND);
    let (mut clusters, total) = TABLE.page(conn, filter, paging, total, |row| Ok(read(row)?.cluster))?;
    fill_workspaces(conn, clusters.iter_mut())?;
    Ok((clusters, total))
}

pub fn get(conn: &Conn, scope: &Scope, id: ClusterId) -> Result<Option<One<Cluster>>> {
    let found = conn.query_opt(&GET, params![id.as_str(), scope.organization()], read_one)?;
    filled(conn, found)
}

/// Reads a cluster that takes one of these workspaces.
pub fn get_visible(conn: &Conn, scope: &Scope, reach: &Reach, id: ClusterId) -> Result<Option<One<Cluster>>> {
    let Some(workspaces) = reached(reach) else { return get(conn, scope, id) };
    let params = params![id.as_str(), scope.organization(), &workspaces];
    let found = conn.query_opt(&GET_VISIBLE, params, read_one)?;
    filled(conn, found)
}

/// Reads a cluster for its loop, in any organization.
pub fn state(conn: &Conn, _: &Steward, id: ClusterId) -> Result<Option<ClusterState>> {
    let mut found = conn.query_opt(&STATE, params![id.as_str()], read)?;
    fill_workspaces(conn, found.iter_mut().map(|state| &mut state.cluster))?;
    Ok(found)
}

/// The only cluster of the organization; `None` if there are several.
pub fn only(conn: &Conn, scope: &Scope) -> Result<Option<ClusterId>> {
    let ids = conn.query(&FIRST_TWO, params![scope.organization()], |row| row.id(0))?;
    Ok(if let [only] = ids.as_slice() { Some(*only) } else { None })
}

/// Names of some clusters that take deployments of a workspace.
pub fn names_for(conn: &Conn, scope: &Scope, workspace_id: WorkspaceId) -> Result<Vec<String>> {
    conn.query(&NAMES_FOR, params![scope.organization(), workspace_id.as_str()], |row| row.get(0))
}

/// Whether a cluster accepts deployments of a workspace; `None` if there is no such cluster.
pub fn admits(conn: &Conn, scope: &Scope, id: ClusterId, workspace_id: WorkspaceId) -> Result<Option<bool>> {
    let params = params![id.as_str(), scope.organization(), workspace_id.as_str()];
    conn.query_opt(&ADMITS, params, |row| row.get(0))
}

/// Locks a cluster against changes and removal until the transaction ends; returns whether it exists.
///
/// Must come first when something becomes dependent on the cluster, or when its dependents are counted.
pub fn lock(tx: &Tx, scope: &Scope, id: ClusterId) -> Result<bool> {
    Ok(tx.execute(&LOCK, params![id.as_str(), scope.organization()])? == 1)
}

pub fn count_deployments(conn: &Conn, scope: &Scope, id: ClusterId) -> Result<i64> {
    conn.query_one(&COUNT_DEPLOYMENTS, params![id.as_str(), scope.organization()], |row| row.get(0))
}

pub fn in_use_by(conn: &Conn, scope: &Scope, id: ClusterId) -> Result<BTreeSet<WorkspaceId>> {
    let ids = conn.query(&IN_USE_BY, params![id.as_str(), scope.organization()], |row| row.id(0))?;
    Ok(ids.into_iter().collect())
}

/// The deployments on a cluster, with their workspaces and names, sorted by name.
pub fn deployments_on(
    conn: &Conn,
    scope: &Scope,
    id: ClusterId,
) -> Result<Vec<(DeploymentId, WorkspaceId, String)>> {
    conn.query(&DEPLOYMENTS_ON, params![id.as_str(), scope.organization()], |row| {
        Ok((row.id(0)?, row.id(1)?, row.get(2)?))
    })
}

pub fn insert(tx: &Tx, scope: &Scope, cluster: &Cluster, name_key: &str) -> Result<()> {
    let details = document(&cluster.details)?;
    let health_status = document(&cluster.health_status)?;
    let metadata = document(&cluster.metadata)?;
    let values = params![
        cluster.id.as_str(),
        scope.organization(),
        &cluster.name,
        name_key,
        cluster.r#type.as_str(),
        cluster.cloud_provider.as_str(),
        &cluster.region,
        &details,
        cluster.status.as_str(),
        &health_status,
        &metadata,
        cluster.created_at.millis(),
    ];
    tx.execute(&INSERT, values)?;
    add_workspaces(tx, cluster)?;
    counters::add(tx, scope.organization_id(), KIND, cluster.id.id(), 1, 0)?;
    work::add(tx, KIND, cluster.id.id(), cluster.created_at, cluster.created_at)
}

/// Replaces a cluster of this version, and enqueues it.
pub fn update(
    tx: &Tx,
    scope: &Scope,
    cluster: &Cluster,
    name_key: &str,
    wants_failed_over: bool,
    version: i64,
) -> Result<()> {
    let details = document(&cluster.details)?;
    let values = params![
        cluster.id.as_str(),
        scope.organization(),
        version,
        &cluster.name,
        name_key,
        &details,
        wants_failed_over,
        cluster.status.as_str(),
        cluster.updated_at.millis(),
    ];
    tx.run_on_one(&UPDATE, values)?;
    tx.execute(&CLEAR_WORKSPACES, params![cluster.id.as_str()])?;
    add_workspaces(tx, cluster)?;
    work::add(tx, KIND, cluster.id.id(), cluster.updated_at, cluster.updated_at)
}

/// Records what its loop observed, unless the desired state has changed; returns whether it did.
///
/// Deployments of a cluster that has just moved to its other region, or back, are rolled out there.
pub fn settle(
    tx: &Tx,
    system: &Steward,
    id: ClusterId,
    generation: i64,
    settled: &Settled,
    new_id: &mut dyn FnMut() -> OperationId,
    now: Timestamp,
) -> Result<bool> {
    let before = tx.query_opt(&MOVED, params![id.as_str(), generation], |row| {
        Ok((row.id(0)?, row.get::<i64>(1)?, row.get::<bool>(2)?, row.word(3)?, row.get::<String>(4)?))
    })?;
    let Some((organization_id, version, was_failed_over, was, name)) = before else { return Ok(false) };
    let (health, metadata) = (document(&settled.health)?, document(&settled.metadata)?);
    let params = params![
        id.as_str(),
        generation,
        settled.status.as_str(),
        settled.reason.as_str(),
        settled.is_failed_over,
        &health,
        &metadata,
    ];
    if tx.execute(&SETTLE, params)? != 1 {
        return Ok(false);
    }
    if settled.is_failed_over != was_failed_over {
        let moved = tx.query(&DEPLOYMENTS, params![id.as_str()], |row| row.id(0))?;
        let reason =
            UserText::new("The cluster has changed its region: the deployment is being rolled out there.");
        let (cause, subject_id) = (OperationCause::Loop, None);
        let why = RollOut { reason: &reason, cause, subject_id, new_id, now };
        deployments::roll_out(tx, &system.scope(organization_id), &moved, why)?;
    }
    changes::append(tx, &system.scope(organization_id), now, Change::new(KIND, &id, version))?;
    let condition = (settled.status, settled.is_failed_over);
    if let Some(event) = of_cluster((was, was_failed_over), condition) {
        let about = Resource::new(id.id(), Target::Organization);
        let about = about.named(&name).in_status(settled.status.as_str(), Some(&settled.reason));
        let event = NewEvent::new(event, organization_id, about, None);
        events::append(tx, &system.scope(organization_id), now, &event)?;
    }
    Ok(true)
}

/// Removes a cluster of this version, and enqueues the clean-up.
pub fn delete(tx: &Tx, scope: &Scope, id: ClusterId, version: i64, now: Timestamp) -> Result<()> {
    let deleted =
        tx.query(&DELETE, params![id.as_str(), scope.organization(), version], |row| row.word_opt(0))?;
    let [plane] = deleted[..] else { return Err(Error::Lost) };
    tx.execute(&CLEAR_WORKSPACES, params![id.as_str()])?;
    counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)?;
    work::add_removal(tx, KIND, id.id(), &ClusterLocation { id, plane }, now)
}

/// The names of some clusters that are names for the machine of the server, if its own plane is that machine.
pub fn names_for_machine(conn: &Conn, _: &System) -> Result<Vec<String>> {
    conn.query(&NAMES_FOR_MACHINE, params![], |row| row.get(0))
}

/// Records which plane makes a cluster, unless one does already.
pub fn choose_plane(tx: &Tx, _: &Steward, id: ClusterId, plane: PlaneKind) -> Result<()> {
    tx.run(&CHOOSE_PLANE, params![id.as_str(), plane.as_str()])
}

/// Where a cluster is that is being removed.
pub fn removed_location(conn: &Conn, system: &Steward, id: ClusterId) -> Result<Option<ClusterLocation>> {
    work::location(conn, system, KIND, id.id())
}

/// Takes a workspace off every cluster's list.
pub fn forget_workspace(tx: &Tx, scope: &Scope, workspace_id: WorkspaceId) -> Result<()> {
    tx.run(&LEAVE, params![workspace_id.as_str(), scope.organization()])
}

fn add_workspaces(tx: &Tx, cluster: &Cluster) -> Result<()> {
    for workspace_id in &cluster.workspace_ids {
        tx.execute(&ADD_WORKSPACE, params![cluster.id.as_str(), workspace_id.as_str()])?;
    }
    Ok(())
}

fn filled(conn: &Conn, mut found: Option<One<Cluster>>) -> Result<Option<One<Cluster>>> {
    fill_workspaces(conn, found.iter_mut().map(|one| &mut one.body))?;
    Ok(found)
}

fn fill_workspaces<'a>(conn: &Conn, clusters: impl Iterator<Item = &'a mut Cluster>) -> Result<()> {
    let clusters: Vec<&mut Cluster> = clusters.collect();
    if clusters.is_empty() {
        return Ok(());
    }
    let ids: Vec<&str> = clusters.iter().map(|cluster| cluster.id.as_str()).collect();
    let mut by_cluster = BTreeMap::<ClusterId, Vec<WorkspaceId>>::new();
    conn.query(&WORKSPACES, params![&ids], |row| {
        by_cluster.entry(row.id(0)?).or_default().push(row.id(1)?);
        Ok(())
    })?;
    for cluster in clusters {
        cluster.workspace_ids = by_cluster.remove(&cluster.id).unwrap_or_default();
    }
    Ok(())
}

fn read_one(row: &Row<'_>) -> Result<One<Cluster>> {
    Ok(One { version: row.get(15)?, body: read(row)?.cluster })
}

fn read(row: &Row<'_>) -> Result<ClusterState> {
    let (organization_id, cloud_provider, region) = (row.id(1)?, row.word(4)?, row.text(5)?);
    let status: ClusterStatus = row.word(9)?;
    let details: ClusterDetails = row.document(6)?;
    let cluster = Cluster {
        id: row.id(0)?,
        name: row.get(2)?,
        organization_id,
        r#type: row.word(3)?,
        cloud_provider,
        region: region.to_owned(),
        status,
        health_status: row.document(12)?,
        is_failed_over: row.get(11)?,
        failover_in_progress: status == ClusterStatus::FailingOver,
        is_limited: options::region(cloud_provider, region).is_some_and(|region| region.limited),
        workspace_ids: Vec::new(),
        metadata: row.document(13)?,
        data_plane: row.word_opt(18)?,
        created_at: row.time(16)?,
        updated_at: row.time(17)?,
        details,
    };
    Ok(ClusterState {
        organization_id,
        cluster,
        wants_failed_over: row.get(7)?,
        generation: row.get(8)?,
        status_reason: UserText::from_stored(row.get(10)?),
        observed_generation: row.get(14)?,
    })
}
