//! Where a new deployment runs: as requested, else the workspace's defaults, else the only cluster, else the server's
//! own shared infrastructure.

use podium_api::ClusterId;
use podium_api::clusters::Cluster;
use podium_api::deployments::CreateDeploymentRequest;
use podium_api::enums::{CloudProvider, ClusterStatus, ClusterType, DeploymentType};
use podium_api::workspaces::Workspace;

use crate::clusters::states::way_to_created;
use crate::options;
use crate::refusal::{Fields, Refusal, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Cluster(ClusterId),
    /// On shared infrastructure in a region.
    Region(CloudProvider, String),
    /// On the server's own infrastructure.
    Server,
}

/// What decides where a deployment runs if the request does not.
pub struct PlacementContext<'a> {
    pub workspace: &'a Workspace,
    /// The organization's only cluster, if it accepts the workspace.
    pub only_cluster: Option<ClusterId>,
    /// Whether the operator offers the server's own infrastructure.
    pub has_shared_infrastructure: bool,
    /// Whether the organization wants dedicated clusters only.
    pub only_dedicated: bool,
    /// Names of the clusters that could be requested.
    pub cluster_names: &'a [String],
}

pub fn choose(body: &CreateDeploymentRequest, context: &PlacementContext<'_>) -> Result<Place> {
    let region = body.region.as_deref().filter(|region| !region.is_empty());
    let mut fields = Fields::new();
    let place = match (body.cluster_id, body.cloud_provider, region) {
        (Some(id), None, None) => Place::Cluster(id),
        (Some(id), provider, region) => {
            let given = [("cloudProvider", provider.is_some()), ("region", region.is_some())];
            fields.push_each(given, "excluded", "must be omitted when `clusterId` is given");
            Place::Cluster(id)
        }
        (None, Some(provider), Some(region)) => Place::Region(provider, region.to_owned()),
        (None, Some(_), None) => {
            fields.push("region", "required", "is required when `cloudProvider` is given");
            Place::Server
        }
        (None, None, Some(_)) => {
            fields.push("cloudProvider", "required", "is required when `region` is given");
            Place::Server
        }
        (None, None, None) => by_default(context)?,
    };
    if let Place::Region(provider, region) = &place
        && options::region(*provider, region).is_none()
    {
        let names: Vec<&str> =
            options::provider(*provider).regions.iter().map(|region| region.name.as_str()).collect();
        let message = format!("must be a region of {provider}: {}", names.join(", "));
        fields.push("region", "unknown", message);
    }
    if let (Some(requested), false) = (body.kind, matches!(place, Place::Cluster(_)))
        && requested != DeploymentType::Standard
    {
        let message = format!(
            "must be omitted or STANDARD without a cluster: {requested} deployments need a `clusterId`"
        );
        fields.push("type", "contradiction", message);
    }
    fields.into_result()?;
    if context.only_dedicated && !matches!(place, Place::Cluster(_)) {
        let message = "This organization runs deployments on dedicated clusters only: give a `clusterId`.";
        return Err(Refusal::invalid(format!("{message}{}", choices(context.cluster_names))));
    }
    Ok(place)
}

fn by_default(context: &PlacementContext<'_>) -> Result<Place> {
    let workspace = context.workspace;
    if let Some(id) = workspace.default_cluster_id {
        return Ok(Place::Cluster(id));
    }
    if let (Some(provider), Some(region)) = (workspace.default_cloud_provider, &workspace.default_region) {
        return Ok(Place::Region(provider, region.clone()));
    }
    if let Some(id) = context.only_cluster {
        return Ok(Place::Cluster(id));
    }
    if context.has_shared_infrastructure {
        return Ok(Place::Server);
    }
    let message =
        "Specify where the deployment should run: give a `clusterId`, or a `cloudProvider` and a `region`.";
    Err(Refusal::invalid(format!("{message}{}", choices(context.cluster_names))))
}

fn choices(clusters: &[String]) -> String {
    if clusters.is_empty() { String::new() } else { format!(" Clusters: {}.", clusters.join(", ")) }
}

pub fn on_cluster(
    requested: Option<DeploymentType>,
    cluster: Option<(&Cluster, bool)>,
) -> Result<DeploymentType> {
    // The same message for both, so that it does not reveal clusters that the caller may not see.
    let Some((cluster, true)) = cluster else {
        let message = "must be the id of a cluster that accepts this workspace";
        return Err(Refusal::field("clusterId", "notFound", message));
    };
    if cluster.status != ClusterStatus::Created {
        let message = format!("is a cluster that is {}: {}", cluster.status, way_to_created(cluster.status));
        return Err(Refusal::field("clusterId", "notReady", message));
    }
    let kind = match cluster.r#type {
        ClusterType::Dedicated => DeploymentType::Dedicated,
        ClusterType::Hybrid => DeploymentType::Hybrid,
    };
    if requested.is_some_and(|requested| requested != kind) {
        let message = format!("must be {kind}, the type of the cluster, or omitted");
        return Err(Refusal::field("type", "contradiction", message));
    }
    Ok(kind)
}

#[cfg(test)]
mod tests;
