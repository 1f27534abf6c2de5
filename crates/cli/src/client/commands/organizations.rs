//! `podium organization`.

use clap::{Args, Subcommand};
use podium_api::organizations as api;
use podium_client::Call;
use serde_json::json;

use crate::client::edit::pick;
use crate::client::ending::{Failed, Outcome};
use crate::client::fields::{given, merged};
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::Setup;

/// The organizations that you belong to.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium organization list
  podium organization get --output yaml
  podium organization update --name Analytics")]
pub(crate) struct Organizations {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List organizations.
    List(Listing),
    /// Show the organization.
    Get,
    /// Change the organization; other settings are kept.
    Update {
        /// New name of the organization.
        #[arg(long)]
        name: Option<String>,
        /// E-mail address for bills.
        #[arg(long)]
        billing_email: Option<String>,
        /// Whether deployments on shared infrastructure are refused.
        #[arg(long, value_name = "BOOL")]
        enforce_dedicated_clusters: Option<bool>,
    },
}

const VIEW: View = View {
    name: "name",
    columns: &[
        column("NAME", "name"),
        column("ID", "id"),
        column("STATUS", "status"),
        column("CREATED", "createdAt"),
        wide("ADDRESS RANGES", "hasAllowedIpAddressRanges"),
        wide("BILLING", "billingEmail"),
    ],
};

impl Organizations {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        match self.verb {
            Verb::List(listing) => session.list(Call::to::<api::List>(&()), &VIEW, &listing).await,
            Verb::Get => {
                let path = session.in_organization().await?;
                session.show(&session.get::<api::Get>(&path).await?, &VIEW)
            }
            Verb::Update { name, billing_email, enforce_dedicated_clusters } => {
                let change = given(json!({
                    "name": name,
                    "billingEmail": billing_email,
                    "shouldEnforceDedicatedClusters": enforce_dedicated_clusters,
                }));
                if change == json!({}) {
                    return Err(Failed::usage("nothing to change: see podium organization update --help"));
                }
                let path = session.in_organization().await?;
                let edited = session.edit::<api::Get, api::Update>(&path, |current| {
                    let mut kept = pick(current, &["name", "billingEmail", "isScimEnabled"]);
                    kept.entry("billingEmail").or_insert_with(|| "".into());
                    Ok(merged(kept, change.clone()))
                });
                session.show(&edited.await?.told("the organization"), &VIEW)
            }
        }
    }
}
