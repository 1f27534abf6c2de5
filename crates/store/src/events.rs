//! Events: written beside the change log, read in order by those who may.
//!
//! Like the change log they are read below the oldest running transaction, so that a reader who has come to a position
//! has seen everything before it. A page looks through a bounded number of rows for those that its reader asked for and
//! may see, and says how far it has come.

use podium_api::enums::EventType;
use podium_api::events::EventData;
use podium_api::{DeploymentId, OrganizationId, Timestamp, WorkspaceId};
use podium_db::{Change, Conn, Result, Row, Sql, Tx, params, statements};
use podium_domain::events::{Cursor, NewEvent, Visibility};

use crate::columns::{Columns, document, texts};
use crate::record::record;
use crate::{Housekeeper, Scope, Steward};

/// The kind of the change that announces an event to this process and to other replicas.
pub const KIND: &str = "events";

record! {
    #[derive(Clone, Debug)]
    pub struct EventRow as event_columns! {
        pub cursor: Cursor = cursor "e.transaction_id, e.sequence",
        pub at: Timestamp = time "e.at",
        pub event_type: EventType = word "e.event_type",
        pub data: EventData = document "e.data",
    }
}

/// How far apart the time of an event and its place in the order can be: more than any transaction takes.
const DISORDER_MILLIS: i64 = 10 * 60 * 1000;

/// The next rows of an organization, or of a workspace or deployment in it, after a position.
macro_rules! window {
    ($column:literal, $columns:literal, $bound:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM events WHERE ",
            $column,
            " = $1 AND organization_id = $5 AND SUCCEEDS(transaction_id, sequence, $2, $3) \
             AND SETTLED(transaction_id) ORDER BY transaction_id, sequence ",
            $bound
        )
    };
}

/// Those of them that were asked for.
macro_rules! page {
    ($column:literal $(, $visible:expr)?) => {
        concat!(
            "SELECT ",
            event_columns!(),
            " FROM (",
            window!($column, "transaction_id, sequence, at, event_type, subject_id, organization_id, workspace_id, \
                deployment_id, audience, data", "LIMIT $4"),
            ") e WHERE e.event_type IN ($6[]) AND e.at >= $7 \
             AND (e.workspace_id = $8 OR $8 = '')" $(, $visible)?,
            " ORDER BY e.transaction_id, e.sequence LIMIT $9"
        )
    };
}

/// Those that the reader may see.
macro_rules! visible {
    () => {
        " AND (e.audience IN ($10[]) OR (e.audience || ' ' || e.workspace_id) IN ($11[]) \
         OR (e.audience || ' ' || e.deployment_id) IN ($12[]) \
         OR (e.audience = 'cluster' AND EXISTS (SELECT 1 FROM clusters c \
         WHERE c.id = e.subject_id AND c.organization_id = $5 \
         AND (NOT EXISTS (SELECT 1 FROM cluster_workspaces w WHERE w.cluster_id = c.id) OR EXISTS \
         (SELECT 1 FROM cluster_workspaces w WHERE w.cluster_id = c.id AND w.workspace_id IN ($13[]))))))"
    };
}

statements! {
    APPEND = "INSERT INTO events (at, event_type, subject_id, organization_id, workspace_id, deployment_id, audience, \
        data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    ENDS = "SELECT h.transaction_id, h.sequence, \
        COALESCE((SELECT transaction_id FROM events WHERE SETTLED(transaction_id) \
            ORDER BY transaction_id DESC, sequence DESC LIMIT 1), h.transaction_id), \
        COALESCE((SELECT sequence FROM events WHERE SETTLED(transaction_id) \
            ORDER BY transaction_id DESC, sequence DESC LIMIT 1), h.sequence) FROM event_horizon h WHERE h.id = 1";
    SINCE = "SELECT transaction_id, sequence FROM events WHERE organization_id = $1 AND at >= $2 \
        AND SETTLED(transaction_id) ORDER BY at, transaction_id, sequence LIMIT 1";
    OF_ORGANIZATION = page!("organization_id");
    OF_WORKSPACE = page!("workspace_id");
    OF_DEPLOYMENT = page!("deployment_id");
    VISIBLE_OF_ORGANIZATION = page!("organization_id", visible!());
    VISIBLE_OF_WORKSPACE = page!("workspace_id", visible!());
    VISIBLE_OF_DEPLOYMENT = page!("deployment_id", visible!());
    END_OF_ORGANIZATION = window!("organization_id", "transaction_id, sequence", "LIMIT 1 OFFSET $4");
    END_OF_WORKSPACE = window!("workspace_id", "transaction_id, sequence", "LIMIT 1 OFFSET $4");
    END_OF_DEPLOYMENT = window!("deployment_id", "transaction_id, sequence", "LIMIT 1 OFFSET $4");
    HOME = "SELECT workspace_id FROM events WHERE deployment_id = $1 AND organization_id = $2 \
        ORDER BY transaction_id DESC, sequence DESC LIMIT 1";
    NEWS = "SELECT transaction_id, sequence, organization_id FROM events \
        WHERE SUCCEEDS(transaction_id, sequence, $1, $2) AND SETTLED(transaction_id) \
        ORDER BY transaction_id, sequence LIMIT $3";
    UNSETTLED = "SELECT 1 FROM events WHERE SUCCEEDS(transaction_id, sequence, $1, $2) LIMIT 1";
    PRUNE = "DELETE FROM events WHERE sequence IN (SELECT o.sequence FROM (SELECT sequence, at FROM events \
        WHERE SETTLED(transaction_id) ORDER BY transaction_id, sequence LIMIT $2) o WHERE o.at < $1) \
        RETURNING transaction_id, sequence";
    ADVANCE_HORIZON = "UPDATE event_horizon SET transaction_id = $1, sequence = $2 \
        WHERE id = 1 AND (transaction_id, sequence) < ($1, $2)";
}

#[derive(Clone, Debug)]
pub struct View {
    /// What the reader may see.
    pub visibility: Visibility,
    /// Only these types; none means all.
    pub types: Vec<EventType>,
    pub workspace_id: Option<WorkspaceId>,
    pub deployment_id: Option<DeploymentId>,
    pub since: Option<Timestamp>,
}

/// How much to read at once.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub limit: u32,
    /// The most rows that are looked through for them.
    pub window: u32,
}

/// A page of events, the oldest first.
#[derive(Debug)]
pub struct EventRows {
    pub rows: Vec<EventRow>,
    /// How far the page has come.
    pub next: Cursor,
    /// Whether there may be more already.
    pub has_more: bool,
}

/// Where a reader begins.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// With the oldest event that is kept.
    Oldest,
    /// With the next event.
    Newest,
    /// With the first event from this time on.
    Since(Timestamp),
    /// After this position; one beyond the end counts as the end.
    After(Cursor),
}

/// The first and the last position of the stream.
#[derive(Clone, Copy)]
struct Ends {
    /// The last event that was removed: a reader who has not come to it has missed some.
    horizon: Cursor,
    /// The last event that no earlier one can still precede.
    latest: Cursor,
}

/// Appends an event of the organization, and announces it.
pub fn append(tx: &Tx, scope: &Scope, at: Timestamp, event: &NewEvent) -> Result<()> {
    let NewEvent { event_type, audience, data } = event;
    let (workspace_id, deployment_id) =
        (data.workspace_id.map(|id| id.to_string()), data.deployment_id.map(|id| id.to_string()));
    let written = document(data)?;
    let values = params![
        at.millis(),
        event_type.as_str(),
        data.resource.id.as_str(),
        scope.organization(),
        &workspace_id,
        &deployment_id,
        audience.as_str(),
        &written,
    ];
    tx.post(&APPEND, values)?;
    let organization_id = Some(scope.organization().to_owned());
    let (kind, id) = (KIND, data.resource.id.to_string());
    tx.announce(Change { kind, id, organization_id, workspace_id, deployment_id, version: 0 });
    Ok(())
}

/// The position at which a reader of the organization begins; `None` if events after it were removed already.
pub fn position(conn: &Conn, scope: &Scope, start: Start) -> Result<Option<Cursor>> {
    let Ends { horizon, latest } = conn.query_one(&ENDS, &[], read_ends)?;
    Ok(match start {
        Start::Oldest => Some(horizon),
        Start::Newest => Some(latest),
        Start::After(cursor) => (cursor >= horizon).then_some(cursor.min(latest)),
        Start::Since(since) => {
            let from = since.millis().saturating_sub(DISORDER_MILLIS);
            let first = conn.query_opt(&SINCE, params![scope.organization(), from], read_cursor)?;
            Some(first.map_or(latest, Cursor::before).max(horizon))
        }
    })
}

/// The end of the stream.
pub fn latest(conn: &Conn, _: &Steward) -> Result<Cursor> {
    Ok(conn.query_one(&ENDS, &[], read_ends)?.latest)
}

/// The next events of the organization after a position; only those that no earlier one can still precede. `None` if some
/// of them were removed already.
pub fn after(
    conn: &Conn,
    scope: &Scope,
    view: &View,
    position: Cursor,
    bounds: Bounds,
) -> Result<Option<EventRows>> {
    let organization_id = scope.organization();
    let workspace_id = view.workspace_id.map_or_else(String::new, |id| id.to_string());
    let deployment_id = view.deployment_id.map_or_else(String::new, |id| id.to_string());
    let [all, visible, end]: [&Sql; 3] = match (view.deployment_id, view.workspace_id) {
        (Some(_), _) => [&OF_DEPLOYMENT, &VISIBLE_OF_DEPLOYMENT, &END_OF_DEPLOYMENT],
        (None, Some(_)) => [&OF_WORKSPACE, &VISIBLE_OF_WORKSPACE, &END_OF_WORKSPACE],
        (None, None) => [&OF_ORGANIZATION, &VISIBLE_OF_ORGANIZATION, &END_OF_ORGANIZATION],
    };
    let place = match (view.deployment_id, view.workspace_id) {
        (Some(_), _) => deployment_id.as_str(),
        (None, Some(_)) => workspace_id.as_str(),
        (None, None) => organization_id,
    };
    let Cursor { transaction_id, sequence } = position;
    let is_seen = may_see_place(conn, scope, view)?;
    // How far a page can come is read before the page: rows that come in between are left for the next one.
    let (mut ends, mut window_end) = (None, None);
    conn.query_both(
        (&ENDS, &[]),
        (end, params![place, transaction_id, sequence, bounds.window - 1, organization_id]),
        |row| {
            ends = Some(read_ends(row)?);
            Ok(())
        },
        |row| {
            window_end = Some(read_cursor(row)?);
            Ok(())
        },
    )?;
    let ends = ends.ok_or_else(|| podium_db::Error::Other("the horizon of events is missing".into()))?;
    if position < ends.horizon {
        return Ok(None);
    }
    if !is_seen {
        return Ok(Some(EventRows { rows: Vec::new(), next: ends.latest.max(position), has_more: false }));
    }
    let types = if view.types.is_empty() { EventType::ALL } else { view.types.as_slice() };
    let types: Vec<&str> = types.iter().map(|event| event.as_str()).collect();
    let since = view.since.map_or(i64::MIN, Timestamp::millis);
    let common = params![
        place,
        transaction_id,
        sequence,
        bounds.window,
        organization_id,
        &types,
        since,
        &workspace_id,
        bounds.limit,
    ];
    let rows = match &view.visibility {
        Visibility::All => conn.query(all, common, EventRow::read)?,
        Visibility::Only(seen) => {
            let workspaces = texts(&seen.workspaces);
            let who = params![&seen.everywhere, &seen.in_workspaces, &seen.on_deployments, &workspaces];
            conn.query(visible, &[common, who].concat(), EventRow::read)?
        }
    };
    let last = rows.last().map(|row| row.cursor);
    let is_full = rows.len() >= bounds.limit as usize;
    let next = match (is_full, last, window_end) {
        (true, Some(last), _) => last,
        (_, _, Some(end)) => end,
        (_, last, None) => ends.latest.max(last.unwrap_or_default()).max(position),
    };
    Ok(Some(EventRows { rows, next, has_more: is_full || window_end.is_some() }))
}

/// Whether a reader may know of the workspace or deployment that it asks for. Of one that it may not, not even how many
/// events there are is told: it is answered like one that nobody has.
fn may_see_place(conn: &Conn, scope: &Scope, view: &View) -> Result<bool> {
    let Visibility::Only(seen) = &view.visibility else { return Ok(true) };
    Ok(match (view.deployment_id, view.workspace_id) {
        (Some(id), _) => {
            let home: Option<Option<String>> =
                conn.query_opt(&HOME, params![id.as_str(), scope.organization()], |row| row.get(0))?;
            let home: Option<WorkspaceId> = home.flatten().and_then(|home| home.parse().ok());
            seen.has_deployment(id, home)
        }
        (None, Some(id)) => seen.workspaces.contains(&id),
        (None, None) => true,
    })
}

/// The organizations of the next events after a position, and those events' positions.
pub fn news(conn: &Conn, _: &Steward, position: Cursor, limit: u32) -> Result<Vec<(Cursor, OrganizationId)>> {
    let Cursor { transaction_id, sequence } = position;
    conn.query(&NEWS, params![transaction_id, sequence, limit], |row| Ok((read_cursor(row)?, row.id(2)?)))
}

/// Whether there are events after a position, even such that an earlier one can still precede.
pub fn has_unsettled(conn: &Conn, _: &Steward, position: Cursor) -> Result<bool> {
    let Cursor { transaction_id, sequence } = position;
    Ok(conn.query_opt(&UNSETTLED, params![transaction_id, sequence], |_| Ok(()))?.is_some())
}

/// Removes some events from before a time, the oldest first; returns how many.
pub fn prune(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    let removed = tx.query(&PRUNE, params![before.millis(), limit], read_cursor)?;
    if let Some(Cursor { transaction_id, sequence }) = removed.iter().max() {
        tx.execute(&ADVANCE_HORIZON, params![*transaction_id, *sequence])?;
    }
    Ok(removed.len() as u64)
}

fn read_cursor(row: &Row<'_>) -> Result<Cursor> {
    Ok(Cursor { transaction_id: row.get(0)?, sequence: row.get(1)? })
}

fn read_ends(row: &Row<'_>) -> Result<Ends> {
    let latest = Cursor { transaction_id: row.get(2)?, sequence: row.get(3)? };
    Ok(Ends { horizon: read_cursor(row)?, latest })
}
