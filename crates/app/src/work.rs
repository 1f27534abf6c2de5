//! The work queue from the application's side: it wakes the loops when there is work, and reports how much there is.
//!
//! It does not know who processes the work.

use std::sync::Arc;

use podium_db::Change;
use podium_store::work;
use tokio::sync::Notify;

use crate::App;
use crate::error::Result;
use crate::meters::page::Page;

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

/// Wakes the loops of this process.
#[derive(Clone, Default)]
pub struct WorkNotifier(Arc<Notify>);

impl WorkNotifier {
    /// Notifies the loops that there may be work.
    pub fn notify(&self) {
        self.0.notify_one();
    }

    /// Resolves when there was a notification since the last time; notifications may be coalesced. For one waiter.
    pub async fn notified(&self) {
        self.0.notified().await;
    }

    pub(crate) fn committed(&self, changes: &[Change]) {
        if changes.iter().any(|change| change.kind == work::KIND) {
            self.notify();
        }
    }
}

pub(crate) async fn measure(app: &App, page: &mut Page) -> Result<()> {
    let (system, now) = (system(app), app.world.now());
    let backlog = db(app).scan(None, move |conn| work::backlog(conn, &system, now)).await?;
    type Number = fn(&work::Backlog) -> i64;
    let numbers: [(&str, &str, Number); 4] = [
        ("podium_work_pending", "Work items in the queue, due now or later.", |b| b.pending),
        ("podium_work_due", "Work items that are due and not yet claimed.", |b| b.due),
        ("podium_work_held", "Work items that a loop has claimed.", |b| b.held),
        ("podium_work_retried", "Work items that were tried before and are not settled.", |b| b.retried),
    ];
    for (name, about, number) in numbers {
        page.gauge(name, about);
        for backlog in &backlog {
            page.line(name, &[("kind", &backlog.kind)], number(backlog));
        }
    }
    let name = "podium_work_oldest_due_seconds";
    page.gauge(name, "How long the oldest due work item has been waiting.");
    for backlog in &backlog {
        let waiting = backlog.oldest_due_at.map_or(0, |due_at| now.millis() - due_at.millis());
        page.line(name, &[("kind", &backlog.kind)], waiting as f64 / 1000.0);
    }
    Ok(())
}
