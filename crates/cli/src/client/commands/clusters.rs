//! `podium cluster`.

use clap::Subcommand;
use podium_api::enums::{CloudProvider, ClusterType, ErrorCode};
use podium_api::{clusters as api, options};
use serde_json::{Value, json};

use super::{
    Called, Edited, Extra, Failed, Kind, Listing, Noun, One, Outcome, Session, Several, Verbs, View, merged,
    object, one_of, read,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium cluster options --type DEDICATED
  podium cluster create main --provider AWS --region us-east-1 --vpc 172.20.0.0/20
  podium cluster update main --set 'workspaceIds=[]'
  podium cluster failover main --yes";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List clusters.
    List(Listing),
    /// Show a cluster.
    Get(One),
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
    Delete(Several),
    /// Move all deployments of a cluster to its standby region.
    Failover(One),
    /// Move all deployments of a cluster back from its standby region.
    Failback(One),
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

/// What the fields of requests belong to.
const WHAT: &str = "a cluster";

const OPTIONS: View = View {
    name: "provider",
    columns: "PROVIDER provider, DEFAULT REGION defaultRegion.name, DEFAULT VPC defaultVpcSubnetRange, \
              DEFAULT NODE defaultNodeInstance.name",
    wide: "DEFAULT DATABASE defaultDatabaseInstance.name",
};

impl Noun for api::Get {
    type List = api::List;
    const KIND: Kind = Kind::listed("cluster", "cluster list", "region").asked("names");
    const VIEW: &'static View = &View {
        name: "name",
        columns: "NAME name, ID id, STATUS status, PROVIDER cloudProvider, REGION region, TYPE type, \
                  RUNS ON dataPlane",
        wide: "HEALTH STATUS healthStatus.value, STANDBY drRegion, FAILED OVER isFailedOver, CREATED createdAt",
    };
}

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        let organization = session.in_organization().await?;
        match self {
            Self::List(listing) => session.list_named::<api::Get>(&listing).await,
            Self::Get(One { name: cluster }) => {
                let cluster = session.get::<api::Get>(&session.cluster(&cluster).await?).await?;
                session.show(&cluster.raw, api::Get::VIEW)?;
                for detail in
                    read::<Vec<api::ClusterHealthStatusDetail>>(&cluster.raw["healthStatus"]["details"])?
                {
                    session.explain(&detail.description);
                }
                Ok(())
            }
            Self::Create { name, provider, region, kind, vpc, extra } => {
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
                let made = session.post_any::<api::Create>(&organization, &body).await.map_err(|failed| {
                    match failed.code() {
                        Some(ErrorCode::Invalid) => failed.or_hint(
                            "Flags: --provider, --region, --vpc. List the options: podium cluster options --output json",
                        ),
                        _ => failed,
                    }
                })?;
                eprintln!("Created cluster {name}.");
                followed(session, &made.raw).await
            }
            Self::Update { cluster, name, extra } => {
                if name.is_none() && extra.is_empty() {
                    return Err(Failed::usage("nothing to change: give --name, --set or --file"));
                }
                let change = extra.body::<api::Update>(WHAT, json!({ "name": name }))?;
                let edited = update(session, &cluster, &change).await?;
                followed(session, &edited.told(&format!("cluster {cluster}"))).await
            }
            Self::Delete(all) => session.delete_named::<api::Get, api::Delete>(&all.names).await,
            Self::Failover(One { name: cluster }) => {
                session.agree(&format!("Move all deployments of {cluster} to its standby region?"))?;
                let changed = update(session, &cluster, &json!({ "isFailedOver": true })).await?.now;
                eprintln!("Failing {cluster} over.");
                followed(session, &changed).await
            }
            Self::Failback(One { name: cluster }) => {
                session.agree(&format!("Move all deployments of {cluster} back?"))?;
                let changed = update(session, &cluster, &json!({ "isFailedOver": false })).await?.now;
                eprintln!("Failing {cluster} back.");
                followed(session, &changed).await
            }
            Self::Options { kind, provider } => {
                let query = options::GetClusterOptions {
                    provider: provider.map(|name| one_of(CloudProvider::ALL, &name)).transpose()?,
                    r#type: one_of(ClusterType::ALL, &kind)?,
                };
                let found = session.ask::<options::ForClusters>(&organization, &query).await?;
                session.show_all(&found.part::<Vec<_>>()?, &OPTIONS)
            }
        }
    }
}

/// Follows what was started, if that is wanted, and shows the cluster as it is then.
async fn followed(session: &Session, changed: &Value) -> Outcome {
    if !session.wait.is_wanted() {
        return session.show(changed, api::Get::VIEW);
    }
    session.follow().await?;
    session.show_named::<api::Get>(read::<Called>(changed)?.id.as_str()).await
}

/// Changes a cluster; a dedicated one is always sent its name and tags.
async fn update(session: &Session, cluster: &str, change: &Value) -> Outcome<Edited> {
    let path = session.cluster(cluster).await?;
    let edit = |now: api::Cluster| {
        let is_dedicated = now.r#type == ClusterType::Dedicated;
        let kept = api::UpdateClusterRequest {
            cluster_type: Some(now.r#type),
            name: is_dedicated.then_some(now.name),
            k8s_tags: is_dedicated.then_some(now.details.tags),
            ..api::UpdateClusterRequest::default()
        };
        Ok(merged(object(&kept), change.clone()))
    };
    session.edit::<api::Get, api::Update, _>(&path, edit).await
}
