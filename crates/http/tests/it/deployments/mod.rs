//! `/organizations/{organizationId}/deployments`

mod create;
mod hibernation;
mod lists;
mod place;
mod queues;
mod removal;
mod rights;
mod transfer;
mod updates;
mod validation;
mod variables;

use podium_api::enums::ClusterStatus;
use podium_api::{ClusterId, DeploymentId, Id, WorkspaceId};
use podium_domain::On;
use podium_testkit::{Actor, Answer, TestApp, role};
use serde_json::{Value, json};

pub(crate) fn path(app: &TestApp, id: impl std::fmt::Display) -> String {
    app.path(&format!("/deployments/{id}"))
}

/// A body with some fields replaced; `null` stays.
pub(crate) fn with(mut body: Value, others: Value) -> Value {
    if let Value::Object(others) = others {
        others.into_iter().for_each(|(field, value)| body[field] = value);
    }
    body
}

/// Asks, as the owner, for a deployment with a name of its own unless another is given.
async fn create(app: &TestApp, workspace: WorkspaceId, others: Value) -> Answer {
    create_by(app, &app.owner, workspace, others).await
}

async fn create_by(app: &TestApp, actor: &Actor, workspace: WorkspaceId, others: Value) -> Answer {
    let body = json!({ "name": app.world.id::<Id>(), "workspaceId": workspace });
    app.post(actor, &app.path("/deployments"), with(body, others)).await
}

/// A deployment that is there and healthy.
pub(crate) async fn made(app: &TestApp, workspace: WorkspaceId, others: Value) -> DeploymentId {
    let id: DeploymentId = create(app, workspace, others).await.id().parse().expect("an id");
    settle(app, id).await;
    id
}

/// Records that a deployment runs, as its loop does.
async fn settle(app: &TestApp, id: DeploymentId) {
    app.set_column("deployments", id, "status", "'HEALTHY'").await;
    app.set_column("deployments", id, "status_reason", "''").await;
}

pub(crate) async fn read(app: &TestApp, id: DeploymentId) -> Value {
    app.get(&app.owner, &path(app, id)).await.ok()
}

/// The body of an update that changes nothing of what was read but what is given.
pub(crate) fn update(read: &Value, others: Value) -> Value {
    let mut fields = vec![
        "type",
        "name",
        "workspaceId",
        "executor",
        "isCicdEnforced",
        "isDagDeployEnabled",
        "environmentVariables",
    ];
    if read["type"] != "HYBRID" {
        fields.extend(["schedulerSize", "isHighAvailability"]);
    }
    let mut body = json!({});
    fields.into_iter().for_each(|field| body[field] = read[field].clone());
    if read["type"] == "HYBRID" {
        body["scheduler"] = json!({ "au": read["schedulerAu"], "replicas": read["schedulerReplicas"] });
    }
    with(body, others)
}

/// Asks, as the owner, for a change of a deployment.
pub(crate) async fn change(app: &TestApp, id: DeploymentId, others: Value) -> Answer {
    change_by(app, &app.owner, id, others).await
}

async fn change_by(app: &TestApp, actor: &Actor, id: DeploymentId, others: Value) -> Answer {
    let body = update(&read(app, id).await, others);
    app.post(actor, &path(app, id), body).await
}

/// A worker queue.
fn queue(name: &str, others: Value) -> Value {
    let body = json!({
        "name": name, "isDefault": name == "default", "platformMachine": "A5", "minWorkerCount": 0,
        "maxWorkerCount": 10, "workerConcurrency": 5,
    });
    with(body, others)
}

pub(crate) async fn dedicated(app: &TestApp, others: Value) -> ClusterId {
    let id = app.new_cluster(app.world.id::<Id>().as_str(), others).await;
    app.settle_cluster(id, ClusterStatus::Created).await;
    id
}

/// A cluster in the customer's account, and its node pools: the default one, and another.
async fn hybrid(app: &TestApp) -> (ClusterId, [Value; 2]) {
    let pool = |name: &str, is_default: bool| json!({ "name": name, "isDefault": is_default, "maxNodeCount": 20, "nodeInstanceType": "m5.xlarge" });
    let id = dedicated(
        app,
        json!({
            "type": "HYBRID", "providerAccount": "012345678901", "dbInstanceType": "db.t3.medium",
            "nodePools": [pool("first", true), pool("second", false)],
        }),
    )
    .await;
    let pools = app.get(&app.owner, &app.path(&format!("/clusters/{id}"))).await.ok()["nodePools"].clone();
    (id, [pools[0]["id"].clone(), pools[1]["id"].clone()])
}

/// A member of the organization with another role.
pub(crate) async fn member_with(app: &TestApp, on: On, name: &str) -> Actor {
    let held = vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(on, name)];
    app.user_with(&format!("the {name}"), held).await
}

fn names(list: &Value) -> Vec<&str> {
    list["deployments"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}
