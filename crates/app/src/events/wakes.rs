//! Wakes followers of events: one reader for each process looks where the stream has come to, and wakes the followers of
//! the organizations that have news. Followers that have nothing to read cost nothing.
//!
//! The reader runs while there are followers. It is notified of commits of this process and of other replicas. On
//! PostgreSQL an event can be committed while an earlier one still may come; then it looks again, soon at first.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use podium_api::OrganizationId;
use podium_db::Change;
use podium_domain::events::Cursor;
use podium_store::events;
use tokio::sync::Notify;
use tokio::sync::watch::{Receiver, Sender};

use crate::App;
use crate::error::Result;

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

/// How often the reader looks without being notified.
const POLL: Duration = Duration::from_secs(5);
/// How soon it looks again while an earlier event can still come, at first and at last.
const SOON: Duration = Duration::from_millis(5);
const LATER: Duration = Duration::from_millis(50);
const AT_ONCE: u32 = 1000;

/// The followers of this process; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Wakes(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// There may be new events, or no followers any more.
    news: Notify,
    followed: Mutex<Followed>,
}

#[derive(Default)]
struct Followed {
    organizations: HashMap<OrganizationId, Organization>,
    has_reader: bool,
}

#[derive(Default)]
struct Organization {
    news: Sender<()>,
    /// Counted here and not by the receivers, which are dropped after the lock is released.
    followers: usize,
}

pub(crate) struct Follower {
    pub(crate) news: Receiver<()>,
    organization_id: OrganizationId,
    wakes: Wakes,
}

impl Wakes {
    /// Notifies the reader where committed changes bring events.
    pub(crate) fn committed(&self, changes: &[Change]) {
        if changes.iter().any(|change| change.kind == events::KIND) {
            self.notify();
        }
    }

    /// Notifies the reader that there may be news.
    pub(crate) fn notify(&self) {
        self.0.news.notify_one();
    }

    /// Wakes the followers of an organization, or those of all.
    fn wake(&self, organization_id: Option<&OrganizationId>) {
        let followed = self.lock();
        match organization_id {
            Some(id) => followed.organizations.get(id).into_iter().for_each(|of| of.news.send_replace(())),
            None => followed.organizations.values().for_each(|of| of.news.send_replace(())),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.0.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the reader has nobody left to wake; then it has to end.
    fn is_deserted(&self) -> bool {
        let mut followed = self.lock();
        followed.has_reader = !followed.organizations.is_empty();
        !followed.has_reader
    }
}

impl App {
    /// Follows the events of an organization. What is committed after this call wakes the follower.
    pub(crate) fn follow_events(&self, organization_id: OrganizationId) -> Follower {
        let wakes = self.event_wakes.clone();
        let mut followed = wakes.lock();
        let organization = followed.organizations.entry(organization_id).or_default();
        organization.followers += 1;
        let news = organization.news.subscribe();
        if !std::mem::replace(&mut followed.has_reader, true) {
            tokio::spawn(read(self.clone()));
        }
        drop(followed);
        Follower { news, organization_id, wakes }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut followed = self.wakes.lock();
        if let Entry::Occupied(mut organization) = followed.organizations.entry(self.organization_id) {
            organization.get_mut().followers -= 1;
            if organization.get().followers == 0 {
                organization.remove();
            }
        }
        let is_deserted = followed.organizations.is_empty();
        drop(followed);
        if is_deserted {
            self.wakes.notify();
        }
    }
}

/// Reads where the stream has come to, until there are no followers.
async fn read(app: App) {
    let wakes = app.event_wakes.clone();
    let mut position = None;
    let mut soon = SOON;
    while !wakes.is_deserted() {
        let pause = match look(&app, position).await {
            Ok((reached, is_settled)) => {
                if position.replace(reached).is_none() {
                    // Events from before the first look may have come after a follower's.
                    wakes.wake(None);
                }
                soon = if is_settled { SOON } else { (soon * 2).min(LATER) };
                if is_settled { POLL } else { soon }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read how far the events have come; followers may be late");
                POLL
            }
        };
        // Whether notified or not, it looks again.
        let _ = tokio::time::timeout(pause, wakes.0.news.notified()).await;
    }
}

/// Wakes the followers of organizations with new events. Returns how far the stream has come, and whether that is all.
async fn look(app: &App, position: Option<Cursor>) -> Result<(Cursor, bool)> {
    let system = system(app);
    let Some(mut position) = position else {
        let latest = db(app).read(None, move |conn| events::latest(conn, &system)).await?;
        return Ok((latest, false));
    };
    loop {
        let news = db(app).scan(None, move |conn| events::news(conn, &system, position, AT_ONCE)).await?;
        let Some((last, _)) = news.last() else { break };
        position = *last;
        let mut organizations: Vec<OrganizationId> = news.iter().map(|(_, id)| *id).collect();
        organizations.sort_unstable();
        organizations.dedup();
        organizations.iter().for_each(|id| app.event_wakes.wake(Some(id)));
    }
    let is_unsettled = db(app).read(None, move |conn| events::has_unsettled(conn, &system, position)).await?;
    Ok((position, !is_unsettled))
}
