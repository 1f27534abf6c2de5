//! Clusters are created, changed, failed over and removed, despite failures.

use std::time::Duration;

use podium_api::{ClusterId, DeploymentId};
use podium_dataplane::simulated::{Call, InjectedFault};
use podium_dataplane::{Fault, Progress};
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

use crate::deployments::come_to_rest;

async fn create(app: &TestApp, name: &str) -> ClusterId {
    let body = json!({
        "name": name,
        "type": "DEDICATED",
        "cloudProvider": "AWS",
        "region": "us-east-1",
        "drRegion": "us-west-2",
        "vpcSubnetRange": format!("10.{}.0.0/20", name.len()),
    });
    let made = app.post(&app.owner, &app.path("/clusters"), body).await;
    made.id().parse().expect("an id")
}

async fn shown(app: &TestApp, id: ClusterId) -> Value {
    app.get(&app.owner, &app.path(&format!("/clusters/{id}"))).await.ok()
}

async fn status(app: &TestApp, id: ClusterId) -> String {
    shown(app, id).await["status"].as_str().expect("a status").to_owned()
}

async fn update(app: &TestApp, id: ClusterId, change: Value) -> Value {
    let name = shown(app, id).await["name"].clone();
    let mut body = json!({ "clusterType": "DEDICATED", "name": name, "k8sTags": [] });
    body.as_object_mut().expect("an object").extend(change.as_object().expect("an object").clone());
    app.post(&app.owner, &app.path(&format!("/clusters/{id}")), body).await.ok()
}

async fn delete(app: &TestApp, id: ClusterId) {
    assert_eq!(app.delete(&app.owner, &app.path(&format!("/clusters/{id}"))).await.code(), 204);
}

on_both_engines! {
    async fn a_cluster_lives_and_ends(app) {
        let id = create(&app, "East").await;
        assert_eq!(status(&app, id).await, "CREATING");
        assert_eq!(app.settle().await, 1);
        let cluster = shown(&app, id).await;
        assert_eq!((&cluster["status"], &cluster["healthStatus"]["value"]), (&json!("CREATED"), &json!("HEALTHY")));
        let issuer = cluster["metadata"]["oidcIssuerUrl"].as_str().expect("it is known");
        assert!(issuer.contains("us-east-1"), "{issuer}");
        app.plane.script().lock().rollout = Duration::from_secs(60);
        assert_eq!(update(&app, id, json!({ "name": "Far east" })).await["status"], "UPDATING");
        app.settle().await;
        assert_eq!(status(&app, id).await, "UPDATING");
        app.advance(Duration::from_secs(60));
        app.settle().await;
        assert_eq!(status(&app, id).await, "CREATED");
        assert_eq!(app.pending_work().await, []);
        delete(&app, id).await;
        app.settle().await;
        assert_eq!((app.plane.clusters(), app.pending_work().await), (vec![], vec![]));
    }

    async fn a_failover_takes_deployments_along(app) {
        let id = create(&app, "East").await;
        app.settle().await;
        let workspace = app.workspace("Data").await;
        let body = json!({ "name": "Reports", "workspaceId": workspace, "clusterId": id });
        let deployment: DeploymentId =
            app.post(&app.owner, &app.path("/deployments"), body).await.id().parse().expect("an id");
        app.settle().await;
        app.plane.script().keep_journal();
        assert_eq!(update(&app, id, json!({ "isFailedOver": true })).await["status"], "FAILING_OVER");
        app.settle().await;
        let cluster = shown(&app, id).await;
        assert_eq!((&cluster["status"], &cluster["isFailedOver"]), (&json!("CREATED"), &json!(true)));
        assert_eq!(app.status(deployment).await.0.as_str(), "HEALTHY");
        let applied: Vec<Call> = app
            .plane
            .script()
            .journal()
            .iter()
            .filter(|entry| entry.generation.is_some())
            .map(|entry| entry.call)
            .collect();
        assert_eq!(applied, [Call::ApplyCluster, Call::Apply], "the deployment is being rolled out there");
    }

    async fn a_failed_creation_is_reported(app) {
        let id = create(&app, "East").await;
        app.plane.script().set_cluster(id, Some(Progress::Failed("The account has no room.".into())));
        come_to_rest(&app, &app.loops).await;
        assert_eq!(status(&app, id).await, "CREATE_FAILED");
        delete(&app, id).await;
        come_to_rest(&app, &app.loops).await;
        assert_eq!(app.plane.clusters(), []);
    }

    async fn silence_changes_the_health_and_nothing_else(app) {
        let id = create(&app, "East").await;
        app.settle().await;
        app.plane.script().lose_contact();
        for _ in 0..4 {
            app.settle().await;
            app.advance(Duration::from_secs(300));
        }
        let cluster = shown(&app, id).await;
        assert_eq!((&cluster["status"], &cluster["healthStatus"]["value"]), (&json!("CREATED"), &json!("UNKNOWN")));
        assert!(app.pending_work().await[0].attempts >= 3, "it is asked less and less often");
        app.plane.script().regain_contact();
        app.settle().await;
        assert_eq!(shown(&app, id).await["healthStatus"]["value"], "HEALTHY");
        assert_eq!(app.pending_work().await, []);
    }

    async fn every_call_may_fail(app) {
        let injected = [
            InjectedFault::Fail(Fault::Failed("no room".into())),
            InjectedFault::Fail(Fault::Unreachable("no route to host".into())),
            InjectedFault::LoseResponse,
        ];
        let mut name = "East".to_owned();
        for (call, upset) in (0..3).flat_map(|call| injected.iter().map(move |upset| (call, upset))) {
            name.push('t');
            let id = create(&app, &name).await;
            app.plane.script().inject_after(id.id(), call, upset.clone());
            come_to_rest(&app, &app.loops).await;
            assert_eq!(status(&app, id).await, "CREATED", "{call} {upset:?}");
            app.plane.script().inject_after(id.id(), call, upset.clone());
            update(&app, id, json!({ "isFailedOver": true })).await;
            come_to_rest(&app, &app.loops).await;
            assert_eq!(shown(&app, id).await["isFailedOver"], true, "{call} {upset:?}");
            app.plane.script().inject_after(id.id(), call, upset.clone());
            delete(&app, id).await;
            come_to_rest(&app, &app.loops).await;
            assert_eq!(app.plane.clusters(), [], "{call} {upset:?}");
        }
    }
}
