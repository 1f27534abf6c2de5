//! Alerts: which events begin and end what an alert watches for, how much it may say, and what its mails say.

mod mails;

use std::time::Duration;

use podium_api::alerts::AlertSubject;
use podium_api::enums::{AlertKind, AlertSubjectType, EventType};
use podium_api::events::{EventAlertFiring, EventData};
use podium_api::{DeploymentId, FieldError, Timestamp, WorkspaceId};

use crate::allowance::Allowance;
use crate::authorize::Target;
use crate::emails;
use crate::refusal::Fields;

pub use mails::{Mail, compose};

pub const MAX_NAME: usize = 128;
pub const MOST: usize = 100;
/// How long a deployment may be unhealthy unless the alert says otherwise, in minutes.
const UNHEALTHY_MINUTES: u32 = 5;
/// The longest that a deployment may be unhealthy, in minutes.
const MOST_UNHEALTHY_MINUTES: u32 = 24 * 60;
/// How long before it expires a token is told about unless the alert says otherwise, in days.
const DAYS_BEFORE: u32 = 7;
/// How long what was found is collected for one notice.
pub const GROUP_WINDOW: Duration = Duration::from_secs(60);
/// How many firings of one place a notice describes; further ones are counted.
pub const MOST_DESCRIBED: usize = 20;

/// What an alert looks for beyond its kind. Fields that do not belong to the kind are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threshold {
    /// How long a deployment may be unhealthy, or a DAG run may take.
    pub after_minutes: Option<u32>,
    /// How many days before it expires a token is told about.
    pub days_before: Option<u32>,
    pub dag_id: Option<String>,
}

impl Threshold {
    /// Checks what was given for a kind, and fills in what was not.
    pub fn new(fields: &mut Fields, kind: AlertKind, given: Self) -> Self {
        let Self { after_minutes, days_before, dag_id } = given;
        let (is_slow, is_token) = (kind == AlertKind::DagRunTooSlow, kind == AlertKind::TokenExpiring);
        let is_unhealthy = kind == AlertKind::DeploymentUnhealthy;
        let mut refuse = |field: &str, is_given: bool| {
            if is_given {
                fields.push(field, "notAllowed", format!("does not belong to alerts of the kind {kind}"));
            }
        };
        refuse("afterMinutes", after_minutes.is_some() && !is_slow && !is_unhealthy);
        refuse("daysBefore", days_before.is_some() && !is_token);
        refuse("dagId", dag_id.is_some() && !is_about_runs(kind));
        match after_minutes {
            None if is_slow => fields.push("afterMinutes", "required", "say how long a DAG run may take"),
            Some(0) if is_slow => fields.push("afterMinutes", "minimum", "must be at least 1"),
            Some(minutes) if is_unhealthy && minutes > MOST_UNHEALTHY_MINUTES => {
                let message = format!("must be at most {MOST_UNHEALTHY_MINUTES}");
                fields.push("afterMinutes", "maximum", message);
            }
            _ => {}
        }
        if let Some(c) = dag_id.as_deref().and_then(podium_api::text::hidden) {
            fields.push("dagId", "format", podium_api::text::complaint(c));
        }
        Self {
            after_minutes: after_minutes.or_else(|| is_unhealthy.then_some(UNHEALTHY_MINUTES)),
            days_before: days_before.or_else(|| is_token.then_some(DAYS_BEFORE)),
            dag_id,
        }
    }

    /// How long a deployment may be unhealthy, or a DAG run may take.
    pub fn patience(&self) -> Duration {
        Duration::from_mins(self.after_minutes.unwrap_or_default().into())
    }

    /// How long before it expires a token is told about.
    pub fn notice_of_expiry(&self) -> Duration {
        Duration::from_hours(24 * u64::from(self.days_before.unwrap_or_default()))
    }
}

/// Whether a kind is about DAG runs, which only environments know of.
pub const fn is_about_runs(kind: AlertKind) -> bool {
    matches!(kind, AlertKind::DagRunFailed | AlertKind::DagRunTooSlow)
}

/// What an event means to an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The deployment or DAG has what the alert watches for.
    Begins,
    /// It has it no more.
    Ends,
    /// A DAG run has begun, which may take too long.
    RunBegins,
    /// A DAG run has ended. It may have taken too long.
    RunEnds { is_success: bool },
    /// The deployment is gone, with all that was found there.
    Gone,
}

/// What an event means to alerts of a kind; `None` if it changes nothing.
pub const fn turn(kind: AlertKind, event: EventType) -> Option<Turn> {
    use AlertKind as K;
    use EventType as E;
    match (kind, event) {
        (K::TokenExpiring, _) => None,
        (_, E::DeploymentDeleted) => Some(Turn::Gone),
        (K::DeploymentUnhealthy, E::DeploymentUnhealthy)
        | (K::DeployFailed, E::DeployFailed)
        | (K::OperationFailed, E::OperationFailed)
        | (K::DagRunFailed, E::DagRunFailed) => Some(Turn::Begins),
        (K::DeploymentUnhealthy, E::DeploymentHealthy | E::DeploymentHibernating)
        | (K::DeployFailed, E::DeploySucceeded)
        | (K::OperationFailed, E::OperationSucceeded)
        | (K::DagRunFailed, E::DagRunSucceeded) => Some(Turn::Ends),
        (K::DagRunTooSlow, E::DagRunStarted) => Some(Turn::RunBegins),
        (K::DagRunTooSlow, E::DagRunSucceeded) => Some(Turn::RunEnds { is_success: true }),
        (K::DagRunTooSlow, E::DagRunFailed) => Some(Turn::RunEnds { is_success: false }),
        _ => None,
    }
}

/// The events that alerts of a kind read. Those of tokens only make an alert look at the tokens again.
pub fn events(kind: AlertKind) -> Vec<EventType> {
    use EventType as E;
    match kind {
        AlertKind::TokenExpiring => {
            let of_tokens = vec![E::TokenCreated, E::TokenUpdated, E::TokenRotated, E::TokenDeleted];
            [of_tokens, vec![E::DeploymentDeleted, E::WorkspaceDeleted]].concat()
        }
        kind => EventType::ALL.iter().copied().filter(|event| turn(kind, *event).is_some()).collect(),
    }
}

/// What an event of a deployment is about, for alerts of a kind. The name of the deployment is not always known: events of
/// deploys and operations have their own.
pub fn subject(kind: AlertKind, data: &EventData, deployment: DeploymentId, name: &str) -> AlertSubject {
    let dag_id = data.dag_run.as_ref().filter(|_| is_about_runs(kind)).map(|run| run.dag_id.clone());
    AlertSubject {
        r#type: if dag_id.is_some() { AlertSubjectType::Dag } else { AlertSubjectType::Deployment },
        id: deployment.id(),
        name: name.to_owned(),
        workspace_id: data.workspace_id,
        deployment_id: Some(deployment),
        dag_id,
    }
}

/// What tells the subjects of an alert apart.
pub fn key(subject: &AlertSubject) -> String {
    match &subject.dag_id {
        Some(dag_id) => format!("{}/{dag_id}", subject.id),
        None => subject.id.to_string(),
    }
}

/// Where a subject is, and who may know of it.
pub fn place(subject: &AlertSubject) -> Target {
    match (subject.deployment_id, subject.workspace_id) {
        (Some(id), Some(workspace_id)) => Target::Deployment { id, workspace_id },
        (_, Some(workspace_id)) => Target::Workspace(workspace_id),
        _ => Target::Organization,
    }
}

/// Whether an alert that is limited to some workspaces and deployments, if any, looks at a place.
pub fn is_watched(
    (workspaces, deployments): (&[WorkspaceId], &[DeploymentId]),
    workspace_id: Option<WorkspaceId>,
    deployment_id: Option<DeploymentId>,
) -> bool {
    workspaces.is_empty() && deployments.is_empty()
        || workspace_id.is_some_and(|id| workspaces.contains(&id))
        || deployment_id.is_some_and(|id| deployments.contains(&id))
}

/// How long a DAG run took: as its environment says, or since Podium heard of it.
pub fn duration_of_run(data: &EventData, heard: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let run = data.dag_run.as_ref()?;
    let (from, to) = match run.started_at.zip(run.ended_at) {
        Some((from, to)) if to >= from => (from, to),
        _ => (heard?, now),
    };
    Some(Duration::from_millis(u64::try_from(to.millis() - from.millis()).unwrap_or_default()))
}

pub fn mail_addresses(field: &str, texts: &[String]) -> Result<Vec<String>, Vec<FieldError>> {
    let (mut kept, mut keys, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for (index, text) in texts.iter().enumerate() {
        match emails::email(&format!("{field}[{index}]"), text) {
            Ok(email) if keys.contains(&email.key) => {
                wrong.push(FieldError::new(format!("{field}[{index}]"), "duplicate", "is listed twice"));
            }
            Ok(email) => {
                kept.push(email.address);
                keys.push(email.key);
            }
            Err(error) => wrong.push(error),
        }
    }
    if wrong.is_empty() { Ok(kept) } else { Err(wrong) }
}

/// Firings by where they are, in the order of the first of each place.
pub fn by_place(firings: Vec<EventAlertFiring>) -> Vec<(Target, Vec<EventAlertFiring>)> {
    let mut places: Vec<(Target, Vec<EventAlertFiring>)> = Vec::new();
    for firing in firings {
        let place = place(&firing.subject);
        match places.iter_mut().find(|(other, _)| *other == place) {
            Some((_, there)) => there.push(firing),
            None => places.push((place, vec![firing])),
        }
    }
    places
}

/// How many notices an alert may still send. Environments can make DAG runs fail and succeed as fast as they like: then
/// notices become rarer and tell of more at once.
pub type Notices = Allowance<10, NOTICE_EARNED_IN>;

/// How long it takes until one more notice may be sent, in milliseconds.
const NOTICE_EARNED_IN: i64 = 5 * 60 * 1000;

impl Notices {
    /// When a notice may be sent of what has been waiting since a time.
    pub fn due(self, untold_since: Timestamp) -> Timestamp {
        let collected = untold_since + GROUP_WINDOW;
        if self.left > 0 {
            collected
        } else {
            collected.max(self.since + Duration::from_millis(NOTICE_EARNED_IN as u64))
        }
    }
}

#[cfg(test)]
mod tests;
