//! `podium ip-range`.

use clap::{Args, Subcommand};
use podium_api::allowed_ip_address_ranges as api;
use podium_client::Call;
use serde_json::json;

use crate::client::ending::Outcome;
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::Setup;
use crate::server::Reset;

/// Allowed address ranges; an operator who is locked out can reset them.
#[derive(Subcommand)]
pub(crate) enum IpRanges {
    /// List allowed address ranges.
    #[command(after_help = "Example: podium ip-range list")]
    List(List),
    /// Allow address ranges: from then on the organization can be reached only from these ranges.
    #[command(after_help = "Example: podium ip-range create 203.0.113.0/24 198.51.100.7/32")]
    Create(Create),
    /// Remove allowed address ranges.
    #[command(after_help = "Example: podium ip-range delete 203.0.113.0/24 --yes")]
    Delete(Delete),
    /// Remove every allowed address range, so that the API can be reached from anywhere again.
    ///
    /// With the embedded database, stop the server first.
    Reset(Reset),
}

/// Which part of the list.
#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    listing: Listing,
    #[command(flatten)]
    setup: Setup,
}

/// Which ranges to allow.
#[derive(Args)]
pub(crate) struct Create {
    /// Ranges in CIDR notation.
    #[arg(required = true)]
    ranges: Vec<String>,
    #[command(flatten)]
    setup: Setup,
}

/// Which ranges to remove.
#[derive(Args)]
pub(crate) struct Delete {
    /// Ranges, or their ids.
    #[arg(required = true)]
    ranges: Vec<String>,
    #[command(flatten)]
    setup: Setup,
}

const VIEW: View = View {
    name: "ipAddressRange",
    columns: &[
        column("RANGE", "ipAddressRange"),
        column("ID", "id"),
        column("CREATED", "createdAt"),
        wide("CREATED BY", "createdBy.username"),
    ],
};

impl IpRanges {
    pub(crate) async fn run(self) -> Outcome {
        match self {
            Self::List(List { listing, setup }) => {
                let session = setup.open()?;
                let path = session.in_organization().await?;
                session.list(Call::to::<api::List>(&path), &VIEW, &listing).await
            }
            Self::Create(Create { ranges, setup }) => {
                let session = setup.open()?;
                let path = session.in_organization().await?;
                match ranges.as_slice() {
                    [only] => {
                        let body = json!({ "ipAddressRange": only });
                        session.post::<api::Create>(&path, &body).await?
                    }
                    several => {
                        let body = json!({ "allowedIpAddressRanges": several });
                        session.post::<api::BulkCreate>(&path, &body).await?
                    }
                };
                eprintln!("Allowed {}.", ranges.join(", "));
                Ok(())
            }
            Self::Delete(Delete { ranges, setup }) => {
                let session = setup.open()?;
                let mut all = Vec::new();
                for range in &ranges {
                    all.push((session.ip_range(range).await?, range.clone()));
                }
                if let [_] = all.as_slice() {
                    return session.delete::<api::Delete>("address range", &all).await;
                }
                session.agree(&format!("Delete the address ranges {}?", ranges.join(", ")))?;
                let path = session.in_organization().await?;
                let ids: Vec<_> = all.iter().map(|(path, _)| path.allowed_ip_address_range_id).collect();
                let body = json!({ "allowedIpAddressRangeIds": ids });
                session.change(Call::to::<api::BulkDelete>(&path).body(&body)?).await?;
                eprintln!("Deleted {}.", ranges.join(", "));
                Ok(())
            }
            // The operator's: it opens the installation itself.
            Self::Reset(_) => Ok(()),
        }
    }
}
