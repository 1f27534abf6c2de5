//! `podium cluster`.

use clap::{Args, Subcommand};
use podium_api::{clusters as api, options};
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::edit::{Edited, pick};
use crate::client::ending::{Failed, Outcome};
use crate::client::fields::{Extra, merged};
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::{Session, Setup, text};

/// Clusters that deployments run on.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium cluster options --type DEDICATED
  podium cluster create main --provider AWS --region us-east-1 --vpc 172.20.0.0/20
  podium cluster update main --set 'workspaceIds=[]'
  podium cluster failover main --yes")]
pub(crate) struct Clusters {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List clusters.
    List(Listing),
    /// Show a cluster.
    Get {
        /// Name or id.
        cluster: String,
    },
    /// Create a cluster.
    Create {
        /// Name of the cluster.
        name: String,
        /// Cloud provider: AWS, AZURE or GCP.
        #[arg(long)]
        provider: Option<String>,
        /// Region of the cluster.
        #[arg(long)]
        region: Option<String>,
        /// DEDICATED or HYBRID.
        #[arg(long = "type", default_value = "DEDICATED")]
        kind: String,
        /// Address range of the cluster's network.
        #[arg(long, value_name = "CIDR")]
        vpc: Option<String>,
        #[command(flatten)]
        extra: Extra,
    },
    /// Change a cluster; other settings are kept.
    Update {
        /// Name or id.
        cluster: String,
        /// New name of the cluster.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        extra: Extra,
    },
    /// Delete clusters.
    Delete {
        /// Names or ids.
        #[arg(required = true)]
        clusters: Vec<String>,
    },
    /// Move all deployments of a cluster to its standby region.
    Failover {
        /// Name or id.
        cluster: String,
    },
    /// Move all deployments of a cluster back from its standby region.
    Failback {
        /// Name or id.
        cluster: String,
    },
    /// Show the options for a new cluster.
    Options {
        /// DEDICATED or HYBRID.
        #[arg(long = "type", default_value = "DEDICATED")]
        kind: String,
        /// Only options of this provider.
        #[arg(long)]
        provider: Option<String>,
    },
}

const VIEW: View = View {
    name: "name",
    columns: &[
        column("NAME", "name"),
        column("ID", "id"),
        column("STATUS", "status"),
        column("PROVIDER", "cloudProvider"),
        column("REGION", "region"),
        column("TYPE", "type"),
        column("RUNS ON", "dataPlane"),
        wide("HEALTH STATUS", "healthStatus.value"),
        wide("STANDBY", "drRegion"),
        wide("FAILED OVER", "isFailedOver"),
        wide("CREATED", "createdAt"),
    ],
};

/// What the fields of requests belong to.
const WHAT: &str = "a cluster";

const OPTIONS: View = View {
    name: "provider",
    columns: &[
        column("PROVIDER", "provider"),
        column("DEFAULT REGION", "defaultRegion.name"),
        column("DEFAULT VPC", "defaultVpcSubnetRange"),
        column("DEFAULT NODE", "defaultNodeInstance.name"),
        wide("DEFAULT DATABASE", "defaultDatabaseInstance.name"),
    ],
};

impl Clusters {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let organization = session.in_organization().await?;
        match self.verb {
            Verb::List(listing) => session.list(Call::to::<api::List>(&organization), &VIEW, &listing).await,
            Verb::Get { cluster } => {
                let path = session.cluster(&cluster).await?;
                let cluster = session.get::<api::Get>(&path).await?;
                session.show(&cluster, &VIEW)?;
                for detail in cluster["healthStatus"]["details"].as_array().into_iter().flatten() {
                    session.explain(text(&detail["description"]));
                }
                Ok(())
            }
            Verb::Create { name, provider, region, kind, vpc, extra } => {
                let body = extra.body::<api::Create>(
                    WHAT,
                    json!({
                        "name": name,
                        "cloudProvider": provider.map(|provider| provider.to_uppercase()),
                        "region": region,
                        "type": kind.to_uppercase(),
                        "vpcSubnetRange": vpc,
                    }),
                )?;
                let made = session.post::<api::Create>(&organization, &body).await.map_err(|failed| {
                    match failed.status() {
                        Some(400) => failed.or_hint(
                            "Flags: --provider, --region, --vpc. List the options: podium cluster options --output json",
                        ),
                        _ => failed,
                    }
                })?;
                eprintln!("Created cluster {name}.");
                followed(&session, &made).await
            }
            Verb::Update { cluster, name, extra } => {
                if name.is_none() && extra.is_empty() {
                    return Err(Failed::usage("nothing to change: give --name, --set or --file"));
                }
                let change = extra.body::<api::Update>(WHAT, json!({ "name": name }))?;
                let edited = update(&session, &cluster, &change).await?;
                followed(&session, &edited.told(&format!("cluster {cluster}"))).await
            }
            Verb::Delete { clusters } => {
                let mut all = Vec::new();
                for name in clusters {
                    all.push((session.cluster(&name).await?, name));
                }
                session.delete::<api::Delete>("cluster", &all).await
            }
            Verb::Failover { cluster } => {
                session.agree(&format!("Move all deployments of {cluster} to its standby region?"))?;
                let changed = update(&session, &cluster, &json!({ "isFailedOver": true })).await?.now;
                eprintln!("Failing {cluster} over.");
                followed(&session, &changed).await
            }
            Verb::Failback { cluster } => {
                session.agree(&format!("Move all deployments of {cluster} back?"))?;
                let changed = update(&session, &cluster, &json!({ "isFailedOver": false })).await?.now;
                eprintln!("Failing {cluster} back.");
                followed(&session, &changed).await
            }
            Verb::Options { kind, provider } => {
                let provider = provider.map(|provider| provider.to_uppercase());
                let params = json!({ "type": kind.to_uppercase(), "provider": provider });
                let call = Call::to::<options::ForClusters>(&organization).query_params(&params)?;
                let found: Vec<Value> = session.client.send(call).await?.body;
                session.show_all(&found, &OPTIONS)
            }
        }
    }
}

/// Follows what was started, if that is wanted, and shows the cluster as it is then.
async fn followed(session: &Session, changed: &Value) -> Outcome {
    if !session.wait.is_wanted() {
        return session.show(changed, &VIEW);
    }
    session.follow().await?;
    let path = session.cluster(text(&changed["id"])).await?;
    session.show(&session.get::<api::Get>(&path).await?, &VIEW)
}

/// Changes a cluster; a dedicated one is always sent its name and tags.
async fn update(session: &Session, cluster: &str, change: &Value) -> Outcome<Edited> {
    let path = session.cluster(cluster).await?;
    let edit = |current: &Value| {
        let mut kept = pick(current, &[]);
        kept.insert("clusterType".into(), current["type"].clone());
        if text(&current["type"]) == "DEDICATED" {
            kept.insert("name".into(), current["name"].clone());
            kept.insert("k8sTags".into(), current["tags"].clone());
        }
        Ok(merged(kept, change.clone()))
    };
    session.edit::<api::Get, api::Update>(&path, edit).await
}
