//! Clusters.

use podium_api::clusters::{self as api, ClusterK8sTag, UpdateClusterRequest};
use podium_api::declarations::{Cluster, Tag};
use podium_api::enums::ClusterType;
use podium_api::union::OneOf;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Difference, Entry, Kind, Names, Outcome, Planner, Resource, object, same};

/// What is read of a cluster to change it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Now {
    #[serde(rename = "type")]
    kind: ClusterType,
    #[serde(default)]
    tags: Vec<ClusterK8sTag>,
    #[serde(default)]
    dr_region: String,
}

impl Resource for Cluster {
    type List = api::List;
    type Get = api::Get;

    const FIXED: &'static [&'static str] = &[
        "type",
        "cloudProvider",
        "region",
        "providerAccount",
        "tenantId",
        "vpcSubnetRange",
        "podSubnetRange",
        "serviceSubnetRange",
        "servicePeeringRange",
        "secondaryVpcCidr",
        "drSecondaryVpcCidr",
    ];

    fn reshaped(_: &Names, wire: &Value) -> Outcome<Value> {
        Ok(match wire["isDrEnabled"] == true {
            true => json!({}),
            false => json!({ "enableReplicationTimeControl": null }),
        })
    }

    fn create(self, planner: &mut Planner<'_>, entry: &Entry) -> Outcome {
        let mut body: api::CreateClusterRequest = same(object(&self), &entry.at)?;
        body.k8s_tags = self.tags.map(tags);
        body.workspace_ids = planner.some_ids(Kind::Workspace, self.workspaces.as_deref(), &entry.at)?;
        planner.create::<api::Create>(entry, &OneOf(body)).map(drop)
    }

    fn change(planner: &mut Planner<'_>, entry: &Entry, found: Difference<Self>) -> Outcome {
        let (now, declared): (Now, _) = (found.now()?, &found.declared);
        let mut body: UpdateClusterRequest = same(object(&found.changed), &entry.at)?;
        body.cluster_type = Some(now.kind);
        if now.kind == ClusterType::Hybrid {
            body.name = None;
        } else {
            body.k8s_tags = Some(declared.tags.clone().map_or(now.tags, tags));
        }
        if standby(&found.changed).iter().any(Option::is_some) {
            let region = declared.dr_region.as_ref().unwrap_or(&now.dr_region);
            let described = if region.is_empty() { Default::default() } else { standby(declared) };
            body.enable_dr = Some(!region.is_empty());
            [
                body.dr_region,
                body.dr_vpc_subnet_range,
                body.dr_pod_subnet_range,
                body.dr_service_subnet_range,
                body.dr_service_peering_range,
            ] = described;
        }
        let workspaces = found.changed.workspaces.as_deref();
        body.workspace_ids = planner.some_ids(Kind::Workspace, workspaces, &entry.at)?;
        planner.change::<api::Update, _>(entry, &found, &OneOf(body)).map(drop)
    }
}

fn tags(declared: Vec<Tag>) -> Vec<ClusterK8sTag> {
    declared.into_iter().map(|Tag { key, value }| ClusterK8sTag { key: Some(key), value }).collect()
}

/// What describes the standby region.
fn standby(cluster: &Cluster) -> [Option<String>; 5] {
    [
        &cluster.dr_region,
        &cluster.dr_vpc_subnet_range,
        &cluster.dr_pod_subnet_range,
        &cluster.dr_service_subnet_range,
        &cluster.dr_service_peering_range,
    ]
    .map(Clone::clone)
}
