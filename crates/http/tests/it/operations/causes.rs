//! Operations that no call on their own target has started.

use std::time::Duration;

use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{cancel, change, change_cluster, create, made, read, state};

const HOUR: Duration = Duration::from_hours(1);

async fn newest(app: &podium_testkit::TestApp, id: podium_api::DeploymentId) -> Value {
    let path = app.path(&format!("/operations?targetIds={id}&limit=1"));
    app.get(&app.owner, &path).await.ok()["operations"][0].clone()
}

fn shape(operation: &Value) -> Value {
    json!([operation["kind"], operation["cause"], operation["state"], operation["subject"]["id"]])
}

on_both_engines! {
    // Every test begins at 08:00 on a Friday.
    async fn a_schedule_starts_operations_when_it_is_applied(app) {
        let nightly = json!({ "hibernateAtCron": "0 20 * * *", "wakeAtCron": "0 6 * * *", "isEnabled": true });
        let others = json!({
            "isDevelopmentMode": true, "scalingSpec": { "hibernationSpec": { "schedules": [nightly] } },
        });
        let id = made(&app, app.workspace("Data").await, others).await;
        app.plane.script().lock().rollout = HOUR;
        app.advance(12 * HOUR);
        app.settle().await;
        let asleep = newest(&app, id).await;
        assert_eq!(shape(&asleep), json!(["HIBERNATE", "SCHEDULE", "RUNNING", null]));
        assert_eq!(asleep["isCancellable"], false);
        let told = cancel(&app, &app.owner, asleep["id"].as_str().unwrap()).await.refused(409);
        assert_eq!(told, "The operation follows a schedule: override the deployment's hibernation instead.");
        app.advance(HOUR);
        app.settle().await;
        assert_eq!(newest(&app, id).await["state"], "SUCCEEDED");
        app.advance(9 * HOUR);
        app.settle().await;
        assert_eq!(shape(&newest(&app, id).await), json!(["WAKE", "SCHEDULE", "RUNNING", null]));
        assert_eq!(app.rows("operations").await, 3);
    }

    async fn a_schedule_that_cannot_be_applied_starts_one_operation(app) {
        let nightly = json!({ "hibernateAtCron": "0 20 * * *", "wakeAtCron": "0 6 * * *", "isEnabled": true });
        let others = json!({
            "isDevelopmentMode": true, "scalingSpec": { "hibernationSpec": { "schedules": [nightly] } },
        });
        let id = made(&app, app.workspace("Data").await, others).await;
        app.advance(12 * HOUR);
        app.plane.script().fail(podium_dataplane::simulated::Call::Apply, "no room", 2);
        for _ in 0..6 {
            app.settle().await;
            app.advance(Duration::from_mins(5));
        }
        assert_eq!(shape(&newest(&app, id).await), json!(["HIBERNATE", "SCHEDULE", "SUCCEEDED", null]));
        assert_eq!(app.rows("operations").await, 2);
    }

    async fn an_environment_object_starts_operations_of_the_deployments_that_it_reaches(app) {
        let (workspace, other) = (app.workspace("Data").await, app.workspace("Other").await);
        let (one, two) = (made(&app, workspace, json!({ "name": "One" })).await, made(&app, workspace, json!({ "name": "Two" })).await);
        let elsewhere = made(&app, other, json!({ "name": "Three" })).await;
        let (pending, changed) = (change(&app, two, json!({ "description": "x" })).await, app.rows("operations").await);
        let body = json!({
            "objectKey": "LEVEL", "objectType": "ENVIRONMENT_VARIABLE", "scope": "WORKSPACE", "scopeEntityId": workspace,
            "environmentVariable": { "value": "debug" }, "autoLinkDeployments": true,
        });
        app.post(&app.owner, &app.path("/environment-objects"), body).await.ok();
        assert_eq!(app.rows("operations").await, changed + 2);
        for id in [one, two] {
            assert_eq!(shape(&newest(&app, id).await), json!(["UPDATE", "ENVIRONMENT_OBJECT", "PENDING", app.owner.id]));
        }
        assert_eq!(state(&app, &pending).await, "SUPERSEDED");
        let told = cancel(&app, &app.owner, newest(&app, one).await["id"].as_str().unwrap()).await.refused(409);
        assert!(told.contains("change the object back"), "{told}");
        app.settle().await;
        assert_eq!(newest(&app, one).await["state"], "SUCCEEDED");
        assert_eq!(newest(&app, elsewhere).await["kind"], "CREATE");
    }

    async fn a_failover_starts_operations_of_the_deployments_that_it_takes_along(app) {
        let cluster = app.new_cluster("East", json!({ "drRegion": "us-west-2" })).await;
        app.settle().await;
        let (id, created) = create(&app, app.workspace("Data").await, json!({ "clusterId": cluster })).await;
        app.settle().await;
        assert_eq!(state(&app, &created).await, "SUCCEEDED");
        let failover = change_cluster(&app, cluster, json!({ "isFailedOver": true })).await;
        app.settle().await;
        assert_eq!(state(&app, &failover).await, "SUCCEEDED");
        let moved = newest(&app, id).await;
        assert_eq!(shape(&moved), json!(["UPDATE", "LOOP", "SUCCEEDED", null]));
        assert_eq!(read(&app, moved["id"].as_str().unwrap()).await, moved);
    }
}
