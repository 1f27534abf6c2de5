//! Changes of a deployment.

use podium_api::Id;
use std::time::Duration;

use podium_domain::On;
use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{change, create, dedicated, made, member_with, path, queue, read, settle, update, with};

on_both_engines! {
    async fn a_deployment_is_changed_and_rolls_out(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({ "name": "Reports" })).await;
        let before = read(&app, id).await;
        assert_eq!((&before["status"], &before["statusReason"]), (&json!("HEALTHY"), &Value::Null));
        app.advance(Duration::from_secs(60));
        let grace = member_with(&app, On::Workspace(workspace), "WORKSPACE_OPERATOR").await;
        let body = update(&before, json!({
            "name": " Numbers ", "description": "Daily", "schedulerSize": "LARGE", "isHighAvailability": true,
            "isCicdEnforced": true, "isDagDeployEnabled": false, "executor": "PLATFORM",
            "contactEmails": ["ops@podium.test"], "defaultTaskPodCpu": "2", "resourceQuotaCpu": "40",
            "workloadIdentity": "arn:x",
        }));
        let answer = app.post(&grace, &path(&app, id), body).await;
        let expected = with(before.clone(), json!({
            "name": "Numbers", "description": "Daily", "schedulerSize": "LARGE", "isHighAvailability": true,
            "isCicdEnforced": true, "isDagDeployEnabled": false, "executor": "PLATFORM",
            "contactEmails": ["ops@podium.test"], "defaultTaskPodCpu": "2", "defaultTaskPodMemory": "4Gi",
            "resourceQuotaCpu": "40", "resourceQuotaMemory": "80Gi", "effectiveWorkloadIdentity": "arn:x",
            "schedulerCpu": "4", "schedulerMemory": "8Gi", "schedulerReplicas": 2, "webServerReplicas": 2,
            "status": "DEPLOYING", "statusReason": "A change is being rolled out.",
            "updatedAt": "2027-01-15T08:01:00.000Z", "updatedBy": answer.ok()["updatedBy"],
        }));
        assert_eq!(answer.ok(), expected);
        assert_eq!(answer.ok()["updatedBy"]["id"], json!(grace.id));
        let after = app.get(&app.owner, &path(&app, id)).await;
        assert_eq!((after.ok(), after.header("etag")), (expected, answer.header("etag")));
        assert_eq!(after.header("etag").split('-').next(), Some("\"2"));
    }

    async fn omitted_fields_of_an_update_stay(app) {
        let workspace = app.workspace("Analytics").await;
        let body = json!({
            "description": "Daily", "contactEmails": ["ops@podium.test"], "defaultTaskPodCpu": "2",
            "resourceQuotaMemory": "80Gi", "workloadIdentity": "arn:x", "isDevelopmentMode": true,
            "workerQueues": [queue("default", json!({})), queue("big", json!({}))],
            "scalingSpec": { "hibernationSpec": { "schedules": [
                { "hibernateAtCron": "0 20 * * *", "wakeAtCron": "0 6 * * *", "isEnabled": true }] } },
        });
        let id = made(&app, workspace, body).await;
        let before = read(&app, id).await;
        for nothing in [json!({}), json!({ "description": null, "contactEmails": null, "workerQueues": null,
            "defaultTaskPodCpu": "", "resourceQuotaMemory": null, "workloadIdentity": null, "scalingSpec": null,
            "isDevelopmentMode": null, "remoteExecution": null })] {
            let after = change(&app, id, nothing).await.ok();
            let rolling = json!({ "status": "DEPLOYING", "statusReason": "A change is being rolled out." });
            assert_eq!(after, with(before.clone(), rolling));
        }
        let cleared = change(&app, id, json!({ "description": "", "contactEmails": [], "workloadIdentity": "" })).await.ok();
        assert_eq!((&cleared["description"], &cleared["contactEmails"]), (&json!(""), &json!([])));
        assert_eq!(cleared["effectiveWorkloadIdentity"], Value::Null);
    }

    async fn how_long_a_change_waits_for_tasks_can_be_set(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({ "name": "Reports" })).await;
        assert_eq!(read(&app, id).await.get("drainGraceSeconds"), None, "absent unless it is set");
        let set = change(&app, id, json!({ "drainGraceSeconds": 90 })).await.ok();
        assert_eq!(set["drainGraceSeconds"], json!(90));
        let kept = change(&app, id, json!({ "description": "Daily" })).await.ok();
        assert_eq!(kept["drainGraceSeconds"], json!(90));
        let wrong = change(&app, id, json!({ "drainGraceSeconds": 86401 })).await;
        assert_eq!(wrong.status, 400, "{}", wrong.text());
        let none = made(&app, workspace, json!({ "name": "Now", "drainGraceSeconds": 0 })).await;
        assert_eq!(read(&app, none).await["drainGraceSeconds"], json!(0));
    }

    async fn immutable_settings_are_not_fields_of_an_update(app) {
        let workspace = app.workspace("Analytics").await;
        let cluster = dedicated(&app, json!({})).await;
        let place = json!({ "cloudProvider": "AWS", "region": "us-east-1", "platformRuntimeVersion": "3.1.0" });
        let id = made(&app, workspace, place).await;
        let before = read(&app, id).await;
        let other = json!({ "clusterId": cluster, "cloudProvider": "GCP", "region": "us-central1",
            "platformRuntimeVersion": "3.3.2", "namespace": "mine-own-0001", "status": "UNKNOWN", "id": app.world.id::<Id>() });
        let after = change(&app, id, other).await.ok();
        for field in ["id", "clusterId", "cloudProvider", "region", "platformRuntimeVersion", "runtimeVersion",
            "airflowVersion", "imageTag", "namespace", "type"] {
            assert_eq!(after[field], before[field], "{field}");
        }
    }

    async fn a_deployment_that_is_being_created_stays_so(app) {
        let workspace = app.workspace("Analytics").await;
        let id = create(&app, workspace, json!({})).await.id().parse().unwrap();
        let after = change(&app, id, json!({ "description": "Daily" })).await.ok();
        assert_eq!((&after["status"], &after["description"]), (&json!("CREATING"), &json!("Daily")));
        assert_eq!(app.column("deployments", id, "generation").await, "2");
    }

    async fn a_change_is_to_be_looked_at_by_a_loop(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({})).await;
        app.forget_work().await;
        change(&app, id, json!({ "schedulerSize": "HUGE" })).await.refused(400);
        assert_eq!((app.rows("work").await, app.column("deployments", id, "generation").await), (0, "1".into()));
        change(&app, id, json!({ "schedulerSize": "LARGE" })).await.ok();
        assert_eq!((app.rows("work").await, app.column("deployments", id, "generation").await), (1, "2".into()));
    }

    async fn names_are_unique_without_regard_to_case(app) {
        let workspace = app.workspace("Analytics").await;
        made(&app, workspace, json!({ "name": "Reports" })).await;
        let other = made(&app, workspace, json!({ "name": "Others" })).await;
        let taken = change(&app, other, json!({ "name": "REPORTS" })).await;
        assert_eq!(taken.refused(409), "The workspace already has a deployment named `REPORTS`: choose another name.");
        let after = read(&app, other).await;
        assert_eq!((&after["name"], &after["status"]), (&json!("Others"), &json!("HEALTHY")));
        assert_eq!(change(&app, other, json!({ "name": "OTHERS" })).await.ok()["name"], "OTHERS");
    }

    async fn a_change_applies_to_the_version_that_was_read(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({})).await;
        let at = path(&app, id);
        let first = app.get(&app.owner, &at).await;
        let body = update(&first.ok(), json!({ "description": "Daily" }));
        let call = |tag: &str| app.call("POST", &at).by(&app.owner).header("if-match", tag).json(&body);
        // What a loop records is no caller's change.
        app.set_column("deployments", id, "status", "'UNHEALTHY'").await;
        call(first.header("etag")).send().await.ok();
        call(first.header("etag")).send().await.refused(412);
        let delete = app.call("DELETE", &at).by(&app.owner).header("if-match", first.header("etag"));
        delete.send().await.refused(412);
        let now = app.get(&app.owner, &at).await;
        let delete = app.call("DELETE", &at).by(&app.owner).header("if-match", now.header("etag"));
        assert_eq!(delete.send().await.code(), 204);
    }

    async fn a_changed_status_changes_the_response_but_not_the_version(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({})).await;
        let at = path(&app, id);
        let first = app.get(&app.owner, &at).await;
        app.set_column("deployments", id, "status", "'UNHEALTHY'").await;
        let again = app.call("GET", &at).by(&app.owner).header("if-none-match", first.header("etag")).send().await;
        assert_eq!((again.code(), &again.ok()["status"]), (200, &json!("UNHEALTHY")));
        let version = |tag: &str| tag.split('-').next().unwrap().to_owned();
        assert_eq!(version(first.header("etag")), version(again.header("etag")));
        settle(&app, id).await;
        let same = app.call("GET", &at).by(&app.owner).header("if-none-match", first.header("etag")).send().await;
        assert_eq!(same.code(), 304);
    }
}
