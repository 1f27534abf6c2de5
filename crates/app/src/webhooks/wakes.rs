//! Wakes the loop of webhooks when there are events for them: each organization that has webhooks is followed like by
//! any other follower of events. While nothing happens nothing runs.
//!
//! Every replica does this, and it is repeated from the rows at every start, so no event depends on one process.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use podium_api::OrganizationId;
use podium_db::{Change, Tx};
use podium_store::{webhooks, work};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::App;
use crate::error::Result;

crate::system::acts_for_the_system!();

/// How soon to try again where the database does not answer.
const RETRY: Duration = Duration::from_secs(5);

/// Notifies that webhooks were created, changed or deleted.
#[derive(Clone, Default)]
pub struct WebhookNotifier(Arc<Notify>);

impl WebhookNotifier {
    /// Webhooks may have changed.
    pub(crate) fn notify(&self) {
        self.0.notify_one();
    }

    /// Notifies where committed changes are of webhooks.
    pub(crate) fn committed(&self, changes: &[Change]) {
        if changes.iter().any(|change| change.kind == webhooks::KIND) {
            self.notify();
        }
    }
}

/// Follows the events of every organization that has webhooks, until the task is dropped.
pub async fn run(app: App) {
    let mut followed = Followed { app: app.clone(), ends: HashMap::new(), tasks: JoinSet::new() };
    loop {
        let system = system(&app);
        match app.db.scan(None, move |conn| webhooks::followed(conn, &system)).await {
            Ok(organizations) => {
                followed.only(&organizations);
                app.webhook_notifier.0.notified().await;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read which organizations have webhooks; retrying");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// A task for each organization whose events are followed.
struct Followed {
    app: App,
    ends: HashMap<OrganizationId, tokio::task::AbortHandle>,
    tasks: JoinSet<()>,
}

impl Followed {
    /// Follows these organizations and no others.
    fn only(&mut self, organizations: &[OrganizationId]) {
        self.ends.retain(|id, task| {
            let stays = organizations.contains(id) && !task.is_finished();
            if !stays {
                task.abort();
            }
            stays
        });
        for id in organizations {
            let start = || self.tasks.spawn(follow(self.app.clone(), *id));
            self.ends.entry(*id).or_insert_with(start);
        }
        while self.tasks.try_join_next().is_some() {}
    }
}

/// Enqueues the webhooks of an organization whenever it has news.
async fn follow(app: App, organization_id: OrganizationId) {
    let mut follower = app.follow_events(organization_id);
    loop {
        follower.news.borrow_and_update();
        while let Err(error) = enqueue_behind(&app, Some(organization_id)).await {
            tracing::warn!(%error, %organization_id, "cannot enqueue webhooks; retrying");
            tokio::time::sleep(RETRY).await;
        }
        if follower.news.changed().await.is_err() {
            return;
        }
    }
}

/// Enqueues the webhooks, of an organization or of all, that have events before them.
pub async fn enqueue_behind(app: &App, organization_id: Option<OrganizationId>) -> Result<()> {
    let (system, now) = (system(app), app.world.now());
    let behind = app.db.scan(None, move |conn| webhooks::behind(conn, &system, organization_id)).await?;
    if behind.is_empty() {
        return Ok(());
    }
    let enqueue = move |tx: &Tx| {
        behind.iter().try_for_each(|id| work::enqueue(tx, &system, webhooks::KIND, id.id(), now, now))
    };
    Ok(app.db.write(None, enqueue).await?)
}
