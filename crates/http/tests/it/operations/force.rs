//! Forcing: the wait for running tasks is ended, once and for good.

use std::time::Duration;

use podium_api::DeploymentId;
use podium_dataplane::Fault;
use podium_dataplane::simulated::{Call, InjectedFault};
use podium_domain::On;
use podium_domain::deployments::rollout::RolloutStep;
use podium_testkit::{Actor, Answer, TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{MINUTE, cancel, change, made, override_hibernation, path, read, reports, started, state};
use crate::deployments::{member_with, path as deployment_path};

async fn force(app: &TestApp, actor: &Actor, id: &str) -> Answer {
    app.call("POST", &format!("{}/force", path(app, id))).by(actor).send().await
}

/// A deployment with an update that waits for a task.
async fn draining(app: &TestApp) -> (DeploymentId, String) {
    let id = made(app, app.workspace("Data").await, json!({ "isDevelopmentMode": true })).await;
    app.plane.script().lock().rollout = 10 * MINUTE;
    let operation = change(app, id, json!({ "description": "New" })).await;
    app.settle().await;
    waits(app, id).await;
    (id, operation)
}

async fn waits(app: &TestApp, id: DeploymentId) {
    app.wait_for_task(id, "daily/scheduled/load").await;
}

/// The types of the events about an operation.
async fn events(app: &TestApp, operation: &str) -> Vec<String> {
    let all = crate::events::settled(app).await;
    let about = all.iter().filter(|event| event["data"]["resource"]["id"] == operation);
    about.map(|event| event["type"].as_str().expect("a type").to_owned()).collect()
}

on_both_engines! {
    async fn a_forced_operation_waits_no_longer(app) {
        let (id, operation) = draining(&app).await;
        let before = read(&app, &operation).await;
        assert_eq!(before["progress"]["waitsFor"], json!(["daily/scheduled/load"]));
        assert_eq!((&before["state"], before.get("forcedAt")), (&json!("RUNNING"), None));
        let answer = force(&app, &app.owner, &operation).await;
        assert_eq!(answer.header("podium-operation"), "", "it starts none");
        let forced = answer.ok();
        assert!(forced["forcedAt"].is_string(), "{forced}");
        assert_eq!(forced, read(&app, &operation).await);
        assert_eq!(force(&app, &app.owner, &operation).await.ok(), forced, "twice is once");
        app.settle().await;
        let done = read(&app, &operation).await;
        assert_eq!((&done["state"], &done["forcedAt"]), (&json!("SUCCEEDED"), &forced["forcedAt"]));
        assert_eq!(force(&app, &app.owner, &operation).await.ok(), done, "and that also afterwards");
        assert_eq!(events(&app, &operation).await, ["podium.operation.forced", "podium.operation.succeeded"]);
        let next = change(&app, id, json!({ "description": "Newer" })).await;
        app.settle().await;
        waits(&app, id).await;
        app.settle().await;
        assert_eq!(state(&app, &next).await, "RUNNING", "the next one waits again");
    }

    async fn only_a_wait_for_tasks_can_be_ended(app) {
        let (id, operation) = draining(&app).await;
        reports(&app, id, RolloutStep::Start).await;
        let told = force(&app, &app.owner, &operation).await.refused(409);
        assert_eq!(told, "The operation is not in its step DRAIN: only the wait for running tasks can be ended.");
        app.advance(10 * MINUTE);
        app.settle().await;
        let told = force(&app, &app.owner, &operation).await.refused(409);
        assert_eq!(told, "The operation is SUCCEEDED: it waits for nothing.");
        let unknown = podium_api::Id::from_parts(1, 2, 3).to_string();
        force(&app, &app.owner, &unknown).await.refused(404);
    }

    async fn forcing_takes_the_right_to_update_the_deployment(app) {
        let (id, operation) = draining(&app).await;
        let workspace_id = app.stored_deployment(id).await.expect("it is there").workspace_id;
        let reader = member_with(&app, On::Workspace(workspace_id), "WORKSPACE_MEMBER").await;
        force(&app, &reader, &operation).await.refused(403);
        let stranger = app.member("stranger").await;
        force(&app, &stranger, &operation).await.refused(404);
        let operator = member_with(&app, On::Workspace(workspace_id), "WORKSPACE_OPERATOR").await;
        force(&app, &operator, &operation).await.ok();
    }

    async fn a_data_plane_that_was_away_is_told_later(app) {
        let (_, operation) = draining(&app).await;
        app.plane.script().inject(Call::EndDrain, InjectedFault::Fail(Fault::Failed("away".into())), 2);
        force(&app, &app.owner, &operation).await.ok();
        app.settle().await;
        for _ in 0..5 {
            app.advance(MINUTE);
            app.settle().await;
        }
        assert_eq!(state(&app, &operation).await, "SUCCEEDED");
    }

    async fn a_forced_operation_can_still_be_cancelled(app) {
        let (_, operation) = draining(&app).await;
        force(&app, &app.owner, &operation).await.ok();
        cancel(&app, &app.owner, &operation).await.ok();
        app.settle().await;
        assert_eq!(state(&app, &operation).await, "CANCELLED");
    }

    async fn hibernation_can_be_forced(app) {
        let (id, _) = draining(&app).await;
        let operation = override_hibernation(&app, id, true).await;
        app.settle().await;
        waits(&app, id).await;
        assert_eq!(read(&app, &operation).await["kind"], "HIBERNATE");
        force(&app, &app.owner, &operation).await.ok();
        app.settle().await;
        assert_eq!(state(&app, &operation).await, "SUCCEEDED");
    }

    async fn a_removal_drains_where_that_is_asked_for(app) {
        let id = made(&app, app.workspace("Data").await, json!({ "drainGraceSeconds": 90 })).await;
        app.plane.script().lock().removal = 10 * MINUTE;
        let path = format!("{}?drain=true", deployment_path(&app, id));
        let wrong = app.delete(&app.owner, &format!("{}?drain=soon", deployment_path(&app, id))).await;
        assert_eq!(wrong.code(), 400, "{}", wrong.text());
        let operation = started(&app.delete(&app.owner, &path).await);
        app.get(&app.owner, &deployment_path(&app, id)).await.refused(404);
        waits(&app, id).await;
        let removing = read(&app, &operation).await;
        let steps: Vec<&Value> = removing["steps"].as_array().unwrap().iter().map(|step| &step["name"]).collect();
        assert_eq!((&removing["kind"], steps.last()), (&json!("DELETE"), Some(&&json!("DRAIN"))), "{removing}");
        assert_eq!(app.plane.script().lock().drained_removals, [(id, Some(Duration::from_secs(90)))]);
        let reader = app.member("reader").await;
        force(&app, &reader, &operation).await.refused(404);
        force(&app, &app.owner, &operation).await.ok();
        app.settle().await;
        assert_eq!(state(&app, &operation).await, "SUCCEEDED");
        assert!(app.plane.environments().is_empty());
    }

    async fn a_removal_drains_also_where_the_server_stops_before_it_began(app) {
        let app = app.on_node("alpha").await;
        let id = made(&app, app.workspace("Data").await, json!({ "drainGraceSeconds": 90 })).await;
        app.plane.script().lock().removal = 10 * MINUTE;
        let path = format!("{}?drain=true", deployment_path(&app, id));
        started(&app.delete(&app.owner, &path).await);
        app.loops.start().drain(MINUTE).await;
        assert_eq!(app.plane.script().lock().drained_removals, [(id, Some(Duration::from_secs(90)))]);
    }
}
