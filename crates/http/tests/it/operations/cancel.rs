//! Cancelling: what was wanted before is wanted again, until the point of no return.

use podium_api::DeploymentId;
use podium_domain::On;
use podium_domain::deployments::rollout::RolloutStep;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{
    MINUTE, cancel, change, change_cluster, create, deploy, made, override_hibernation, path, read, reports,
    roll_back, started, state,
};
use crate::deployments::{member_with, path as deployment_path, read as read_deployment};

async fn deploy_status(app: &TestApp, id: DeploymentId, deploy: &str) -> Value {
    let path = format!("{}/deploys/{deploy}", deployment_path(app, id));
    app.get(&app.owner, &path).await.ok()["status"].clone()
}

/// Cancels, and lets the loops undo it; returns the operation that did.
async fn undone(app: &TestApp, operation: &str) -> Value {
    let answer = cancel(app, &app.owner, operation).await;
    assert_eq!(answer.ok()["state"], "CANCELLED");
    assert_eq!(read(app, operation).await, answer.ok());
    let undoing = started(&answer);
    app.plane.script().lock().rollout = std::time::Duration::ZERO;
    app.settle().await;
    app.advance(10 * MINUTE);
    app.settle().await;
    let undoing = read(app, &undoing).await;
    assert_eq!((&undoing["state"], &undoing["isCancellable"]), (&json!("SUCCEEDED"), &json!(false)));
    undoing
}

on_both_engines! {
    async fn a_cancelled_update_restores_what_was_wanted(app) {
        let workspace = app.workspace("Data").await;
        let variables = json!([{ "key": "TOKEN", "value": "old", "isSecret": true }]);
        let others = json!({ "description": "Old", "environmentVariables": variables });
        let id = made(&app, workspace, others).await;
        let before = read_deployment(&app, id).await;
        let variables = json!([{ "key": "OTHER", "value": "new", "isSecret": false }]);
        let operation = change(&app, id, json!({
            "name": "Renamed", "description": "New", "environmentVariables": variables, "schedulerSize": "MEDIUM",
        })).await;
        app.plane.script().lock().rollout = MINUTE;
        app.settle().await;
        reports(&app, id, RolloutStep::Drain).await;
        assert_eq!(undone(&app, &operation).await["kind"], "UPDATE");
        let after = read_deployment(&app, id).await;
        for field in ["name", "description", "environmentVariables", "schedulerSize", "status"] {
            assert_eq!(after[field], before[field], "{field}");
        }
        assert_eq!(app.stored_deployment(id).await.unwrap().generation, 3);
    }

    async fn an_update_cannot_be_cancelled_once_components_start(app) {
        let id = made(&app, app.workspace("Data").await, json!({})).await;
        app.plane.script().lock().rollout = MINUTE;
        let operation = change(&app, id, json!({ "description": "New" })).await;
        app.settle().await;
        reports(&app, id, RolloutStep::Start).await;
        assert_eq!(read(&app, &operation).await["isCancellable"], false);
        let told = cancel(&app, &app.owner, &operation).await.refused(409);
        assert!(told.contains("once changed components start"), "{told}");
        assert_eq!(read_deployment(&app, id).await["description"], "New");
        app.advance(MINUTE);
        app.settle().await;
        let told = cancel(&app, &app.owner, &operation).await.refused(409);
        assert_eq!(told, "The operation is SUCCEEDED: there is nothing left to cancel.");
    }

    async fn a_cancelled_deploy_fails_and_the_release_before_it_is_wanted_again(app) {
        let id = made(&app, app.workspace("Data").await, json!({})).await;
        let (first, _) = deploy(&app, id, json!({})).await;
        app.settle().await;
        let before = read_deployment(&app, id).await["imageTag"].clone();
        app.plane.script().lock().rollout = MINUTE;
        let (second, operation) = deploy(&app, id, json!({})).await;
        app.settle().await;
        assert_ne!(read_deployment(&app, id).await["imageTag"], before);
        assert_eq!(undone(&app, &operation).await["kind"], "ROLLBACK");
        assert_eq!(read_deployment(&app, id).await["imageTag"], before);
        assert_eq!((deploy_status(&app, id, &first).await, deploy_status(&app, id, &second).await), (json!("DEPLOYED"), json!("FAILED")));
        let path = format!("{}/deploys/{second}/finalize", deployment_path(&app, id));
        let told = app.post(&app.owner, &path, json!({})).await.refused(400);
        assert_eq!(told, "The deploy was cancelled: create another one.");
        let path = format!("{}/deploys/{second}/rollback", deployment_path(&app, id));
        app.post(&app.owner, &path, json!({})).await.refused(400);
        app.plane.script().lock().rollout = MINUTE;
        let (third, operation) = deploy(&app, id, json!({})).await;
        app.settle().await;
        reports(&app, id, RolloutStep::Parse).await;
        cancel(&app, &app.owner, &operation).await.refused(409);
        assert_eq!(deploy_status(&app, id, &third).await, "DEPLOYED");
    }

    async fn upgrades_and_rollbacks_can_be_cancelled_before_the_database_is_migrated(app) {
        let id = made(&app, app.workspace("Data").await, json!({ "platformRuntimeVersion": "3.3.1" })).await;
        let (first, _) = deploy(&app, id, json!({})).await;
        app.settle().await;
        app.plane.script().lock().rollout = MINUTE;
        let (_, operation) = deploy(&app, id, json!({ "platformRuntimeVersion": "3.3.2" })).await;
        assert_eq!(read(&app, &operation).await["kind"], "RUNTIME_UPGRADE");
        app.settle().await;
        let told = cancel(&app, &app.owner, &operation).await.refused(409);
        assert!(told.contains("once the metadata database is migrated"), "{told}");
        reports(&app, id, RolloutStep::Runtime).await;
        undone(&app, &operation).await;
        assert_eq!(read_deployment(&app, id).await["runtimeVersion"], "3.3.1");
        app.plane.script().lock().rollout = MINUTE;
        let (_, operation) = deploy(&app, id, json!({ "platformRuntimeVersion": "3.3.2" })).await;
        app.settle().await;
        reports(&app, id, RolloutStep::Database).await;
        cancel(&app, &app.owner, &operation).await.refused(409);
        app.advance(MINUTE);
        app.settle().await;
        let (copy, operation) = roll_back(&app, id, &first).await;
        undone(&app, &operation).await;
        assert_eq!(deploy_status(&app, id, &copy).await, "FAILED");
        assert_eq!(read_deployment(&app, id).await["runtimeVersion"], "3.3.2");
        app.plane.script().lock().rollout = MINUTE;
        let (_, operation) = roll_back(&app, id, &first).await;
        app.settle().await;
        reports(&app, id, RolloutStep::Unpack).await;
        cancel(&app, &app.owner, &operation).await.refused(409);
    }

    async fn a_cancelled_creation_deletes_the_deployment(app) {
        let workspace = app.workspace("Data").await;
        app.plane.script().lock().rollout = MINUTE;
        let (id, operation) = create(&app, workspace, json!({})).await;
        app.settle().await;
        reports(&app, id, RolloutStep::Start).await;
        let grace = member_with(&app, On::Deployment { id, workspace_id: workspace }, "DEPLOYMENT_ADMIN").await;
        cancel(&app, &grace, &operation).await.refused(403);
        let tag = app.get(&app.owner, &path(&app, &operation)).await.header("etag").to_owned();
        let undoing = undone(&app, &operation).await;
        assert_eq!((&undoing["kind"], &undoing["target"]["id"]), (&json!("DELETE"), &json!(id)));
        app.get(&app.owner, &deployment_path(&app, id)).await.refused(404);
        assert_eq!(app.plane.environments(), []);
        assert_eq!(app.rows(&format!("grants WHERE subject_id = '{}' AND entity_id = '{id}'", grace.id)).await, 0);
        let call = app.call("POST", &format!("{}/cancel", path(&app, &operation))).by(&app.owner);
        call.header("if-match", &tag).send().await.refused(412);
    }

    async fn a_cancelled_override_returns_to_what_it_was(app) {
        let id = made(&app, app.workspace("Data").await, json!({ "isDevelopmentMode": true })).await;
        app.plane.script().lock().rollout = MINUTE;
        let operation = override_hibernation(&app, id, true).await;
        app.settle().await;
        reports(&app, id, RolloutStep::Start).await;
        assert_eq!(undone(&app, &operation).await["kind"], "WAKE");
        let after = read_deployment(&app, id).await;
        assert_eq!((&after["status"], &after["scalingSpec"]), (&json!("HEALTHY"), &Value::Null));
        override_hibernation(&app, id, true).await;
        app.settle().await;
        app.plane.script().lock().rollout = MINUTE;
        let operation = override_hibernation(&app, id, false).await;
        app.settle().await;
        assert_eq!(undone(&app, &operation).await["kind"], "HIBERNATE");
        let after = read_deployment(&app, id).await;
        assert_eq!(after["scalingSpec"]["hibernationSpec"]["override"]["isHibernating"], true);
        assert_eq!(after["status"], "HIBERNATING");
        let operation = override_hibernation(&app, id, false).await;
        app.settle().await;
        cancel(&app, &app.owner, &operation).await.refused(409);
    }

    async fn some_kinds_cannot_be_cancelled(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let id = made(&app, here, json!({})).await;
        let cluster = app.new_cluster("East", json!({ "drRegion": "us-west-2" })).await;
        app.settle().await;
        let mut operations = vec![change(&app, id, json!({ "workspaceId": there })).await];
        operations.push(change_cluster(&app, cluster, json!({ "isFailedOver": true })).await);
        operations.push(started(&app.delete(&app.owner, &deployment_path(&app, id)).await));
        let transfer = operations.remove(0);
        let told = cancel(&app, &app.owner, &transfer).await.refused(409);
        assert_eq!(told, "The operation is SUPERSEDED: there is nothing left to cancel.");
        for operation in operations {
            let told = cancel(&app, &app.owner, &operation).await.refused(409);
            assert!(told.ends_with("cannot be cancelled once it has begun: wait until it has ended."), "{told}");
        }
        app.settle().await;
        let id = made(&app, here, json!({})).await;
        let transfer = change(&app, id, json!({ "workspaceId": there })).await;
        let told = cancel(&app, &app.owner, &transfer).await.refused(409);
        assert!(told.starts_with("An operation of kind TRANSFER cannot be cancelled"), "{told}");
    }

    async fn cancelling_twice_is_cancelling_once(app) {
        let id = made(&app, app.workspace("Data").await, json!({})).await;
        let operation = change(&app, id, json!({ "description": "New" })).await;
        let first = cancel(&app, &app.owner, &operation).await;
        let rows = app.rows("operations").await;
        let second = cancel(&app, &app.owner, &operation).await;
        assert_eq!((second.ok(), second.header("podium-operation")), (first.ok(), ""));
        assert_eq!(app.rows("operations").await, rows);
        let undoing = started(&first);
        let told = cancel(&app, &app.owner, &undoing).await.refused(409);
        assert_eq!(told, "The operation undoes a cancelled one: repeat the change instead.");
        app.settle().await;
        assert_eq!((state(&app, &operation).await, state(&app, &undoing).await), (json!("CANCELLED"), json!("SUCCEEDED")));
    }

    async fn a_name_that_was_taken_meanwhile_is_not_taken_back(app) {
        let workspace = app.workspace("Data").await;
        let id = made(&app, workspace, json!({})).await;
        let operation = change(&app, id, json!({ "name": "Renamed" })).await;
        create(&app, workspace, json!({})).await;
        let told = cancel(&app, &app.owner, &operation).await.refused(409);
        assert!(told.starts_with("The deployment was named `Reports` before"), "{told}");
        assert_eq!(state(&app, &operation).await, "PENDING");
    }

    async fn cancelling_takes_the_permission_of_the_change(app) {
        let workspace = app.workspace("Data").await;
        let id = made(&app, workspace, json!({})).await;
        let on = || On::Workspace(workspace);
        let author = member_with(&app, on(), "WORKSPACE_AUTHOR").await;
        let operator = member_with(&app, on(), "WORKSPACE_OPERATOR").await;
        let operation = change(&app, id, json!({ "description": "New" })).await;
        let told = cancel(&app, &author, &operation).await.refused(403);
        assert!(told.contains("`deployment.update`"), "{told}");
        cancel(&app, &operator, &operation).await.ok();
        app.settle().await;
        // An author deploys, and so cancels deploys.
        let (_, operation) = deploy(&app, id, json!({})).await;
        cancel(&app, &author, &operation).await.ok();
    }

    async fn who_only_creates_deploys_cancels_its_own(app) {
        let workspace = app.workspace("Data").await;
        let id = made(&app, workspace, json!({})).await;
        app.custom_role("Pusher", "DEPLOYMENT", &["deployment.get", "deployment.deploys.create"]).await;
        let pusher = app.token("ci", "DEPLOYMENT", id, "Pusher").await;
        let (_, operation) = deploy(&app, id, json!({})).await;
        cancel(&app, &pusher, &operation).await.refused(403);
        let path = format!("{}/deploys", deployment_path(&app, id));
        let own = app.post(&pusher, &path, json!({ "type": "IMAGE_ONLY" })).await.id();
        let operation = started(&app.post(&pusher, &format!("{path}/{own}/finalize"), json!({})).await);
        cancel(&app, &pusher, &operation).await.ok();
    }
}
