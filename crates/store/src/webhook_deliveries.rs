//! Deliveries of webhooks: which events each has taken from the stream, and what has become of them.
//!
//! An attempt is claimed before it is made: it is counted, and the delivery is due again when the claim ends. Its result
//! is written only while the version is still the one that was claimed. So an attempt is made by one process, and one that
//! dies during an attempt leaves a delivery that is tried again, though not for ever.

use std::collections::BTreeMap;

use podium_api::enums::{EventType, WebhookDeliveryState as State};
use podium_api::events::EventData;
use podium_api::webhooks::WebhookDelivery;
use podium_api::{One, Timestamp, WebhookDeliveryId, WebhookId};
use podium_db::{Conn, Result, Row, Tx, params, statements};
use podium_domain::events::Cursor;

use crate::columns::Columns;
use crate::events::EventRow;
use crate::record::Reader;
use crate::webhooks::{WebhookRow, counted};
use crate::{Housekeeper, Scope, Steward, webhooks, work};

pub const KIND: &str = "webhook_deliveries";

macro_rules! columns {
    () => {
        "SELECT d.version, d.id, d.transaction_id, d.sequence, d.event_type, d.state, d.attempts, d.next_attempt_at, \
         d.last_attempt_at, d.last_status, d.last_response, d.last_error, d.last_duration, d.created_at \
         FROM webhook_deliveries d "
    };
}

macro_rules! page {
    ($($state:literal)?) => {
        concat!(
            columns!(),
            "WHERE d.webhook_id = $1 AND d.organization_id = $2 AND (d.transaction_id, d.sequence) < ($3, $4) ",
            $($state,)?
            " ORDER BY d.transaction_id DESC, d.sequence DESC LIMIT $5"
        )
    };
}

statements! {
    INSERT = "INSERT INTO webhook_deliveries (id, webhook_id, organization_id, transaction_id, sequence, event_type, \
        state, attempts, failures, next_attempt_at, last_response, last_error, version, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6, 'PENDING', 0, 0, $7, '', '', 1, $7)";
    DUE = "SELECT d.id, d.transaction_id, d.sequence, d.attempts, d.failures, e.at, e.event_type, e.data, d.version \
        FROM (SELECT id, transaction_id, sequence, attempts, failures, version, organization_id, next_attempt_at \
            FROM webhook_deliveries WHERE webhook_id = $1 AND next_attempt_at <= $2 \
            ORDER BY next_attempt_at, transaction_id, sequence LIMIT $3) d \
        LEFT JOIN events e ON e.transaction_id = d.transaction_id AND e.sequence = d.sequence \
            AND e.organization_id = d.organization_id \
        ORDER BY d.next_attempt_at, d.transaction_id, d.sequence";
    NEXT_DUE = "SELECT next_attempt_at FROM webhook_deliveries WHERE webhook_id = $1 AND next_attempt_at IS NOT NULL \
        ORDER BY next_attempt_at LIMIT 1";
    CLAIM = "UPDATE webhook_deliveries SET attempts = attempts + 1, failures = failures + 1, next_attempt_at = $3, last_attempt_at = $4, \
        version = version + 1 WHERE id = $1 AND version = $2 AND next_attempt_at <= $4";
    RECORD = "UPDATE webhook_deliveries SET state = $3, next_attempt_at = $4, last_status = $5, \
        last_response = $6, last_error = $7, last_duration = $8, version = version + 1 \
        WHERE id = $1 AND version = $2 AND state = 'PENDING'";
    GET = concat!(columns!(), "WHERE d.id = $1 AND d.webhook_id = $2 AND d.organization_id = $3");
    LIST = page!();
    LIST_IN = page!("AND d.state = $6");
    AGAIN = "UPDATE webhook_deliveries SET state = 'PENDING', failures = 0, next_attempt_at = $4, \
        version = version + 1 WHERE id = $1 AND organization_id = $2 AND version = $3";
    TRIM = "DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries WHERE webhook_id = $1 \
        AND next_attempt_at IS NULL ORDER BY transaction_id, sequence LIMIT $2)";
    REMOVE = "DELETE FROM webhook_deliveries WHERE id IN \
        (SELECT id FROM webhook_deliveries WHERE webhook_id = $1 LIMIT $2)";
    PRUNE = "DELETE FROM webhook_deliveries WHERE id IN \
        (SELECT id FROM webhook_deliveries WHERE created_at < $1 ORDER BY created_at LIMIT $2) \
        RETURNING webhook_id, state";
}

/// An event that a webhook takes from the stream.
#[derive(Clone, Copy, Debug)]
pub struct NewDelivery {
    pub id: WebhookDeliveryId,
    pub event: Cursor,
    pub event_type: EventType,
}

#[derive(Clone, Debug)]
pub struct Due {
    pub id: WebhookDeliveryId,
    /// Its version: whatever else happens to it meanwhile advances it.
    pub version: i64,
    /// How often it was tried so far.
    pub attempts: i64,
    /// How many attempts have failed since it was last asked for; one that is claimed counts until it has succeeded.
    pub failures: u32,
    /// The event; `None` if it is no longer kept.
    pub event: Option<EventRow>,
}

#[derive(Clone, Debug)]
pub struct Attempt {
    pub state: State,
    /// When to try again, if at all.
    pub next_attempt_at: Option<Timestamp>,
    pub status: Option<u16>,
    /// The beginning of the answer.
    pub response: String,
    pub error: String,
    /// How long it took, in milliseconds.
    pub duration: i64,
}

/// Adds the deliveries of a webhook that takes events from the stream, due now.
pub fn insert(
    tx: &Tx,
    _: &Steward,
    webhook: &WebhookRow,
    taken: &[NewDelivery],
    now: Timestamp,
) -> Result<()> {
    for NewDelivery { id, event, event_type } in taken {
        let Cursor { transaction_id, sequence } = *event;
        tx.post(
            &INSERT,
            params![
                id.as_str(),
                webhook.id.as_str(),
                webhook.organization_id.as_str(),
                transaction_id,
                sequence,
                event_type.as_str(),
                now.millis(),
            ],
        )?;
    }
    Ok(())
}

/// Some deliveries of a webhook that are due, with their events, the longest due first.
pub fn due(conn: &Conn, _: &Steward, webhook_id: WebhookId, now: Timestamp, limit: u32) -> Result<Vec<Due>> {
    conn.query(&DUE, params![webhook_id.as_str(), now.millis(), limit], |row| {
        let at: Option<Timestamp> = row.time_opt(5)?;
        let event = match at {
            Some(at) => {
                let data: EventData = row.document(7)?;
                let cursor = Cursor { transaction_id: row.get(1)?, sequence: row.get(2)? };
                Some(EventRow { cursor, at, event_type: row.word(6)?, data })
            }
            None => None,
        };
        let failures = u32::try_from(row.get::<i64>(4)?).unwrap_or(u32::MAX);
        Ok(Due { id: row.id(0)?, version: row.get(8)?, attempts: row.get(3)?, failures, event })
    })
}

pub fn next_due(conn: &Conn, _: &Steward, webhook_id: WebhookId) -> Result<Option<Timestamp>> {
    conn.query_opt(&NEXT_DUE, params![webhook_id.as_str()], |row| row.time(0))
}

/// Claims the next attempt of deliveries until a time; returns those that nobody else has claimed, with the new count.
pub fn claim(tx: &Tx, _: &Steward, due: &[Due], until: Timestamp, now: Timestamp) -> Result<Vec<Due>> {
    let mut claimed = Vec::new();
    for delivery in due {
        let params = params![delivery.id.as_str(), delivery.version, until.millis(), now.millis()];
        if tx.execute(&CLAIM, params)? == 1 {
            let (attempts, failures) = (delivery.attempts + 1, delivery.failures + 1);
            claimed.push(Due { version: delivery.version + 1, attempts, failures, ..delivery.clone() });
        }
    }
    Ok(claimed)
}

/// Writes the result of a claimed attempt, unless another one was claimed or asked for meanwhile; returns whether it did.
pub fn record(tx: &Tx, _: &Steward, webhook: WebhookId, claimed: &Due, attempt: &Attempt) -> Result<bool> {
    let values = params![
        claimed.id.as_str(),
        claimed.version,
        attempt.state.as_str(),
        attempt.next_attempt_at.map(Timestamp::millis),
        attempt.status.map(i64::from),
        &attempt.response,
        &attempt.error,
        attempt.duration,
    ];
    let rows = tx.execute(&RECORD, values)?;
    let is_written = rows == 1;
    if is_written && attempt.state != State::Pending {
        counted(tx, webhook, -1, 0)?;
    }
    Ok(is_written)
}

/// A page of a webhook's deliveries before a position, the newest event first.
pub fn list(
    conn: &Conn,
    scope: &Scope,
    webhook_id: WebhookId,
    state: Option<State>,
    before: Option<Cursor>,
    limit: u32,
) -> Result<Vec<One<WebhookDelivery>>> {
    let end = Cursor { transaction_id: i64::MAX, sequence: i64::MAX };
    let Cursor { transaction_id, sequence } = before.unwrap_or(end);
    let (webhook_id, organization_id) = (webhook_id.as_str(), scope.organization());
    match state {
        None => {
            conn.query(&LIST, params![webhook_id, organization_id, transaction_id, sequence, limit], read)
        }
        Some(state) => {
            let state = state.as_str();
            let params = params![webhook_id, organization_id, transaction_id, sequence, limit, state];
            conn.query(&LIST_IN, params, read)
        }
    }
}

pub fn get(
    conn: &Conn,
    scope: &Scope,
    webhook_id: WebhookId,
    id: WebhookDeliveryId,
) -> Result<Option<One<WebhookDelivery>>> {
    conn.query_opt(&GET, params![id.as_str(), webhook_id.as_str(), scope.organization()], read)
}

/// Makes a delivery of this version due now, with all its attempts before it, and asks the loop to look at its webhook.
pub fn again(
    tx: &Tx,
    scope: &Scope,
    webhook_id: WebhookId,
    One { version, body: delivery }: &One<WebhookDelivery>,
    now: Timestamp,
) -> Result<()> {
    let params = params![delivery.id.as_str(), scope.organization(), *version, now.millis()];
    tx.run_on_one(&AGAIN, params)?;
    if delivery.state != State::Pending {
        counted(tx, webhook_id, 1, 0)?;
    }
    work::add(tx, webhooks::KIND, webhook_id.id(), now, now)
}

/// Drops some deliveries of a webhook that have ended, the oldest first.
pub fn trim(tx: &Tx, _: &Steward, webhook_id: WebhookId, limit: u32) -> Result<u64> {
    let removed = tx.execute(&TRIM, params![webhook_id.as_str(), limit])?;
    counted(tx, webhook_id, 0, -removed.cast_signed())?;
    Ok(removed)
}

/// Removes some deliveries of a webhook that is gone; returns how many.
pub fn remove(tx: &Tx, _: &Steward, webhook_id: WebhookId, limit: u32) -> Result<u64> {
    tx.execute(&REMOVE, params![webhook_id.as_str(), limit])
}

/// Drops some deliveries from before a time, the oldest first; returns how many.
pub fn prune(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    let removed: Vec<(WebhookId, State)> =
        tx.query(&PRUNE, params![before.millis(), limit], |row| Ok((row.id(0)?, row.word(1)?)))?;
    let mut totals: BTreeMap<WebhookId, (i64, i64)> = BTreeMap::new();
    for (webhook_id, state) in &removed {
        let (pending, kept) = totals.entry(*webhook_id).or_default();
        *pending -= i64::from(*state == State::Pending);
        *kept -= 1;
    }
    for (webhook_id, (pending, kept)) in totals {
        counted(tx, webhook_id, pending, kept)?;
    }
    Ok(removed.len() as u64)
}

fn read(row: &Row<'_>) -> Result<One<WebhookDelivery>> {
    let said = |text: String| Some(text).filter(|text| !text.is_empty());
    let mut next = Reader::new(row);
    let version = next.get()?;
    let body = WebhookDelivery {
        id: next.id()?,
        event_id: next.cursor()?.to_string(),
        event_type: next.word()?,
        state: next.word()?,
        attempts: next.get()?,
        next_attempt_at: next.time_opt()?,
        last_attempt_at: next.time_opt()?,
        last_status: next.get::<Option<i64>>()?.and_then(|status| u16::try_from(status).ok()),
        last_response: said(next.get()?),
        last_error: said(next.get()?),
        last_duration_millis: next.get::<Option<i64>>()?.map(i64::unsigned_abs),
        created_at: next.time()?,
    };
    Ok(One { version, body })
}
