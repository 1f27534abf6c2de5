//! Alerts: what to watch for, whom to tell, and how far each has come in the stream of events.

use podium_api::enums::AlertKind;
use podium_api::{AlertId, DeploymentId, OrganizationId, Timestamp, WebhookId, WorkspaceId};
use podium_db::{Conn, Result, Tx, params, statements};
use podium_domain::alerts::{Notices, Threshold};
use podium_domain::events::{Cursor, Resource, Telling};
use serde::{Deserialize, Serialize};

use crate::columns::{Columns, document, texts};
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::record::record;
use crate::stamp::{Stamp, stamp_joins};
use crate::{Scope, Steward, counters, work};

/// The kind of their counter, their changes and their work.
pub const KIND: &str = "alerts";

record! {
    #[derive(Clone, Debug)]
    pub struct AlertRow as columns! {
        pub id: AlertId = id "t.id",
        pub organization_id: OrganizationId = id "t.organization_id",
        pub name: String = get "t.name",
        pub description: String = get "t.description",
        pub kind: AlertKind = word "t.kind",
        /// How, where, and for whom.
        pub rule: Rule = document "t.rule",
        pub is_enabled: bool = get "t.is_enabled",
        /// Since when its mails could not be sent.
        pub mail_failing_since: Option<Timestamp> = time_opt "t.mail_failing_since",
        /// How far it has come in the stream of events.
        pub position: Cursor = cursor "t.transaction_id, t.sequence",
        /// How many notices it may still send.
        pub notices: Notices = notices "t.notices_left, t.notices_since",
        pub stamp: Stamp = stamp,
    }
}

/// Alerts that have not come to the end of the stream.
macro_rules! behind {
    ($($of:literal)?) => {
        concat!(
            "SELECT a.id FROM alerts a WHERE a.is_enabled ", $($of,)?
            " AND EXISTS (SELECT 1 FROM events e WHERE e.organization_id = a.organization_id \
             AND SUCCEEDS(e.transaction_id, e.sequence, a.transaction_id, a.sequence) AND SETTLED(e.transaction_id))"
        )
    };
}

const ORGANIZATION: &str = "t.organization_id = {}";

pub(crate) const TABLE: Table =
    Table { name: "alerts", columns: columns!(), filters: &[ORGANIZATION], ..Table::NAMED };

statements! {
    GET = concat!("SELECT ", columns!(), " FROM alerts t", stamp_joins!(),
        " WHERE t.id = $1 AND t.organization_id = $2");
    READ = concat!("SELECT ", columns!(), " FROM alerts t", stamp_joins!(), " WHERE t.id = $1");
    COUNT = "SELECT COUNT(*) FROM (SELECT 1 FROM alerts WHERE organization_id = $1 LIMIT $2) counted";
    RULES = "SELECT name, rule FROM alerts WHERE organization_id = $1 ORDER BY name_key";
    INSERT = "INSERT INTO alerts (id, organization_id, name, name_key, description, kind, rule, is_enabled, \
        transaction_id, sequence, notices_left, notices_since, version, created_at, created_by, updated_at, updated_by) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
    UPDATE = "UPDATE alerts SET name = $4, name_key = $5, description = $6, rule = $7, is_enabled = $8, \
        version = version + 1, updated_at = $9, updated_by = $10 \
        WHERE id = $1 AND organization_id = $2 AND version = $3";
    SKIP = "UPDATE alerts SET transaction_id = $3, sequence = $4 \
        WHERE id = $1 AND organization_id = $2 AND (transaction_id, sequence) < ($3, $4)";
    DELETE = "DELETE FROM alerts WHERE id = $1 AND organization_id = $2 AND version = $3";
    ADVANCE = "UPDATE alerts SET transaction_id = $4, sequence = $5 \
        WHERE id = $1 AND version = $6 AND is_enabled AND (transaction_id, sequence) = ($2, $3)";
    HOLD = "UPDATE alerts SET notices_left = $3, notices_since = $4 WHERE id = $1 AND version = $2 AND is_enabled";
    MAIL_SENT = "UPDATE alerts SET mail_failing_since = NULL WHERE id = $1 AND mail_failing_since IS NOT NULL";
    MAIL_FAILED = "UPDATE alerts SET mail_failing_since = $2 WHERE id = $1 AND mail_failing_since IS NULL";
    FOLLOWED = "SELECT DISTINCT organization_id FROM alerts WHERE is_enabled";
    BEHIND = behind!();
    BEHIND_IN = behind!(" AND a.organization_id = $1");
    // It writes the rows that it finds, so that none of them is deleted before the alert that names it is there.
    HOLD_WEBHOOKS = "UPDATE webhooks SET kept = kept WHERE organization_id = $1 AND id IN ($2[]) RETURNING id";
}

/// What an alert looks for, where, and whom it tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// How long a deployment may be unhealthy, or a DAG run may take, in minutes.
    pub after_minutes: Option<u32>,
    /// How many days before it expires a token is told about.
    pub days_before: Option<u32>,
    pub dag_id: Option<String>,
    /// Only in these workspaces.
    pub workspace_ids: Vec<WorkspaceId>,
    pub deployment_ids: Vec<DeploymentId>,
    /// The webhooks that get its events.
    pub webhook_ids: Vec<WebhookId>,
    pub mail_addresses: Vec<String>,
}

impl Rule {
    pub fn threshold(&self) -> Threshold {
        let Self { after_minutes, days_before, dag_id, .. } = self;
        Threshold { after_minutes: *after_minutes, days_before: *days_before, dag_id: dag_id.clone() }
    }

    /// Whether it looks everywhere, or else in which workspaces and on which deployments.
    pub(crate) fn places(&self) -> (bool, Vec<String>, Vec<String>) {
        let is_everywhere = self.workspace_ids.is_empty() && self.deployment_ids.is_empty();
        (is_everywhere, texts(&self.workspace_ids), texts(&self.deployment_ids))
    }
}

impl AlertRow {
    /// As an event names it.
    pub fn about(&self) -> Resource<'_> {
        Resource::new(self.id.id(), podium_domain::Target::Organization).named(&self.name)
    }

    /// As its own events name it.
    pub fn telling(&self) -> Telling<'_> {
        Telling {
            id: self.id,
            name: &self.name,
            organization_id: self.organization_id,
            kind: self.kind,
            webhook_ids: &self.rule.webhook_ids,
        }
    }
}

/// Reads a page of alerts, and how many there are.
pub fn list(conn: &Conn, scope: &Scope, paging: &Paging) -> Result<Listed<AlertRow>> {
    let filter = Filter::new(ORGANIZATION, scope.organization());
    TABLE.page(conn, filter, paging, Total::Counter(scope.organization(), KIND), AlertRow::read)
}

pub fn get(conn: &Conn, scope: &Scope, id: AlertId) -> Result<Option<AlertRow>> {
    conn.query_opt(&GET, params![id.as_str(), scope.organization()], AlertRow::read)
}

pub fn state(conn: &Conn, _: &Steward, id: AlertId) -> Result<Option<AlertRow>> {
    conn.query_opt(&READ, params![id.as_str()], AlertRow::read)
}

/// How many alerts the organization has, up to a number.
pub fn count(conn: &Conn, scope: &Scope, most: usize) -> Result<usize> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let count: i64 = conn.query_one(&COUNT, params![scope.organization(), most], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// The name of an alert of the organization that names a webhook.
pub fn naming(conn: &Conn, scope: &Scope, webhook_id: WebhookId) -> Result<Option<String>> {
    let rules: Vec<(String, Rule)> =
        conn.query(&RULES, params![scope.organization()], |row| Ok((row.get(0)?, row.document(1)?)))?;
    Ok(rules.into_iter().find(|(_, rule)| rule.webhook_ids.contains(&webhook_id)).map(|(name, _)| name))
}

/// Those of these webhooks that the organization has. They stay until the end of the transaction.
pub fn hold_webhooks(tx: &Tx, scope: &Scope, ids: &[WebhookId]) -> Result<Vec<WebhookId>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    tx.query(&HOLD_WEBHOOKS, params![scope.organization(), &texts(ids)], |row| row.id(0))
}

/// Adds an alert, and asks its loop to look at it.
pub fn insert(tx: &Tx, scope: &Scope, alert: &AlertRow, name_key: &str) -> Result<()> {
    let (stamp, Cursor { transaction_id, sequence }) = (&alert.stamp, alert.position);
    let rule = document(&alert.rule)?;
    let values = params![
        alert.id.as_str(),
        scope.organization(),
        &alert.name,
        name_key,
        &alert.description,
        alert.kind.as_str(),
        &rule,
        alert.is_enabled,
        transaction_id,
        sequence,
        alert.notices.left,
        alert.notices.since.millis(),
    ];
    tx.execute(&INSERT, &[values, &stamp.values()].concat())?;
    counters::add(tx, scope.organization_id(), KIND, alert.id.id(), 1, 0)?;
    work::add(tx, KIND, alert.id.id(), stamp.updated_at, stamp.updated_at)
}

/// Replaces the settings of an alert whose version is still the one before, and asks its loop to look at it.
pub fn update(tx: &Tx, scope: &Scope, alert: &AlertRow, name_key: &str) -> Result<()> {
    let stamp = &alert.stamp;
    let rule = document(&alert.rule)?;
    let values = params![
        alert.id.as_str(),
        scope.organization(),
        stamp.version - 1,
        &alert.name,
        name_key,
        &alert.description,
        &rule,
        alert.is_enabled,
        stamp.updated_at.millis(),
        stamp.updated_by.id.as_str(),
    ];
    tx.run_on_one(&UPDATE, values)?;
    work::add(tx, KIND, alert.id.id(), stamp.updated_at, stamp.updated_at)
}

/// Moves an alert forward to a position: what was before it is not looked at.
pub fn skip_to(tx: &Tx, scope: &Scope, id: AlertId, to: Cursor) -> Result<()> {
    let Cursor { transaction_id, sequence } = to;
    tx.run(&SKIP, params![id.as_str(), scope.organization(), transaction_id, sequence])
}

/// Removes an alert of this version; its loop removes what is left of it.
pub fn delete(tx: &Tx, scope: &Scope, id: AlertId, version: i64, now: Timestamp) -> Result<()> {
    tx.run_on_one(&DELETE, params![id.as_str(), scope.organization(), version])?;
    counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)?;
    work::add(tx, KIND, id.id(), now, now)
}

/// Moves an alert from one position to another, unless another replica has or somebody has changed it; returns whether
/// it did.
pub fn advance(tx: &Tx, _: &Steward, alert: &AlertRow, to: Cursor) -> Result<bool> {
    let Cursor { transaction_id, sequence } = alert.position;
    let id = alert.id.as_str();
    let params = params![id, transaction_id, sequence, to.transaction_id, to.sequence, alert.stamp.version];
    Ok(tx.execute(&ADVANCE, params)? == 1)
}

/// Writes how many notices an alert may still send, and keeps it as it is until the end of the transaction; returns
/// whether it still is.
pub fn hold(tx: &Tx, _: &Steward, alert: &AlertRow, notices: Notices) -> Result<bool> {
    let params = params![alert.id.as_str(), alert.stamp.version, notices.left, notices.since.millis()];
    Ok(tx.execute(&HOLD, params)? == 1)
}

/// Notes whether a mail of an alert could be sent.
pub fn mail_ended(tx: &Tx, _: &Steward, id: AlertId, failed_at: Option<Timestamp>) -> Result<()> {
    match failed_at {
        None => tx.run(&MAIL_SENT, params![id.as_str()]),
        Some(at) => tx.run(&MAIL_FAILED, params![id.as_str(), at.millis()]),
    }
}

pub fn followed(conn: &Conn, _: &Steward) -> Result<Vec<OrganizationId>> {
    conn.query(&FOLLOWED, &[], |row| row.id(0))
}

/// The alerts, of an organization or of all, that have not come to the end of the stream.
pub fn behind(conn: &Conn, _: &Steward, organization_id: Option<OrganizationId>) -> Result<Vec<AlertId>> {
    match organization_id {
        Some(id) => conn.query(&BEHIND_IN, params![id.as_str()], |row| row.id(0)),
        None => conn.query(&BEHIND, &[], |row| row.id(0)),
    }
}
