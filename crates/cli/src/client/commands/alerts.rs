//! `podium alert`.

use clap::{Args, Subcommand};
use podium_api::alerts as api;
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::ending::{Failed, Outcome};
use crate::client::fields::given;
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::{Session, Setup};

/// Alert rules.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium alert create broken --kind deployment-unhealthy --after-minutes 10 --mail ops@example.com
  podium alert create slow --kind dag-run-too-slow --after-minutes 60 --dag load --webhook chat
  podium alert firings broken --state firing
  podium alert update broken --disable")]
pub(crate) struct Alerts {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List alerts.
    List(Listing),
    /// Show an alert.
    Get {
        /// Name or id.
        alert: String,
    },
    /// Create an alert.
    Create {
        /// Name of the alert.
        name: String,
        /// What to watch for.
        #[arg(long, value_parser = KINDS)]
        kind: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Change an alert; other settings are kept.
    Update {
        /// Name or id.
        alert: String,
        /// New name of the alert.
        #[arg(long)]
        name: Option<String>,
        /// Enable the alert.
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
        /// Disable the alert, and close its open firings without a notice.
        #[arg(long)]
        disable: bool,
        #[command(flatten)]
        settings: Settings,
    },
    /// Delete alerts and their firings.
    Delete {
        /// Names or ids.
        #[arg(required = true)]
        alerts: Vec<String>,
    },
    /// List the firings of an alert, newest first.
    Firings {
        /// Name or id.
        alert: String,
        /// Only firings in this state: FIRING or RESOLVED.
        #[arg(long, value_parser = ["FIRING", "RESOLVED"], ignore_case = true)]
        state: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
}

const KINDS: [&str; 6] = [
    "deployment-unhealthy",
    "deploy-failed",
    "operation-failed",
    "dag-run-failed",
    "dag-run-too-slow",
    "token-expiring",
];

/// What it watches, and whom it tells.
#[derive(Args)]
struct Settings {
    /// Description of the alert.
    #[arg(long)]
    description: Option<String>,
    /// How long a deployment may be unhealthy, or a DAG run may take.
    #[arg(long, value_name = "MINUTES")]
    after_minutes: Option<u32>,
    /// How many days before a token expires the alert fires.
    #[arg(long, value_name = "DAYS")]
    days_before: Option<u32>,
    /// Only runs of this DAG.
    #[arg(long = "dag", value_name = "DAG")]
    dag_id: Option<String>,
    /// Workspace to watch; may be repeated. The default is the whole organization.
    #[arg(long = "workspace", value_name = "WORKSPACE")]
    workspaces: Vec<String>,
    /// Deployment to watch; may be repeated.
    #[arg(long = "deployment", value_name = "DEPLOYMENT")]
    deployments: Vec<String>,
    /// Webhook to send the alert's events to; no other webhook gets them. May be repeated.
    #[arg(long = "webhook", value_name = "WEBHOOK")]
    webhooks: Vec<String>,
    /// Address to send mails of the alert to; may be repeated.
    #[arg(long = "mail", value_name = "ADDRESS")]
    mail_addresses: Vec<String>,
}

const VIEW: View = View {
    name: "name",
    columns: &[
        column("NAME", "name"),
        column("ID", "id"),
        column("KIND", "kind"),
        column("ENABLED", "isEnabled"),
        column("MAILS TO", "mailAddresses"),
        column("MAIL FAILING SINCE", "mailFailingSince"),
        wide("AFTER MINUTES", "afterMinutes"),
        wide("DAYS BEFORE", "daysBefore"),
        wide("DAG", "dagId"),
        wide("WEBHOOKS", "webhookIds"),
        wide("DESCRIPTION", "description"),
        wide("CREATED", "createdAt"),
    ],
};

const FIRINGS: View = View {
    name: "id",
    columns: &[
        column("STATE", "state"),
        column("SUBJECT", "subject.name"),
        column("DAG", "subject.dagId"),
        column("SINCE", "since"),
        column("UNTIL", "until"),
        column("COUNT", "count"),
        column("LAST NOTICE", "lastNoticeAt"),
        wide("REASON", "reason"),
        wide("RUN", "runId"),
        wide("SUBJECT ID", "subject.id"),
        wide("ID", "id"),
    ],
};

impl Alerts {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        match self.verb {
            Verb::List(listing) => {
                let path = session.in_organization().await?;
                session.list(Call::to::<api::List>(&path), &VIEW, &listing).await
            }
            Verb::Get { alert } => {
                let path = session.alert(&alert).await?;
                session.show(&session.get::<api::Get>(&path).await?, &VIEW)
            }
            Verb::Create { name, kind, settings } => {
                let path = session.in_organization().await?;
                let mut body = settings.body(&session).await?;
                body["name"] = json!(name);
                body["kind"] = json!(kind.replace('-', "_").to_uppercase());
                let made = session.post::<api::Create>(&path, &body).await?;
                eprintln!("Created alert {name}.");
                session.show(&made, &VIEW)
            }
            Verb::Update { alert, name, enable, disable, settings } => {
                let mut body = settings.body(&session).await?;
                let is_enabled = (enable || disable).then_some(enable);
                let others = given(json!({ "name": name, "isEnabled": is_enabled }));
                for (field, value) in others.as_object().into_iter().flatten() {
                    body[field] = value.clone();
                }
                if body == json!({}) {
                    return Err(Failed::usage("nothing to change: see podium alert update --help"));
                }
                let path = session.alert(&alert).await?;
                let edited = session.edit::<api::Get, api::Update>(&path, |_| Ok(body.clone())).await?;
                session.show(&edited.told(&format!("alert {alert}")), &VIEW)
            }
            Verb::Delete { alerts } => {
                let mut all = Vec::new();
                for name in alerts {
                    all.push((session.alert(&name).await?, name));
                }
                session.delete::<api::Delete>("alert", &all).await
            }
            Verb::Firings { alert, state, listing } => {
                let path = session.alert(&alert).await?;
                let params = given(json!({ "state": state.map(|state| state.to_uppercase()) }));
                let call = Call::to::<api::ListFirings>(&path).query_params(&params)?;
                session.list(call, &FIRINGS, &listing).await
            }
        }
    }
}

impl Settings {
    async fn body(&self, session: &Session) -> Outcome<Value> {
        let (mut workspaces, mut deployments, mut webhooks) = (Vec::new(), Vec::new(), Vec::new());
        for name in &self.workspaces {
            workspaces.push(session.workspace(name).await?.workspace_id);
        }
        for name in &self.deployments {
            deployments.push(session.deployment(name, None).await?.deployment_id);
        }
        for name in &self.webhooks {
            webhooks.push(session.webhook(name).await?.webhook_id);
        }
        Ok(given(json!({
            "description": self.description,
            "afterMinutes": self.after_minutes,
            "daysBefore": self.days_before,
            "dagId": self.dag_id,
            "workspaceIds": (!workspaces.is_empty()).then_some(workspaces),
            "deploymentIds": (!deployments.is_empty()).then_some(deployments),
            "webhookIds": (!webhooks.is_empty()).then_some(webhooks),
            "mailAddresses": (!self.mail_addresses.is_empty()).then_some(&self.mail_addresses),
        })))
    }
}
