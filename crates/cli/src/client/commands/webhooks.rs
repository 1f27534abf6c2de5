//! `podium webhook`.

use clap::{Args, Subcommand};
use podium_api::path::{OfWebhook, OfWebhookDelivery};
use podium_api::{WebhookDeliveryId, webhooks as api};
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::ending::{Failed, Outcome};
use crate::client::fields::given;
use crate::client::output::Listing;
use crate::client::output::{View, column, wide};
use crate::client::session::{Session, Setup, text};

/// Webhooks, which receive events of the organization.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium webhook create chat --to https://hooks.example.com/podium --event 'podium.deploy.*'
  podium webhook test chat
  podium webhook delivery list chat --state FAILED
  podium webhook rotate-secret chat")]
pub(crate) struct Webhooks {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List webhooks.
    List(Listing),
    /// Show a webhook, without its secret.
    Get {
        /// Name or id.
        webhook: String,
    },
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
    RotateSecret {
        /// Name or id.
        webhook: String,
    },
    /// Send a test event.
    Test {
        /// Name or id.
        webhook: String,
    },
    /// Delete webhooks.
    Delete {
        /// Names or ids.
        #[arg(required = true)]
        webhooks: Vec<String>,
    },
    /// Deliveries of events, and their states.
    #[command(subcommand)]
    Delivery(DeliveryVerb),
}

/// Which events are sent.
#[derive(Args)]
struct Settings {
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
enum DeliveryVerb {
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

const VIEW: View = View {
    name: "name",
    columns: &[
        column("NAME", "name"),
        column("ID", "id"),
        column("URL", "url"),
        column("ENABLED", "isEnabled"),
        column("FAILING SINCE", "failingSince"),
        wide("EVENTS", "eventTypes"),
        wide("REASON", "disabledReason"),
        wide("DESCRIPTION", "description"),
        wide("CREATED", "createdAt"),
    ],
};

const DELIVERIES: View = View {
    name: "id",
    columns: &[
        column("ID", "id"),
        column("EVENT", "eventType"),
        column("STATE", "state"),
        column("ATTEMPTS", "attempts"),
        column("STATUS", "lastStatus"),
        column("LAST ATTEMPT", "lastAttemptAt"),
        column("NEXT ATTEMPT", "nextAttemptAt"),
        wide("ERROR", "lastError"),
        wide("RESPONSE", "lastResponse"),
        wide("EVENT ID", "eventId"),
    ],
};

/// How many deliveries are read at once.
const AT_ONCE: u64 = 100;

impl Webhooks {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        match self.verb {
            Verb::List(listing) => {
                let path = session.in_organization().await?;
                session.list(Call::to::<api::List>(&path), &VIEW, &listing).await
            }
            Verb::Get { webhook } => {
                let path = session.webhook(&webhook).await?;
                session.show(&session.get::<api::Get>(&path).await?, &VIEW)
            }
            Verb::Create { name, to, settings } => {
                let path = session.in_organization().await?;
                let mut body = settings.body(&session).await?;
                body["name"] = json!(name);
                body["url"] = json!(to);
                let made = session.post::<api::Create>(&path, &body).await?;
                eprintln!("Created webhook {name}. Its secret is shown only once:");
                session.show_secret(&made, "secret", &VIEW)
            }
            Verb::Update { webhook, name, to, enable, disable, settings } => {
                let mut body = settings.body(&session).await?;
                let is_enabled = (enable || disable).then_some(enable);
                let others = given(json!({ "name": name, "url": to, "isEnabled": is_enabled }));
                for (field, value) in others.as_object().into_iter().flatten() {
                    body[field] = value.clone();
                }
                if body == json!({}) {
                    return Err(Failed::usage("nothing to change: see podium webhook update --help"));
                }
                let path = session.webhook(&webhook).await?;
                let edited = session.edit::<api::Get, api::Update>(&path, |_| Ok(body.clone())).await?;
                session.show(&edited.told(&format!("webhook {webhook}")), &VIEW)
            }
            Verb::RotateSecret { webhook } => {
                let path = session.webhook(&webhook).await?;
                let rotated = session.post::<api::RotateSecret>(&path, &Value::Null).await?;
                eprintln!(
                    "Rotated the secret of webhook {webhook}. Events are also signed with the old secret \
                     until {}. The new secret is shown only once:",
                    text(&rotated["previousSecretExpiresAt"])
                );
                session.show_secret(&rotated, "secret", &VIEW)
            }
            Verb::Test { webhook } => {
                let path = session.webhook(&webhook).await?;
                let call = Call::to::<api::Test>(&path);
                if session.is_planned(&call).await? {
                    return Ok(());
                }
                session.client.send_for_nothing(call).await?;
                eprintln!("A test event is on its way: see podium webhook delivery list {webhook}");
                Ok(())
            }
            Verb::Delete { webhooks } => {
                let mut all = Vec::new();
                for name in webhooks {
                    all.push((session.webhook(&name).await?, name));
                }
                session.delete::<api::Delete>("webhook", &all).await
            }
            Verb::Delivery(verb) => verb.run(&session).await,
        }
    }
}

impl Settings {
    async fn body(&self, session: &Session) -> Outcome<Value> {
        let (mut workspaces, mut deployments) = (Vec::new(), Vec::new());
        for name in &self.workspaces {
            workspaces.push(session.workspace(name).await?.workspace_id);
        }
        for name in &self.deployments {
            deployments.push(session.deployment(name, None).await?.deployment_id);
        }
        Ok(given(json!({
            "description": self.description,
            "eventTypes": (!self.events.is_empty()).then_some(&self.events),
            "workspaceIds": (!workspaces.is_empty()).then_some(workspaces),
            "deploymentIds": (!deployments.is_empty()).then_some(deployments),
        })))
    }
}

impl DeliveryVerb {
    async fn run(self, session: &Session) -> Outcome {
        match self {
            Self::List { webhook, state, limit } => {
                let path = session.webhook(&webhook).await?;
                let state = state.map(|state| state.to_uppercase());
                session.show_all(&deliveries(session, &path, state, limit).await?, &DELIVERIES)
            }
            Self::Get { webhook, delivery } => {
                let path = of(session, &webhook, &delivery).await?;
                session.show(&session.get::<api::GetDelivery>(&path).await?, &DELIVERIES)
            }
            Self::Redeliver { webhook, delivery } => {
                let path = of(session, &webhook, &delivery).await?;
                let again = session.post::<api::Redeliver>(&path, &Value::Null).await?;
                eprintln!("Sending the event {} again.", text(&again["eventId"]));
                session.show(&again, &DELIVERIES)
            }
        }
    }
}

/// The newest deliveries, up to a limit.
async fn deliveries(
    session: &Session,
    path: &OfWebhook,
    state: Option<String>,
    limit: u64,
) -> Outcome<Vec<Value>> {
    let (mut all, mut cursor) = (Vec::new(), None);
    while (all.len() as u64) < limit {
        let wanted = (limit - all.len() as u64).min(AT_ONCE);
        let params = given(json!({ "state": state, "limit": wanted, "cursor": cursor }));
        let call = Call::to::<api::ListDeliveries>(path).query_params(&params)?;
        let mut page: Value = session.client.send(call).await?.body;
        all.extend(page["deliveries"].as_array_mut().map(std::mem::take).unwrap_or_default());
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    Ok(all)
}

async fn of(session: &Session, webhook: &str, delivery: &str) -> Outcome<OfWebhookDelivery> {
    let delivery_id: WebhookDeliveryId = delivery.parse().map_err(|_| {
        Failed::usage(format!("{delivery:?} is not the id of a delivery"))
            .hint(format!("List deliveries: podium webhook delivery list {webhook:?}"))
    })?;
    let OfWebhook { organization_id, webhook_id } = session.webhook(webhook).await?;
    Ok(OfWebhookDelivery { organization_id, webhook_id, delivery_id })
}
