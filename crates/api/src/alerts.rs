//! Alerts: rules for what people are told about, whom they tell, and what they have found.

use crate::enums::{AlertFiringState, AlertKind, AlertSubjectType};
use crate::page::Page;
use crate::path::{InOrganization, OfAlert};
use crate::reply::{Many, One};
use crate::subjects::SubjectProfile;
use crate::{AlertFiringId, AlertId, DeploymentId, Id, OrganizationId, Timestamp, WebhookId, WorkspaceId};

endpoints! {
    tag "Alert";

    /// List alerts
    List: GET "/organizations/{organizationId}/alerts" as "ListAlerts" {
        path: InOrganization, query: ListAlerts, reply: Many<AlertsPaginated>,
        permission: "organization.alerts.get",
    }
    /// Create an alert
    Create: POST "/organizations/{organizationId}/alerts" as "CreateAlert" {
        path: InOrganization, body: CreateAlertRequest, reply: One<Alert>,
        permission: "organization.alerts.create", event: AlertCreated, also: [409],
    }
    /// Get an alert
    Get: GET "/organizations/{organizationId}/alerts/{alertId}" as "GetAlert" {
        path: OfAlert, reply: One<Alert>,
        permission: "organization.alerts.get",
    }
    /// Update an alert
    Update: POST "/organizations/{organizationId}/alerts/{alertId}" as "UpdateAlert" {
        path: OfAlert, body: UpdateAlertRequest, reply: One<Alert>,
        permission: "organization.alerts.update", event: AlertUpdated, also: [409],
    }
    /// Delete an alert
    Delete: DELETE "/organizations/{organizationId}/alerts/{alertId}" as "DeleteAlert" {
        path: OfAlert,
        permission: "organization.alerts.delete", event: AlertDeleted,
    }
    /// List what an alert has found
    ListFirings: GET "/organizations/{organizationId}/alerts/{alertId}/firings" as "ListAlertFirings" {
        path: OfAlert, query: ListAlertFirings, reply: Many<AlertFiringsPaginated>,
        permission: "organization.alerts.get",
    }
}

wire! {
    /// Which alerts to list.
    sorted["name", "createdAt", "updatedAt"] pub struct ListAlerts {}

    /// An alert: what to watch for, where, and whom to tell.
    stamped(Option<SubjectProfile>) pub struct Alert {
        /// Its id.
        pub id: AlertId,
        /// Its name, unique in the organization.
        pub name: String,
        /// Its description.
        pub description: String,
        /// Its organization.
        pub organization_id: OrganizationId,
        /// The kind of problem that it watches for.
        pub kind: AlertKind,
        /// How long a deployment may be unhealthy, or a DAG run may take, in minutes.
        pub after_minutes: Option<u32>,
        /// How many days before it expires a token is told about.
        pub days_before: Option<u32>,
        /// Only runs of this DAG.
        pub dag_id: Option<String>,
        /// Watches only these workspaces, and the deployments below; without either, everything.
        pub workspace_ids: Vec<WorkspaceId>,
        /// Watches only these deployments, and the workspaces above; without either, everything.
        pub deployment_ids: Vec<DeploymentId>,
        /// The webhooks that get its events. With none, all that ask for such events get them.
        pub webhook_ids: Vec<WebhookId>,
        /// Who gets its mails.
        pub mail_addresses: Vec<String>,
        /// Whether it watches.
        pub is_enabled: bool,
        /// Since when its mails could not be sent, if the last one could not.
        pub mail_failing_since: Option<Timestamp>,
    }

    /// A page of alerts.
    page AlertsPaginated {
        /// The alerts.
        alerts: Vec<Alert>
    }

    /// A new alert. It needs a webhook or a mail address.
    pub struct CreateAlertRequest {
        /// Its name, unique in the organization.
        #[schemars(length(min = 1, max = 128))]
        pub name: String,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
        /// The kind of problem to watch for.
        pub kind: AlertKind,
        /// How long a deployment may be unhealthy (5 minutes where it is left out, 0 for not at all), or how long a DAG run may
        /// take.
        #[schemars(range(min = 0, max = 10_080))]
        pub after_minutes: Option<u32>,
        /// How many days before it expires a token is told about: 7 where it is left out.
        #[schemars(range(min = 1, max = 90))]
        pub days_before: Option<u32>,
        /// Only runs of this DAG.
        #[schemars(length(min = 1, max = 250))]
        pub dag_id: Option<String>,
        /// Watches only these workspaces, and the deployments below.
        #[schemars(length(max = 100))]
        pub workspace_ids: Option<Vec<WorkspaceId>>,
        /// Watches only these deployments, and the workspaces above.
        #[schemars(length(max = 100))]
        pub deployment_ids: Option<Vec<DeploymentId>>,
        /// Webhooks that get its events, whatever else they ask for; no others do.
        #[schemars(length(max = 10))]
        pub webhook_ids: Option<Vec<WebhookId>>,
        /// Who gets its mails. The server needs a mail server for that.
        #[schemars(length(max = 10), inner(length(min = 1, max = 254)))]
        pub mail_addresses: Option<Vec<String>>,
        /// Whether it watches; the default is yes.
        pub is_enabled: Option<bool>,
    }

    /// Changes to an alert. Fields that are left out stay as they are; the kind of an alert cannot be changed.
    pub struct UpdateAlertRequest {
        /// Its name, unique in the organization.
        #[schemars(length(min = 1, max = 128))]
        pub name: Option<String>,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
        /// How long a deployment may be unhealthy, or a DAG run may take, in minutes.
        #[schemars(range(min = 0, max = 10_080))]
        pub after_minutes: Option<u32>,
        /// How many days before it expires a token is told about.
        #[schemars(range(min = 1, max = 90))]
        pub days_before: Option<u32>,
        /// Only runs of this DAG; an empty text means all.
        #[schemars(length(max = 250))]
        pub dag_id: Option<String>,
        /// Watches only these workspaces, and the deployments below.
        #[schemars(length(max = 100))]
        pub workspace_ids: Option<Vec<WorkspaceId>>,
        /// Watches only these deployments, and the workspaces above.
        #[schemars(length(max = 100))]
        pub deployment_ids: Option<Vec<DeploymentId>>,
        /// Webhooks that get its events, whatever else they ask for; no others do.
        #[schemars(length(max = 10))]
        pub webhook_ids: Option<Vec<WebhookId>>,
        /// Who gets its mails.
        #[schemars(length(max = 10), inner(length(min = 1, max = 254)))]
        pub mail_addresses: Option<Vec<String>>,
        /// Whether it watches. An alert that is switched off closes its open firings, without a notice.
        pub is_enabled: Option<bool>,
    }

    /// Which firings to list; the newest come first unless the query sorts them otherwise.
    #[derive(Default)]
    pub struct ListAlertFirings {
        /// The page.
        #[serde(flatten)]
        pub page: Page<ListAlertFirings>,
        /// Only firings in this state.
        pub state: Option<AlertFiringState>,
    }
    sorts ListAlertFirings ["since"];

    /// A page of firings.
    page AlertFiringsPaginated {
        /// The firings.
        firings: Vec<AlertFiring>
    }

    /// Something that an alert has found. It stays one as long as it goes on, however often it happens.
    pub struct AlertFiring {
        /// Its id.
        pub id: AlertFiringId,
        /// Its alert.
        pub alert_id: AlertId,
        /// Whether it goes on.
        pub state: AlertFiringState,
        /// The deployment, DAG or token that has the problem.
        pub subject: AlertSubject,
        /// When the problem began.
        pub since: Timestamp,
        /// Until when, if it is over.
        pub until: Option<Timestamp>,
        /// How often it has happened since then.
        pub count: u64,
        /// Why, where Podium knows it.
        pub reason: Option<String>,
        /// The last DAG run that it happened with, as its environment calls it.
        pub run_id: Option<String>,
        /// When people were last told about it.
        pub last_notice_at: Option<Timestamp>,
    }

    /// What a firing is about.
    #[derive(PartialEq, Eq)]
    pub struct AlertSubject {
        /// The type of the subject.
        pub r#type: AlertSubjectType,
        /// The id of the deployment or token; for a DAG, that of its deployment.
        pub id: Id,
        /// The name of the deployment or token; for a DAG, that of its deployment.
        pub name: String,
        /// Its workspace, where it has one.
        pub workspace_id: Option<WorkspaceId>,
        /// Its deployment, where it has one.
        pub deployment_id: Option<DeploymentId>,
        /// The DAG, as its environment calls it.
        pub dag_id: Option<String>,
    }
}
