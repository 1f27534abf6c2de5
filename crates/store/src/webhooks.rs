//! Webhooks: where events are sent, and how far each has come in the stream.

use podium_api::{DeploymentId, OrganizationId, Timestamp, WebhookId, WorkspaceId};
use podium_db::{Change, Conn, Error, Result, Tx, params, statements};
use podium_domain::UserText;
use podium_domain::events::{Cursor, NewEvent, Resource};
use serde::{Deserialize, Serialize};

use crate::columns::{Columns, document, texts};
use crate::listing::{Filter, Listed, Paging, Table, Total};
use crate::record::{Reader, record};
use crate::stamp::{Stamp, stamp_joins};
use crate::{Housekeeper, Scope, Steward, changes, counters, events, work};

/// The kind of their counter, their changes and their work.
pub const KIND: &str = "webhooks";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EventFilter {
    /// Types, or beginnings of types with a `*` after them; none means all.
    pub event_types: Vec<String>,
    pub workspace_ids: Vec<WorkspaceId>,
    /// And those of these deployments; with neither, all.
    pub deployment_ids: Vec<DeploymentId>,
}

impl EventFilter {
    /// Whether events are sent wherever they happened.
    pub const fn is_everywhere(&self) -> bool {
        self.workspace_ids.is_empty() && self.deployment_ids.is_empty()
    }
}

/// Where events are sent, as it is stored.
#[derive(Clone, Debug)]
pub enum StoredUrl {
    /// Encrypted.
    Sealed(Vec<u8>),
    /// From before URLs were encrypted; it is encrypted soon, and never written.
    Plain(String),
}

impl StoredUrl {
    fn sealed(&self) -> Result<&[u8]> {
        match self {
            Self::Sealed(sealed) => Ok(sealed),
            Self::Plain(_) => Err(Error::Other("the URL of a webhook is sealed before it is stored".into())),
        }
    }
}

record! {
    #[derive(Clone, Debug)]
    pub struct WebhookRow as columns! {
        pub id: WebhookId = id "t.id",
        pub organization_id: OrganizationId = id "t.organization_id",
        pub name: String = get "t.name",
        pub description: String = get "t.description",
        /// Where events are sent.
        pub url: StoredUrl = url "t.url, t.sealed_url",
        pub filter: EventFilter = document "t.filter",
        pub is_enabled: bool = get "t.is_enabled",
        /// Why Podium has switched it off, if it did.
        pub disabled_reason: UserText = reason "t.disabled_reason",
        /// Since when no attempt has succeeded.
        pub failing_since: Option<Timestamp> = time_opt "t.failing_since",
        /// The secret that signs, sealed.
        pub sealed_secret: Vec<u8> = get "t.sealed_secret",
        /// The one before, sealed, and until when it signs too.
        pub previous_secret: Option<(Vec<u8>, Timestamp)> = ending "t.sealed_previous_secret, t.previous_secret_expires_at",
        /// How far it has come in the stream of events.
        pub position: Cursor = cursor "t.transaction_id, t.sequence",
        /// How many of its deliveries are pending.
        pub pending: i64 = get "t.pending",
        /// How many of its deliveries there are.
        pub kept: i64 = get "t.kept",
        pub stamp: Stamp = stamp,
    }
}

impl Reader<'_, '_> {
    fn url(&mut self) -> Result<StoredUrl> {
        let (plain, sealed): (String, Option<Vec<u8>>) = (self.get()?, self.get()?);
        Ok(sealed.map_or(StoredUrl::Plain(plain), StoredUrl::Sealed))
    }

    /// A sealed secret that works until a time.
    fn ending(&mut self) -> Result<Option<(Vec<u8>, Timestamp)>> {
        let sealed: Option<Vec<u8>> = self.get()?;
        Ok(sealed.zip(self.time_opt()?))
    }
}

/// Webhooks that have not come to the end of the stream.
macro_rules! behind {
    ($($of:literal)?) => {
        concat!(
            "SELECT w.id FROM webhooks w WHERE w.is_enabled ", $($of,)?
            " AND EXISTS (SELECT 1 FROM events e WHERE e.organization_id = w.organization_id \
             AND SUCCEEDS(e.transaction_id, e.sequence, w.transaction_id, w.sequence) AND SETTLED(e.transaction_id))"
        )
    };
}

const ORGANIZATION: &str = "t.organization_id = {}";

pub(crate) const TABLE: Table =
    Table { name: "webhooks", columns: columns!(), filters: &[ORGANIZATION], ..Table::NAMED };

statements! {
    GET = concat!("SELECT ", columns!(), " FROM webhooks t", stamp_joins!(),
        " WHERE t.id = $1 AND t.organization_id = $2");
    READ = concat!("SELECT ", columns!(), " FROM webhooks t", stamp_joins!(), " WHERE t.id = $1");
    COUNT = "SELECT COUNT(*) FROM (SELECT 1 FROM webhooks WHERE organization_id = $1 LIMIT $2) counted";
    INSERT = "INSERT INTO webhooks (id, organization_id, name, name_key, description, url, sealed_url, filter, is_enabled, \
        disabled_reason, sealed_secret, transaction_id, sequence, pending, kept, version, created_at, created_by, \
        updated_at, updated_by) \
        VALUES ($1, $2, $3, $4, $5, '', $6, $7, $8, '', $9, $10, $11, 0, 0, $12, $13, $14, $15, $16)";
    UPDATE = "UPDATE webhooks SET name = $4, name_key = $5, description = $6, url = '', sealed_url = $7, filter = $8, is_enabled = $9, \
        disabled_reason = $10, sealed_secret = $11, sealed_previous_secret = $12, \
        previous_secret_expires_at = $13, version = version + 1, \
        updated_at = $14, updated_by = $15 WHERE id = $1 AND organization_id = $2 AND version = $3";
    PLAIN_URLS = "SELECT id, url FROM webhooks WHERE sealed_url IS NULL ORDER BY id LIMIT $1";
    SEAL_URL = "UPDATE webhooks SET url = '', sealed_url = $2 WHERE id = $1 AND sealed_url IS NULL AND url = $3";
    SKIP = "UPDATE webhooks SET transaction_id = $3, sequence = $4 \
        WHERE id = $1 AND organization_id = $2 AND (transaction_id, sequence) < ($3, $4)";
    FORGIVE = "UPDATE webhooks SET failing_since = NULL WHERE id = $1 AND organization_id = $2";
    DELETE = "DELETE FROM webhooks WHERE id = $1 AND organization_id = $2 AND version = $3";
    ADVANCE = "UPDATE webhooks SET transaction_id = $4, sequence = $5, pending = pending + $6, kept = kept + $7 \
        WHERE id = $1 AND (transaction_id, sequence) = ($2, $3)";
    COUNTED = "UPDATE webhooks SET pending = pending + $2, kept = kept + $3 WHERE id = $1";
    SUCCEEDED = "UPDATE webhooks SET failing_since = NULL WHERE id = $1 AND failing_since IS NOT NULL";
    FAILED = "UPDATE webhooks SET failing_since = $2 WHERE id = $1 AND failing_since IS NULL";
    DISABLE = "UPDATE webhooks SET is_enabled = FALSE, disabled_reason = $2, version = version + 1 \
        WHERE id = $1 AND is_enabled RETURNING version";
    FORGET_SECRETS = "UPDATE webhooks SET sealed_previous_secret = NULL, previous_secret_expires_at = NULL \
        WHERE id IN (SELECT id FROM webhooks WHERE previous_secret_expires_at <= $1 LIMIT $2)";
    FOLLOWED = "SELECT DISTINCT organization_id FROM webhooks WHERE is_enabled";
    BEHIND = behind!();
    BEHIND_IN = behind!(" AND w.organization_id = $1");
    WORKSPACES = "SELECT id FROM workspaces WHERE organization_id = $1 AND id IN ($2[])";
    DEPLOYMENTS = "SELECT id FROM deployments WHERE organization_id = $1 AND id IN ($2[])";
}

impl WebhookRow {
    /// As an event names it.
    pub fn about(&self) -> Resource<'_> {
        Resource::new(self.id.id(), podium_domain::Target::Organization).named(&self.name)
    }
}

/// Reads a page of webhooks, and how many there are.
pub fn list(conn: &Conn, scope: &Scope, paging: &Paging) -> Result<Listed<WebhookRow>> {
    let filter = Filter::new(ORGANIZATION, scope.organization());
    TABLE.page(conn, filter, paging, Total::Counter(scope.organization(), KIND), WebhookRow::read)
}

pub fn get(conn: &Conn, scope: &Scope, id: WebhookId) -> Result<Option<WebhookRow>> {
    conn.query_opt(&GET, params![id.as_str(), scope.organization()], WebhookRow::read)
}

pub fn state(conn: &Conn, _: &Steward, id: WebhookId) -> Result<Option<WebhookRow>> {
    conn.query_opt(&READ, params![id.as_str()], WebhookRow::read)
}

/// How many webhooks the organization has, up to a number.
pub fn count(conn: &Conn, scope: &Scope, most: usize) -> Result<usize> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let count: i64 = conn.query_one(&COUNT, params![scope.organization(), most], |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

pub fn known_places(
    conn: &Conn,
    scope: &Scope,
    filter: &EventFilter,
) -> Result<(Vec<WorkspaceId>, Vec<DeploymentId>)> {
    let (workspaces, deployments) = (texts(&filter.workspace_ids), texts(&filter.deployment_ids));
    let of_organization = scope.organization();
    Ok((
        conn.query(&WORKSPACES, params![of_organization, &workspaces], |row| row.id(0))?,
        conn.query(&DEPLOYMENTS, params![of_organization, &deployments], |row| row.id(0))?,
    ))
}

pub fn insert(tx: &Tx, scope: &Scope, webhook: &WebhookRow, name_key: &str) -> Result<()> {
    let (stamp, Cursor { transaction_id, sequence }) = (&webhook.stamp, webhook.position);
    let filter = document(&webhook.filter)?;
    let values = params![
        webhook.id.as_str(),
        scope.organization(),
        &webhook.name,
        name_key,
        &webhook.description,
        webhook.url.sealed()?,
        &filter,
        webhook.is_enabled,
        &webhook.sealed_secret,
        transaction_id,
        sequence,
    ];
    tx.execute(&INSERT, &[values, &stamp.values()].concat())?;
    counters::add(tx, scope.organization_id(), KIND, webhook.id.id(), 1, 0)
}

/// Replaces the settings of a webhook whose version is still the one before, and asks its loop to look at it. How far it
/// has come and whether it fails is the loop's to write, which does not wait for callers.
pub fn update(tx: &Tx, scope: &Scope, webhook: &WebhookRow, name_key: &str) -> Result<()> {
    let stamp = &webhook.stamp;
    let (previous, until) = webhook.previous_secret.clone().unzip();
    let filter = document(&webhook.filter)?;
    let values = params![
        webhook.id.as_str(),
        scope.organization(),
        stamp.version - 1,
        &webhook.name,
        name_key,
        &webhook.description,
        webhook.url.sealed()?,
        &filter,
        webhook.is_enabled,
        webhook.disabled_reason.as_str(),
        &webhook.sealed_secret,
        previous.as_deref(),
        until.map(Timestamp::millis),
        stamp.updated_at.millis(),
        stamp.updated_by.id.as_str(),
    ];
    tx.run_on_one(&UPDATE, values)?;
    work::add(tx, KIND, webhook.id.id(), stamp.updated_at, stamp.updated_at)
}

/// Encrypts some URLs that were stored before URLs were encrypted; returns how many there were.
pub fn seal_urls(
    tx: &Tx,
    _: &Housekeeper,
    limit: u32,
    seal: impl Fn(WebhookId, &str) -> Vec<u8>,
) -> Result<u64> {
    let plain: Vec<(WebhookId, String)> =
        tx.query(&PLAIN_URLS, params![limit], |row| Ok((row.id(0)?, row.get(1)?)))?;
    for (id, url) in &plain {
        tx.execute(&SEAL_URL, params![id.as_str(), &seal(*id, url), url])?;
    }
    Ok(plain.len() as u64)
}

/// Moves a webhook forward to a position: what was before it is not sent.
pub fn skip_to(tx: &Tx, scope: &Scope, id: WebhookId, to: Cursor) -> Result<()> {
    let Cursor { transaction_id, sequence } = to;
    tx.run(&SKIP, params![id.as_str(), scope.organization(), transaction_id, sequence])
}

/// Forgets that attempts have failed: what they failed with has been changed.
pub fn forgive(tx: &Tx, scope: &Scope, id: WebhookId) -> Result<()> {
    tx.run(&FORGIVE, params![id.as_str(), scope.organization()])
}

/// Removes a webhook of this version; its loop removes what is left of it.
pub fn delete(tx: &Tx, scope: &Scope, id: WebhookId, version: i64, now: Timestamp) -> Result<()> {
    tx.run_on_one(&DELETE, params![id.as_str(), scope.organization(), version])?;
    counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)?;
    work::add(tx, KIND, id.id(), now, now)
}

/// Moves a webhook from one position to another, with as many new deliveries, unless another replica has; returns
/// whether it did.
pub fn advance(
    tx: &Tx,
    _: &Steward,
    webhook: &WebhookRow,
    to: Cursor,
    (pending, kept): (i64, i64),
) -> Result<bool> {
    let Cursor { transaction_id, sequence } = webhook.position;
    let params =
        params![webhook.id.as_str(), transaction_id, sequence, to.transaction_id, to.sequence, pending, kept];
    Ok(tx.execute(&ADVANCE, params)? == 1)
}

/// Counts deliveries that became pending (or, below zero, ended), and such that were added or removed.
pub(crate) fn counted(tx: &Tx, id: WebhookId, pending: i64, kept: i64) -> Result<()> {
    tx.run(&COUNTED, params![id.as_str(), pending, kept])
}

pub fn succeeded(tx: &Tx, _: &Steward, id: WebhookId) -> Result<()> {
    tx.run(&SUCCEEDED, params![id.as_str()])
}

pub fn failed(tx: &Tx, _: &Steward, id: WebhookId, now: Timestamp) -> Result<()> {
    tx.run(&FAILED, params![id.as_str(), now.millis()])
}

/// Switches a webhook off, unless somebody has, and writes the event that says so.
pub fn disable(
    tx: &Tx,
    system: &Steward,
    webhook: &WebhookRow,
    reason: &UserText,
    now: Timestamp,
) -> Result<()> {
    let disabled = tx.query_opt(&DISABLE, params![webhook.id.as_str(), reason.as_str()], |row| row.get(0))?;
    let Some(version) = disabled else { return Ok(()) };
    let scope = system.scope(webhook.organization_id);
    changes::append(tx, &scope, now, Change::new(KIND, &webhook.id, version))?;
    let about = webhook.about().in_status("DISABLED", Some(reason));
    let event = podium_api::enums::EventType::WebhookDisabled;
    events::append(tx, &scope, now, &NewEvent::new(event, webhook.organization_id, about, None))
}

/// Forgets some previous secrets that sign no more; returns how many.
pub fn forget_secrets(tx: &Tx, _: &Housekeeper, now: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&FORGET_SECRETS, params![now.millis(), limit])
}

pub fn followed(conn: &Conn, _: &Steward) -> Result<Vec<OrganizationId>> {
    conn.query(&FOLLOWED, &[], |row| row.id(0))
}

/// The webhooks, of an organization or of all, that have not come to the end of the stream.
pub fn behind(conn: &Conn, _: &Steward, organization_id: Option<OrganizationId>) -> Result<Vec<WebhookId>> {
    match organization_id {
        Some(id) => conn.query(&BEHIND_IN, params![id.as_str()], |row| row.id(0)),
        None => conn.query(&BEHIND, &[], |row| row.id(0)),
    }
}
