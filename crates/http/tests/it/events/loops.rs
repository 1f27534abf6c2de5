//! What the loops bring about.

use std::time::Duration;

use podium_testkit::on_both_engines;
use serde_json::json;

use super::{line, settled, shown};

on_both_engines! {
    async fn every_change_of_status_is_an_event(app) {
        let data = app.workspace("Data").await;
        let body = json!({ "name": "Nightly", "workspaceId": data });
        let made = app.post(&app.owner, &app.path("/deployments"), body).await;
        let id = made.id();
        app.settle().await;
        let at = app.path(&format!("/deployments/{id}/deploys"));
        let deploy = app.post(&app.owner, &at, json!({ "type": "IMAGE_ONLY" })).await.id();
        app.post(&app.owner, &format!("{at}/{deploy}/finalize"), json!({})).await.ok();
        app.settle().await;
        app.settle().await;
        let of_it = shown(&app, &app.owner, &format!("deploymentId={id}")).await;
        assert_eq!(of_it, [
            "deployment.created Nightly", "deployment.healthy Nightly", "operation.succeeded Nightly",
            "deploy.created", "deployment.deploying Nightly", "deploy.finalized", "deployment.healthy Nightly",
            "deploy.succeeded", "operation.succeeded Nightly",
        ]);
        let events = settled(&app).await;
        let created = events.iter().find(|event| line(event) == "deployment.created Nightly").expect("created");
        assert_eq!(created["data"]["status"], "CREATING");
        assert_eq!(created["data"]["statusReason"], "The deployment is being created.");
        assert_eq!(created["data"]["actor"]["name"], "owner@localhost");
        let healthy = events.iter().find(|event| line(event) == "deployment.healthy Nightly").expect("healthy");
        assert_eq!((&healthy["data"]["status"], &healthy["data"]["actor"]), (&json!("HEALTHY"), &json!(null)));
        assert_eq!(healthy["subject"], format!("deployment/{id}"));
        let succeeded = events.iter().find(|event| line(event) == "deploy.succeeded").expect("succeeded");
        assert_eq!(succeeded["subject"], format!("deploy/{deploy}"));
    }

    async fn a_deploy_that_is_not_finalized_fails_once(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        let at = app.path(&format!("/deployments/{id}/deploys"));
        app.post(&app.owner, &at, json!({ "type": "DAG_ONLY" })).await.ok();
        app.advance(Duration::from_hours(25));
        app.settle().await;
        app.settle().await;
        let of_it = shown(&app, &app.owner, &format!("deploymentId={id}")).await;
        assert_eq!(of_it, ["deploy.created", "deploy.failed"]);
    }

    async fn a_cluster_becomes_ready(app) {
        app.new_cluster("one", json!({})).await;
        app.settle().await;
        let expected = ["cluster.created one", "cluster.ready one", "operation.succeeded one"];
        assert_eq!(shown(&app, &app.owner, "").await, expected);
    }
}
