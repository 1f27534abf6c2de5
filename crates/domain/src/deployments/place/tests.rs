//! Where a deployment goes, step by step.

use podium_api::clusters::{ClusterDetails, ClusterHealthStatus, ClusterMetadata};
use podium_api::{ClusterId, Id, Timestamp};
use serde_json::{Value, json};

use super::super::fixtures::{with, wrong};
use super::*;
use crate::fixtures::{org, w1};

fn cluster_id(number: u64) -> ClusterId {
    ClusterId::from_raw(Id::from_parts(1_800_000_000_000, 0, 700 + number))
}

fn workspace() -> Workspace {
    let now = Timestamp::from_millis(1_800_000_000_000);
    Workspace {
        id: w1(),
        name: "Analytics".into(),
        description: None,
        organization_id: org(),
        organization_name: None,
        cicd_enforced_default: false,
        default_cluster_id: None,
        default_cloud_provider: None,
        default_region: None,
        created_at: now,
        created_by: None,
        updated_at: now,
        updated_by: None,
    }
}

fn context(workspace: &Workspace) -> PlacementContext<'_> {
    PlacementContext {
        workspace,
        only_cluster: None,
        has_shared_infrastructure: true,
        only_dedicated: false,
        cluster_names: &[],
    }
}

fn requested(changes: Value) -> CreateDeploymentRequest {
    serde_json::from_value(with(json!({ "name": "Reports", "workspaceId": w1() }), changes)).unwrap()
}

fn region(provider: CloudProvider, name: &str) -> Place {
    Place::Region(provider, name.into())
}

/// Each step applies only if none before it does.
#[test]
fn placement_is_the_request_else_the_workspaces_defaults_else_the_only_cluster_else_the_server() {
    let (mine, default, only) = (cluster_id(1), cluster_id(2), cluster_id(3));
    let on_default = Workspace { default_cluster_id: Some(default), ..workspace() };
    let in_region = Workspace {
        default_cloud_provider: Some(CloudProvider::Gcp),
        default_region: Some("us-central1".into()),
        ..workspace()
    };
    let plain = workspace();
    let (cluster, place) =
        (json!({ "clusterId": mine }), json!({ "cloudProvider": "AWS", "region": "us-east-1" }));
    let table = [
        (&on_default, Some(only), &cluster, Place::Cluster(mine)),
        (&on_default, Some(only), &place, region(CloudProvider::Aws, "us-east-1")),
        (&on_default, Some(only), &json!({}), Place::Cluster(default)),
        (&in_region, Some(only), &cluster, Place::Cluster(mine)),
        (&in_region, Some(only), &place, region(CloudProvider::Aws, "us-east-1")),
        (&in_region, Some(only), &json!({}), region(CloudProvider::Gcp, "us-central1")),
        (&plain, Some(only), &place, region(CloudProvider::Aws, "us-east-1")),
        (&plain, Some(only), &json!({}), Place::Cluster(only)),
        (&plain, Some(only), &json!({ "region": "" }), Place::Cluster(only)),
        (&plain, None, &json!({}), Place::Server),
        (&plain, None, &json!({ "type": "STANDARD" }), Place::Server),
        (&plain, None, &cluster, Place::Cluster(mine)),
    ];
    for (workspace, only_cluster, changes, expected) in table {
        let context = PlacementContext { only_cluster, ..context(workspace) };
        assert_eq!(choose(&requested(changes.clone()), &context), Ok(expected), "{changes} {workspace:?}");
    }
}

#[test]
fn without_any_default_the_choices_are_listed() {
    let workspace = workspace();
    let names = ["East".to_owned(), "West".to_owned()];
    let closed = PlacementContext { has_shared_infrastructure: false, ..context(&workspace) };
    let say =
        "Specify where the deployment should run: give a `clusterId`, or a `cloudProvider` and a `region`.";
    assert_eq!(choose(&requested(json!({})), &closed), Err(Refusal::invalid(say)));
    let several = PlacementContext { cluster_names: &names, ..closed };
    let told = choose(&requested(json!({})), &several).unwrap_err();
    assert_eq!(told, Refusal::invalid(format!("{say} Clusters: East, West.")));
}

#[test]
fn provider_and_region_travel_together_and_without_a_cluster() {
    let workspace = workspace();
    let cluster = json!({ "clusterId": cluster_id(1) });
    for (changes, expected) in [
        (json!({ "cloudProvider": "AWS" }), vec!["region: required"]),
        (json!({ "cloudProvider": "AWS", "region": "" }), vec!["region: required"]),
        (json!({ "region": "us-east-1" }), vec!["cloudProvider: required"]),
        (json!({ "cloudProvider": "AWS", "region": "mars-1" }), vec!["region: unknown"]),
        (json!({ "cloudProvider": "GCP", "region": "us-east-1" }), vec!["region: unknown"]),
        (with(cluster.clone(), json!({ "cloudProvider": "AWS" })), vec!["cloudProvider: excluded"]),
        (with(cluster.clone(), json!({ "region": "us-east-1" })), vec!["region: excluded"]),
        (
            with(cluster, json!({ "cloudProvider": "AWS", "region": "us-east-1" })),
            vec!["cloudProvider: excluded", "region: excluded"],
        ),
    ] {
        assert_eq!(wrong(choose(&requested(changes.clone()), &context(&workspace))), expected, "{changes}");
    }
}

#[test]
fn every_region_of_the_catalogue_is_taken() {
    let workspace = workspace();
    for provider in options::providers() {
        for found in &provider.regions {
            let changes = json!({ "cloudProvider": provider.provider, "region": found.name });
            let place = choose(&requested(changes), &context(&workspace));
            assert_eq!(place, Ok(region(provider.provider, &found.name)));
        }
    }
}

#[test]
fn only_standard_runs_without_a_cluster() {
    let workspace = workspace();
    for kind in ["DEDICATED", "HYBRID"] {
        let refused = ["type: contradiction"];
        assert_eq!(wrong(choose(&requested(json!({ "type": kind })), &context(&workspace))), refused);
        let there = json!({ "type": kind, "cloudProvider": "AWS", "region": "us-east-1" });
        assert_eq!(wrong(choose(&requested(there), &context(&workspace))), refused);
        let on_cluster = json!({ "type": kind, "clusterId": cluster_id(1) });
        assert_eq!(choose(&requested(on_cluster), &context(&workspace)), Ok(Place::Cluster(cluster_id(1))));
    }
}

#[test]
fn an_organization_may_want_dedicated_clusters_only() {
    let workspace = workspace();
    let names = ["East".to_owned()];
    let strict = PlacementContext { only_dedicated: true, cluster_names: &names, ..context(&workspace) };
    let told =
        "This organization runs deployments on dedicated clusters only: give a `clusterId`. Clusters: East.";
    for changes in [json!({}), json!({ "cloudProvider": "AWS", "region": "us-east-1" })] {
        assert_eq!(choose(&requested(changes), &strict), Err(Refusal::invalid(told)));
    }
    let on_cluster = requested(json!({ "clusterId": cluster_id(1) }));
    assert_eq!(choose(&on_cluster, &strict), Ok(Place::Cluster(cluster_id(1))));
}

fn cluster(kind: ClusterType, status: ClusterStatus) -> Cluster {
    let now = Timestamp::from_millis(1_800_000_000_000);
    Cluster {
        id: cluster_id(1),
        name: "East".into(),
        organization_id: org(),
        r#type: kind,
        cloud_provider: CloudProvider::Aws,
        region: "us-east-1".into(),
        status,
        health_status: ClusterHealthStatus::default(),
        is_failed_over: false,
        failover_in_progress: false,
        is_limited: false,
        workspace_ids: Vec::new(),
        metadata: ClusterMetadata::default(),
        data_plane: None,
        created_at: now,
        updated_at: now,
        details: ClusterDetails::default(),
    }
}

#[test]
fn the_type_follows_from_the_cluster() {
    use DeploymentType::{Dedicated, Hybrid, Standard};
    for (kind, follows) in [(ClusterType::Dedicated, Dedicated), (ClusterType::Hybrid, Hybrid)] {
        let cluster = cluster(kind, ClusterStatus::Created);
        for requested in [None, Some(Standard), Some(Dedicated), Some(Hybrid)] {
            let found = on_cluster(requested, Some((&cluster, true)));
            if requested.is_none_or(|requested| requested == follows) {
                assert_eq!(found, Ok(follows));
            } else {
                assert_eq!(wrong(found), ["type: contradiction"], "{requested:?} on {kind}");
            }
        }
    }
}

#[test]
fn a_cluster_is_there_and_takes_the_workspace() {
    let made = cluster(ClusterType::Dedicated, ClusterStatus::Created);
    let absent = on_cluster(None, None);
    assert_eq!(wrong(absent.clone()), ["clusterId: notFound"]);
    assert_eq!(on_cluster(None, Some((&made, false))), absent, "nobody learns that there is one");
    for status in ClusterStatus::ALL.iter().filter(|status| **status != ClusterStatus::Created) {
        let unsettled = cluster(ClusterType::Dedicated, *status);
        assert_eq!(wrong(on_cluster(None, Some((&unsettled, true)))), ["clusterId: notReady"], "{status}");
    }
}
