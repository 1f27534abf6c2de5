//! Where a deployment runs.

use podium_api::Id;
use podium_api::enums::ClusterStatus;
use podium_testkit::{Engine, TestApp, block_on, on_both_engines};
use serde_json::{Value, json};

use super::{create, dedicated, hybrid, path, read, with};

/// Type, provider, region and cluster of a deployment.
fn place(deployment: &Value) -> [Value; 4] {
    ["type", "cloudProvider", "region", "clusterId"].map(|field| deployment[field].clone())
}

fn standard(provider: &str, region: &str) -> [Value; 4] {
    [json!("STANDARD"), json!(provider), json!(region), Value::Null]
}

fn of_the_server() -> [Value; 4] {
    [json!("STANDARD"), Value::Null, Value::Null, Value::Null]
}

on_both_engines! {
    async fn a_cluster_is_taken_first_and_gives_the_type(app) {
        let workspace = app.workspace("Analytics").await;
        let east = dedicated(&app, json!({})).await;
        let (mine, _) = hybrid(&app).await;
        let made = create(&app, workspace, json!({ "clusterId": east })).await.ok();
        assert_eq!(place(&made), [json!("DEDICATED"), json!("AWS"), json!("us-east-1"), json!(east)]);
        let cluster = app.get(&app.owner, &app.path(&format!("/clusters/{east}"))).await.ok();
        assert_eq!(made["clusterName"], cluster["name"]);
        assert_eq!(read(&app, made["id"].as_str().unwrap().parse().unwrap()).await, made);
        let made = create(&app, workspace, json!({ "clusterId": mine })).await.ok();
        assert_eq!(place(&made), [json!("HYBRID"), json!("AWS"), json!("us-east-1"), json!(mine)]);
    }

    async fn a_provider_and_a_region_make_it_standard(app) {
        let workspace = app.workspace("Analytics").await;
        dedicated(&app, json!({})).await;
        for (provider, region) in [("AWS", "us-east-1"), ("GCP", "us-central1"), ("AZURE", "eastus2")] {
            let body = json!({ "cloudProvider": provider, "region": region });
            let made = create(&app, workspace, body).await.ok();
            assert_eq!(place(&made), standard(provider, region));
        }
        for (body, wrong) in [
            (json!({ "cloudProvider": "AWS" }), "region: required"),
            (json!({ "cloudProvider": "AWS", "region": "" }), "region: required"),
            (json!({ "region": "us-east-1" }), "cloudProvider: required"),
            (json!({ "region": "us-east-1", "cloudProvider": null }), "cloudProvider: required"),
            (json!({ "cloudProvider": "AWS", "region": "mars-1" }), "region: unknown"),
            (json!({ "cloudProvider": "MOON", "region": "us-east-1" }), "cloudProvider: enum"),
        ] {
            assert_eq!(create(&app, workspace, body.clone()).await.wrong_fields(), [wrong], "{body}");
        }
        let unknown = create(&app, workspace, json!({ "cloudProvider": "AWS", "region": "mars-1" })).await;
        assert!(unknown.refused(400).contains("us-east-1, "), "the choices are listed");
    }

    async fn then_the_workspaces_defaults_apply(app) {
        let (east, west) = (dedicated(&app, json!({})).await, dedicated(&app, json!({})).await);
        let workspace = async |name: &str, defaults: Value| {
            let body = with(json!({ "name": name }), defaults);
            app.post(&app.owner, &app.path("/workspaces"), body).await.id().parse().unwrap()
        };
        let on_west = workspace("West", json!({ "defaultClusterId": west })).await;
        let in_europe =
            workspace("Europe", json!({ "defaultCloudProvider": "AWS", "defaultRegion": "eu-west-1" })).await;
        let at = async |workspace, others| place(&create(&app, workspace, others).await.ok());
        assert_eq!(at(on_west, json!({})).await[3], json!(west));
        assert_eq!(at(on_west, json!({ "clusterId": "", "cloudProvider": "", "region": "" })).await[3], json!(west));
        assert_eq!(at(on_west, json!({ "clusterId": east })).await[3], json!(east));
        let asked = json!({ "cloudProvider": "GCP", "region": "us-central1" });
        assert_eq!(at(on_west, asked).await, standard("GCP", "us-central1"));
        assert_eq!(at(in_europe, json!({})).await, standard("AWS", "eu-west-1"));
        let refused = create(&app, in_europe, json!({ "type": "DEDICATED" })).await;
        assert_eq!(refused.wrong_fields(), ["type: contradiction"]);
    }

    async fn then_the_only_cluster_then_the_server_itself(app) {
        let workspace = app.workspace("Analytics").await;
        let at = async |others| place(&create(&app, workspace, others).await.ok());
        assert_eq!(at(json!({})).await, of_the_server());
        let only = dedicated(&app, json!({})).await;
        assert_eq!(at(json!({})).await[3], json!(only));
        dedicated(&app, json!({})).await;
        assert_eq!(at(json!({})).await, of_the_server());
    }

    async fn an_only_cluster_that_is_for_others_is_passed_over(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let only = dedicated(&app, json!({ "workspaceIds": [there] })).await;
        assert_eq!(place(&create(&app, there, json!({})).await.ok())[3], json!(only));
        assert_eq!(place(&create(&app, here, json!({})).await.ok()), of_the_server());
    }

    async fn an_organization_may_want_dedicated_clusters_only(app) {
        let workspace = app.workspace("Analytics").await;
        let body = json!({
            "name": "My organization", "billingEmail": "", "isScimEnabled": false,
            "shouldEnforceDedicatedClusters": true,
        });
        app.post(&app.owner, &app.path(""), body).await.ok();
        let told = "This organization runs deployments on dedicated clusters only: give a `clusterId`.";
        assert_eq!(create(&app, workspace, json!({})).await.refused(400), told);
        let first = dedicated(&app, json!({ "name": "East" })).await;
        assert_eq!(place(&create(&app, workspace, json!({})).await.ok())[3], json!(first));
        let asked = json!({ "cloudProvider": "AWS", "region": "us-east-1" });
        let told = format!("{told} Clusters: East.");
        assert_eq!(create(&app, workspace, asked).await.refused(400), told);
    }

    async fn a_type_that_contradicts_the_place_is_refused(app) {
        let workspace = app.workspace("Analytics").await;
        let east = dedicated(&app, json!({})).await;
        let (mine, _) = hybrid(&app).await;
        for (kind, cluster, fits) in [
            ("DEDICATED", json!(east), true),
            ("HYBRID", json!(mine), true),
            ("STANDARD", Value::Null, true),
            ("", json!(mine), true),
            ("STANDARD", json!(east), false),
            ("HYBRID", json!(east), false),
            ("STANDARD", json!(mine), false),
            ("DEDICATED", json!(mine), false),
            ("DEDICATED", Value::Null, false),
            ("HYBRID", Value::Null, false),
        ] {
            let answer = create(&app, workspace, json!({ "type": kind, "clusterId": cluster })).await;
            if fits {
                answer.ok();
            } else {
                assert_eq!(answer.wrong_fields(), ["type: contradiction"], "{kind} on {cluster}");
            }
        }
        let unknown = create(&app, workspace, json!({ "type": "SHARED" })).await;
        assert_eq!(unknown.wrong_fields(), ["type: enum"]);
    }

    async fn a_cluster_excludes_provider_and_region(app) {
        let workspace = app.workspace("Analytics").await;
        let east = dedicated(&app, json!({})).await;
        let body = json!({ "clusterId": east, "cloudProvider": "AWS", "region": "us-east-1" });
        let wrong = create(&app, workspace, body).await.wrong_fields();
        assert_eq!(wrong, ["cloudProvider: excluded", "region: excluded"]);
    }

    async fn a_cluster_must_be_ready(app) {
        let workspace = app.workspace("Analytics").await;
        let id = app.new_cluster("East", json!({})).await;
        let answer = create(&app, workspace, json!({ "clusterId": id })).await;
        assert_eq!(answer.wrong_fields(), ["clusterId: notReady"]);
        assert_eq!(answer.refused(400), "clusterId is a cluster that is CREATING: wait until it is CREATED");
        app.settle_cluster(id, ClusterStatus::CreateFailed).await;
        let answer = create(&app, workspace, json!({ "clusterId": id })).await;
        assert_eq!(answer.wrong_fields(), ["clusterId: notReady"]);
        let failed = "clusterId is a cluster that is CREATE_FAILED: delete it and create another";
        assert_eq!(answer.refused(400), failed);
    }

    async fn a_cluster_that_is_not_for_the_workspace_reads_as_one_that_is_not(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let closed = dedicated(&app, json!({ "workspaceIds": [there] })).await;
        let told = async |cluster| {
            let body = json!({ "name": "Reports", "workspaceId": here, "clusterId": cluster });
            let call = app.call("POST", &app.path("/deployments")).by(&app.owner).header("x-request-id", "same");
            call.json(&body).send().await
        };
        let (closed, absent) = (told(json!(closed)).await, told(json!(app.world.id::<Id>())).await);
        assert_eq!(closed.wrong_fields(), ["clusterId: notFound"]);
        assert_eq!(closed.json(), absent.json());
        let stranger = app.stranger().await;
        let own = app.get(&stranger, "/v1/organizations").await.ok()["organizations"][0]["id"].clone();
        let body = json!({
            "cloudProvider": "AWS", "name": "Theirs", "region": "us-east-1", "type": "DEDICATED",
            "vpcSubnetRange": "172.20.0.0/20",
        });
        let all = format!("/v1/organizations/{}/clusters", own.as_str().unwrap());
        let theirs = app.post(&stranger, &all, body).await.id().parse().unwrap();
        app.settle_cluster(theirs, ClusterStatus::Created).await;
        assert_eq!(told(json!(theirs)).await.json(), absent.json());
    }

    async fn after_a_failover_a_deployment_runs_in_the_other_region(app) {
        let workspace = app.workspace("Analytics").await;
        let cluster = dedicated(&app, json!({ "drRegion": "us-west-2" })).await;
        let before = create(&app, workspace, json!({ "clusterId": cluster })).await.ok();
        let body = json!({ "clusterType": "DEDICATED", "name": before["clusterName"], "k8sTags": [], "isFailedOver": true });
        app.post(&app.owner, &app.path(&format!("/clusters/{cluster}")), body).await.ok();
        app.settle_cluster(cluster, ClusterStatus::Created).await;
        let after = read(&app, before["id"].as_str().unwrap().parse().unwrap()).await;
        assert_eq!((&before["region"], &after["region"]), (&json!("us-east-1"), &json!("us-west-2")));
        for field in ["id", "name", "namespace", "webServerUrl", "apiUrl", "clusterId"] {
            assert_eq!(after[field], before[field], "{field}");
        }
    }

    async fn a_cluster_with_deployments_stays(app) {
        let workspace = app.workspace("Analytics").await;
        let cluster = dedicated(&app, json!({})).await;
        let at = app.path(&format!("/clusters/{cluster}"));
        let id = create(&app, workspace, json!({ "clusterId": cluster })).await.id();
        app.delete(&app.owner, &at).await.refused(409);
        app.delete(&app.owner, &path(&app, id)).await.ok();
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
    }
}

fn without_infrastructure_of_its_own_the_server_lists_the_choices(engine: Engine) {
    block_on(async {
        let app = TestApp::start_with(engine, |config, _| config.shared_infrastructure = false).await;
        let workspace = app.workspace("Analytics").await;
        let told = "Specify where the deployment should run: give a `clusterId`, or a `cloudProvider` and a `region`.";
        assert_eq!(create(&app, workspace, json!({})).await.refused(400), told);
        dedicated(&app, json!({ "name": "West" })).await;
        dedicated(&app, json!({ "name": "East" })).await;
        let hidden = app.workspace("Elsewhere").await;
        dedicated(&app, json!({ "name": "Closed", "workspaceIds": [hidden] })).await;
        let told = format!("{told} Clusters: East, West.");
        assert_eq!(create(&app, workspace, json!({})).await.refused(400), told);
        let asked = json!({ "cloudProvider": "AWS", "region": "us-east-1" });
        assert_eq!(create(&app, workspace, asked).await.code(), 200);
    });
}

#[test]
fn without_infrastructure_of_its_own_the_server_lists_the_choices_on_sqlite() {
    without_infrastructure_of_its_own_the_server_lists_the_choices(Engine::Sqlite);
}

#[test]
fn without_infrastructure_of_its_own_the_server_lists_the_choices_on_postgres() {
    without_infrastructure_of_its_own_the_server_lists_the_choices(Engine::Postgres);
}
