//! Test fixtures: valid requests to modify, and the clusters that they create.

use std::collections::BTreeSet;

use podium_api::clusters::{
    Cluster, ClusterHealthStatus, ClusterMetadata, CreateClusterRequest, UpdateClusterRequest,
};
use podium_api::enums::{ClusterStatus, ClusterType};
use podium_api::{ClusterId, Id, NodePoolId, Timestamp, WorkspaceId};
use serde_json::{Value, json};

use super::{Definition, Facts, create, update};
use crate::fixtures::{org, w1, w2};
use crate::refusal::Result;

pub(super) use crate::fixtures::{with, wrong};

pub(super) fn cluster_id() -> ClusterId {
    ClusterId::from_raw(Id::from_parts(1_800_000_000_000, 0, 500))
}

fn pool_ids() -> Vec<NodePoolId> {
    (0..4).map(|number| NodePoolId::from_raw(Id::from_parts(1_800_000_000_000, 0, 600 + number))).collect()
}

/// A time so many seconds after the first.
pub(super) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_800_000_000_000 + 1000 * seconds)
}

pub(super) fn new(provider: &str) -> Value {
    let body = json!({ "cloudProvider": provider, "name": "Main", "type": "DEDICATED", "vpcSubnetRange": "172.20.0.0/20" });
    match provider {
        "AWS" => with(body, json!({ "region": "us-east-1" })),
        "AZURE" => with(body, json!({ "region": "eastus2" })),
        _ => with(
            body,
            json!({ "region": "us-central1", "podSubnetRange": "172.21.0.0/19", "serviceSubnetRange": "172.22.0.0/22",
                "servicePeeringRange": "172.23.0.0/20" }),
        ),
    }
}

/// A new cluster in the customer's account.
pub(super) fn hybrid(provider: &str) -> Value {
    let (node, database) = match provider {
        "AWS" => ("m5.xlarge", "db.t3.medium"),
        "AZURE" => ("Standard_D4d_v5", "Standard_D4ds_v4"),
        _ => ("n2-standard-4", "db-custom-2-7680"),
    };
    let tenant = if provider == "AZURE" { json!("tenant") } else { Value::Null };
    let pool = json!({ "name": "first", "isDefault": true, "maxNodeCount": 20, "nodeInstanceType": node });
    with(
        new(provider),
        json!({ "type": "HYBRID", "providerAccount": "account", "tenantId": tenant, "dbInstanceType": database,
            "nodePools": [pool] }),
    )
}

pub(super) fn created(body: Value) -> Result<Definition> {
    let body: CreateClusterRequest = serde_json::from_value(body).unwrap();
    with_facts(&BTreeSet::new(), at(0), |facts| create(&body, facts))
}

fn with_facts<T>(in_use_by: &BTreeSet<WorkspaceId>, now: Timestamp, rule: impl FnOnce(&Facts<'_>) -> T) -> T {
    let (pool_ids, workspaces) = (pool_ids(), BTreeSet::from([w1(), w2()]));
    let (pool_ids, workspaces) = (&pool_ids[..], &workspaces);
    rule(&Facts { cluster_id: cluster_id(), pool_ids, workspaces, in_use_by, now })
}

/// The cluster that a request makes, once it is there.
pub(super) fn cluster(body: Value) -> Cluster {
    let request: CreateClusterRequest = serde_json::from_value(body.clone()).unwrap();
    let Definition { name, details, workspace_ids } = created(body).unwrap();
    Cluster {
        id: cluster_id(),
        name: name.text,
        organization_id: org(),
        r#type: request.r#type,
        cloud_provider: request.cloud_provider,
        region: request.region,
        status: ClusterStatus::Created,
        health_status: ClusterHealthStatus::default(),
        is_failed_over: false,
        failover_in_progress: false,
        is_limited: false,
        workspace_ids,
        metadata: ClusterMetadata::default(),
        data_plane: None,
        created_at: at(0),
        updated_at: at(0),
        details,
    }
}

/// What comes of an update by the holder of deployments in the first workspace.
pub(super) fn updated(stored: &Cluster, changes: Value) -> Result<Definition> {
    let body = match stored.r#type {
        ClusterType::Dedicated => with(json!({ "name": stored.name, "k8sTags": [] }), changes),
        ClusterType::Hybrid => changes,
    };
    let body: UpdateClusterRequest = serde_json::from_value(body).unwrap();
    with_facts(&BTreeSet::from([w1()]), at(60), |facts| update(stored, &body, facts))
}
