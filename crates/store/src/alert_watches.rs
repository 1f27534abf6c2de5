//! What alerts may find at a time, unless it ends before: deployments that are unhealthy, and DAG runs that go on.

use podium_api::alerts::AlertSubject;
use podium_api::{AlertId, DeploymentId, Timestamp};
use podium_db::{Conn, Result, Row, Tx, Value, params, statements};
use podium_domain::alerts::key;

use crate::alerts::AlertRow;
use crate::columns::Columns;
use crate::{Housekeeper, Scope, Steward};

/// The most watches of an alert on one deployment, whose DAG runs are its authors' to make. Further runs are not watched. As
/// many runs that were found are known until they end.
const MOST_ON_DEPLOYMENT: i64 = 100;

/// The columns that watches and firings have in common.
macro_rules! subject_columns {
    () => {
        "run_id, subject_type, subject_id, subject_name, workspace_id, deployment_id, dag_id, reason, since"
    };
}
pub(crate) use subject_columns;

/// Those of an alert, if it is of the organization.
macro_rules! of_organization {
    () => {
        "alert_id IN (SELECT a.id FROM alerts a WHERE a.id = $1 AND a.organization_id = $2)"
    };
}

statements! {
    // A run that begins again is watched anew. An unhealthy deployment stays one since it became so. Events of a deployment
    // that is gone may follow that of its end: they are not watched.
    ADD = concat!("INSERT INTO alert_watches (alert_id, subject_key, due_at, ", subject_columns!(), ") \
        SELECT $1, $2, $3, $4, $5, $6, COALESCE((SELECT d.name FROM deployments d WHERE d.id = $9), $7), $8, $9, $10, \
        $11, $12 WHERE EXISTS (SELECT 1 FROM deployments d WHERE d.id = $9) \
        AND (SELECT COUNT(*) FROM (SELECT 1 FROM alert_watches w WHERE w.alert_id = $1 \
        AND w.deployment_id = $9 AND w.due_at IS NOT NULL LIMIT $13) counted) < $13 \
        ON CONFLICT (alert_id, subject_key, run_id) DO UPDATE SET since = excluded.since, due_at = excluded.due_at \
        WHERE alert_watches.run_id <> ''");
    REMOVE = "DELETE FROM alert_watches WHERE alert_id = $1 AND subject_key = $2 AND run_id = $3 \
        RETURNING since, due_at";
    REMOVE_OF_DEPLOYMENT = "DELETE FROM alert_watches WHERE alert_id = $1 AND deployment_id = $2";
    DUE = concat!("SELECT subject_key, ", subject_columns!(), " FROM alert_watches \
        WHERE alert_id = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3");
    NEXT = "SELECT MIN(due_at) FROM alert_watches WHERE alert_id = $1 AND due_at IS NOT NULL";
    FIRED = "UPDATE alert_watches SET due_at = NULL WHERE alert_id = $1 AND subject_key = $2 AND run_id = $3";
    FORGET_FIRED = "DELETE FROM alert_watches WHERE alert_id = $1 AND (subject_key, run_id) IN \
        (SELECT w.subject_key, w.run_id FROM alert_watches w WHERE w.alert_id = $1 AND w.deployment_id = $2 \
        AND w.due_at IS NULL ORDER BY w.since DESC, w.subject_key, w.run_id LIMIT $4 OFFSET $3)";
    SEED = concat!("INSERT INTO alert_watches (alert_id, subject_key, due_at, ", subject_columns!(), ") \
        SELECT $2, d.id, $4, '', 'DEPLOYMENT', d.id, d.name, d.workspace_id, d.id, '', d.status_reason, $3 \
        FROM deployments d WHERE d.organization_id = $1 AND d.status = 'UNHEALTHY' \
        AND ($5 OR d.workspace_id IN ($6[]) OR d.id IN ($7[])) \
        AND NOT EXISTS (SELECT 1 FROM alert_firings f \
            WHERE f.alert_id = $2 AND f.subject_key = d.id AND f.until IS NULL) \
        ON CONFLICT (alert_id, subject_key, run_id) DO NOTHING");
    MOVE = concat!("UPDATE alert_watches SET due_at = since + $3 WHERE ", of_organization!(), " AND due_at IS NOT NULL");
    NARROW = concat!("DELETE FROM alert_watches WHERE ", of_organization!(), " AND NOT (($3 OR deployment_id IN ($5[]) \
        OR COALESCE((SELECT d.workspace_id FROM deployments d WHERE d.id = alert_watches.deployment_id), workspace_id) \
        IN ($4[])) AND ($6 = '' OR dag_id = $6))");
    CLEAR = concat!("DELETE FROM alert_watches WHERE ", of_organization!());
    CLEAR_SOME = "DELETE FROM alert_watches WHERE alert_id = $1 AND (subject_key, run_id) IN \
        (SELECT subject_key, run_id FROM alert_watches WHERE alert_id = $1 LIMIT $2)";
    PRUNE = "DELETE FROM alert_watches WHERE (alert_id, subject_key, run_id) IN \
        (SELECT alert_id, subject_key, run_id FROM alert_watches WHERE since < $1 AND run_id <> '' LIMIT $2)";
}

/// Something that an alert watches or has found: what it is about, and how it began.
#[derive(Clone, Debug)]
pub struct Found {
    pub subject: AlertSubject,
    /// The DAG run, if it is about one.
    pub run_id: String,
    /// Why, where Podium knows it.
    pub reason: String,
    pub since: Timestamp,
}

impl Found {
    /// The values of the columns that watches and firings have in common.
    pub(crate) fn values(&self) -> [Value<'_>; 9] {
        let Self { subject, run_id, reason, since } = self;
        [
            run_id.into(),
            subject.r#type.as_str().into(),
            subject.id.as_str().into(),
            (&subject.name).into(),
            subject.workspace_id.as_ref().map_or("", |id| id.as_str()).into(),
            subject.deployment_id.as_ref().map_or("", |id| id.as_str()).into(),
            subject.dag_id.as_deref().unwrap_or_default().into(),
            reason.into(),
            since.millis().into(),
        ]
    }
}

/// Watches something until a time, unless there is too much already.
pub fn add(tx: &Tx, _: &Steward, alert_id: AlertId, found: &Found, due_at: Timestamp) -> Result<()> {
    let subject_key = key(&found.subject);
    let watched = params![alert_id.as_str(), &subject_key, due_at.millis()];
    tx.run(&ADD, &[watched, &found.values(), params![MOST_ON_DEPLOYMENT]].concat())
}

#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub since: Timestamp,
    /// Whether its time had come before.
    pub has_fired: bool,
}

/// Watches something no more; returns what was watched.
pub fn remove(
    tx: &Tx,
    _: &Steward,
    alert_id: AlertId,
    subject: &AlertSubject,
    run_id: &str,
) -> Result<Option<Ended>> {
    tx.query_opt(&REMOVE, params![alert_id.as_str(), &key(subject), run_id], |row| {
        Ok(Ended { since: row.time(0)?, has_fired: row.time_opt(1)?.is_none() })
    })
}

/// Watches nothing on a deployment any more.
pub fn remove_of_deployment(tx: &Tx, _: &Steward, alert_id: AlertId, id: DeploymentId) -> Result<()> {
    tx.run(&REMOVE_OF_DEPLOYMENT, params![alert_id.as_str(), id.as_str()])
}

/// Some of what an alert has watched for long enough. A DAG run is known until it ends, unless many others do not end
/// either; everything else is not watched any more.
pub fn take_due(tx: &Tx, system: &Steward, id: AlertId, now: Timestamp, limit: u32) -> Result<Vec<Found>> {
    let due: Vec<Found> =
        tx.query(&DUE, params![id.as_str(), now.millis(), limit], |row| read_found(row, 1))?;
    for found in &due {
        if found.run_id.is_empty() {
            remove(tx, system, id, &found.subject, "")?;
        } else {
            tx.execute(&FIRED, params![id.as_str(), &key(&found.subject), &found.run_id])?;
        }
    }
    let mut deployments: Vec<DeploymentId> = due
        .iter()
        .filter(|found| !found.run_id.is_empty())
        .filter_map(|found| found.subject.deployment_id)
        .collect();
    deployments.sort_unstable();
    deployments.dedup();
    for deployment_id in deployments {
        tx.execute(&FORGET_FIRED, params![id.as_str(), deployment_id.as_str(), MOST_ON_DEPLOYMENT, limit])?;
    }
    Ok(due)
}

/// When the time of the next watch of an alert comes.
pub fn next_due(conn: &Conn, _: &Steward, id: AlertId) -> Result<Option<Timestamp>> {
    conn.query_one(&NEXT, params![id.as_str()], |row| row.time_opt(0))
}

/// Watches the deployments that are unhealthy already.
pub fn seed(tx: &Tx, scope: &Scope, alert: &AlertRow, now: Timestamp) -> Result<()> {
    let rule = &alert.rule;
    let due_at = now + rule.threshold().patience();
    let (is_everywhere, workspaces, deployments) = rule.places();
    let (organization, id) = (scope.organization(), alert.id.as_str());
    let params =
        params![organization, id, now.millis(), due_at.millis(), is_everywhere, &workspaces, &deployments];
    tx.run(&SEED, params)
}

/// Lets the time of every watch of an alert come so long after it began.
pub fn change_patience(tx: &Tx, scope: &Scope, alert: &AlertRow) -> Result<()> {
    let patience = i64::try_from(alert.rule.threshold().patience().as_millis()).unwrap_or(i64::MAX);
    tx.run(&MOVE, params![alert.id.as_str(), scope.organization(), patience])
}

/// Forgets the watches of an alert where its rule does not look any more.
pub fn narrow(tx: &Tx, scope: &Scope, alert: &AlertRow) -> Result<()> {
    let rule = &alert.rule;
    let (is_everywhere, workspaces, deployments) = rule.places();
    let dag_id = rule.dag_id.as_deref().unwrap_or_default();
    let params =
        params![alert.id.as_str(), scope.organization(), is_everywhere, &workspaces, &deployments, dag_id];
    tx.run(&NARROW, params)
}

/// Forgets the watches of an alert that is switched off.
pub fn clear(tx: &Tx, scope: &Scope, alert: &AlertRow) -> Result<()> {
    tx.run(&CLEAR, params![alert.id.as_str(), scope.organization()])
}

/// Removes some watches of an alert that is gone; returns how many.
pub fn remove_some(tx: &Tx, _: &Steward, id: AlertId, limit: u32) -> Result<u64> {
    tx.execute(&CLEAR_SOME, params![id.as_str(), limit])
}

/// Drops some DAG runs that began before a time and never ended; returns how many.
pub fn prune(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE, params![before.millis(), limit])
}

/// Reads the columns that watches and firings have in common.
pub(crate) fn read_found(row: &Row<'_>, first: usize) -> Result<Found> {
    let dag_id: String = row.get(first + 6)?;
    Ok(Found {
        run_id: row.get(first)?,
        subject: AlertSubject {
            r#type: row.word(first + 1)?,
            id: row.id(first + 2)?,
            name: row.get(first + 3)?,
            workspace_id: row.id_opt(first + 4)?,
            deployment_id: row.id_opt(first + 5)?,
            dag_id: Some(dag_id).filter(|text| !text.is_empty()),
        },
        reason: row.get(first + 7)?,
        since: row.time(first + 8)?,
    })
}
