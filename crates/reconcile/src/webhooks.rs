//! Reconciles webhooks: takes events from the stream, sends what is due, and tries again what failed.
//!
//! The work item of a webhook is its lease, so one process at a time sends its events, a few at once. What is sent is
//! claimed row by row besides (see `store::webhook_deliveries`). A slow receiver takes one of the places of this loop for
//! one round of attempts; then the others that are due come first. Places are shared out between organizations: one whose
//! receivers are slow leaves room for the others.

mod resolver;
mod sender;

pub use resolver::{Lookup, Resolver, SystemResolver};

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use podium_api::enums::{EventType, WebhookDeliveryState};
use podium_api::{OrganizationId, Timestamp, WebhookId};
use podium_app::App;
use podium_db::Tx;
use podium_domain::UserText;
use podium_domain::webhooks::{self as rules, Outcome};
use podium_store::Steward;
use podium_store::events::{Bounds, EventRow};
use podium_store::webhook_deliveries::{self as deliveries, Attempt, Due, NewDelivery};
use podium_store::webhooks::{self, WebhookRow};
use sender::{Answer, Sender};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::events;
use crate::reconciler::{Attempts, Failure, StepResult, random, reconciles};

/// How many events of one webhook are sent at once.
const AT_ONCE: u32 = 4;
/// How many events are taken from the stream at once, and how many are looked through for them.
const TAKEN_AT_ONCE: Bounds = Bounds { limit: 100, window: 1000 };
/// How many events of one webhook may be pending; further ones wait in the stream.
const MOST_PENDING: i64 = 10_000;
/// How many deliveries of one webhook are kept, at most about.
const MOST_KEPT: i64 = 50_000;
const REMOVED_AT_ONCE: u32 = 500;
/// How long a webhook waits while its organization has no place for it.
const OTHERS_FIRST: Duration = Duration::from_secs(1);

/// Types of events that can name the webhooks that get them.
const NAMING: &[EventType] = &[EventType::WebhookTested, EventType::AlertFiring, EventType::AlertResolved];

pub struct Webhooks {
    app: App,
    system: Steward,
    resolver: Arc<dyn Resolver>,
    /// An attempt lasts from the look-up of the host to the last byte of the answer that is read.
    attempts: Attempts,
    sender: OnceCell<Sender>,
    places: Places,
}

impl Webhooks {
    /// The reconciler, whose steps may take so long.
    pub fn new(app: &App, system: Steward, step_time: Duration) -> Self {
        Self::with_resolver(app, system, step_time, Arc::new(SystemResolver))
    }

    /// The same, with another way to look up hosts.
    pub fn with_resolver(
        app: &App,
        system: Steward,
        step_time: Duration,
        resolver: Arc<dyn Resolver>,
    ) -> Self {
        Self {
            app: app.clone(),
            system,
            resolver,
            attempts: Attempts::within(step_time),
            sender: OnceCell::new(),
            places: Places::default(),
        }
    }

    async fn reconcile(&self, id: WebhookId) -> Result<StepResult, Failure> {
        let (system, started) = (self.system, Instant::now());
        let mut place = None;
        loop {
            let webhook =
                self.app.db(&self.system).read(None, move |conn| webhooks::state(conn, &system, id)).await?;
            let is_done = match &webhook {
                None => self.remove(id).await?,
                Some(webhook) if !webhook.is_enabled => return Ok(StepResult::settled()),
                Some(webhook) => {
                    place = place.or_else(|| self.places.take(webhook.organization_id));
                    if place.is_none() {
                        let at = self.app.world.now() + OTHERS_FIRST;
                        return Ok(StepResult::at(at, "Others come first."));
                    }
                    let has_all = self.take(webhook).await?;
                    let has_sent_all = self.send(webhook).await?;
                    has_all && has_sent_all
                }
            };
            if is_done {
                break;
            }
            if started.elapsed() > self.attempts.begins {
                return Ok(StepResult::at(self.app.world.now(), "More events are due."));
            }
        }
        let next =
            self.app.db(&self.system).read(None, move |conn| deliveries::next_due(conn, &system, id)).await?;
        Ok(match next {
            Some(at) => StepResult::at(at, "An event is sent again after a failed attempt."),
            None => StepResult::settled(),
        })
    }

    /// Removes some of what a deleted webhook has left; returns whether that was all.
    async fn remove(&self, id: WebhookId) -> Result<bool, Failure> {
        let system = self.system;
        let remove = move |tx: &Tx| deliveries::remove(tx, &system, id, REMOVED_AT_ONCE);
        Ok(self.app.db(&self.system).write(None, remove).await? < u64::from(REMOVED_AT_ONCE))
    }

    /// Takes the next events from the stream; returns whether it has come to the end, or has enough for now.
    async fn take(&self, webhook: &WebhookRow) -> Result<bool, Failure> {
        if webhook.pending >= MOST_PENDING {
            return Ok(true);
        }
        let system = self.system;
        let asked_for = rules::asked_for(&webhook.filter.event_types);
        let mut types = asked_for.clone();
        types.extend(NAMING.iter().filter(|event| !asked_for.contains(event)));
        let WebhookRow { organization_id, position, .. } = *webhook;
        let page = events::next(&self.app, system, organization_id, types, position, TAKEN_AT_ONCE);
        let (rows, next, has_more) = page.await?;
        if next <= position {
            return Ok(!has_more);
        }
        let taken: Vec<NewDelivery> = rows
            .iter()
            .filter(|event| is_for(webhook, event, &asked_for))
            .map(|event| NewDelivery {
                id: self.app.world.id(),
                event: event.cursor,
                event_type: event.event_type,
            })
            .collect();
        let (webhook, now) = (webhook.clone(), self.app.world.now());
        let take = move |tx: &Tx| {
            let count = i64::try_from(taken.len()).unwrap_or_default();
            // Another replica may have been here; then this one reads again how far the webhook has come.
            if webhooks::advance(tx, &system, &webhook, next, (count, count))? {
                deliveries::insert(tx, &system, &webhook, &taken, now)?;
                if webhook.kept > MOST_KEPT {
                    deliveries::trim(tx, &system, webhook.id, REMOVED_AT_ONCE)?;
                }
                return Ok::<_, podium_db::Error>(true);
            }
            Ok(false)
        };
        Ok(self.app.db(&self.system).write(None, take).await? && !has_more)
    }

    /// Sends some events that are due; returns whether there were none.
    async fn send(&self, webhook: &WebhookRow) -> Result<bool, Failure> {
        let (system, id, now) = (self.system, webhook.id, self.app.world.now());
        let due = self
            .app
            .db(&self.system)
            .read(None, move |conn| deliveries::due(conn, &system, id, now, AT_ONCE))
            .await?;
        if due.is_empty() {
            return Ok(true);
        }
        let sender = self.sender().await?;
        let until = now + self.attempts.claim;
        let claim = move |tx: &Tx| deliveries::claim(tx, &system, &due, until, now);
        let claimed = self.app.db(&self.system).write(None, claim).await?;
        let sent = claimed.into_iter().map(|delivery| self.send_one(sender, webhook, delivery));
        join_all(sent).await.into_iter().collect::<Result<Vec<()>, Failure>>()?;
        Ok(false)
    }

    async fn sender(&self) -> Result<&Sender, Failure> {
        let make = || async {
            let (resolver, attempt) = (Arc::clone(&self.resolver), self.attempts.attempt);
            let destinations = self.app.config.webhook_destinations.clone();
            // It reads the certificates of the system.
            let made = tokio::task::spawn_blocking(move || Sender::new(&resolver, &destinations, attempt));
            let made = made.await.map_err(|error| Failure(error.to_string()))?;
            made.map_err(|error| Failure(format!("events cannot be sent: {error}")))
        };
        self.sender.get_or_try_init(make).await
    }

    /// Makes an attempt, and writes down its result.
    async fn send_one(&self, sender: &Sender, webhook: &WebhookRow, claimed: Due) -> Result<(), Failure> {
        let (started, now) = (Instant::now(), self.app.world.now());
        let answer = match claimed.event.clone() {
            Some(event) => {
                let signed = self.app.sign_event(webhook, event, now);
                let signed = signed.map_err(|error| Failure(error.to_string()))?;
                let url = self.app.url_of(webhook).map_err(|error| Failure(error.to_string()))?;
                sender.send(&url, signed, now).await
            }
            None => Answer { outcome: Outcome::Failed, ..Answer::failed(rules::TOO_LATE) },
        };
        let duration = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        let now = self.app.world.now();
        let retry_at = rules::retry_at(now, claimed.failures, answer.retry_after, random(&self.app));
        let next_attempt_at =
            retry_at.filter(|_| answer.outcome == Outcome::Failed && claimed.event.is_some());
        let state = match (answer.outcome, next_attempt_at) {
            (Outcome::Received, _) => WebhookDeliveryState::Succeeded,
            (_, Some(_)) => WebhookDeliveryState::Pending,
            (_, None) => WebhookDeliveryState::Failed,
        };
        let Answer { outcome, status, response, error, .. } = answer;
        let attempt =
            Attempt { state, next_attempt_at, status, response, error: error.into_owned(), duration };
        let (system, webhook_id, was_sent) = (self.system, webhook.id, claimed.event.is_some());
        let record = move |tx: &Tx| {
            if deliveries::record(tx, &system, webhook_id, &claimed, &attempt)? && was_sent {
                judge(tx, &system, webhook_id, outcome, now)?;
            }
            Ok::<_, podium_db::Error>(())
        };
        Ok(self.app.db(&self.system).write(None, record).await?)
    }
}

reconciles!(webhooks::KIND, WebhookId => Webhooks);

/// Whether a webhook gets an event: it asks for it, or the event names it.
fn is_for(webhook: &WebhookRow, event: &EventRow, asked_for: &[EventType]) -> bool {
    let (filter, data) = (&webhook.filter, &event.data);
    let is_asked_for = asked_for.contains(&event.event_type);
    if event.event_type == EventType::WebhookTested {
        return data.resource.id == webhook.id.id() || (is_asked_for && filter.is_everywhere());
    }
    if let Some(named) = data.alert.as_ref().and_then(|alert| alert.webhook_ids.as_ref()) {
        return named.contains(&webhook.id);
    }
    if !is_asked_for {
        return false;
    }
    let is_in_workspace = data.workspace_id.is_some_and(|id| filter.workspace_ids.contains(&id));
    let is_on_deployment = data.deployment_id.is_some_and(|id| filter.deployment_ids.contains(&id));
    filter.is_everywhere() || is_in_workspace || is_on_deployment
}

/// Writes down whether a webhook works, and switches off one that does not.
fn judge(
    tx: &Tx,
    system: &Steward,
    id: WebhookId,
    outcome: Outcome,
    now: Timestamp,
) -> podium_db::Result<()> {
    if outcome == Outcome::Received {
        return webhooks::succeeded(tx, system, id);
    }
    webhooks::failed(tx, system, id, now)?;
    let Some(webhook) = webhooks::state(tx, system, id)? else { return Ok(()) };
    let is_too_long = webhook.failing_since.is_some_and(|since| since + rules::FAILING_FOR <= now);
    let reason: Option<UserText> = match outcome {
        Outcome::Gone => Some(rules::GONE),
        _ => is_too_long.then_some(rules::NO_SUCCESS),
    };
    match reason {
        Some(reason) => webhooks::disable(tx, system, &webhook, &reason, now),
        None => Ok(()),
    }
}

/// How many webhooks of one organization this process works on at once; there are four times as many places.
const MOST_OF_ONE: u32 = 16;

/// How many places each organization has taken.
#[derive(Clone, Default)]
struct Places(Arc<Mutex<HashMap<OrganizationId, u32>>>);

/// A place that was taken; it is free again when this is dropped.
struct Place(Places, OrganizationId);

impl Places {
    fn lock(&self) -> MutexGuard<'_, HashMap<OrganizationId, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place, if the organization may have one more.
    fn take(&self, organization_id: OrganizationId) -> Option<Place> {
        let mut taken = self.lock();
        let of_one = taken.entry(organization_id).or_default();
        if *of_one >= MOST_OF_ONE {
            return None;
        }
        *of_one += 1;
        Some(Place(self.clone(), organization_id))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.0.lock();
        if let Some(of_one) = taken.get_mut(&self.1) {
            *of_one -= 1;
            if *of_one == 0 {
                taken.remove(&self.1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_organization_leaves_room_for_others() {
        let organization = |number| OrganizationId::from_raw(podium_api::Id::from_parts(number, 0, 0));
        let places = Places::default();
        let mut taken: Vec<Place> = (0..MOST_OF_ONE).map_while(|_| places.take(organization(1))).collect();
        assert_eq!(taken.len(), MOST_OF_ONE as usize);
        assert!(places.take(organization(1)).is_none());
        assert!(places.take(organization(2)).is_some());
        taken.pop();
        assert!(places.take(organization(1)).is_some());
        drop(taken);
        assert!(places.lock().is_empty(), "nothing is remembered");
    }
}
