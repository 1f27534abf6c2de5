//! How far the spools of environments were read. A position is advanced in the transaction that writes what was read as
//! events, and only from where reading began: nothing is written twice, whoever reads.

use podium_api::{DeploymentId, OrganizationId, Timestamp, WorkspaceId};
use podium_db::{Conn, Error, Result, Row, Tx, params, statements};
use podium_domain::Target;
use podium_domain::events::{Allowance, NewEvent, Resource, SpoolBatch, SpoolPosition, SpoolState};

use crate::columns::Columns;
use crate::{Scope, Steward, events};

statements! {
    GET = "SELECT segment, read_bytes, dropped, allowance, allowed_since FROM event_spools WHERE deployment_id = $1";
    DEPLOYMENT = "SELECT organization_id, workspace_id, name FROM deployments WHERE id = $1";
    BEGIN = "INSERT INTO event_spools (deployment_id, segment, read_bytes, dropped, allowance, allowed_since) \
        SELECT id, 0, 0, 0, $2, $3 FROM deployments WHERE id = $1 ON CONFLICT (deployment_id) DO NOTHING";
    ADVANCE = "UPDATE event_spools SET segment = $5, read_bytes = $6, dropped = $7, allowance = $8, allowed_since = $9 \
        WHERE deployment_id = $1 AND segment = $2 AND read_bytes = $3 AND dropped = $4";
    DELETE_OF_DEPLOYMENT = "DELETE FROM event_spools WHERE deployment_id IN \
        (SELECT id FROM deployments WHERE id = $1 AND organization_id = $2)";
}

/// Reads how far the spool of an environment was read; `None` if it never was.
pub fn get(conn: &Conn, _: &Steward, id: DeploymentId) -> Result<Option<SpoolState>> {
    conn.query_opt(&GET, params![id.as_str()], read)
}

/// Writes what was read as events, and how far it was read. `None` if it was read by somebody else, or the deployment is
/// gone: then nothing is written.
pub fn record(
    tx: &Tx,
    system: &Steward,
    id: DeploymentId,
    batch: SpoolBatch,
    now: Timestamp,
) -> Result<Option<SpoolState>> {
    let place = |row: &Row<'_>| Ok((row.id(0)?, row.id(1)?, row.get::<String>(2)?));
    let known = tx.query_opt(&DEPLOYMENT, params![id.as_str()], place)?;
    let Some((organization_id, workspace_id, name)) = known else { return Ok(None) };
    let (organization_id, workspace_id): (OrganizationId, WorkspaceId) = (organization_id, workspace_id);
    let full = Allowance::full(now);
    tx.execute(&BEGIN, params![id.as_str(), full.left, full.since.millis()])?;
    let Some(before) = get(tx, system, id)? else { return Ok(None) };
    let (count, SpoolBatch { from, to, claims, dropped }) = (batch.events(), batch);
    let after = SpoolState { position: to, allowance: before.allowance.at(now).less(count) };
    let params = params![
        id.as_str(),
        number(from.segment)?,
        number(from.read_bytes)?,
        number(from.dropped)?,
        number(to.segment)?,
        number(to.read_bytes)?,
        number(to.dropped)?,
        after.allowance.left,
        after.allowance.since.millis(),
    ];
    if tx.execute(&ADVANCE, params)? != 1 {
        return Ok(None);
    }
    let (scope, place) = (system.scope(organization_id), Target::Deployment { id, workspace_id });
    let about = Resource::new(id.id(), place).named(&name);
    for claim in claims {
        events::append(tx, &scope, now, &claim.event(organization_id, about))?;
    }
    if dropped > 0 {
        events::append(tx, &scope, now, &NewEvent::dropped(organization_id, about, dropped))?;
    }
    Ok(Some(after))
}

/// Forgets the spool of a deployment that is being removed.
pub fn delete_of_deployment(tx: &Tx, scope: &Scope, deployment_id: DeploymentId) -> Result<()> {
    tx.run(&DELETE_OF_DEPLOYMENT, params![deployment_id.as_str(), scope.organization()])
}

fn read(row: &Row<'_>) -> Result<SpoolState> {
    let count = |index| Ok::<_, Error>(u64::try_from(row.get::<i64>(index)?).unwrap_or_default());
    Ok(SpoolState {
        position: SpoolPosition { segment: count(0)?, read_bytes: count(1)?, dropped: count(2)? },
        allowance: Allowance { left: row.get(3)?, since: row.time(4)? },
    })
}

fn number(count: u64) -> Result<i64> {
    i64::try_from(count).map_err(|_| Error::Other(format!("{count} is no position in a spool")))
}
