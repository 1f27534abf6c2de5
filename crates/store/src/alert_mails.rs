//! Mails of alerts that wait to be sent.
//!
//! An attempt is claimed before it is made, like that of a webhook: it is counted, and the mail is due again when the claim
//! ends. Its result is written only while the count is still the one that was claimed.

use podium_api::{AlertId, AlertMailId, Timestamp};
use podium_db::{Conn, Result, Tx, params, statements};

use crate::alerts::AlertRow;
use crate::columns::Columns;
use crate::record::record;
use crate::{Scope, Steward, work};

/// The kind of the work of sending an alert's mails.
pub const KIND: &str = "alert_mails";

record! {
    #[derive(Clone, Debug)]
    pub struct MailRow as columns! {
        pub id: AlertMailId = id "id",
        pub recipient: String = get "recipient",
        pub subject: String = get "subject",
        pub body: String = get "body",
        pub attempts: u32 = get "attempts",
    }
}

statements! {
    ADD = "INSERT INTO alert_mails (id, alert_id, recipient, subject, body, attempts, due_at) \
        VALUES ($1, $2, $3, $4, $5, 0, $6)";
    DUE = concat!("SELECT ", columns!(), " FROM alert_mails WHERE alert_id = $1 AND due_at <= $2 \
        ORDER BY due_at, id LIMIT $3");
    NEXT = "SELECT MIN(due_at) FROM alert_mails WHERE alert_id = $1";
    CLAIM = "UPDATE alert_mails SET attempts = attempts + 1, due_at = $3 WHERE id = $1 AND attempts = $2";
    AGAIN = "UPDATE alert_mails SET due_at = $3 WHERE id = $1 AND attempts = $2";
    DROP = "DELETE FROM alert_mails WHERE id = $1 AND attempts = $2";
    KEEP_TO = "DELETE FROM alert_mails WHERE alert_id IN \
        (SELECT a.id FROM alerts a WHERE a.id = $1 AND a.organization_id = $2) AND recipient NOT IN ($3[])";
    REMOVE = "DELETE FROM alert_mails WHERE id IN (SELECT id FROM alert_mails WHERE alert_id = $1 LIMIT $2)";
}

/// Adds mails that are due now, and asks their loop to send them.
pub fn add(tx: &Tx, _: &Steward, alert_id: AlertId, mails: &[MailRow], now: Timestamp) -> Result<()> {
    if mails.is_empty() {
        return Ok(());
    }
    for mail in mails {
        let (id, alert_id) = (mail.id.as_str(), alert_id.as_str());
        tx.execute(&ADD, params![id, alert_id, &mail.recipient, &mail.subject, &mail.body, now.millis()])?;
    }
    work::add(tx, KIND, alert_id.id(), now, now)
}

/// Claims some mails of an alert that are due until a time; returns them as they are claimed. Those that were claimed or
/// removed meanwhile are left out.
pub fn claim(
    tx: &Tx,
    _: &Steward,
    alert_id: AlertId,
    now: Timestamp,
    until: Timestamp,
    limit: u32,
) -> Result<Vec<MailRow>> {
    let due = tx.query(&DUE, params![alert_id.as_str(), now.millis(), limit], MailRow::read)?;
    let mut claimed = Vec::with_capacity(due.len());
    for mail in due {
        if tx.execute(&CLAIM, params![mail.id.as_str(), mail.attempts, until.millis()])? == 1 {
            claimed.push(MailRow { attempts: mail.attempts + 1, ..mail });
        }
    }
    Ok(claimed)
}

/// Ends a claimed attempt: the mail is tried again at a time, or removed. Returns whether it was still claimed.
pub fn finish(tx: &Tx, _: &Steward, claimed: &MailRow, again_at: Option<Timestamp>) -> Result<bool> {
    let (id, attempts) = (claimed.id.as_str(), claimed.attempts);
    let rows = match again_at {
        Some(at) => tx.execute(&AGAIN, params![id, attempts, at.millis()])?,
        None => tx.execute(&DROP, params![id, attempts])?,
    };
    Ok(rows == 1)
}

pub fn next_due(conn: &Conn, _: &Steward, alert_id: AlertId) -> Result<Option<Timestamp>> {
    conn.query_one(&NEXT, params![alert_id.as_str()], |row| row.time_opt(0))
}

/// Removes the mails of an alert to those whom it does not tell any more: everybody, if it is switched off.
pub fn keep_to_recipients(tx: &Tx, scope: &Scope, alert: &AlertRow) -> Result<()> {
    let told: &[String] = if alert.is_enabled { &alert.rule.mail_addresses } else { &[] };
    tx.run(&KEEP_TO, params![alert.id.as_str(), scope.organization(), told])
}

/// Removes some mails of an alert that is gone; returns how many.
pub fn remove_some(tx: &Tx, _: &Steward, alert_id: AlertId, limit: u32) -> Result<u64> {
    tx.execute(&REMOVE, params![alert_id.as_str(), limit])
}
