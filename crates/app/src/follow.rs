//! Follows the change log that other replicas write: drops cached entries that they changed, and wakes this process's
//! loops, because the changes may have created work.
//!
//! This only keeps caches fresh earlier. Correctness does not depend on it: every request checks in its own round
//! trip.

use std::time::Duration;

use podium_store::changes::{self, Position};

use crate::App;
use crate::authority::AUTHORITY;
use crate::error::Result;
use crate::webhooks::wakes::is_reader;

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

const POLL: Duration = Duration::from_secs(5);
const AT_ONCE: u32 = 1000;

/// Follows the log until the task is dropped.
pub async fn run(app: App) {
    let mut position = None;
    loop {
        let woken = tokio::time::timeout(POLL, db(&app).wait_for_wake());
        if woken.await.is_ok() {
            app.work_notifier.notify();
            app.operation_notifier.others_changed();
            app.event_wakes.notify();
        }
        match step(&app, position).await {
            Ok(reached) => position = Some(reached),
            Err(error) => {
                tracing::warn!(%error, "cannot read the change log; dropping the caches");
                app.authorities.forget();
            }
        }
    }
}

async fn step(app: &App, position: Option<Position>) -> Result<Position> {
    let system = system(app);
    let Some(mut position) = position else {
        app.authorities.forget();
        app.webhook_notifier.notify();
        return db(app).scan(None, move |conn| changes::latest(conn, &system)).await.map_err(Into::into);
    };
    loop {
        let news = db(app).scan(None, move |conn| changes::after(conn, &system, position, AT_ONCE)).await?;
        if news.iter().any(|change| change.kind == AUTHORITY) {
            app.authorities.forget();
        }
        if news.iter().any(|change| is_reader(&change.kind)) {
            app.webhook_notifier.notify();
        }
        let Some(last) = news.last() else { return Ok(position) };
        position = last.position;
    }
}
