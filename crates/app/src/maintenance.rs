//! Housekeeping: deletes expired data in small batches, and records uses of tokens and sessions.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use podium_api::{Timestamp, WebhookId};
use podium_db::Tx;
use podium_store::{
    alert_firings, alert_watches, audit, changes, credentials, device_sign_ins, events, front_door,
    idempotency, operations, plans, sessions, signing_keys, tokens, user_sessions, webhook_deliveries,
    webhooks,
};

use crate::App;
use crate::error::Result;
use crate::idempotency::KEPT_FOR;

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

const EVERY: Duration = Duration::from_secs(60);
const AT_ONCE: u32 = 500;
/// How long operations are kept after they have ended.
const OPERATIONS_KEPT_FOR: Duration = Duration::from_hours(90 * 24);
const CHANGES_KEPT_FOR: Duration = Duration::from_hours(7 * 24);
const EVENTS_KEPT_FOR: Duration = Duration::from_hours(30 * 24);
const DELIVERIES_KEPT_FOR: Duration = EVENTS_KEPT_FOR;
/// How long firings of alerts are kept after they have ended, and DAG runs that never end are watched.
const FIRINGS_KEPT_FOR: Duration = EVENTS_KEPT_FOR;
/// DAGs that have not run for this long are taken for gone.
const DAGS_FORGOTTEN_AFTER: Duration = Duration::from_hours(90 * 24);
/// Another replica signs with a retired key until its next round here.
const RETIRED_KEYS_KEPT_FOR: Duration = Duration::from_hours(1);

/// Runs until the task is dropped.
pub async fn run(app: App) {
    let mut ticks = tokio::time::interval(EVERY);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        if let Err(error) = once(&app).await {
            tracing::warn!(%error, "housekeeping did not finish; retrying in a minute");
        }
    }
}

/// One round. A step that fails does not stop the others; the first error is returned.
pub async fn once(app: &App) -> Result<()> {
    let (system, now) = (system(app), app.world.now());
    let audit_retention = app.config.audit_retention;
    let retired = now - RETIRED_KEYS_KEPT_FOR;
    let done = [
        flush_uses(app).await,
        drop_all(app, move |tx| Ok(idempotency::prune(tx, &system, now - KEPT_FOR, AT_ONCE)?)).await,
        drop_all(app, move |tx| Ok(credentials::prune(tx, &system, now, AT_ONCE)?)).await,
        drop_all(app, move |tx| Ok(front_door::prune_codes(tx, &system, now, AT_ONCE)?)).await,
        drop_all(app, move |tx| Ok(front_door::prune_passes(tx, &system, now, AT_ONCE)?)).await,
        drop_all(app, move |tx| Ok(sessions::prune(tx, &system, now, AT_ONCE)?)).await,
        drop_all(app, move |tx| Ok(user_sessions::prune(tx, &system, now, AT_ONCE)?)).await,
        drop_all(app, move |tx| Ok(device_sign_ins::prune(tx, &system, now, AT_ONCE)?)).await,
        drop_all(app, move |tx| Ok(plans::prune(tx, &system, now, AT_ONCE)?)).await,
        drop_all(app, move |tx| Ok(changes::prune(tx, &system, now - CHANGES_KEPT_FOR, AT_ONCE)?)).await,
        drop_all(app, move |tx| Ok(operations::prune(tx, &system, now - OPERATIONS_KEPT_FOR, AT_ONCE)?))
            .await,
        drop_all(app, move |tx| Ok(events::prune(tx, &system, now - EVENTS_KEPT_FOR, AT_ONCE)?)).await,
        drop_all(app, move |tx| Ok(webhooks::forget_secrets(tx, &system, now, AT_ONCE)?)).await,
        seal_urls(app).await,
        drop_all(app, move |tx| {
            Ok(webhook_deliveries::prune(tx, &system, now - DELIVERIES_KEPT_FOR, AT_ONCE)?)
        })
        .await,
        drop_all(app, move |tx| Ok(alert_firings::prune(tx, &system, now - FIRINGS_KEPT_FOR, AT_ONCE)?))
            .await,
        drop_all(app, move |tx| {
            Ok(alert_firings::forget(tx, &system, now, now - DAGS_FORGOTTEN_AFTER, AT_ONCE)?)
        })
        .await,
        drop_all(app, move |tx| Ok(alert_watches::prune(tx, &system, now - FIRINGS_KEPT_FOR, AT_ONCE)?))
            .await,
        drop_all(app, move |tx| Ok(audit::prune(tx, &system, now - audit_retention, AT_ONCE)?)).await,
        db(app).write(None, move |tx| Ok(signing_keys::drop_unused(tx, &system, retired).map(drop)?)).await,
        app.reload_keys().await,
    ];
    if let Err(error) = app.expire_logs(&system, now).await {
        tracing::warn!(%error, "could not delete old logs; retrying in a minute");
    }
    app.rate_limits.tidy();
    app.refusals.tidy();
    done.into_iter().collect()
}

/// Encrypts URLs of webhooks that an earlier version stored.
pub(crate) async fn seal_urls(app: &App) -> Result<()> {
    let (system, sealing) = (system(app), app.clone());
    let seal = move |id: WebhookId, url: &str| sealing.seal_url(id, url);
    drop_all(app, move |tx| Ok(webhooks::seal_urls(tx, &system, AT_ONCE, &seal)?)).await
}

/// Writes down when tokens and sessions were last used.
pub async fn flush_uses(app: &App) -> Result<()> {
    let system = system(app);
    let tokens = flush(app, &app.used_tokens, move |tx, id, at| tokens::used(tx, &system, id, at)).await;
    let sessions =
        flush(app, &app.used_sessions, move |tx, id, at| user_sessions::used(tx, &system, id, at)).await;
    tokens.and(sessions)
}

async fn flush<I: Copy + Ord + Hash + Send + 'static>(
    app: &App,
    waiting: &Mutex<HashMap<I, Timestamp>>,
    write: impl Fn(&Tx, I, Timestamp) -> podium_db::Result<()> + Clone + Send + 'static,
) -> Result<()> {
    let lock = || waiting.lock().unwrap_or_else(PoisonError::into_inner);
    let mut used: Vec<_> = lock().iter().map(|(id, at)| (*id, *at)).collect();
    // In the same order everywhere, so that replicas do not wait for each other's rows.
    used.sort_unstable();
    for some in used.chunks(AT_ONCE as usize) {
        let (write, written) = (write.clone(), some.to_vec());
        db(app)
            .write(None, move |tx: &Tx| written.iter().try_for_each(|(id, at)| write(tx, *id, *at)))
            .await?;
        let mut waiting = lock();
        for (id, at) in some {
            // A use of a later minute may have come meanwhile: it waits for the next round.
            if waiting.get(id) == Some(at) {
                waiting.remove(id);
            }
        }
    }
    Ok(())
}

/// Repeats small transactions until nothing is left to drop, so that no caller waits long for one.
async fn drop_all(app: &App, some: impl Fn(&Tx) -> Result<u64> + Clone + Send + 'static) -> Result<()> {
    while db(app).write(None, some.clone()).await? == u64::from(AT_ONCE) {}
    Ok(())
}
