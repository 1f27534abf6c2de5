//! Reconciles alerts: reads what begins and ends from the stream, waits for what has to last, and tells people.
//!
//! The work item of an alert is its lease. Besides, everything is written in transactions that only one process can make:
//! the position in the stream advances with what was found there, and the events and mails of a notice are written
//! together with the mark that they were. So nothing is found or told twice, whoever dies when.

mod mails;
mod tokens;

use std::time::Duration;

use podium_api::enums::AlertKind;
use podium_api::{AlertId, DeploymentId, OperationId, Timestamp};
use podium_app::App;
use podium_app::world::World;
use podium_db::{Conn, Tx};
use podium_domain::alerts::{self as rules, Turn};
use podium_store::alert_mails::{self, MailRow};
use podium_store::alert_watches::{self as watches, Found};
use podium_store::alerts::{self, AlertRow};
use podium_store::events::{Bounds, EventRow};
use podium_store::{Steward, alert_firings as firings, operations};
use tokio::time::Instant;

use crate::events;
use crate::reconciler::{Failure, StepResult, reconciles};
use tokens::Look;

pub(crate) use mails::AlertMails;

/// How many events are read at once, and how many are looked through for them.
const READ_AT_ONCE: Bounds = Bounds { limit: 100, window: 1000 };
const DUE_AT_ONCE: u32 = 100;
/// How much one notice tells of at most; the rest waits for the next.
const TOLD_AT_ONCE: u32 = 1000;
/// How many rows of a deleted alert are removed at once.
const REMOVED_AT_ONCE: u32 = 500;

pub(crate) struct Alerts {
    app: App,
    system: Steward,
    /// For how long a step takes up more.
    begins: Duration,
}

struct Agenda {
    watch_due: Option<Timestamp>,
    notice_due: Option<Timestamp>,
    look: Option<Look>,
}

impl Alerts {
    pub(crate) fn new(app: &App, system: Steward, step_time: Duration) -> Self {
        Self { app: app.clone(), system, begins: step_time / 2 }
    }

    async fn reconcile(&self, id: AlertId) -> Result<StepResult, Failure> {
        let (system, started) = (self.system, Instant::now());
        loop {
            if started.elapsed() > self.begins {
                return Ok(StepResult::at(self.app.world.now(), "There is more to read or to tell."));
            }
            let alert =
                self.app.db(&self.system).read(None, move |conn| alerts::state(conn, &system, id)).await?;
            let Some(alert) = alert else {
                if self.remove(id).await? {
                    return Ok(StepResult::settled());
                }
                continue;
            };
            if !alert.is_enabled {
                return Ok(StepResult::settled());
            }
            if !self.read(&alert).await? {
                continue;
            }
            let now = self.app.world.now();
            let read = alert.clone();
            let agenda =
                self.app.db(&self.system).scan(None, move |conn| agenda(conn, &system, &read, now)).await?;
            if !agenda.is_due(now) {
                return Ok(match agenda.next() {
                    Some(then) => StepResult::at(then, "Something may have to be told then."),
                    None => StepResult::settled(),
                });
            }
            self.act(&alert, now).await?;
        }
    }

    /// Removes some of what a deleted alert has left; returns whether that was all.
    async fn remove(&self, id: AlertId) -> Result<bool, Failure> {
        let system = self.system;
        let remove = move |tx: &Tx| {
            let removed = firings::remove_some(tx, &system, id, REMOVED_AT_ONCE)?
                + watches::remove_some(tx, &system, id, REMOVED_AT_ONCE)?
                + alert_mails::remove_some(tx, &system, id, REMOVED_AT_ONCE)?;
            Ok::<_, podium_db::Error>(removed)
        };
        Ok(self.app.db(&self.system).write(None, remove).await? == 0)
    }

    /// Reads the next events; returns whether those were all.
    async fn read(&self, alert: &AlertRow) -> Result<bool, Failure> {
        let system = self.system;
        let AlertRow { organization_id, position, .. } = *alert;
        let types = rules::events(alert.kind);
        let page = events::next(&self.app, system, organization_id, types, position, READ_AT_ONCE);
        let (rows, next, has_more) = page.await?;
        if next <= position {
            return Ok(!has_more);
        }
        let (alert, app) = (alert.clone(), self.app.clone());
        let read = move |tx: &Tx| {
            // Another replica may have been here, or the alert was changed: then it is read again.
            if !alerts::advance(tx, &system, &alert, next)? {
                return Ok::<_, podium_db::Error>(false);
            }
            rows.iter().try_for_each(|event| note(tx, &system, &app.world, &alert, event))?;
            Ok(true)
        };
        Ok(self.app.db(&self.system).write(None, read).await? && !has_more)
    }

    /// Notes what has lasted long enough, and tells people if it is time.
    async fn act(&self, alert: &AlertRow, now: Timestamp) -> Result<(), Failure> {
        let (system, app, id, version) = (self.system, self.app.clone(), alert.id, alert.stamp.version);
        let act = move |tx: &Tx| {
            let current = alerts::state(tx, &system, id)?.filter(|alert| alert.stamp.version == version);
            let Some(alert) = current else { return Ok::<_, podium_db::Error>(()) };
            let mut notices = alert.notices.at(now);
            if !alerts::hold(tx, &system, &alert, notices)? {
                return Ok(());
            }
            if alert.kind == AlertKind::TokenExpiring {
                tokens::look(tx, &system, &alert, now)?.note(tx, &system, &app.world, &alert, now)?;
            }
            for found in watches::take_due(tx, &system, id, now, DUE_AT_ONCE)? {
                firings::fire(tx, &system, &alert, app.world.id(), &found, now)?;
            }
            let untold_since = firings::untold_since(tx, &system, id)?;
            if untold_since.is_none_or(|since| notices.due(since) > now) {
                return Ok(());
            }
            notices = notices.less(1);
            alerts::hold(tx, &system, &alert, notices)?;
            let told = firings::tell(tx, &system, &alert, now, TOLD_AT_ONCE)?;
            let mail = rules::compose((id, &alert.name), alert.kind, &told);
            let to = |recipient: &String| MailRow {
                id: app.world.id(),
                recipient: recipient.clone(),
                subject: mail.subject.clone(),
                body: mail.body.clone(),
                attempts: 0,
            };
            let mails: Vec<MailRow> = alert.rule.mail_addresses.iter().map(to).collect();
            alert_mails::add(tx, &system, id, &mails, now)
        };
        Ok(self.app.db(&self.system).write(None, act).await?)
    }
}

reconciles!(alerts::KIND, AlertId => Alerts);

impl Agenda {
    fn is_due(&self, now: Timestamp) -> bool {
        let is_past = |time: Option<Timestamp>| time.is_some_and(|time| time <= now);
        let has_found = self.look.as_ref().is_some_and(|look| !look.is_empty());
        is_past(self.watch_due) || is_past(self.notice_due) || has_found
    }

    fn next(&self) -> Option<Timestamp> {
        let looks_again_at = self.look.as_ref().and_then(|look| look.next);
        [self.watch_due, self.notice_due, looks_again_at].into_iter().flatten().min()
    }
}

fn agenda(conn: &Conn, system: &Steward, alert: &AlertRow, now: Timestamp) -> podium_db::Result<Agenda> {
    let untold_since = firings::untold_since(conn, system, alert.id)?;
    let look = match alert.kind {
        AlertKind::TokenExpiring => Some(tokens::look(conn, system, alert, now)?),
        _ => None,
    };
    Ok(Agenda {
        watch_due: watches::next_due(conn, system, alert.id)?,
        notice_due: untold_since.map(|since| alert.notices.at(now).due(since)),
        look,
    })
}

/// Writes down what an event means to an alert. What an alert has found can end wherever it watches now.
fn note(
    tx: &Tx,
    system: &Steward,
    world: &World,
    alert: &AlertRow,
    event: &EventRow,
) -> podium_db::Result<()> {
    let (data, now) = (&event.data, world.now());
    let Some((turn, deployment_id)) = rules::turn(alert.kind, event.event_type).zip(data.deployment_id)
    else {
        return Ok(());
    };
    if turn == Turn::Gone {
        watches::remove_of_deployment(tx, system, alert.id, deployment_id)?;
        return firings::resolve_deployment(tx, system, alert.id, deployment_id, event.at, now);
    }
    let Some(found) = found(alert, event, deployment_id) else { return Ok(()) };
    let places = (&alert.rule.workspace_ids[..], &alert.rule.deployment_ids[..]);
    let is_dag = alert.rule.dag_id.is_none() || alert.rule.dag_id == found.subject.dag_id;
    let is_watched = is_dag && rules::is_watched(places, data.workspace_id, data.deployment_id);
    let patience = alert.rule.threshold().patience();
    let key = rules::key(&found.subject);
    match turn {
        Turn::Begins | Turn::RunBegins if !is_watched => Ok(()),
        Turn::Begins if alert.kind == AlertKind::DeploymentUnhealthy && !patience.is_zero() => {
            if firings::repeat(tx, system, alert.id, &found)? {
                return Ok(());
            }
            watches::add(tx, system, alert.id, &found, event.at + patience)
        }
        Turn::Begins => firings::fire(tx, system, alert, world.id(), &found, now),
        Turn::RunBegins => watches::add(tx, system, alert.id, &found, event.at + patience),
        Turn::Ends | Turn::Gone => {
            if alert.kind == AlertKind::DeploymentUnhealthy {
                watches::remove(tx, system, alert.id, &found.subject, "")?;
            }
            if alert.kind == AlertKind::OperationFailed
                && operations::leaves_failure(tx, system, OperationId::from_raw(data.resource.id))?
            {
                return Ok(());
            }
            firings::resolve(tx, system, alert.id, &key, event.at, now)
        }
        Turn::RunEnds { is_success } => {
            let ended = watches::remove(tx, system, alert.id, &found.subject, &found.run_id)?;
            let has_fired = ended.is_some_and(|ended| ended.has_fired);
            match rules::duration_of_run(data, ended.map(|ended| ended.since), event.at) {
                Some(duration) if duration >= patience && is_watched && !has_fired => {
                    firings::fire(tx, system, alert, world.id(), &found, now)
                }
                Some(duration) if duration < patience && is_success => {
                    firings::resolve(tx, system, alert.id, &key, event.at, now)
                }
                _ => Ok(()),
            }
        }
    }
}

/// What an event of a deployment is about; `None` if it does not say.
fn found(alert: &AlertRow, event: &EventRow, deployment_id: DeploymentId) -> Option<Found> {
    let data = &event.data;
    let is_of_deployment = data.resource.id == deployment_id.id();
    let name = data.resource.name.as_deref().filter(|_| is_of_deployment);
    let subject = rules::subject(alert.kind, data, deployment_id, name.unwrap_or(deployment_id.as_str()));
    let run_id = match data.dag_run.as_ref() {
        Some(run) if rules::is_about_runs(alert.kind) => run.run_id.clone(),
        None if rules::is_about_runs(alert.kind) => return None,
        _ => String::new(),
    };
    let reason = data.status_reason.clone().unwrap_or_default();
    Some(Found { subject, run_id, reason, since: event.at })
}
