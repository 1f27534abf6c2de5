//! Wakes the loops of webhooks and alerts when there are events for them: each organization that has any is followed like
//! by any other follower of events. While nothing happens nothing runs.
//!
//! Every replica does this, and it is repeated from the rows at every start, so no event depends on one process.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use podium_api::OrganizationId;
use podium_db::{Change, Conn, Tx};
use podium_store::{alerts, webhooks, work};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::App;
use crate::error::Result;

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

/// How soon to try again where the database does not answer.
const RETRY: Duration = Duration::from_secs(5);

/// Notifies that webhooks or alerts were created, changed or deleted.
#[derive(Clone, Default)]
pub struct WebhookNotifier(Arc<Notify>);

impl WebhookNotifier {
    /// Webhooks or alerts may have changed.
    pub(crate) fn notify(&self) {
        self.0.notify_one();
    }

    /// Notifies where committed changes are of webhooks or alerts.
    pub(crate) fn committed(&self, changes: &[Change]) {
        if changes.iter().any(|change| is_reader(change.kind)) {
            self.notify();
        }
    }
}

/// Whether resources of a kind read the stream of events.
pub(crate) fn is_reader(kind: &str) -> bool {
    [webhooks::KIND, alerts::KIND].contains(&kind)
}

/// Follows the events of every organization that has webhooks or alerts, until the task is dropped.
pub async fn run(app: App) {
    let mut followed = Followed { app: app.clone(), ends: HashMap::new(), tasks: JoinSet::new() };
    loop {
        let system = system(&app);
        let with_readers = move |conn: &Conn| {
            let mut organizations = webhooks::followed(conn, &system)?;
            organizations.extend(alerts::followed(conn, &system)?);
            Ok::<_, podium_db::Error>(organizations)
        };
        match db(&app).scan(None, with_readers).await {
            Ok(organizations) => {
                followed.only(&organizations);
                app.webhook_notifier.0.notified().await;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read which organizations have webhooks or alerts; retrying");
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

/// Enqueues the webhooks and alerts of an organization whenever it has news.
async fn follow(app: App, organization_id: OrganizationId) {
    let mut follower = app.follow_events(organization_id);
    loop {
        follower.news.borrow_and_update();
        while let Err(error) = enqueue_behind(&app, Some(organization_id)).await {
            tracing::warn!(%error, %organization_id, "cannot enqueue webhooks and alerts; retrying");
            tokio::time::sleep(RETRY).await;
        }
        if follower.news.changed().await.is_err() {
            return;
        }
    }
}

/// Enqueues the webhooks and alerts, of an organization or of all, that have events before them.
pub async fn enqueue_behind(app: &App, organization_id: Option<OrganizationId>) -> Result<()> {
    let (system, now) = (system(app), app.world.now());
    let read = move |conn: &Conn| {
        let webhooks = webhooks::behind(conn, &system, organization_id)?;
        let mut behind: Vec<_> = webhooks.iter().map(|id| (webhooks::KIND, id.id())).collect();
        let alerts = alerts::behind(conn, &system, organization_id)?;
        behind.extend(alerts.iter().map(|id| (alerts::KIND, id.id())));
        Ok::<_, podium_db::Error>(behind)
    };
    let behind = db(app).scan(None, read).await?;
    if behind.is_empty() {
        return Ok(());
    }
    let enqueue = move |tx: &Tx| {
        behind.iter().try_for_each(|(kind, id)| work::enqueue(tx, &system, kind, *id, now, now))
    };
    Ok(db(app).write(None, enqueue).await?)
}
