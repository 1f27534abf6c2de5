//! What can be changed of a cluster that is there.

use podium_api::enums::ClusterStatus;
use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{hybrid, made, new, path, update, with};

on_both_engines! {
    async fn the_stored_type_says_what_an_update_must_have(app) {
        let dedicated = made(&app, "Main", json!({})).await;
        let own = app.post(&app.owner, &app.path("/clusters"), hybrid("Own")).await;
        let own: podium_api::ClusterId = own.id().parse().unwrap();
        let workspace = app.workspace("Data").await;
        for (id, body, wrong) in [
            (dedicated, json!({}), vec!["name: required", "k8sTags: required"]),
            (dedicated, json!({ "workspaceIds": [] }), vec!["name: required", "k8sTags: required"]),
            (dedicated, json!({ "clusterType": "DEDICATED", "name": "x" }), vec!["k8sTags: required"]),
            (dedicated, json!({ "clusterType": "HYBRID", "workspaceIds": [] }), vec!["clusterType: immutable"]),
            (dedicated, json!({ "clusterType": "HYBRID", "name": "x" }), vec!["name: excluded"]),
            (dedicated, json!({ "clusterType": "OTHER" }), vec!["clusterType: enum"]),
            (dedicated, json!({ "name": "Main", "k8sTags": [] }), vec![]),
            (dedicated, json!({ "clusterType": "", "name": "Main", "k8sTags": [] }), vec![]),
            (dedicated, json!({ "clusterType": null, "name": "Main", "k8sTags": [], "region": "ignored" }), vec![]),
            (own, json!({ "name": "x", "k8sTags": [] }), vec!["name: excluded"]),
            (own, json!({ "clusterType": "DEDICATED", "name": "x", "k8sTags": [] }), vec!["clusterType: immutable"]),
            (own, json!({ "clusterType": "HYBRID", "dbInstanceType": "db.m5.large" }), vec!["dbInstanceType: excluded"]),
            (own, json!({ "clusterType": "HYBRID", "name": "", "k8sTags": [], "enableDr": false }), vec![]),
            (own, json!({ "clusterType": "HYBRID", "workspaceIds": [workspace] }), vec![]),
            (own, json!({ "workspaceIds": [workspace] }), vec![]),
            (own, json!({}), vec![]),
        ] {
            app.settle_cluster(id, ClusterStatus::Created).await;
            let answer = app.post(&app.owner, &path(&app, id), body.clone()).await;
            if wrong.is_empty() {
                assert_eq!(answer.ok()["status"], "UPDATING", "{body}");
            } else {
                assert_eq!(answer.wrong_fields(), wrong, "{body}");
            }
        }
        let read = app.get(&app.owner, &path(&app, own)).await.ok();
        assert_eq!((&read["name"], &read["workspaceIds"]), (&json!("Own"), &json!([workspace])));
    }

    async fn absent_keeps_and_an_empty_list_clears(app) {
        let workspace = app.workspace("Data").await;
        let pool = json!({ "name": "a", "maxNodeCount": 5, "nodeInstanceType": "m5.xlarge" });
        let others = json!({
            "workspaceIds": [workspace], "nodePools": [pool], "dbInstanceType": "db.m5.large",
            "isPrivateNetworkEgressEnabled": true, "k8sTags": [{ "key": "a", "value": "b" }],
        });
        let id = made(&app, "Main", others).await;
        let before = app.get(&app.owner, &path(&app, id)).await.ok();
        let shown = |cluster: &Value| {
            ["workspaceIds", "nodePools", "dbInstanceType", "isPrivateNetworkEgressEnabled"].map(|f| cluster[f].clone())
        };
        let blank = json!({ "nodePools": null, "dbInstanceType": "", "workspaceIds": null });
        for others in [json!({}), blank] {
            let after = app.post(&app.owner, &path(&app, id), update("Main", others)).await.ok();
            assert_eq!(shown(&after), shown(&before));
            assert_eq!(after["tags"], json!([]), "tags are required, and replaced");
            app.settle_cluster(id, ClusterStatus::Created).await;
        }
        let cleared = json!({ "nodePools": [], "workspaceIds": [], "isPrivateNetworkEgressEnabled": false });
        let after = app.post(&app.owner, &path(&app, id), update("Main", cleared)).await.ok();
        assert_eq!(shown(&after), [json!([]), json!([]), json!("db.m5.large"), json!(false)]);
        assert_eq!(app.get(&app.owner, &path(&app, id)).await.ok(), after);
    }

    async fn pools_are_known_by_id_then_by_name(app) {
        let pool = |name: &str, others: Value| {
            with(json!({ "name": name, "maxNodeCount": 5, "nodeInstanceType": "m5.xlarge" }), others)
        };
        let pools = [pool("a", json!({ "isDefault": true })), pool("b", json!({}))];
        let id = made(&app, "Main", json!({ "nodePools": pools })).await;
        let before = app.get(&app.owner, &path(&app, id)).await.ok()["nodePools"].clone();
        let asked = [
            pool("renamed", json!({ "id": before[0]["id"], "isDefault": true })),
            pool("b", json!({ "maxNodeCount": 7 })),
            pool("c", json!({})),
        ];
        app.advance(std::time::Duration::from_secs(60));
        let after = app.post(&app.owner, &path(&app, id), update("Main", json!({ "nodePools": asked }))).await.ok();
        let after = &after["nodePools"];
        assert_eq!((&after[0]["id"], &after[0]["name"]), (&before[0]["id"], &json!("renamed")));
        assert_eq!((&after[1]["id"], &after[1]["maxNodeCount"]), (&before[1]["id"], &json!(7)));
        assert_eq!(after[1]["createdAt"], before[1]["createdAt"]);
        assert_eq!(after[1]["updatedAt"], "2027-01-15T08:01:00.000Z");
        assert_eq!((&after[2]["name"], &after[2]["clusterId"]), (&json!("c"), &json!(id)));
    }

    async fn the_list_of_workspaces_contains_those_that_have_deployments_there(app) {
        let (busy, idle) = (app.workspace("Busy").await, app.workspace("Idle").await);
        let id = made(&app, "Main", json!({})).await;
        let deployment = app.deployment(busy).await;
        app.set_column("deployments", deployment, "cluster_id", &format!("'{id}'")).await;
        for (ids, wrong) in [
            (json!([idle]), vec!["workspaceIds: inUse"]),
            (json!([idle, busy, app.organization_id]), vec!["workspaceIds[2]: notFound"]),
            (json!(["x"]), vec!["workspaceIds[0]: format"]),
            (json!([busy]), vec![]),
            (json!([]), vec![]),
        ] {
            let answer = app.post(&app.owner, &path(&app, id), update("Main", json!({ "workspaceIds": ids }))).await;
            if wrong.is_empty() {
                assert_eq!(answer.ok()["workspaceIds"], ids);
                app.settle_cluster(id, ClusterStatus::Created).await;
            } else {
                assert_eq!(answer.wrong_fields(), wrong, "{ids}");
            }
        }
    }

    async fn a_database_is_one_of_the_options_and_egress_is_for_aws(app) {
        let azure = app.post(&app.owner, &app.path("/clusters"), new("AZURE", "Azure")).await;
        let azure: podium_api::ClusterId = azure.id().parse().unwrap();
        app.settle_cluster(azure, ClusterStatus::Created).await;
        let aws = made(&app, "Main", json!({})).await;
        let wrong = json!({ "dbInstanceType": "Standard_D4ds_v4", "k8sTags": [{ "key": "a" }, { "key": "a" }] });
        assert_eq!(
            app.post(&app.owner, &path(&app, aws), update("Main", wrong)).await.wrong_fields(),
            ["k8sTags[1].key: repeated", "dbInstanceType: unknown"]
        );
        let egress = json!({ "isPrivateNetworkEgressEnabled": true });
        assert_eq!(
            app.post(&app.owner, &path(&app, azure), update("Azure", egress.clone())).await.wrong_fields(),
            ["isPrivateNetworkEgressEnabled: excluded"]
        );
        let changed = app.post(&app.owner, &path(&app, aws), update("Main", egress)).await.ok();
        assert_eq!(changed["isPrivateNetworkEgressEnabled"], true);
    }

    async fn settings_fixed_at_creation_of_a_cluster_never_change(app) {
        let id = made(&app, "Main", json!({})).await;
        let shown = |cluster: &Value| {
            ["type", "cloudProvider", "region", "vpcSubnetRange"].map(|field| cluster[field].clone())
        };
        let before = shown(&app.get(&app.owner, &path(&app, id)).await.ok());
        let others = json!({
            "type": "HYBRID", "cloudProvider": "GCP", "region": "eu-west-1", "vpcSubnetRange": "10.0.0.0/16",
        });
        let after = app.post(&app.owner, &path(&app, id), update("Main", others)).await.ok();
        assert_eq!(shown(&after), before);
        assert_eq!(shown(&app.get(&app.owner, &path(&app, id)).await.ok()), before);
    }
}
