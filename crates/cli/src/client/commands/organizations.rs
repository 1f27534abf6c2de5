//! `podium organization`.

use clap::Subcommand;
use podium_api::organizations as api;

use super::{Failed, Kind, Listing, Noun, Outcome, Session, Verbs, View};

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium organization list
  podium organization get --output yaml
  podium organization update --name Analytics";

#[derive(Subcommand)]
pub(crate) enum Verb {
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

impl Noun for api::Get {
    type List = api::List;
    const KIND: Kind = Kind::listed("organization", "organization list", "createdAt");
    const VIEW: &'static View = &View {
        name: "name",
        columns: "NAME name, ID id, STATUS status, CREATED createdAt",
        wide: "ADDRESS RANGES hasAllowedIpAddressRanges, BILLING billingEmail",
    };
}

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        match self {
            Self::List(listing) => session.list::<api::List>(&(), api::Get::VIEW, &listing).await,
            Self::Get => session.show_at::<api::Get>(&session.in_organization().await?, api::Get::VIEW).await,
            Self::Update { name, billing_email, enforce_dedicated_clusters } => {
                if name.is_none() && billing_email.is_none() && enforce_dedicated_clusters.is_none() {
                    return Err(Failed::usage("nothing to change: see podium organization update --help"));
                }
                let path = session.in_organization().await?;
                let edit = |now: api::Organization| {
                    let (name, billing_email) = (name.clone(), billing_email.clone());
                    Ok(api::UpdateOrganizationRequest {
                        name: name.unwrap_or(now.name),
                        billing_email: billing_email.or(now.billing_email).unwrap_or_default(),
                        is_scim_enabled: now.is_scim_enabled,
                        should_enforce_dedicated_clusters: enforce_dedicated_clusters,
                        allow_enhanced_support_access: None,
                        has_ai_features_disabled: None,
                    })
                };
                let edited = session.edit::<api::Get, api::Update, _>(&path, edit).await?;
                session.show(&edited.told("the organization"), api::Get::VIEW)
            }
        }
    }
}
