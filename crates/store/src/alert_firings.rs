//! What alerts have found: one row as long as it goes on, however often it happens.
//!
//! What has begun or ended stays *untold* until a notice tells of it. Something that begins again before a notice has told
//! that it ended has not ended.

use podium_api::alerts::AlertFiring;
use podium_api::enums::{AlertFiringState as State, EventType};
use podium_api::events::EventAlertFiring;
use podium_api::{AlertFiringId, AlertId, DeploymentId, Id, Timestamp, TokenId};
use podium_db::{Conn, Result, Row, Tx, params, statements};
use podium_domain::alerts::{by_place, key};
use podium_domain::events::NewEvent;

use crate::alert_watches::{Found, read_found, subject_columns};
use crate::alerts::AlertRow;
use crate::columns::{Columns, texts};
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::{Housekeeper, Scope, Steward, events};

/// The most firings of an alert about DAGs of one deployment, which are its authors' to name: those that go on, and those
/// that are over but untold. Further ones are not noted.
const MOST_ON_DEPLOYMENT: i64 = 100;
/// How many firings of an alert are kept after they have ended.
const MOST_ENDED: u32 = 1000;
/// How many are removed at once beyond that.
const REMOVED_AT_ONCE: u32 = 1000;

const ALERT: &str = "t.alert_id = {}";
const ORGANIZATION: &str = "t.organization_id = {}";
const IS_OPEN: &str = "(t.until IS NULL) = {}";

pub(crate) const TABLE: Table = Table {
    name: "alert_firings",
    columns: concat!("id, alert_id, until, count, last_notice_at, ", subject_columns!()),
    joins: "",
    sorts: &[("createdAt", "since"), ("since", "since")],
    filters: &[ALERT, ORGANIZATION, IS_OPEN],
    ..Table::NAMED
};

statements! {
    REPEAT = "UPDATE alert_firings SET count = count + 1, run_id = $3, reason = $4, last_at = $5 \
        WHERE alert_id = $1 AND subject_key = $2 AND until IS NULL";
    REOPEN = "UPDATE alert_firings SET until = NULL, count = count + 1, run_id = $3, reason = $4, last_at = $5, \
        untold_since = CASE WHEN is_told THEN NULL ELSE untold_since END \
        WHERE alert_id = $1 AND subject_key = $2 AND until IS NOT NULL AND untold_since IS NOT NULL";
    // A deployment that is gone has been cleared already, and events of it may still follow: they open nothing.
    OPEN = concat!("INSERT INTO alert_firings (id, alert_id, organization_id, subject_key, count, is_told, untold_since, ",
        subject_columns!(), ") SELECT $1, $2, $3, $4, 1, FALSE, $5, $6, $7, $8, \
        CASE WHEN $7 = 'TOKEN' THEN $9 ELSE COALESCE((SELECT d.name FROM deployments d WHERE d.id = $11), $9) END, \
        $10, $11, $12, $13, $14 \
        WHERE ($7 = 'TOKEN' OR EXISTS (SELECT 1 FROM deployments d WHERE d.id = $11)) \
        AND ($12 = '' OR (SELECT COUNT(*) FROM (SELECT 1 FROM alert_firings f WHERE f.alert_id = $2 \
        AND f.deployment_id = $11 AND f.dag_id <> '' AND f.until IS NULL LIMIT $15) going_on) \
        + (SELECT COUNT(*) FROM (SELECT 1 FROM alert_firings f WHERE f.alert_id = $2 AND f.untold_since IS NOT NULL \
        AND f.deployment_id = $11 AND f.dag_id <> '' AND f.until IS NOT NULL LIMIT $15) untold) < $15)");
    RESOLVE = "UPDATE alert_firings SET until = $3, untold_since = COALESCE(untold_since, $4) \
        WHERE alert_id = $1 AND subject_key = $2 AND until IS NULL";
    RESOLVE_DEPLOYMENT = "UPDATE alert_firings SET until = $3, untold_since = COALESCE(untold_since, $4) \
        WHERE alert_id = $1 AND deployment_id = $2 AND until IS NULL";
    CLOSE = "UPDATE alert_firings SET until = COALESCE(until, $2), untold_since = NULL \
        WHERE alert_id = $1 AND organization_id = $3 AND (until IS NULL OR untold_since IS NOT NULL)";
    UNTOLD_SINCE = "SELECT MIN(untold_since) FROM alert_firings WHERE alert_id = $1 AND untold_since IS NOT NULL";
    // A deployment may be in another workspace by now, whose readers may know of it.
    UNTOLD = "SELECT f.id, f.until, f.count, f.is_told, f.run_id, f.subject_type, f.subject_id, f.subject_name, \
        COALESCE((SELECT d.workspace_id FROM deployments d WHERE d.id = f.deployment_id), f.workspace_id), \
        f.deployment_id, f.dag_id, f.reason, f.since FROM alert_firings f \
        WHERE f.alert_id = $1 AND f.untold_since IS NOT NULL ORDER BY f.untold_since, f.id LIMIT $2";
    TOLD = "UPDATE alert_firings SET untold_since = NULL, is_told = TRUE, last_notice_at = $2 WHERE id IN ($1[])";
    TRIM = "DELETE FROM alert_firings WHERE id IN (SELECT id FROM alert_firings WHERE alert_id = $1 \
        AND until IS NOT NULL AND untold_since IS NULL ORDER BY until DESC LIMIT $2 OFFSET $3)";
    OPEN_SUBJECTS = "SELECT subject_id FROM alert_firings WHERE alert_id = $1 AND until IS NULL \
        ORDER BY subject_key LIMIT $2";
    REMOVE = "DELETE FROM alert_firings WHERE id IN (SELECT id FROM alert_firings WHERE alert_id = $1 LIMIT $2)";
    PRUNE = "DELETE FROM alert_firings WHERE id IN \
        (SELECT id FROM alert_firings WHERE until < $1 AND untold_since IS NULL ORDER BY until LIMIT $2)";
    FORGET = "UPDATE alert_firings SET until = $1, untold_since = NULL WHERE id IN \
        (SELECT id FROM alert_firings WHERE until IS NULL AND dag_id <> '' AND COALESCE(last_at, since) < $2 \
        ORDER BY COALESCE(last_at, since) LIMIT $3)";
    EXPIRING = "SELECT t.id, t.name, t.workspace_id, t.deployment_id, t.end_at FROM api_tokens t \
        WHERE t.organization_id = $1 AND t.end_at > $2 AND t.end_at <= $3 \
        AND ($4 OR t.workspace_id IN ($5[]) OR t.deployment_id IN ($6[])) \
        AND NOT EXISTS (SELECT 1 FROM alert_firings f \
            WHERE f.alert_id = $7 AND f.subject_key = t.id AND f.until IS NULL) \
        ORDER BY t.end_at, t.id LIMIT $8";
    ENDS_OF = "SELECT id, end_at FROM api_tokens WHERE organization_id = $1 AND id IN ($2[])";
    NEXT_END = "SELECT MIN(end_at) FROM api_tokens WHERE organization_id = $1 AND end_at > $2";
}

#[derive(Clone, Debug)]
pub struct ExpiringToken {
    pub subject: podium_api::alerts::AlertSubject,
    pub end_at: Timestamp,
}

/// Reads a page of an alert's firings, and how many there are.
pub fn list(
    conn: &Conn,
    scope: &Scope,
    alert_id: AlertId,
    state: Option<State>,
    paging: &Paging,
) -> Result<Listed<AlertFiring>> {
    let mut filter = Filter::new(ALERT, alert_id.as_str());
    filter.and(ORGANIZATION, Some(scope.organization()));
    filter.and(IS_OPEN, state.map(|state| state == State::Firing));
    TABLE.page(conn, filter, paging, Total::Count, |row| {
        let Found { subject, run_id, reason, since } = read_found(row, 5)?;
        let until = row.time_opt(2)?;
        Ok(AlertFiring {
            id: row.id(0)?,
            alert_id: row.id(1)?,
            state: if until.is_some() { State::Resolved } else { State::Firing },
            subject,
            since,
            until,
            count: row.get::<i64>(3)?.unsigned_abs(),
            reason: said(reason),
            run_id: said(run_id),
            last_notice_at: row.time_opt(4)?,
        })
    })
}

/// Notes that something has happened: counts it if it goes on already, and otherwise lets it begin, under a new id. What
/// is beyond the bound for DAGs of one deployment is not noted, nor what is on a deployment that is gone. Tokens are always
/// noted: their loop would find them again at once.
pub fn fire(
    tx: &Tx,
    _: &Steward,
    alert: &AlertRow,
    id: AlertFiringId,
    found: &Found,
    now: Timestamp,
) -> Result<()> {
    let Found { subject, run_id, reason, since } = found;
    let (alert_id, subject_key) = (alert.id.as_str(), key(subject));
    let again = params![alert_id, &subject_key, run_id, reason, since.millis()];
    if tx.execute(&REPEAT, again)? > 0 || tx.execute(&REOPEN, again)? > 0 {
        return Ok(());
    }
    let opened = params![id.as_str(), alert_id, alert.organization_id.as_str(), &subject_key, now.millis()];
    tx.run(&OPEN, &[opened, &found.values(), params![MOST_ON_DEPLOYMENT]].concat())
}

/// Counts something if it goes on; returns whether it does.
pub fn repeat(tx: &Tx, _: &Steward, alert_id: AlertId, found: &Found) -> Result<bool> {
    let subject_key = key(&found.subject);
    let at = found.since.millis();
    let params = params![alert_id.as_str(), &subject_key, &found.run_id, &found.reason, at];
    Ok(tx.execute(&REPEAT, params)? > 0)
}

/// Notes that something has ended at a time, which people are to be told from now on.
pub fn resolve(
    tx: &Tx,
    _: &Steward,
    alert_id: AlertId,
    subject_key: &str,
    at: Timestamp,
    now: Timestamp,
) -> Result<()> {
    tx.run(&RESOLVE, params![alert_id.as_str(), subject_key, at.millis(), now.millis()])
}

/// The same for everything on a deployment.
pub fn resolve_deployment(
    tx: &Tx,
    _: &Steward,
    alert_id: AlertId,
    id: DeploymentId,
    at: Timestamp,
    now: Timestamp,
) -> Result<()> {
    let params = params![alert_id.as_str(), id.as_str(), at.millis(), now.millis()];
    tx.run(&RESOLVE_DEPLOYMENT, params)
}

/// Closes what an alert has found when it is switched off: nobody is told.
pub fn close(tx: &Tx, scope: &Scope, alert: &AlertRow, now: Timestamp) -> Result<()> {
    tx.run(&CLOSE, params![alert.id.as_str(), now.millis(), scope.organization()])
}

/// Since when there is something that people were not told.
pub fn untold_since(conn: &Conn, _: &Steward, alert_id: AlertId) -> Result<Option<Timestamp>> {
    conn.query_one(&UNTOLD_SINCE, params![alert_id.as_str()], |row| row.time_opt(0))
}

/// Writes the events that tell of what people were not told, and that they were; returns that. An event tells of one place.
pub fn tell(
    tx: &Tx,
    system: &Steward,
    alert: &AlertRow,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<EventAlertFiring>> {
    let untold: Vec<(EventAlertFiring, bool)> =
        tx.query(&UNTOLD, params![alert.id.as_str(), limit], read_untold)?;
    let begun = untold.iter().filter(|(_, is_told)| !is_told).map(|(firing, _)| firing.clone());
    let begun = begun.map(|firing| EventAlertFiring { until: None, ..firing }).collect();
    let all: Vec<EventAlertFiring> = untold.into_iter().map(|(firing, _)| firing).collect();
    let over = all.iter().filter(|firing| firing.until.is_some()).cloned().collect();
    let scope = system.scope(alert.organization_id);
    for (event, firings) in [(EventType::AlertFiring, begun), (EventType::AlertResolved, over)] {
        for (place, there) in by_place(firings) {
            let event = NewEvent::of_alert(event, alert.telling(), place, &there);
            events::append(tx, &scope, now, &event)?;
        }
    }
    let ids: Vec<String> = all.iter().map(|firing| firing.id.to_string()).collect();
    tx.execute(&TOLD, params![&ids, now.millis()])?;
    tx.execute(&TRIM, params![alert.id.as_str(), REMOVED_AT_ONCE, MOST_ENDED])?;
    Ok(all)
}

/// What an alert of tokens has found, up to a number.
pub fn open_tokens(conn: &Conn, _: &Steward, alert_id: AlertId, limit: u32) -> Result<Vec<TokenId>> {
    conn.query(&OPEN_SUBJECTS, params![alert_id.as_str(), limit], |row| row.id(0))
}

/// Some tokens that expire after one time and until another, and that the alert has not found yet.
pub fn expiring(
    conn: &Conn,
    _: &Steward,
    alert: &AlertRow,
    (after, until): (Timestamp, Timestamp),
    limit: u32,
) -> Result<Vec<ExpiringToken>> {
    let (is_everywhere, workspaces, deployments) = alert.rule.places();
    let params = params![
        alert.organization_id.as_str(),
        after.millis(),
        until.millis(),
        is_everywhere,
        &workspaces,
        &deployments,
        alert.id.as_str(),
        limit,
    ];
    conn.query(&EXPIRING, params, |row| {
        let id: Id = row.id(0)?;
        let subject = podium_api::alerts::AlertSubject {
            r#type: podium_api::enums::AlertSubjectType::Token,
            id,
            name: row.get(1)?,
            workspace_id: row.id_opt(2)?,
            deployment_id: row.id_opt(3)?,
            dag_id: None,
        };
        Ok(ExpiringToken { subject, end_at: row.time(4)? })
    })
}

/// When these tokens expire, as far as there are any.
pub fn ends_of(
    conn: &Conn,
    _: &Steward,
    alert: &AlertRow,
    ids: &[TokenId],
) -> Result<Vec<(TokenId, Option<Timestamp>)>> {
    let ids = texts(ids);
    conn.query(&ENDS_OF, params![alert.organization_id.as_str(), &ids], |row| {
        Ok((row.id(0)?, row.time_opt(1)?))
    })
}

/// When the first token of an alert's organization expires after a time.
pub fn next_end(conn: &Conn, _: &Steward, alert: &AlertRow, after: Timestamp) -> Result<Option<Timestamp>> {
    conn.query_one(&NEXT_END, params![alert.organization_id.as_str(), after.millis()], |row| row.time_opt(0))
}

/// Removes some firings of an alert that is gone; returns how many.
pub fn remove_some(tx: &Tx, _: &Steward, alert_id: AlertId, limit: u32) -> Result<u64> {
    tx.execute(&REMOVE, params![alert_id.as_str(), limit])
}

/// Drops some firings that ended before a time; returns how many.
pub fn prune(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE, params![before.millis(), limit])
}

/// Ends what was found about DAGs and has neither ended nor happened again since a time, without telling anybody: the DAG may be
/// gone, and one that fails again is found again.
pub fn forget(tx: &Tx, _: &Housekeeper, now: Timestamp, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&FORGET, params![now.millis(), before.millis(), limit])
}

fn read_untold(row: &Row<'_>) -> Result<(EventAlertFiring, bool)> {
    let Found { subject, run_id, reason, since } = read_found(row, 4)?;
    let count = row.get::<i64>(2)?.unsigned_abs();
    let (id, until, is_told) = (row.id(0)?, row.time_opt(1)?, row.get(3)?);
    Ok((
        EventAlertFiring { id, subject, since, until, count, reason: said(reason), run_id: said(run_id) },
        is_told,
    ))
}

fn said(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}
