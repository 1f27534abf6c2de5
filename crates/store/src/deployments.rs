//! Deployments: their columns, the document of the desired state and the document of what runs.

use std::collections::BTreeSet;

use podium_api::clusters::{ClusterDetails, ClusterMetadata};
use podium_api::enums::{DeploymentStatus, OperationCause, OperationKind, PlaneKind};
use podium_api::subjects::SubjectProfile;
use podium_api::{
    ClusterId, DeploymentId, Named, One, OperationId, OrganizationId, SubjectId, Timestamp, WorkspaceId,
};
use podium_db::{Change, Conn, Error, JoinedRow, Result, Row, Tx, params, statements};
use podium_domain::deployments::{Running, Spec};
use podium_domain::events::{NewEvent, Resource, of_deployment_status};
use podium_domain::planes::{ClusterLocation, Location};
use podium_domain::{DeploymentReach, Target, UserText};

use crate::columns::{Columns, document, named, texts};
use crate::counters::{self, count_new};
use crate::landmarks::{self, Landmarks};
use crate::lazy_row::{Cached, Layout, LazyRow, Render};
use crate::listing::{Filter, Paging, Table};
use crate::operations::{self, NewOperation, OperationTarget};
use crate::stamp::{Stamp, stamp_columns, stamp_joins};
use crate::{InScope, Scope, Steward};
use crate::{changes, events, work, workspaces};

/// How many rows may be skipped in passing.
const NEAR: u64 = 1000;
/// The kind of their counter, their changes and their work.
pub const KIND: &str = "deployments";

macro_rules! columns {
    () => {
        concat!(
            "t.id, t.organization_id, t.workspace_id, w.name, t.cluster_id, t.name, t.namespace, t.spec, \
             t.generation, t.status, t.status_reason, t.observed, t.observed_generation, \
             cl.name, cl.is_failed_over, cl.details, cl.metadata, cl.plane, ",
            stamp_columns!(),
            ", ROWID(t), ROWID(w), ROWID(cl), ROWID(c), ROWID(u)"
        )
    };
}

macro_rules! joins {
    () => {
        concat!(
            " LEFT JOIN workspaces w ON w.id = t.workspace_id LEFT JOIN clusters cl ON cl.id = t.cluster_id",
            stamp_joins!()
        )
    };
}

const STAMP: usize = 18;

pub(crate) static LAYOUT: Layout = Layout {
    organization: 1,
    workspace: Some(2),
    version: STAMP,
    rows: &[
        JoinedRow { table: "deployments", key: 0, rowid: 33 },
        JoinedRow { table: "workspaces", key: 2, rowid: 34 },
        JoinedRow { table: "clusters", key: 4, rowid: 35 },
        JoinedRow { table: "subjects", key: STAMP + 2, rowid: 36 },
        JoinedRow { table: "subjects", key: STAMP + 9, rowid: 37 },
    ],
};

const ORGANIZATION: &str = "t.organization_id = {}";
const IDS: &str = "t.id IN ({}[])";
const NAMES: &str = "t.name_key IN ({}[])";
const WORKSPACES: &str = "t.workspace_id IN ({}[])";
const WORKSPACE: &str = "t.workspace_id = {}";
const REACHED: &str = "(t.workspace_id IN ({}[]) OR t.id IN ({}[]))";

pub(crate) const TABLE: Table = Table {
    name: "deployments",
    columns: columns!(),
    joins: joins!(),
    filters: &[ORGANIZATION, IDS, NAMES, WORKSPACES, WORKSPACE, REACHED],
    ..Table::NAMED
};

statements! {
    GET = concat!("SELECT ", columns!(), " FROM deployments t", joins!(), " WHERE t.id = $1 AND t.organization_id = $2");
    STATE = concat!("SELECT ", columns!(), " FROM deployments t", joins!(), " WHERE t.id = $1");
    WORKSPACE_OF = "SELECT workspace_id FROM deployments WHERE id = $1 AND organization_id = $2";
    WORKSPACES_OF = "SELECT id, workspace_id FROM deployments WHERE id IN ($1[]) AND organization_id = $2";
    EXISTING = "SELECT id FROM deployments WHERE id IN ($1[])";
    COUNT = "SELECT COUNT(*) FROM deployments WHERE workspace_id = $1 AND organization_id = $2";
    INSERT = "INSERT INTO deployments (id, organization_id, workspace_id, cluster_id, name, name_key, namespace, spec, \
        generation, status, status_reason, observed, observed_generation, version, created_at, created_by, updated_at, \
        updated_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)";
    COUNT_NEW = count_new!("deployments");
    HAS_NAMESPACE = "SELECT 1 FROM deployments WHERE namespace = $1";
    UPDATE = "UPDATE deployments SET workspace_id = $4, name = $5, name_key = $6, spec = $7, generation = $8, \
        status = $9, status_reason = $10, version = version + 1, updated_at = $11, updated_by = $12 \
        WHERE id = $1 AND organization_id = $2 AND version = $3";
    RECORD = "UPDATE deployments SET status = $3, status_reason = $4, observed = $5, observed_generation = $2 \
        WHERE id = $1 AND generation = $2";
    ROLL_OUT = "UPDATE deployments SET generation = generation + 1, \
        status = CASE WHEN status = 'CREATING' THEN status ELSE 'DEPLOYING' END, \
        status_reason = CASE WHEN status = 'CREATING' THEN status_reason ELSE $3 END \
        WHERE id IN ($1[]) AND organization_id = $2 RETURNING id, workspace_id, version, \
        name, status, status_reason";
    LOCK = "UPDATE deployments SET generation = generation WHERE id = $1 AND generation = $2";
    REVERT = "UPDATE deployments SET spec = $3, generation = generation + 1, status_reason = $4, \
        status = CASE WHEN status = 'CREATING' THEN status ELSE 'DEPLOYING' END WHERE id = $1 AND generation = $2";
    OVERTAKE = "UPDATE deployments SET generation = $2 + 1 WHERE id = $1 AND generation <= $2";
    IN_WORKSPACE = "SELECT id FROM deployments WHERE workspace_id = $1 AND organization_id = $2";
    LOCATIONS = "SELECT t.id, t.namespace, t.cluster_id, cl.plane FROM deployments t \
        LEFT JOIN clusters cl ON cl.id = t.cluster_id WHERE t.id IN ($1[])";
    LOCATED = "SELECT t.id, t.namespace, t.cluster_id, cl.plane, t.workspace_id FROM deployments t \
        LEFT JOIN clusters cl ON cl.id = t.cluster_id WHERE t.id IN ($2[]) AND t.organization_id = $1";
    DELETE = "DELETE FROM deployments WHERE id = $1 AND organization_id = $2 AND version = $3";
}

#[derive(Clone, Debug)]
pub struct DeploymentRow {
    pub id: DeploymentId,
    pub organization_id: OrganizationId,
    pub workspace_id: WorkspaceId,
    pub workspace_name: Option<String>,
    pub cluster_id: Option<ClusterId>,
    pub cluster: Option<OnCluster>,
    pub name: String,
    /// Its name in the data plane.
    pub namespace: String,
    pub spec: Spec,
    /// Advanced by every change of the desired state.
    pub generation: i64,
    pub status: DeploymentStatus,
    pub status_reason: UserText,
    /// What is known to be running.
    pub observed: Running,
    /// The generation that `observed` and the status refer to.
    pub observed_generation: i64,
    pub stamp: Stamp,
}

#[derive(Clone, Debug)]
pub struct OnCluster {
    pub name: String,
    /// Whether it runs in its other region.
    pub is_failed_over: bool,
    pub details: ClusterDetails,
    pub metadata: ClusterMetadata,
    /// The plane that made or connected it.
    pub plane: Option<PlaneKind>,
}

impl DeploymentRow {
    pub fn location(&self) -> Location {
        let plane = self.cluster.as_ref().and_then(|cluster| cluster.plane);
        let cluster = self.cluster_id.map(|id| ClusterLocation { id, plane });
        Location { id: self.id, namespace: self.namespace.clone(), cluster }
    }
}

pub struct ListFilter<'a> {
    /// Those that the caller may see.
    pub reach: &'a DeploymentReach,
    pub ids: &'a [Named<DeploymentId>],
    /// Only those with one of these folded names, if any are given.
    pub name_keys: &'a [String],
    /// Only those of these workspaces, if any are given.
    pub workspace_ids: &'a [Named<WorkspaceId>],
}

/// Renders a page of deployments, and counts them; `None` if that needs a long scan and `walk_far` is false.
pub fn list<T>(
    conn: &Conn,
    scope: &Scope,
    listed: &ListFilter<'_>,
    paging: &Paging,
    landmarks: &Landmarks,
    walk_far: bool,
    rendering: &impl Render<DeploymentRow, T>,
) -> Result<Option<(Vec<T>, u64)>> {
    let cached = |conn: &Conn, id| rendering.cached(conn, id);
    let row = |row: &Row<'_>| rendering.render(&found(row));
    let read = Cached { cached: &cached, row: &row, one: &GET };
    let mut filter = Filter::new(ORGANIZATION, scope.organization());
    let reached = match listed.reach {
        DeploymentReach::All => None,
        DeploymentReach::Only { workspaces, deployments } => Some((texts(workspaces), texts(deployments))),
    };
    if let Some((workspaces, deployments)) = &reached {
        filter.and_either(REACHED, workspaces, deployments);
    }
    let ids = named(listed.ids);
    filter.and(IDS, Some(&*ids).filter(|ids| !ids.is_empty()));
    filter.and(NAMES, Some(listed.name_keys).filter(|keys| !keys.is_empty()));
    if let ([workspace_id], false) = (listed.workspace_ids, filter.is_narrowed()) {
        // All of one workspace: an index in the order of the list, and a total of its own.
        if !walk_far && paging.offset > NEAR {
            return Ok(None);
        }
        let Some(id) = workspace_id.id() else { return Ok(Some((Vec::new(), 0))) };
        if workspaces::exist(conn, scope, &[id])?.is_empty() {
            return Ok(Some((Vec::new(), 0)));
        }
        filter.and(WORKSPACE, Some(workspace_id.as_str()));
        let total = counters::read(conn, id.as_str(), KIND)?.total;
        return TABLE.cached_rows(conn, filter, paging, total, read).map(Some);
    }
    let workspace_ids = named(listed.workspace_ids);
    filter.and(WORKSPACES, Some(&*workspace_ids).filter(|ids| !ids.is_empty()));
    landmarks::list(conn, (&TABLE, KIND), scope.organization_id(), filter, paging, landmarks, walk_far, read)
}

/// The first of these names in the data plane that no deployment has. Such names are unique across organizations,
/// so this looks at all deployments; it reveals nothing about those that have one.
pub fn free_namespace(conn: &Conn, _: &Scope, candidates: &[String]) -> Result<Option<String>> {
    for name in candidates {
        if conn.query_opt(&HAS_NAMESPACE, params![name], |_| Ok(()))?.is_none() {
            return Ok(Some(name.clone()));
        }
    }
    Ok(None)
}

pub fn shown<T>(
    conn: &Conn,
    scope: &Scope,
    id: DeploymentId,
    mut show: impl FnMut(&LazyRow<'_, DeploymentRow>) -> Result<T>,
) -> Result<Option<One<T>>> {
    conn.query_opt(&GET, params![id.as_str(), scope.organization()], |row| {
        let found = found(row);
        Ok(One { version: found.version()?, body: show(&found)? })
    })
}

pub fn get(conn: &Conn, scope: &Scope, id: DeploymentId) -> Result<Option<DeploymentRow>> {
    conn.query_opt(&GET, params![id.as_str(), scope.organization()], read)
}

/// Reads a deployment together with the proof that the scope has found it.
pub fn proven(
    conn: &Conn,
    scope: &Scope,
    id: DeploymentId,
) -> Result<Option<(InScope<DeploymentId>, DeploymentRow)>> {
    let found = get(conn, scope, id)?.filter(|row| scope.covers(row.id, row.workspace_id));
    Ok(found.map(|row| (InScope::found(row.id), row)))
}

/// Where the environments of those of these deployments are that the scope finds.
pub fn located(conn: &Conn, scope: &Scope, ids: &[DeploymentId]) -> Result<Vec<InScope<Location>>> {
    let ids: Vec<&str> = ids.iter().map(DeploymentId::as_str).collect();
    let found = conn
        .query(&LOCATED, params![scope.organization(), &ids], |row| Ok((location(row, 0, 1)?, row.id(4)?)))?;
    let covered = found.into_iter().filter(|(at, workspace_id)| scope.covers(at.id, *workspace_id));
    Ok(covered.map(|(at, _)| InScope::found(at)).collect())
}

/// Reads a deployment for the loops, which look at all organizations.
pub fn state(conn: &Conn, _: &Steward, id: DeploymentId) -> Result<Option<DeploymentRow>> {
    conn.query_opt(&STATE, params![id.as_str()], read)
}

pub fn workspace_of(conn: &Conn, scope: &Scope, id: DeploymentId) -> Result<Option<WorkspaceId>> {
    conn.query_opt(&WORKSPACE_OF, params![id.as_str(), scope.organization()], |row| row.id(0))
}

pub fn workspaces(
    conn: &Conn,
    scope: &Scope,
    ids: &[DeploymentId],
) -> Result<Vec<(DeploymentId, WorkspaceId)>> {
    let ids: Vec<&str> = ids.iter().map(DeploymentId::as_str).collect();
    conn.query(&WORKSPACES_OF, params![&ids, scope.organization()], |row| Ok((row.id(0)?, row.id(1)?)))
}

/// Those of these ids, whatever their organization, that are no deployments or are none any more.
pub fn absent(conn: &Conn, _: &Steward, ids: &BTreeSet<DeploymentId>) -> Result<Vec<DeploymentId>> {
    let asked: Vec<&str> = ids.iter().map(DeploymentId::as_str).collect();
    let existing: BTreeSet<DeploymentId> =
        conn.query(&EXISTING, params![&asked], |row| row.id(0))?.into_iter().collect();
    Ok(ids.difference(&existing).copied().collect())
}

pub fn count(conn: &Conn, scope: &Scope, workspace_id: WorkspaceId) -> Result<i64> {
    conn.query_one(&COUNT, params![workspace_id.as_str(), scope.organization()], |row| row.get(0))
}

pub fn of_workspace(conn: &Conn, scope: &Scope, workspace_id: WorkspaceId) -> Result<Vec<DeploymentId>> {
    conn.query(&IN_WORKSPACE, params![workspace_id.as_str(), scope.organization()], |row| row.id(0))
}

pub fn insert(tx: &Tx, scope: &Scope, row: &DeploymentRow, name_key: &str) -> Result<()> {
    let stamp = &row.stamp;
    let spec = document(&row.spec)?;
    let observed = document(&row.observed)?;
    let values = params![
        row.id.as_str(),
        scope.organization(),
        row.workspace_id.as_str(),
        row.cluster_id.as_ref().map(ClusterId::as_str),
        &row.name,
        name_key,
        &row.namespace,
        &spec,
        row.generation,
        row.status.as_str(),
        row.status_reason.as_str(),
        &observed,
        row.observed_generation,
    ];
    tx.post(&INSERT, &[values, &stamp.values()].concat())?;
    counters::added(tx, &COUNT_NEW, scope.organization_id(), row.id.id(), stamp.created_at)?;
    counters::add(tx, row.workspace_id, KIND, row.id.id(), 1, 0)?;
    work::add(tx, KIND, row.id.id(), stamp.updated_at, stamp.updated_at)
}

/// Replaces a deployment whose version is still the one before its stamp's, and enqueues it.
pub fn update(tx: &Tx, scope: &Scope, row: &DeploymentRow, name_key: &str) -> Result<()> {
    let stamp = &row.stamp;
    let spec = document(&row.spec)?;
    let values = params![
        row.id.as_str(),
        scope.organization(),
        stamp.version - 1,
        row.workspace_id.as_str(),
        &row.name,
        name_key,
        &spec,
        row.generation,
        row.status.as_str(),
        row.status_reason.as_str(),
        stamp.updated_at.millis(),
        stamp.updated_by.id.as_str(),
    ];
    tx.run_on_one(&UPDATE, values)?;
    work::add(tx, KIND, row.id.id(), stamp.updated_at, stamp.updated_at)
}

/// Why something is rolled out to deployments that nobody changed themselves.
pub struct RollOut<'a> {
    /// The reason that their status shows.
    pub reason: &'a UserText,
    pub cause: OperationCause,
    /// Who caused it, unless the server did.
    pub subject_id: Option<SubjectId>,
    pub new_id: &'a mut dyn FnMut() -> OperationId,
    pub now: Timestamp,
}

/// Rolls out to deployments what changed around them, such as an environment object; returns those that change for it, and
/// not those that are still being created.
pub fn roll_out(
    tx: &Tx,
    scope: &Scope,
    ids: &[DeploymentId],
    why: RollOut<'_>,
) -> Result<Vec<OperationTarget>> {
    let RollOut { reason, cause, subject_id, new_id, now } = why;
    let ids: Vec<&str> = ids.iter().map(DeploymentId::as_str).collect();
    let changed = |row: &Row<'_>| {
        let now = (row.get::<String>(3)?, row.word(4)?, UserText::from_stored(row.get(5)?));
        Ok((row.id(0)?, row.id(1)?, row.get(2)?, now))
    };
    let rolled = tx.query(&ROLL_OUT, params![&ids, scope.organization(), reason.as_str()], changed)?;
    let mut targets = Vec::new();
    for (id, workspace_id, version, (name, status, reason)) in rolled {
        changes::note(tx, now, change((id, workspace_id, scope.organization_id()), version))?;
        if status == DeploymentStatus::Deploying {
            append_status(tx, scope, now, (id, workspace_id), &name, (status, &reason), None)?;
        }
        let operation = NewOperation {
            id: new_id(),
            kind: OperationKind::Update,
            cause,
            target: OperationTarget::Deployment(id, workspace_id, name),
            subject_id,
            undo: None,
            details: podium_domain::operations::Details::default(),
            created_at: now,
        };
        operations::supersede(tx, scope, &operation)?;
        work::add(tx, KIND, id.id(), now, now)?;
        if status == DeploymentStatus::Deploying {
            targets.push(operation.target);
        }
    }
    Ok(targets)
}

/// Holds a deployment of this generation until the end of the transaction; returns whether it still has it.
pub fn lock_generation(tx: &Tx, _: &Steward, id: DeploymentId, generation: i64) -> Result<bool> {
    Ok(tx.execute(&LOCK, params![id.as_str(), generation])? == 1)
}

/// Appends the event of a deployment that has come to a status; without an actor Podium itself brought it there.
pub fn append_status(
    tx: &Tx,
    scope: &Scope,
    now: Timestamp,
    (id, workspace_id): (DeploymentId, WorkspaceId),
    name: &str,
    (status, reason): (DeploymentStatus, &UserText),
    actor: Option<&SubjectProfile>,
) -> Result<()> {
    let place = Target::Deployment { id, workspace_id };
    let about = Resource::new(id.id(), place).named(name).in_status(status.as_str(), Some(reason));
    let event = of_deployment_status(status);
    events::append(tx, scope, now, &NewEvent::new(event, scope.organization_id(), about, actor))
}

/// The change log's entry for a changed deployment.
pub fn change(
    (id, workspace_id, organization_id): (DeploymentId, WorkspaceId, OrganizationId),
    version: i64,
) -> Change {
    Change {
        kind: KIND,
        id: id.to_string(),
        organization_id: Some(organization_id.to_string()),
        workspace_id: Some(workspace_id.to_string()),
        deployment_id: Some(id.to_string()),
        version,
    }
}

/// Updates the counters for a deployment that was moved to another workspace of the organization.
pub fn count_move(
    tx: &Tx,
    scope: &Scope,
    id: DeploymentId,
    from: WorkspaceId,
    to: WorkspaceId,
) -> Result<()> {
    if workspaces::exist(tx, scope, &[from, to])?.len() != BTreeSet::from([from, to]).len() {
        return Err(Error::Lost);
    }
    counters::add(tx, from, KIND, id.id(), -1, 0)?;
    counters::add(tx, to, KIND, id.id(), 1, 0)
}

pub struct ObservedStatus<'a> {
    pub generation: i64,
    pub status: DeploymentStatus,
    pub reason: &'a UserText,
    pub running: &'a Running,
}

/// Records what a loop observed, unless the desired state has changed; returns whether it did.
pub fn record(tx: &Tx, _: &Steward, id: DeploymentId, seen: &ObservedStatus<'_>) -> Result<bool> {
    let running = document(seen.running)?;
    let params = params![id.as_str(), seen.generation, seen.status.as_str(), seen.reason.as_str(), &running];
    Ok(tx.execute(&RECORD, params)? == 1)
}

/// Replaces a desired state that cannot be reached, unless it has changed; returns whether it did.
pub fn revert(
    tx: &Tx,
    _: &Steward,
    id: DeploymentId,
    generation: i64,
    spec: &Spec,
    reason: &UserText,
) -> Result<bool> {
    let spec = document(spec)?;
    let params = params![id.as_str(), generation, &spec, reason.as_str()];
    Ok(tx.execute(&REVERT, params)? == 1)
}

/// Raises the desired generation above one that the data plane has seen.
pub fn raise_generation(tx: &Tx, _: &Steward, id: DeploymentId, generation: i64) -> Result<u64> {
    tx.execute(&OVERTAKE, params![id.as_str(), generation])
}

/// Where the environments of those of these deployments are that there are.
pub fn locations(conn: &Conn, _: &Steward, ids: &[DeploymentId]) -> Result<Vec<Location>> {
    let ids: Vec<&str> = ids.iter().map(DeploymentId::as_str).collect();
    conn.query(&LOCATIONS, params![&ids], |row| location(row, 0, 1))
}

/// Where an environment is, also if it is being removed.
pub fn location_of(conn: &Conn, system: &Steward, id: DeploymentId) -> Result<Location> {
    let found = match locations(conn, system, &[id])?.pop() {
        Some(found) => Some(found),
        None => work::location(conn, system, KIND, id.id())?,
    };
    Ok(found.unwrap_or_else(|| Location::unknown(id)))
}

/// Reads where an environment is: its id, and from another column on its namespace, its cluster and the plane of that.
pub(crate) fn location(row: &Row<'_>, id: usize, rest: usize) -> Result<Location> {
    let plane = row.word_opt(rest + 2)?;
    let cluster = row.id_opt(rest + 1)?.map(|id| ClusterLocation { id, plane });
    Ok(Location { id: row.id(id)?, namespace: row.get(rest)?, cluster })
}

/// Removes a deployment of this version, and enqueues the clean-up.
pub fn delete(
    tx: &Tx,
    scope: &Scope,
    location: &Location,
    workspace_id: WorkspaceId,
    version: i64,
    now: Timestamp,
) -> Result<()> {
    let id = location.id;
    tx.run_on_one(&DELETE, params![id.as_str(), scope.organization(), version])?;
    counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)?;
    counters::add(tx, workspace_id, KIND, id.id(), -1, 0)?;
    work::add_removal(tx, KIND, id.id(), location, now)
}

fn found<'r>(row: &'r Row<'r>) -> LazyRow<'r, DeploymentRow> {
    LazyRow::new(row, &LAYOUT, read)
}

fn read(row: &Row<'_>) -> Result<DeploymentRow> {
    Ok(DeploymentRow {
        id: row.id(0)?,
        organization_id: row.id(1)?,
        workspace_id: row.id(2)?,
        workspace_name: row.get(3)?,
        cluster_id: row.id_opt(4)?,
        cluster: row.get::<Option<String>>(13)?.map(|name| on_cluster(row, name)).transpose()?,
        name: row.get(5)?,
        namespace: row.get(6)?,
        spec: row.document(7)?,
        generation: row.get(8)?,
        status: row.word(9)?,
        status_reason: UserText::from_stored(row.get(10)?),
        observed: row.document(11)?,
        observed_generation: row.get(12)?,
        stamp: Stamp::read(row, STAMP)?,
    })
}

fn on_cluster(row: &Row<'_>, name: String) -> Result<OnCluster> {
    Ok(OnCluster {
        name,
        is_failed_over: row.get(14)?,
        details: row.document(15)?,
        metadata: row.document(16)?,
        plane: row.word_opt(17)?,
    })
}
