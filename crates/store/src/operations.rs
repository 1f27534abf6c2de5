//! Operations: changes that take time. A row is written in the transaction of the change, and advanced in the
//! transactions in which the loops record the status of its target.

use podium_api::enums::{OperationCause, OperationKind, OperationState, OperationTargetType};
use podium_api::subjects::SubjectProfile;
use podium_api::{
    ClusterId, DeploymentId, Id, Named, OperationId, OrganizationId, SubjectId, Timestamp, WorkspaceId,
};
use podium_db::{Change, Conn, Error, Result, Row, Tx, params, statements};
use podium_domain::events::{NewEvent, Resource, of_operation};
use podium_domain::operations::{Course, Details, Undo};
use podium_domain::{DeploymentReach, Reach, Target};

use crate::columns::{Columns, document, named, texts};
use crate::listing::{Filter, Listed, Paging, Table, Total, reached};
use crate::stamp::profile;
use crate::{Housekeeper, Scope, Steward, deployments, events, work};

/// The kind of their announcements, which name the target.
pub const KIND: &str = "operations";

macro_rules! columns {
    () => {
        "t.id, t.organization_id, t.workspace_id, t.deployment_id, t.cluster_id, t.target_id, t.target_name, t.kind, \
         t.cause, t.state, t.details, t.undo IS NOT NULL, t.superseded_by, t.version, t.created_at, t.started_at, \
         t.ended_at, t.subject_id, c.subject_type, c.username, c.full_name, c.avatar_url, c.api_token_name"
    };
}

macro_rules! joins {
    () => {
        " LEFT JOIN subjects c ON c.id = t.subject_id"
    };
}

/// Operations of deployments that are in reach; those of clusters pass.
macro_rules! of_reached {
    ($workspaces:literal, $deployments:literal) => {
        concat!(
            "(t.cluster_id IS NOT NULL OR t.workspace_id IN (",
            $workspaces,
            "[]) OR t.deployment_id IN (",
            $deployments,
            "[]))"
        )
    };
}

/// Operations of clusters that are there and open to one of the workspaces; those of deployments pass.
macro_rules! of_visible_cluster {
    ($workspaces:literal) => {
        concat!(
            "(t.cluster_id IS NULL OR EXISTS (SELECT 1 FROM clusters cl WHERE cl.id = t.cluster_id AND \
             (NOT EXISTS (SELECT 1 FROM cluster_workspaces w WHERE w.cluster_id = cl.id) OR EXISTS \
             (SELECT 1 FROM cluster_workspaces w WHERE w.cluster_id = cl.id AND w.workspace_id IN (",
            $workspaces,
            "[])))))"
        )
    };
}

const ORGANIZATION: &str = "t.organization_id = {}";
const REACHED: &str = of_reached!("{}", "{}");
const VISIBLE_CLUSTER: &str = of_visible_cluster!("{}");
const TARGETS: &str = "t.target_id IN ({}[])";
const KINDS: &str = "t.kind IN ({}[])";
const STATES: &str = "t.state IN ({}[])";
const SUBJECT: &str = "t.subject_id = {}";
const SINCE: &str = "t.created_at >= {}";

pub(crate) const TABLE: Table = Table {
    name: "operations",
    columns: columns!(),
    joins: joins!(),
    sorts: &[("createdAt", "created_at")],
    filters: &[ORGANIZATION, REACHED, VISIBLE_CLUSTER, TARGETS, KINDS, STATES, SUBJECT, SINCE],
    ..Table::NAMED
};

statements! {
    LEAVES_FAILURE = "SELECT COUNT(*) FROM operations o WHERE o.id = $1 AND o.kind = 'CLEAN_UP' AND 'FAILED' = \
        (SELECT p.state FROM operations p WHERE p.target_id = o.target_id AND p.kind <> 'CLEAN_UP' \
        AND p.state IN ('SUCCEEDED', 'FAILED') ORDER BY p.created_at DESC, p.id DESC LIMIT 1)";
    GET = concat!("SELECT ", columns!(), " FROM operations t", joins!(), " WHERE t.id = $1 AND t.organization_id = $2 \
        AND ($3 OR ", of_reached!("$4", "$5"), ") AND ($6 OR ", of_visible_cluster!("$7"), ")");
    UNDER_WAY = concat!("SELECT ", columns!(), " FROM operations t", joins!(), " WHERE t.target_id = $1 AND t.ended_at IS NULL");
    UNDO = "SELECT undo FROM operations WHERE id = $1 AND organization_id = $2";
    INSERT = "INSERT INTO operations (id, organization_id, workspace_id, deployment_id, cluster_id, target_id, \
        target_name, kind, cause, subject_id, state, details, undo, version, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'PENDING', $13, $11, 1, $12)";
    SUPERSEDE = "UPDATE operations SET state = 'SUPERSEDED', superseded_by = $3, ended_at = $4, undo = NULL, \
        version = version + 1 WHERE target_id = $1 AND organization_id = $2 AND ended_at IS NULL";
    ADVANCE = "UPDATE operations SET state = $3, details = $4, started_at = $5, ended_at = $6, \
        undo = CASE WHEN $7 THEN undo ELSE NULL END, version = version + 1 \
        WHERE id = $1 AND version = $2 AND ended_at IS NULL";
    CANCEL = "UPDATE operations SET state = 'CANCELLED', details = $4, ended_at = $5, undo = NULL, version = version + 1 \
        WHERE id = $1 AND organization_id = $2 AND version = $3 AND ended_at IS NULL";
    FORCE = "UPDATE operations SET details = $4, version = version + 1 \
        WHERE id = $1 AND organization_id = $2 AND version = $3 AND ended_at IS NULL";
    MOVE = "UPDATE operations SET workspace_id = $3 WHERE target_id = $1 AND organization_id = $2";
    PRUNE = "DELETE FROM operations WHERE id IN \
        (SELECT id FROM operations WHERE ended_at < $1 ORDER BY ended_at LIMIT $2)";
}

#[derive(Clone, Debug)]
pub struct OperationRow {
    pub id: OperationId,
    pub organization_id: OrganizationId,
    pub target: OperationTarget,
    /// Who started it, unless the server did.
    pub subject: Option<SubjectProfile>,
    /// How it proceeds.
    pub course: Course,
    /// The operation that took its place.
    pub superseded_by: Option<OperationId>,
    /// Advanced by every change.
    pub version: i64,
    pub created_at: Timestamp,
}

impl OperationRow {
    /// What its events are about: the operation, with the name of its target.
    pub fn about(&self) -> Resource<'_> {
        let place = self.target.deployment();
        let place =
            place.map_or(Target::Organization, |(id, workspace_id)| Target::Deployment { id, workspace_id });
        Resource::new(self.id.id(), place).named(self.target.name())
    }
}

/// What an operation changes, with its name when the operation began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationTarget {
    Deployment(DeploymentId, WorkspaceId, String),
    Cluster(ClusterId, String),
}

#[derive(Clone, Debug)]
pub struct NewOperation {
    pub id: OperationId,
    pub kind: OperationKind,
    pub cause: OperationCause,
    pub target: OperationTarget,
    /// Who starts it, unless the server does.
    pub subject_id: Option<SubjectId>,
    /// What the target was to be before.
    pub undo: Option<Undo>,
    /// What is known of how it is to proceed.
    pub details: Details,
    pub created_at: Timestamp,
}

/// Which operations a caller may see.
pub struct OperationReach {
    pub deployments: DeploymentReach,
    /// Those of the clusters that are open to these workspaces.
    pub clusters: Reach,
}

pub struct ListFilter<'a> {
    /// Those that the caller may see.
    pub reach: &'a OperationReach,
    /// Only those of these targets, if any are given.
    pub target_ids: &'a [Named<Id>],
    /// Only those of these kinds, if any are given.
    pub kinds: &'a [OperationKind],
    /// Only those in these states, if any are given.
    pub states: &'a [OperationState],
    /// Only those that this subject started.
    pub subject_id: Option<&'a Named<SubjectId>>,
    pub since: Option<Timestamp>,
}

impl OperationTarget {
    pub const fn target_type(&self) -> OperationTargetType {
        match self {
            Self::Deployment(..) => OperationTargetType::Deployment,
            Self::Cluster(..) => OperationTargetType::Cluster,
        }
    }

    pub const fn id(&self) -> Id {
        match self {
            Self::Deployment(id, ..) => id.id(),
            Self::Cluster(id, _) => id.id(),
        }
    }

    /// Its name when the operation began.
    pub fn name(&self) -> &str {
        match self {
            Self::Deployment(_, _, name) | Self::Cluster(_, name) => name,
        }
    }

    pub const fn deployment(&self) -> Option<(DeploymentId, WorkspaceId)> {
        match self {
            Self::Deployment(id, workspace_id, _) => Some((*id, *workspace_id)),
            Self::Cluster(..) => None,
        }
    }
}

/// Reads a page of operations, and how many there are.
pub fn list(
    conn: &Conn,
    scope: &Scope,
    listed: &ListFilter<'_>,
    paging: &Paging,
) -> Result<Listed<OperationRow>> {
    let mut filter = Filter::new(ORGANIZATION, scope.organization());
    let reach = reached_texts(&listed.reach.deployments);
    if let Some((workspaces, deployments)) = &reach {
        filter.and_either(REACHED, workspaces, deployments);
    }
    let open_to = reached(&listed.reach.clusters);
    filter.and(VISIBLE_CLUSTER, open_to.as_deref());
    let kinds: Vec<&str> = listed.kinds.iter().map(|kind| kind.as_str()).collect();
    let states: Vec<&str> = listed.states.iter().map(|state| state.as_str()).collect();
    let target_ids = named(listed.target_ids);
    filter.and(TARGETS, Some(&*target_ids).filter(|ids| !ids.is_empty()));
    filter.and(KINDS, Some(kinds.as_slice()).filter(|kinds| !kinds.is_empty()));
    filter.and(STATES, Some(states.as_slice()).filter(|states| !states.is_empty()));
    filter.and(SUBJECT, listed.subject_id.map(Named::as_str));
    filter.and(SINCE, listed.since.map(Timestamp::millis));
    TABLE.page(conn, filter, paging, Total::Count, read)
}

/// Reads an operation that the caller may see.
pub fn get(
    conn: &Conn,
    scope: &Scope,
    reach: &OperationReach,
    id: OperationId,
) -> Result<Option<OperationRow>> {
    let sees_all = reach.deployments == DeploymentReach::All;
    let (workspaces, deployments) = reached_texts(&reach.deployments).unwrap_or_default();
    let sees_clusters = reach.clusters == Reach::All;
    let open_to = reached(&reach.clusters).unwrap_or_default();
    let params = params![
        id.as_str(),
        scope.organization(),
        sees_all,
        &workspaces,
        &deployments,
        sees_clusters,
        &open_to,
    ];
    conn.query_opt(&GET, params, read)
}

pub fn under_way(conn: &Conn, _: &Steward, target_id: Id) -> Result<Option<OperationRow>> {
    conn.query_opt(&UNDER_WAY, params![target_id.as_str()], read)
}

/// What the target of an operation was to be before.
pub fn undo(conn: &Conn, scope: &Scope, id: OperationId) -> Result<Option<Undo>> {
    let stored: Option<Option<String>> =
        conn.query_opt(&UNDO, params![id.as_str(), scope.organization()], |row| row.get(0))?;
    let parse = |text: String| serde_json::from_str(&text).map_err(|error| Error::Other(error.to_string()));
    stored.flatten().map(parse).transpose()
}

/// Starts the first operation of a target.
pub fn begin(tx: &Tx, scope: &Scope, new: &NewOperation) -> Result<()> {
    let undo = new.undo.as_ref().map(document).transpose()?;
    let deployment = new.target.deployment();
    let cluster = if let OperationTarget::Cluster(id, _) = &new.target { Some(id.as_str()) } else { None };
    let target_id = new.target.id();
    let details = document(&new.details)?;
    let values = params![
        new.id.as_str(),
        scope.organization(),
        deployment.as_ref().map(|(_, workspace_id)| workspace_id.as_str()),
        deployment.as_ref().map(|(id, _)| id.as_str()),
        cluster,
        target_id.as_str(),
        new.target.name(),
        new.kind.as_str(),
        new.cause.as_str(),
        new.subject_id.as_ref().map(SubjectId::as_str),
        undo.as_deref(),
        new.created_at.millis(),
        &details,
    ];
    tx.post(&INSERT, values)?;
    announce(tx, target_id);
    Ok(())
}

/// Starts another operation of a target, which takes the place of the one that is under way.
pub fn supersede(tx: &Tx, scope: &Scope, new: &NewOperation) -> Result<()> {
    let target_id = new.target.id();
    let params = params![target_id.as_str(), scope.organization(), new.id.as_str(), new.created_at.millis()];
    tx.post(&SUPERSEDE, params)?;
    begin(tx, scope, new)
}

/// Writes how an operation has proceeded, unless somebody has changed it; returns whether it did.
pub fn advance(tx: &Tx, system: &Steward, row: &OperationRow, course: &Course) -> Result<bool> {
    let details = document(&course.details)?;
    let params = params![
        row.id.as_str(),
        row.version,
        course.state.as_str(),
        &details,
        course.started_at.map(Timestamp::millis),
        course.ended_at.map(Timestamp::millis),
        course.can_undo,
    ];
    let is_written = tx.execute(&ADVANCE, params)? == 1;
    if is_written {
        announce(tx, row.target.id());
    }
    if let (true, Some(event), Some(ended_at)) = (is_written, of_operation(course.state), course.ended_at) {
        let event = NewEvent::new(event, row.organization_id, row.about(), None);
        events::append(tx, &system.scope(row.organization_id), ended_at, &event)?;
    }
    Ok(is_written)
}

/// Whether an operation only removed history, and the last other one on the same target failed: what failed is not mended
/// by it.
pub fn leaves_failure(conn: &Conn, _: &Steward, id: OperationId) -> Result<bool> {
    conn.query_one(&LEAVES_FAILURE, params![id.as_str()], |row| Ok(row.get::<i64>(0)? > 0))
}

pub fn cancel(tx: &Tx, scope: &Scope, row: &OperationRow, details: &Details, now: Timestamp) -> Result<()> {
    let details = document(details)?;
    let params = params![row.id.as_str(), scope.organization(), row.version, &details, now.millis()];
    tx.run_on_one(&CANCEL, params)?;
    announce(tx, row.target.id());
    Ok(())
}

/// Writes that an operation of this version waits for running tasks no longer, and wakes the loop of its deployment.
pub fn force(tx: &Tx, scope: &Scope, row: &OperationRow, details: &Details, now: Timestamp) -> Result<()> {
    let details = document(details)?;
    tx.run_on_one(&FORCE, params![row.id.as_str(), scope.organization(), row.version, &details])?;
    if let Some((id, _)) = row.target.deployment() {
        work::add(tx, deployments::KIND, id.id(), now, now)?;
    }
    announce(tx, row.target.id());
    Ok(())
}

/// Lets the operations of a deployment follow it to another workspace.
pub fn move_deployment(tx: &Tx, scope: &Scope, id: DeploymentId, to: WorkspaceId) -> Result<()> {
    tx.run(&MOVE, params![id.as_str(), scope.organization(), to.as_str()])
}

/// Drops some operations that ended before a time; returns how many.
pub fn prune(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE, params![before.millis(), limit])
}

/// Notifies followers, here and on other replicas.
fn announce(tx: &Tx, target_id: Id) {
    tx.announce(Change::new(KIND, &target_id, 0));
}

fn reached_texts(reach: &DeploymentReach) -> Option<(Vec<String>, Vec<String>)> {
    match reach {
        DeploymentReach::All => None,
        DeploymentReach::Only { workspaces, deployments } => Some((texts(workspaces), texts(deployments))),
    }
}

fn read(row: &Row<'_>) -> Result<OperationRow> {
    let name: String = row.get(6)?;
    let target = match row.id_opt(4)? {
        Some(id) => OperationTarget::Cluster(id, name),
        None => OperationTarget::Deployment(row.id(3)?, row.id(2)?, name),
    };
    let subject_id: Option<SubjectId> = row.id_opt(17)?;
    let course = Course {
        kind: row.word(7)?,
        target_type: target.target_type(),
        cause: row.word(8)?,
        state: row.word(9)?,
        can_undo: row.get(11)?,
        details: row.document(10)?,
        started_at: row.time_opt(15)?,
        ended_at: row.time_opt(16)?,
    };
    Ok(OperationRow {
        id: row.id(0)?,
        organization_id: row.id(1)?,
        target,
        subject: subject_id.map(|_| profile(row, 17)).transpose()?,
        course,
        superseded_by: row.id_opt(12)?,
        version: row.get(13)?,
        created_at: row.time(14)?,
    })
}
