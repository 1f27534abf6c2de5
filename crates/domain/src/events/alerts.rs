//! Events of alerts: what an alert has found in one place, for those who may know of what it is about.

use podium_api::enums::{AlertKind, EventType};
use podium_api::events::{EventAlert, EventAlertFiring};
use podium_api::{AlertId, OrganizationId, WebhookId};

use super::{Audience, NewEvent, Resource};
use crate::alerts::{MOST_DESCRIBED, is_about_runs};
use crate::authorize::Target;

/// The kind of resource whose readers may know of what alerts of a kind find.
const fn found_in(kind: AlertKind) -> &'static str {
    match kind {
        AlertKind::DeploymentUnhealthy => "deployment",
        AlertKind::DeployFailed => "deploy",
        AlertKind::OperationFailed => "operation",
        AlertKind::DagRunFailed | AlertKind::DagRunTooSlow => "dag_run",
        AlertKind::TokenExpiring => "token",
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Telling<'a> {
    pub id: AlertId,
    pub name: &'a str,
    pub organization_id: OrganizationId,
    pub kind: AlertKind,
    pub webhook_ids: &'a [WebhookId],
}

impl NewEvent {
    /// What an alert has found in a place, or what is over there.
    pub fn of_alert(
        event: EventType,
        alert: Telling<'_>,
        place: Target,
        firings: &[EventAlertFiring],
    ) -> Self {
        let Telling { id, name, organization_id, kind, webhook_ids } = alert;
        let status = if event == EventType::AlertFiring { "FIRING" } else { "RESOLVED" };
        let about = Resource::new(id.id(), place).named(name).in_status(status, None);
        let mut made = Self::new(event, organization_id, about, None);
        made.audience = Audience::of(found_in(kind), place, false);
        made.data.claimed = is_about_runs(kind).then_some(true);
        made.data.alert = Some(EventAlert {
            kind,
            firings: firings.iter().take(MOST_DESCRIBED).cloned().collect(),
            total: firings.len() as u64,
            webhook_ids: (!webhook_ids.is_empty()).then(|| webhook_ids.to_vec()),
        });
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{d1, deployment, org, w1};
    use podium_api::Id;

    #[test]
    fn those_may_read_it_who_may_know_of_what_it_is_about() {
        let id = AlertId::from_raw(Id::from_parts(1, 2, 3));
        let table = [
            (AlertKind::DeploymentUnhealthy, deployment(d1()), "deployment.get"),
            (AlertKind::DeployFailed, deployment(d1()), "deployment.deploys.get"),
            (AlertKind::OperationFailed, deployment(d1()), "deployment.get"),
            (AlertKind::DagRunFailed, deployment(d1()), "deployment.airflow.dagRun.get"),
            (AlertKind::DagRunTooSlow, deployment(d1()), "deployment.airflow.dagRun.get"),
            (AlertKind::TokenExpiring, deployment(d1()), "deployment.apiTokens.get"),
            (AlertKind::TokenExpiring, Target::Workspace(w1()), "workspace.apiTokens.get"),
            (AlertKind::TokenExpiring, Target::Organization, "organization.apiTokens.get"),
        ];
        for (kind, place, audience) in table {
            let alert = Telling { id, name: "Broken", organization_id: org(), kind, webhook_ids: &[] };
            let event = NewEvent::of_alert(EventType::AlertFiring, alert, place, &[]);
            assert_eq!(event.audience.as_str(), audience, "{kind}");
            assert_eq!(event.data.claimed, is_about_runs(kind).then_some(true));
            assert_eq!(event.data.alert.unwrap().webhook_ids, None);
        }
    }
}
