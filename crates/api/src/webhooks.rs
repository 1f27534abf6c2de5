//! Webhooks: events that are sent to a URL, signed, and what has become of each of them.

use crate::enums::{EventType, WebhookDeliveryState};
use crate::path::{InOrganization, OfWebhook, OfWebhookDelivery};
use crate::reply::{Many, One};
use crate::subjects::SubjectProfile;
use crate::{DeploymentId, OrganizationId, Timestamp, WebhookDeliveryId, WebhookId, WorkspaceId};

endpoints! {
    tag "Webhook";

    /// List webhooks
    List: GET "/organizations/{organizationId}/webhooks" as "ListWebhooks" {
        path: InOrganization, query: ListWebhooks, reply: Many<WebhooksPaginated>,
        permission: "organization.webhooks.get",
    }
    /// Create a webhook
    Create: POST "/organizations/{organizationId}/webhooks" as "CreateWebhook" {
        path: InOrganization, body: CreateWebhookRequest, reply: One<Webhook>,
        permission: "organization.webhooks.create", event: WebhookCreated, also: [409], marks: [secret_reply],
    }
    /// Get a webhook
    Get: GET "/organizations/{organizationId}/webhooks/{webhookId}" as "GetWebhook" {
        path: OfWebhook, reply: One<Webhook>,
        permission: "organization.webhooks.get",
    }
    /// Update a webhook
    Update: POST "/organizations/{organizationId}/webhooks/{webhookId}" as "UpdateWebhook" {
        path: OfWebhook, body: UpdateWebhookRequest, reply: One<Webhook>,
        permission: "organization.webhooks.update", event: WebhookUpdated, also: [409],
    }
    /// Delete a webhook
    Delete: DELETE "/organizations/{organizationId}/webhooks/{webhookId}" as "DeleteWebhook" {
        path: OfWebhook,
        permission: "organization.webhooks.delete", event: WebhookDeleted, also: [409],
    }
    /// Replace the secret of a webhook
    RotateSecret: POST "/organizations/{organizationId}/webhooks/{webhookId}/rotate-secret"
        as "RotateWebhookSecret" {
        path: OfWebhook, reply: One<Webhook>,
        permission: "organization.webhooks.update", event: WebhookSecretRotated, marks: [secret_reply],
    }
    /// Send a test event to a webhook
    Test: POST "/organizations/{organizationId}/webhooks/{webhookId}/test" as "TestWebhook" {
        path: OfWebhook,
        permission: "organization.webhooks.update", event: WebhookTested, also: [409],
    }
    /// List deliveries of a webhook
    ListDeliveries: GET "/organizations/{organizationId}/webhooks/{webhookId}/deliveries"
        as "ListWebhookDeliveries" {
        path: OfWebhook, query: ListWebhookDeliveries, reply: Many<WebhookDeliveryPage>,
        permission: "organization.webhooks.get",
    }
    /// Get a delivery of a webhook
    GetDelivery: GET "/organizations/{organizationId}/webhooks/{webhookId}/deliveries/{deliveryId}"
        as "GetWebhookDelivery" {
        path: OfWebhookDelivery, reply: One<WebhookDelivery>,
        permission: "organization.webhooks.get",
    }
    /// Send an event to a webhook again
    Redeliver: POST "/organizations/{organizationId}/webhooks/{webhookId}/deliveries/{deliveryId}/redeliver"
        as "RedeliverToWebhook" {
        path: OfWebhookDelivery, reply: One<WebhookDelivery>,
        permission: "organization.webhooks.update", without_event: "sends an event that was made before",
        also: [409],
    }
}

wire! {
    /// Which webhooks to list.
    sorted["name", "createdAt", "updatedAt"] pub struct ListWebhooks {}

    /// A webhook: a URL that events of the organization are sent to.
    stamped(Option<SubjectProfile>) pub struct Webhook {
        /// Its id.
        pub id: WebhookId,
        /// Its name, unique in the organization.
        pub name: String,
        /// Its description.
        pub description: String,
        /// Its organization.
        pub organization_id: OrganizationId,
        /// Where events are sent.
        pub url: String,
        /// Which types of events are sent; none means all.
        pub event_types: Vec<String>,
        /// Only events of these workspaces, and of the deployments below; without either, all events.
        pub workspace_ids: Vec<WorkspaceId>,
        /// Only events of these deployments, and of the workspaces above; without either, all events.
        pub deployment_ids: Vec<DeploymentId>,
        /// Whether events are sent.
        pub is_enabled: bool,
        /// Why Podium has switched it off, if it did.
        pub disabled_reason: Option<String>,
        /// Since when no attempt has succeeded, if the last one failed.
        pub failing_since: Option<Timestamp>,
        /// The secret that deliveries are signed with: shown when it is made, and never again.
        pub secret: Option<String>,
        /// Until when deliveries are also signed with the secret before this one.
        pub previous_secret_expires_at: Option<Timestamp>,
    }

    /// A page of webhooks.
    page WebhooksPaginated {
        /// The webhooks.
        webhooks: Vec<Webhook>
    }

    /// A new webhook.
    pub struct CreateWebhookRequest {
        /// Its name, unique in the organization.
        #[schemars(length(min = 1, max = 128))]
        pub name: String,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
        /// Where to send events: an `https` URL without a user and a fragment. The audit log does not record it, because such
        /// URLs often contain a secret.
        #[schemars(length(min = 1, max = 2048), extend("format" = "password"))]
        pub url: String,
        /// Which types of events to send: a type such as `podium.deploy.failed`, or the beginning of types with a `*` after
        /// it, such as `podium.deployment.*`. All where it is left out or empty.
        #[schemars(length(max = 100), inner(length(min = 1, max = 100)))]
        pub event_types: Option<Vec<String>>,
        /// Only events of these workspaces and their deployments, and of the deployments below.
        #[schemars(length(max = 100))]
        pub workspace_ids: Option<Vec<WorkspaceId>>,
        /// Only events of these deployments, and of the workspaces above.
        #[schemars(length(max = 100))]
        pub deployment_ids: Option<Vec<DeploymentId>>,
        /// Whether to send events; the default is yes.
        pub is_enabled: Option<bool>,
    }

    /// Changes to a webhook. Fields that are left out stay as they are.
    pub struct UpdateWebhookRequest {
        /// Its name, unique in the organization.
        #[schemars(length(min = 1, max = 128))]
        pub name: Option<String>,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
        /// Where to send events: an `https` URL without a user and a fragment. The audit log does not record it, because such
        /// URLs often contain a secret.
        #[schemars(length(min = 1, max = 2048), extend("format" = "password"))]
        pub url: Option<String>,
        /// Which types of events to send; an empty list means all.
        #[schemars(length(max = 100), inner(length(min = 1, max = 100)))]
        pub event_types: Option<Vec<String>>,
        /// Only events of these workspaces and their deployments, and of the deployments below.
        #[schemars(length(max = 100))]
        pub workspace_ids: Option<Vec<WorkspaceId>>,
        /// Only events of these deployments, and of the workspaces above.
        #[schemars(length(max = 100))]
        pub deployment_ids: Option<Vec<DeploymentId>>,
        /// Whether to send events. A webhook that is switched on again gets the events from then on.
        pub is_enabled: Option<bool>,
    }

    /// Which deliveries to list, the newest first.
    pub struct ListWebhookDeliveries {
        /// Where to continue: the `nextCursor` of an earlier page. Without it the list begins with the newest event.
        #[schemars(length(max = 64))]
        pub cursor: Option<String>,
        /// Maximum number of deliveries to return.
        #[serde(default = "default_limit")]
        #[schemars(range(min = 1, max = 100))]
        pub limit: u32,
        /// Only deliveries in this state.
        pub state: Option<WebhookDeliveryState>,
    }
}

fn default_limit() -> u32 {
    20
}

wire! {
    /// A page of deliveries, the newest event first.
    pub struct WebhookDeliveryPage {
        /// The deliveries.
        pub deliveries: Vec<WebhookDelivery>,
        /// Where the next page begins; absent on the last one.
        pub next_cursor: Option<String>,
    }

    /// One event on its way to a webhook, and the last attempt to send it.
    pub struct WebhookDelivery {
        /// Its id.
        pub id: WebhookDeliveryId,
        /// The event: the header `webhook-id` of every attempt.
        pub event_id: String,
        /// The type of the event.
        pub event_type: EventType,
        /// Whether it was received, is still tried, or was given up.
        pub state: WebhookDeliveryState,
        /// How often it was tried.
        pub attempts: u32,
        /// When the delivery is tried next.
        pub next_attempt_at: Option<Timestamp>,
        /// When it was last tried.
        pub last_attempt_at: Option<Timestamp>,
        /// The status of the last answer, if there was one.
        pub last_status: Option<u16>,
        /// The beginning of the last answer, without control characters.
        pub last_response: Option<String>,
        /// Why the last attempt failed.
        pub last_error: Option<String>,
        /// How long the last attempt took, in milliseconds.
        pub last_duration_millis: Option<u64>,
        /// When the webhook took the event from the stream.
        pub created_at: Timestamp,
    }
}
