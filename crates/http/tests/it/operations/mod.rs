//! `/organizations/{organizationId}/operations`

mod cancel;
mod causes;
mod clean_up;
mod follow;
mod force;
mod lists;

use std::time::Duration;

use podium_api::{ClusterId, DeploymentId, WorkspaceId};
use podium_domain::deployments::rollout::{RolloutProgress, RolloutStep};
use podium_testkit::{Actor, Answer, TestApp, on_both_engines};
use serde_json::{Value, json};

use crate::deployments::{path as deployment_path, read as read_deployment, update, with};

/// The operation that a response names.
#[track_caller]
fn started(answer: &Answer) -> String {
    answer.ok();
    let id = answer.header("podium-operation");
    assert!(!id.is_empty(), "no operation was started: {}", answer.text());
    id.to_owned()
}

fn path(app: &TestApp, id: &str) -> String {
    app.path(&format!("/operations/{id}"))
}

async fn read(app: &TestApp, id: &str) -> Value {
    app.get(&app.owner, &path(app, id)).await.ok()
}

async fn state(app: &TestApp, id: &str) -> Value {
    read(app, id).await["state"].clone()
}

async fn cancel(app: &TestApp, actor: &Actor, id: &str) -> Answer {
    app.call("POST", &format!("{}/cancel", path(app, id))).by(actor).send().await
}

async fn create(app: &TestApp, workspace: WorkspaceId, others: Value) -> (DeploymentId, String) {
    let body = with(json!({ "name": "Reports", "workspaceId": workspace }), others);
    let answer = app.post(&app.owner, &app.path("/deployments"), body).await;
    (answer.id().parse().expect("an id"), started(&answer))
}

/// A deployment that is up.
async fn made(app: &TestApp, workspace: WorkspaceId, others: Value) -> DeploymentId {
    let (id, _) = create(app, workspace, others).await;
    app.settle().await;
    id
}

/// Changes a deployment; returns the operation.
async fn change(app: &TestApp, id: DeploymentId, others: Value) -> String {
    let body = update(&read_deployment(app, id).await, others);
    started(&app.post(&app.owner, &deployment_path(app, id), body).await)
}

async fn override_hibernation(app: &TestApp, id: DeploymentId, is_hibernating: bool) -> String {
    let path = format!("{}/hibernation-override", deployment_path(app, id));
    started(&app.post(&app.owner, &path, json!({ "isHibernating": is_hibernating })).await)
}

/// Deploys an image; returns the deploy and the operation.
async fn deploy(app: &TestApp, id: DeploymentId, others: Value) -> (String, String) {
    let path = format!("{}/deploys", deployment_path(app, id));
    let deploy = app.post(&app.owner, &path, with(json!({ "type": "IMAGE_ONLY" }), others)).await.id();
    let finalized = app.post(&app.owner, &format!("{path}/{deploy}/finalize"), json!({})).await;
    (deploy, started(&finalized))
}

async fn roll_back(app: &TestApp, id: DeploymentId, deploy: &str) -> (String, String) {
    let path = format!("{}/deploys/{deploy}/rollback", deployment_path(app, id));
    let answer = app.post(&app.owner, &path, json!({})).await;
    (answer.id(), started(&answer))
}

async fn change_cluster(app: &TestApp, id: ClusterId, others: Value) -> String {
    let body = with(json!({ "clusterType": "DEDICATED", "name": "East", "k8sTags": [] }), others);
    started(&app.post(&app.owner, &app.path(&format!("/clusters/{id}")), body).await)
}

fn report(step: RolloutStep) -> RolloutProgress {
    RolloutProgress { step, done: None, message: None, waits_for: Vec::new() }
}

/// Lets the data plane report a step, and the loops see it.
async fn reports(app: &TestApp, id: DeploymentId, step: RolloutStep) {
    app.plane.script().set_progress(id, Some(report(step)));
    app.settle().await;
}

const MINUTE: Duration = Duration::from_mins(1);

on_both_engines! {
    async fn every_change_that_takes_time_names_its_operation(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let mut seen = Vec::new();
        let mut see = async |id: String| {
            let before = read(&app, &id).await;
            assert_eq!((&before["state"], &before["cause"]), (&json!("PENDING"), &json!("CALL")));
            app.settle().await;
            let after = read(&app, &id).await;
            assert_eq!(after["state"], "SUCCEEDED", "{after}");
            assert_eq!((&after["isCancellable"], &after["progress"]), (&json!(false), &Value::Null));
            assert_eq!(after["subject"]["id"], json!(app.owner.id));
            let word = |value: &Value| value.as_str().unwrap().to_owned();
            seen.push((word(&after["target"]["type"]), word(&after["kind"])));
        };
        let (id, operation) =
            create(&app, here, json!({ "isDevelopmentMode": true, "platformRuntimeVersion": "3.3.1" })).await;
        see(operation).await;
        see(change(&app, id, json!({ "description": "More" })).await).await;
        let (first, operation) = deploy(&app, id, json!({})).await;
        see(operation).await;
        see(deploy(&app, id, json!({ "platformRuntimeVersion": "3.3.2" })).await.1).await;
        see(roll_back(&app, id, &first).await.1).await;
        see(override_hibernation(&app, id, true).await).await;
        let ended = app.delete(&app.owner, &format!("{}/hibernation-override", deployment_path(&app, id))).await;
        see(started(&ended)).await;
        see(change(&app, id, json!({ "workspaceId": there })).await).await;
        see(started(&app.delete(&app.owner, &deployment_path(&app, id)).await)).await;
        let made = json!({
            "cloudProvider": "AWS", "name": "East", "region": "us-east-1", "type": "DEDICATED",
            "vpcSubnetRange": "172.20.0.0/20", "drRegion": "us-west-2",
        });
        let made = app.post(&app.owner, &app.path("/clusters"), made).await;
        let cluster: ClusterId = made.id().parse().unwrap();
        see(started(&made)).await;
        see(change_cluster(&app, cluster, json!({})).await).await;
        see(change_cluster(&app, cluster, json!({ "isFailedOver": true })).await).await;
        see(change_cluster(&app, cluster, json!({ "isFailedOver": false })).await).await;
        see(started(&app.delete(&app.owner, &app.path(&format!("/clusters/{cluster}"))).await)).await;
        let of = |target: &str, kinds: &[&str]| -> Vec<(String, String)> {
            kinds.iter().map(|kind| (target.to_owned(), (*kind).to_owned())).collect()
        };
        let deployment = of("DEPLOYMENT", &["CREATE", "UPDATE", "DEPLOY", "RUNTIME_UPGRADE", "ROLLBACK", "HIBERNATE",
            "WAKE", "TRANSFER", "DELETE"]);
        let cluster = of("CLUSTER", &["CREATE", "UPDATE", "FAILOVER", "FAILBACK", "DELETE"]);
        assert_eq!(seen, [deployment, cluster].concat());
    }

    async fn what_starts_nothing_names_nothing(app) {
        let workspace = app.workspace("Data").await;
        let id = made(&app, workspace, json!({ "isDevelopmentMode": true })).await;
        let path = format!("{}/hibernation-override", deployment_path(&app, id));
        let none = app.delete(&app.owner, &path).await;
        assert_eq!((none.code(), none.header("podium-operation")), (204, ""));
        let read = app.get(&app.owner, &deployment_path(&app, id)).await;
        assert_eq!(read.header("podium-operation"), "");
        let body = update(&read_deployment(&app, id).await, json!({ "executor": "NOBODY" }));
        let refused = app.post(&app.owner, &deployment_path(&app, id), body).await;
        assert_eq!((refused.code(), refused.header("podium-operation")), (400, ""));
        assert_eq!(app.rows("operations").await, 1);
    }

    async fn a_repeated_request_names_the_same_operation(app) {
        let workspace = app.workspace("Data").await;
        let body = json!({ "name": "Reports", "workspaceId": workspace });
        let create = || {
            let call = app.call("POST", &app.path("/deployments")).by(&app.owner);
            call.header("idempotency-key", "k").json(&body).send()
        };
        let first = started(&create().await);
        assert_eq!(started(&create().await), first);
        assert_eq!(app.rows("operations").await, 1);
    }

    async fn an_operation_shows_its_steps_and_what_it_waits_for(app) {
        let workspace = app.workspace("Data").await;
        let id = made(&app, workspace, json!({})).await;
        app.plane.script().lock().rollout = 10 * MINUTE;
        let operation = change(&app, id, json!({ "description": "More" })).await;
        app.settle().await;
        app.advance(MINUTE);
        let packages = RolloutProgress { done: Some((3, 57)), ..report(RolloutStep::Packages) };
        app.plane.script().set_progress(id, Some(packages));
        app.settle().await;
        let shown = read(&app, &operation).await["progress"].clone();
        assert_eq!((&shown["done"], &shown["total"]), (&json!(3), &json!(57)));
        app.advance(MINUTE);
        app.plane.script().set_progress(id, Some(drain()));
        app.settle().await;
        let shown = read(&app, &operation).await;
        assert_eq!(shown, json!({
            "id": operation,
            "kind": "UPDATE",
            "target": {
                "type": "DEPLOYMENT", "id": id, "name": "Reports", "workspaceId": workspace, "deploymentId": id,
            },
            "subject": {
                "id": app.owner.id, "subjectType": "USER", "username": "owner@localhost", "fullName": "Owner",
                "avatarUrl": "https://podium.test/pictures/O.svg",
            },
            "cause": "CALL",
            "state": "RUNNING",
            "steps": [
                { "name": "APPLY", "startedAt": "2027-01-15T08:00:00.000Z", "endedAt": "2027-01-15T08:01:00.000Z" },
                { "name": "PACKAGES", "startedAt": "2027-01-15T08:01:00.000Z", "endedAt": "2027-01-15T08:02:00.000Z" },
                { "name": "DRAIN", "startedAt": "2027-01-15T08:02:00.000Z" },
            ],
            "progress": { "message": "waiting for running tasks", "waitsFor": ["daily/scheduled__1/load"] },
            "isCancellable": true,
            "pointOfNoReturn": "changed components start",
            "createdAt": "2027-01-15T08:00:00.000Z",
            "startedAt": "2027-01-15T08:00:00.000Z",
        }));
        let version = app.column("operations", id_of(&operation), "version").await;
        app.plane.script().set_progress(id, Some(drain()));
        app.settle().await;
        assert_eq!(app.column("operations", id_of(&operation), "version").await, version, "nothing has changed");
        app.advance(10 * MINUTE);
        app.settle().await;
        assert_eq!(state(&app, &operation).await, "SUCCEEDED");
    }

    async fn a_failure_says_why_and_what_to_do(app) {
        let workspace = app.workspace("Data").await;
        let (id, operation) = create(&app, workspace, json!({})).await;
        app.plane.script().set_health(id, "scheduler", podium_dataplane::Health::Down("it exited".into()));
        app.settle().await;
        let failed = read(&app, &operation).await;
        assert_eq!((&failed["state"], &failed["isCancellable"]), (&json!("FAILED"), &json!(false)));
        assert_eq!(failed["failure"], json!({
            "reason": "Not working: scheduler (it exited).",
            "hint": "Read the deployment's logs, then update the deployment, or delete it and create another.",
        }));
        app.plane.script().set_health(id, "scheduler", podium_dataplane::Health::Up);
        app.settle().await;
        assert_eq!(read_deployment(&app, id).await["status"], "HEALTHY");
        assert_eq!(read(&app, &operation).await, failed, "what has ended stays as it is");
    }

    async fn a_failed_cluster_says_so(app) {
        let cluster = app.new_cluster("East", json!({})).await;
        let list = app.get(&app.owner, &app.path("/operations")).await.ok();
        let operation = list["operations"][0]["id"].as_str().unwrap().to_owned();
        app.plane.script().set_cluster(cluster, Some(podium_dataplane::Progress::Working));
        app.settle().await;
        assert_eq!(state(&app, &operation).await, "RUNNING");
        let failed = podium_dataplane::Progress::Failed("The account has no room.".into());
        app.plane.script().set_cluster(cluster, Some(failed));
        app.settle().await;
        let failed = read(&app, &operation).await;
        assert_eq!((&failed["state"], &failed["failure"]["reason"]), (&json!("FAILED"), &json!("The account has no room.")));
    }

    async fn a_newer_change_takes_the_place_of_the_one_under_way(app) {
        let id = made(&app, app.workspace("Data").await, json!({})).await;
        app.plane.script().lock().rollout = MINUTE;
        let first = change(&app, id, json!({ "description": "One" })).await;
        app.settle().await;
        let second = change(&app, id, json!({ "description": "Two" })).await;
        let shown = read(&app, &first).await;
        assert_eq!((&shown["state"], &shown["supersededById"]), (&json!("SUPERSEDED"), &json!(second)));
        assert_eq!((&shown["endedAt"], &shown["steps"][0]["endedAt"]), (&json!("2027-01-15T08:00:00.000Z"), &shown["endedAt"]));
        app.settle().await;
        assert_eq!(state(&app, &second).await, "RUNNING");
        let third = started(&app.delete(&app.owner, &deployment_path(&app, id)).await);
        assert_eq!(state(&app, &second).await, "SUPERSEDED");
        app.settle().await;
        assert_eq!((state(&app, &first).await, state(&app, &third).await), (json!("SUPERSEDED"), json!("SUCCEEDED")));
    }

    async fn a_removal_shows_that_it_takes_its_time(app) {
        let id = made(&app, app.workspace("Data").await, json!({})).await;
        app.plane.script().lock().removal = MINUTE;
        let operation = started(&app.delete(&app.owner, &deployment_path(&app, id)).await);
        app.settle().await;
        let shown = read(&app, &operation).await;
        assert_eq!((&shown["state"], &shown["steps"][0]["name"]), (&json!("RUNNING"), &json!("REMOVE")));
        app.advance(MINUTE);
        app.settle().await;
        assert_eq!(state(&app, &operation).await, "SUCCEEDED");
    }
}

fn id_of(operation: &str) -> podium_api::OperationId {
    operation.parse().expect("an id")
}

/// A drain that waits for a task.
fn drain() -> RolloutProgress {
    RolloutProgress {
        message: Some("waiting for running tasks".into()),
        waits_for: vec!["daily/scheduled__1/load".into()],
        ..report(RolloutStep::Drain)
    }
}
