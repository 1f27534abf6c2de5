//! `podium ip-range`.

use clap::{Args, Subcommand};
use podium_api::allowed_ip_address_ranges as api;
use podium_server::Reset;

use super::{Kind, Listing, Noun, Outcome, Setup, View};

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

impl Noun for api::Delete {
    type List = api::List;
    const KIND: Kind = Kind::listed("address range", "ip-range list", "createdAt");
    const VIEW: &'static View = &View {
        name: "ipAddressRange",
        columns: "RANGE ipAddressRange, ID id, CREATED createdAt",
        wide: "CREATED BY createdBy.username",
    };
}

impl IpRanges {
    pub(crate) async fn run(self) -> Outcome {
        match self {
            Self::List(List { listing, setup }) => {
                let session = setup.open()?;
                session.list_named::<api::Delete>(&listing).await
            }
            Self::Create(Create { ranges, setup }) => {
                let session = setup.open()?;
                let path = session.in_organization().await?;
                let names = ranges.join(", ");
                match <[String; 1]>::try_from(ranges) {
                    Ok([ip_address_range]) => {
                        let body = api::CreateAllowedIpAddressRangeRequest { ip_address_range };
                        session.post::<api::Create>(&path, &body).await.map(drop)?;
                    }
                    Err(allowed_ip_address_ranges) => {
                        let body = api::BulkCreateAllowedIpAddressRangesRequest { allowed_ip_address_ranges };
                        session.post::<api::BulkCreate>(&path, &body).await.map(drop)?;
                    }
                }
                eprintln!("Allowed {names}.");
                Ok(())
            }
            Self::Delete(Delete { ranges, setup }) => {
                let session = setup.open()?;
                if ranges.len() == 1 {
                    return session.delete_named::<api::Delete, api::Delete>(&ranges).await;
                }
                let allowed_ip_address_range_ids = session.ids_of::<api::Delete, _>(&ranges).await?;
                session.agree(&format!("Delete the address ranges {}?", ranges.join(", ")))?;
                let path = session.in_organization().await?;
                let body = api::BulkDeleteAllowedIpAddressRangesRequest { allowed_ip_address_range_ids };
                session.post::<api::BulkDelete>(&path, &body).await?;
                eprintln!("Deleted {}.", ranges.join(", "));
                Ok(())
            }
            // The operator's: it opens the installation itself.
            Self::Reset(_) => Ok(()),
        }
    }
}
