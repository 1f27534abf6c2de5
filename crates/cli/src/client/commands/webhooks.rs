//! `podium webhook`.

use clap::{Args, Subcommand};
use podium_api::enums::WebhookDeliveryState;
use podium_api::path::{OfWebhook, OfWebhookDelivery};
use podium_api::{Nothing, deployments, webhooks as api, workspaces};
use serde_json::{Value, json};

use super::{
    Kind, Listing, Noun, One, Outcome, Session, Several, Verbs, View, id, merged, object, one_of, read,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium webhook create chat --to https://hooks.example.com/podium --event 'podium.deploy.*'
  podium webhook test chat
  podium webhook delivery list chat --state FAILED
  podium webhook rotate-secret chat";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List webhooks.
    List(Listing),
    /// Show a webhook, without its secret.
    Get(One),
    /// Create a webhook and print its secret, which is shown only once.
    Create {
        /// Name of the webhook.
        name: String,
        /// URL that events are sent to.
        #[arg(long, value_name = "URL")]
        to: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Change a webhook; other settings are kept.
    Update {
        /// Name or id.
        webhook: String,
        /// New name of the webhook.
        #[arg(long)]
        name: Option<String>,
        /// URL that events are sent to.
        #[arg(long, value_name = "URL")]
        to: Option<String>,
        /// Enable the webhook.
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        /// Disable the webhook.
        #[arg(long)]
        disable: bool,
        #[command(flatten)]
        settings: Settings,
    },
    /// Give a webhook a new secret, and print it; for a day events are signed with the old one too.
    RotateSecret(One),
    /// Send a test event.
    Test(One),
    /// Delete webhooks.
    Delete(Several),
    /// Deliveries of events, and their states.
    #[command(subcommand)]
    Delivery(DeliveryVerb),
}

/// Which events are sent.
#[derive(Args)]
pub(crate) struct Settings {
    /// Description of the webhook.
    #[arg(long)]
    description: Option<String>,
    /// Type of events, such as podium.deploy.failed, or podium.deployment.* for all types that begin with it; may be
    /// repeated. All types by default.
    #[arg(long = "event", value_name = "TYPE")]
    events: Vec<String>,
    /// Workspace whose events are sent; may be repeated. The default is the whole organization.
    #[arg(long = "workspace", value_name = "WORKSPACE")]
    workspaces: Vec<String>,
    /// Deployment whose events are sent; may be repeated.
    #[arg(long = "deployment", value_name = "DEPLOYMENT")]
    deployments: Vec<String>,
}

#[derive(Subcommand)]
pub(crate) enum DeliveryVerb {
    /// List deliveries, the newest event first.
    List {
        /// Name or id of the webhook.
        webhook: String,
        /// Only deliveries in this state: PENDING, SUCCEEDED or FAILED.
        #[arg(long, value_parser = ["PENDING", "SUCCEEDED", "FAILED"], ignore_case = true)]
        state: Option<String>,
        /// Maximum number of deliveries to show.
        #[arg(long, value_name = "NUMBER", default_value_t = 100)]
        limit: u64,
    },
    /// Show a delivery.
    Get {
        /// Name or id of the webhook.
        webhook: String,
        /// Id of the delivery.
        delivery: String,
    },
    /// Send an event again.
    Redeliver {
        /// Name or id of the webhook.
        webhook: String,
        /// Id of the delivery.
        delivery: String,
    },
}

const DELIVERIES: View = View {
    name: "id",
    columns: "ID id, EVENT eventType, STATE state, ATTEMPTS attempts, STATUS lastStatus, \
              LAST ATTEMPT lastAttemptAt, NEXT ATTEMPT nextAttemptAt",
    wide: "ERROR lastError, RESPONSE lastResponse, EVENT ID eventId",
};

const AT_ONCE: u64 = 100;

impl Noun for api::Get {
    type List = api::List;
    const KIND: Kind = Kind::listed("webhook", "webhook list", "url");
    const VIEW: &'static View = &View {
        name: "name",
        columns: "NAME name, ID id, URL url, ENABLED isEnabled, FAILING SINCE failingSince",
        wide: "EVENTS eventTypes, REASON disabledReason, DESCRIPTION description, CREATED createdAt",
    };
}

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        match self {
            Self::List(listing) => session.list_named::<api::Get>(&listing).await,
            Self::Get(one) => session.show_named::<api::Get>(&one.name).await,
            Self::Create { name, to, settings } => {
                let path = session.in_organization().await?;
                let own = json!({ "name": name, "url": to });
                let body = read(&merged(object(&settings.changes(session).await?), own))?;
                let made = session.post::<api::Create>(&path, &body).await?;
                eprintln!("Created webhook {name}. Its secret is shown only once:");
                session.show_secret(&made, |made| made.secret, api::Get::VIEW)
            }
            Self::Update { webhook, name, to, enable, disable, settings } => {
                let is_enabled = (enable || disable).then_some(enable);
                let changes = settings.changes(session).await?;
                let body = api::UpdateWebhookRequest { name, url: to, is_enabled, ..changes };
                session.update_named::<api::Get, api::Update>(&webhook, &body).await
            }
            Self::RotateSecret(One { name: webhook }) => {
                let path = session.named::<api::Get>(&webhook).await?;
                let rotated = session.post::<api::RotateSecret>(&path, &Nothing).await?;
                let until = rotated.body()?.previous_secret_expires_at;
                eprintln!(
                    "Rotated the secret of webhook {webhook}. Events are also signed with the old secret \
                     until {}. The new secret is shown only once:",
                    until.map(|until| until.to_string()).unwrap_or_default()
                );
                session.show_secret(&rotated, |rotated| rotated.secret, api::Get::VIEW)
            }
            Self::Test(One { name: webhook }) => {
                let path = session.named::<api::Get>(&webhook).await?;
                session.post::<api::Test>(&path, &Nothing).await?;
                eprintln!("A test event is on its way: see podium webhook delivery list {webhook}");
                Ok(())
            }
            Self::Delete(all) => session.delete_named::<api::Get, api::Delete>(&all.names).await,
            Self::Delivery(verb) => verb.run(session).await,
        }
    }
}

impl Settings {
    async fn changes(self, session: &Session) -> Outcome<api::UpdateWebhookRequest> {
        Ok(api::UpdateWebhookRequest {
            name: None,
            description: self.description,
            url: None,
            event_types: Some(self.events).filter(|events| !events.is_empty()),
            workspace_ids: session.some_ids_of::<workspaces::Get, _>(&self.workspaces).await?,
            deployment_ids: session.some_ids_of::<deployments::Get, _>(&self.deployments).await?,
            is_enabled: None,
        })
    }
}

impl DeliveryVerb {
    async fn run(self, session: &Session) -> Outcome {
        match self {
            Self::List { webhook, state, limit } => {
                let path = session.named::<api::Get>(&webhook).await?;
                let state = state.map(|state| one_of(WebhookDeliveryState::ALL, &state)).transpose()?;
                let (query, mut all) = (json!({ "state": state }), Vec::new());
                let collect = |page: &[Value]| {
                    all.extend_from_slice(page);
                    Ok(())
                };
                session
                    .behind_cursor::<api::ListDeliveries>(&path, &query, (limit, AT_ONCE, u64::MAX), collect)
                    .await?;
                session.show_all(&all, &DELIVERIES)
            }
            Self::Get { webhook, delivery } => {
                let path = of(session, &webhook, &delivery).await?;
                session.show_at::<api::GetDelivery>(&path, &DELIVERIES).await
            }
            Self::Redeliver { webhook, delivery } => {
                let path = of(session, &webhook, &delivery).await?;
                let again = session.post::<api::Redeliver>(&path, &Nothing).await?;
                eprintln!("Sending the event {} again.", again.body()?.event_id);
                session.show(&again.raw, &DELIVERIES)
            }
        }
    }
}

async fn of(session: &Session, webhook: &str, delivery: &str) -> Outcome<OfWebhookDelivery> {
    let hint = format!("List deliveries: podium webhook delivery list {webhook:?}");
    let delivery_id = id(delivery, "a delivery", hint)?;
    let OfWebhook { organization_id, webhook_id } = session.named::<api::Get>(webhook).await?;
    Ok(OfWebhookDelivery { organization_id, webhook_id, delivery_id })
}
