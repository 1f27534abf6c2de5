//! A region that stands by, and moving to it and back.

use podium_api::ClusterId;
use podium_api::enums::ClusterStatus;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{made, new, path, update, with};

/// What a cluster says of disaster recovery.
fn shown(cluster: &Value) -> [Value; 4] {
    ["isDrEnabled", "drRegion", "isFailedOver", "failoverInProgress"].map(|field| cluster[field].clone())
}

async fn change(app: &TestApp, id: ClusterId, others: Value) -> podium_testkit::Answer {
    app.post(&app.owner, &path(app, id), update("Main", others)).await
}

on_both_engines! {
    async fn a_standby_region_inherits_the_ranges_that_are_not_given(app) {
        let all = app.path("/clusters");
        let body = with(
            new("GCP", "Main"),
            json!({ "drRegion": "us-east1", "drVpcSubnetRange": "10.0.0.0/16", "enableReplicationTimeControl": true }),
        );
        let made = app.post(&app.owner, &all, body).await.ok();
        assert_eq!(shown(&made), [json!(true), json!("us-east1"), json!(false), json!(false)]);
        assert_eq!(made["drVpcSubnetRange"], "10.0.0.0/16");
        for (dr, first) in [
            ("drPodSubnetRange", "podSubnetRange"),
            ("drServiceSubnetRange", "serviceSubnetRange"),
            ("drServicePeeringRange", "servicePeeringRange"),
        ] {
            assert_eq!(made[dr], made[first]);
        }
        assert_eq!(made["enableReplicationTimeControl"], true);
        let aws = json!({ "drRegion": "us-west-2", "secondaryVpcCidr": "100.64.0.0/16" });
        let made = app.post(&app.owner, &all, with(new("AWS", "Other"), aws)).await.ok();
        assert_eq!(made["drVpcSubnetRange"], made["vpcSubnetRange"]);
        assert_eq!(made["drSecondaryVpcCidr"], "100.64.0.0/16");
    }

    async fn a_standby_region_is_another_one_of_the_same_provider(app) {
        for (provider, others, wrong) in [
            ("AWS", json!({ "drRegion": "us-east-1" }), vec!["drRegion: same"]),
            ("AWS", json!({ "drRegion": "us-central1" }), vec!["drRegion: unknown"]),
            ("AWS", json!({ "drVpcSubnetRange": "10.0.0.0/16" }), vec!["drRegion: required"]),
            ("AWS", json!({ "drRegion": "us-west-2", "drVpcSubnetRange": "1.0.0.0/16" }), vec!["drVpcSubnetRange: private"]),
            ("AWS", json!({ "drRegion": "us-west-2", "drPodSubnetRange": "10.0.0.0/16" }), vec!["drPodSubnetRange: excluded"]),
            ("GCP", json!({ "drRegion": "us-east1", "drVpcSubnetRange": "172.22.0.0/22" }), vec!["drServiceSubnetRange: overlap"]),
            ("AZURE", json!({ "drRegion": "centralus", "drSecondaryVpcCidr": "10.0.0.0/16" }), vec!["drSecondaryVpcCidr: excluded"]),
        ] {
            let answer = app.post(&app.owner, &app.path("/clusters"), with(new(provider, "Main"), others.clone())).await;
            assert_eq!(answer.wrong_fields(), wrong, "{provider} {others}");
        }
    }

    async fn disaster_recovery_is_switched_on_and_off(app) {
        let id = made(&app, "Main", json!({})).await;
        let off = [json!(false), json!(""), json!(false), json!(false)];
        let on = [json!(true), json!("us-west-2"), json!(false), json!(false)];
        for (others, expected) in [
            (json!({ "enableDr": true }), Err(vec!["drRegion: required"])),
            (json!({ "drRegion": "us-west-2" }), Err(vec!["drRegion: immutable"])),
            (json!({ "enableDr": true, "drRegion": "us-west-2", "drVpcSubnetRange": "10.0.0.0/16" }), Ok(&on)),
            (json!({}), Ok(&on)),
            (json!({ "enableDr": true, "drRegion": "us-west-2" }), Ok(&on)),
            (json!({ "drRegion": "eu-west-1" }), Err(vec!["drRegion: immutable"])),
            (json!({ "drVpcSubnetRange": "10.1.0.0/16" }), Err(vec!["drVpcSubnetRange: immutable"])),
            (json!({ "enableDr": false }), Ok(&off)),
            (json!({ "enableDr": true, "drRegion": "eu-west-1" }), Ok(&[json!(true), json!("eu-west-1"), json!(false), json!(false)])),
        ] {
            let answer = change(&app, id, others.clone()).await;
            match expected {
                Ok(expected) => {
                    assert_eq!(&shown(&answer.ok()), expected, "{others}");
                    app.settle_cluster(id, ClusterStatus::Created).await;
                    assert_eq!(&shown(&app.get(&app.owner, &path(&app, id)).await.ok()), expected, "{others}");
                }
                Err(wrong) => assert_eq!(answer.wrong_fields(), wrong, "{others}"),
            }
        }
        let read = app.get(&app.owner, &path(&app, id)).await.ok();
        assert_eq!(read["drVpcSubnetRange"], "172.20.0.0/20", "the old range is forgotten");
    }

    async fn a_cluster_fails_over_and_back(app) {
        let id = made(&app, "Main", json!({ "drRegion": "us-west-2" })).await;
        let at = path(&app, id);
        for (to, was) in [(true, false), (false, true)] {
            let moving = change(&app, id, json!({ "isFailedOver": to })).await.ok();
            assert_eq!(moving["status"], "FAILING_OVER");
            assert_eq!(shown(&moving)[2..], [json!(was), json!(true)], "it is not there yet");
            assert_eq!(app.get(&app.owner, &at).await.ok(), moving);
            assert_eq!(change(&app, id, json!({ "isFailedOver": was })).await.code(), 409);
            app.settle_cluster(id, ClusterStatus::Created).await;
            let moved = app.get(&app.owner, &at).await.ok();
            assert_eq!(shown(&moved)[2..], [json!(to), json!(false)]);
            let same = change(&app, id, json!({ "isFailedOver": to })).await.ok();
            assert_eq!(same["status"], "UPDATING", "the same place is no failover");
            app.settle_cluster(id, ClusterStatus::Created).await;
        }
    }

    async fn a_failover_that_failed_starts_again_either_way(app) {
        let id = made(&app, "Main", json!({ "drRegion": "us-west-2" })).await;
        for to in [true, false, true] {
            change(&app, id, json!({ "isFailedOver": to })).await.ok();
            app.settle_cluster(id, ClusterStatus::FailoverFailed).await;
            let failed = app.get(&app.owner, &path(&app, id)).await.ok();
            assert_eq!((&failed["status"], &failed["isFailedOver"]), (&json!("FAILOVER_FAILED"), &json!(false)));
            assert_eq!(change(&app, id, json!({})).await.code(), 412);
        }
        change(&app, id, json!({ "isFailedOver": false })).await.ok();
        app.settle_cluster(id, ClusterStatus::Created).await;
        let back = app.get(&app.owner, &path(&app, id)).await.ok();
        assert_eq!((&back["status"], &back["isFailedOver"]), (&json!("CREATED"), &json!(false)));
    }

    async fn a_failover_changes_nothing_else(app) {
        let id = made(&app, "Main", json!({ "drRegion": "us-west-2" })).await;
        let others = json!({
            "name": "Other", "isFailedOver": true, "k8sTags": [{ "key": "a" }], "enableDr": false,
            "dbInstanceType": "db.m5.large",
        });
        assert_eq!(
            change(&app, id, others).await.wrong_fields(),
            ["name: failover", "k8sTags: failover", "dbInstanceType: failover", "enableDr: failover"]
        );
        let same = json!({ "isFailedOver": true, "enableDr": true, "drRegion": "us-west-2", "workspaceIds": [] });
        assert_eq!(change(&app, id, same).await.ok()["status"], "FAILING_OVER");
    }

    async fn without_disaster_recovery_nothing_fails_over(app) {
        let id = made(&app, "Main", json!({})).await;
        assert_eq!(change(&app, id, json!({ "isFailedOver": true })).await.wrong_fields(), ["isFailedOver: excluded"]);
        assert_eq!(change(&app, id, json!({ "isFailedOver": false })).await.ok()["status"], "UPDATING");
    }

    async fn a_failed_over_cluster_keeps_its_standby_region(app) {
        let id = made(&app, "Main", json!({ "drRegion": "us-west-2" })).await;
        change(&app, id, json!({ "isFailedOver": true })).await.ok();
        app.settle_cluster(id, ClusterStatus::Created).await;
        assert_eq!(change(&app, id, json!({ "enableDr": false })).await.wrong_fields(), ["enableDr: failedOver"]);
    }

    async fn deployments_follow_their_cluster_to_the_other_region(app) {
        let id = made(&app, "Main", json!({ "drRegion": "us-west-2" })).await;
        let workspace = app.workspace("Data").await;
        let (on, off) = (app.deployment(workspace).await, app.deployment(workspace).await);
        app.set_column("deployments", on, "cluster_id", &format!("'{id}'")).await;
        change(&app, id, json!({ "isFailedOver": true })).await.ok();
        let generations = async || {
            (app.column("deployments", on, "generation").await, app.column("deployments", off, "generation").await)
        };
        assert_eq!(generations().await, ("1".into(), "1".into()));
        app.settle_cluster(id, ClusterStatus::Created).await;
        assert_eq!(generations().await, ("2".into(), "1".into()));
        assert_eq!(app.rows("work").await, 1, "the loop of the deployment is told");
    }
}
