//! `podium alert`.

use clap::{Args, Subcommand};
use podium_api::enums::{AlertFiringState, AlertKind};
use podium_api::{alerts as api, deployments, webhooks, workspaces};
use serde_json::json;

use super::{Kind, Listing, Noun, One, Outcome, Session, Several, Verbs, View, merged, object, one_of, read};

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium alert create broken --kind deployment-unhealthy --after-minutes 10 --mail ops@example.com
  podium alert create slow --kind dag-run-too-slow --after-minutes 60 --dag load --webhook chat
  podium alert firings broken --state firing
  podium alert update broken --disable";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List alerts.
    List(Listing),
    /// Show an alert.
    Get(One),
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
    Delete(Several),
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
pub(crate) struct Settings {
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

const FIRINGS: View = View {
    name: "id",
    columns: "STATE state, SUBJECT subject.name, DAG subject.dagId, SINCE since, UNTIL until, COUNT count, \
              LAST NOTICE lastNoticeAt",
    wide: "REASON reason, RUN runId, SUBJECT ID subject.id, ID id",
};

impl Noun for api::Get {
    type List = api::List;
    const KIND: Kind = Kind::listed("alert", "alert list", "kind");
    const VIEW: &'static View = &View {
        name: "name",
        columns: "NAME name, ID id, KIND kind, ENABLED isEnabled, MAILS TO mailAddresses, \
                  MAIL FAILING SINCE mailFailingSince",
        wide: "AFTER MINUTES afterMinutes, DAYS BEFORE daysBefore, DAG dagId, WEBHOOKS webhookIds, \
                  DESCRIPTION description, CREATED createdAt",
    };
}

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        match self {
            Self::List(listing) => session.list_named::<api::Get>(&listing).await,
            Self::Get(one) => session.show_named::<api::Get>(&one.name).await,
            Self::Create { name, kind, settings } => {
                let own = json!({ "name": name, "kind": one_of(AlertKind::ALL, &kind)? });
                let body = read(&merged(object(&settings.changes(session).await?), own))?;
                session.create_named::<api::Get, api::Create>(&name, &body).await
            }
            Self::Update { alert, name, enable, disable, settings } => {
                let is_enabled = (enable || disable).then_some(enable);
                let changes = settings.changes(session).await?;
                let body = api::UpdateAlertRequest { name, is_enabled, ..changes };
                session.update_named::<api::Get, api::Update>(&alert, &body).await
            }
            Self::Delete(all) => session.delete_named::<api::Get, api::Delete>(&all.names).await,
            Self::Firings { alert, state, listing } => {
                let path = session.named::<api::Get>(&alert).await?;
                let state = state.map(|state| one_of(AlertFiringState::ALL, &state)).transpose()?;
                let query = api::ListAlertFirings { state, ..api::ListAlertFirings::default() };
                session.list_where::<api::ListFirings>(&path, &query, &FIRINGS, &listing).await
            }
        }
    }
}

impl Settings {
    async fn changes(self, session: &Session) -> Outcome<api::UpdateAlertRequest> {
        Ok(api::UpdateAlertRequest {
            name: None,
            description: self.description,
            after_minutes: self.after_minutes,
            days_before: self.days_before,
            dag_id: self.dag_id,
            workspace_ids: session.some_ids_of::<workspaces::Get, _>(&self.workspaces).await?,
            deployment_ids: session.some_ids_of::<deployments::Get, _>(&self.deployments).await?,
            webhook_ids: session.some_ids_of::<webhooks::Get, _>(&self.webhooks).await?,
            mail_addresses: Some(self.mail_addresses).filter(|all| !all.is_empty()),
            is_enabled: None,
        })
    }
}
