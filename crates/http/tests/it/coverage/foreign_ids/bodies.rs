//! Bodies that name ids where the minimal ones name none.

use podium_api::enums::ClusterStatus;
use podium_api::{Id, WorkspaceId};
use podium_testkit::TestApp;
use serde_json::{Value, json};

use super::super::calls::{Prepared, connection, fresh};
use super::places::Place;
use super::sites::put;

/// A request in which all ids but one would be taken, and that one stands in a field.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) path: String,
    pub(super) body: Value,
}

/// Requests of an operation whose bodies have the field. Where it is optional and stands at the top, the minimal body with
/// an id in it is such a body.
pub(super) async fn naming(
    app: &TestApp,
    own: &Place,
    operation_id: &str,
    prepared: &Prepared,
    field: &str,
) -> Vec<Shape> {
    let Some(minimal) = &prepared.body else { return Vec::new() };
    let mut shapes = vec![Shape { path: prepared.path.clone(), body: minimal.clone() }];
    shapes.extend(fuller(app, own, operation_id, minimal, &prepared.path).await);
    let name = field.strip_suffix("[]").unwrap_or(field);
    if !name.contains('.') && minimal.get(name).is_none() {
        let mut body = minimal.clone();
        body[name] = if name == field { json!("") } else { json!([""]) };
        shapes.push(Shape { path: prepared.path.clone(), body });
    }
    shapes.retain(|shape| put(&mut shape.body.clone(), field, "x"));
    shapes
}

/// Requests that name all ids that lie deeper.
async fn fuller(app: &TestApp, own: &Place, operation_id: &str, minimal: &Value, path: &str) -> Vec<Shape> {
    let name = fresh(app);
    let with = |field: &str, value: Value| {
        let mut body = minimal.clone();
        body[field] = value;
        body
    };
    let mut path = path.to_owned();
    let bodies = match operation_id {
        "UpdateTeamRoles" | "UpdateUserRoles" => vec![json!({
            "organizationRole": "ORGANIZATION_MEMBER",
            "workspaceRoles": [{ "workspaceId": own.of("workspaceId"), "role": "WORKSPACE_MEMBER" }],
            "deploymentRoles": [{ "deploymentId": own.of("deploymentId"), "role": "DEPLOYMENT_ADMIN" }],
            "dagRoles": [{ "dagId": "etl", "deploymentId": own.of("deploymentId"), "role": "DAG_VIEWER" }],
        })],
        "CreateApiToken" => [("WORKSPACE", "WORKSPACE_MEMBER"), ("DEPLOYMENT", "DEPLOYMENT_ADMIN")]
            .map(|(scope, role)| json!({ "name": name, "scope": scope, "entityId": "", "role": role }))
            .into(),
        "UpdateApiTokenRoles" => {
            let role =
                |kind: &str, role: &str| json!({ "entityType": kind, "entityId": "etl", "role": role });
            let mut of_dag = role("DAG", "DAG_VIEWER");
            of_dag["deploymentId"] = json!(own.of("deploymentId"));
            [role("WORKSPACE", "WORKSPACE_MEMBER"), role("DEPLOYMENT", "DEPLOYMENT_ADMIN"), of_dag]
                .map(|role| json!({ "roles": [role] }))
                .into()
        }
        "CreateDeclaredSet" => vec![with("members", json!([{ "kind": "TEAM", "id": "" }]))],
        "ExcludeLinkingEnvironmentObject" => {
            path = format!("{}/exclude-linking", own_object(app, own).await);
            vec![minimal.clone()]
        }
        "CreateEnvironmentObject" | "UpdateEnvironmentObject" => {
            let mut of_own = minimal.clone();
            if operation_id == "CreateEnvironmentObject" {
                of_own["scopeEntityId"] = json!(own.of("workspaceId"));
            } else {
                path = own_object(app, own).await;
            }
            ["links", "excludeLinks"]
                .map(|list| {
                    let mut body = of_own.clone();
                    body[list] = json!([{ "scope": "DEPLOYMENT", "scopeEntityId": "" }]);
                    body
                })
                .into()
        }
        "UpdateCluster" => {
            let pool =
                json!({ "id": "", "name": "main", "nodeInstanceType": "m5.xlarge", "maxNodeCount": 2 });
            vec![with("nodePools", json!([pool]))]
        }
        "CreateDeployment" | "UpdateDeployment" => {
            let queue = queue(&json!({ "id": "", "platformMachine": "A5" }));
            let mut with_queues = with("workerQueues", json!([queue]));
            with_queues["executor"] = json!("CELERY");
            with_queues.as_object_mut().expect("an object").remove("remoteExecution");
            let mut shapes = on_pools(app, own, operation_id).await;
            shapes.push(Shape { path, body: with_queues });
            return shapes;
        }
        _ => Vec::new(),
    };
    bodies.into_iter().map(|body| Shape { path: path.clone(), body }).collect()
}

/// An object of the own workspace.
async fn own_object(app: &TestApp, own: &Place) -> String {
    let objects = app.path("/environment-objects");
    let id = app.post(&app.owner, &objects, connection(&fresh(app), own.workspace())).await.id();
    format!("{objects}/{id}")
}

/// Requests about a deployment on node pools.
async fn on_pools(app: &TestApp, own: &Place, operation_id: &str) -> Vec<Shape> {
    let (cluster, pool) = (own.of("clusterId"), own.of("nodePoolId"));
    let name = fresh(app);
    let queue = queue(&json!({ "nodePoolId": pool }));
    let new = json!({
        "type": "HYBRID", "name": name, "workspaceId": own.of("workspaceId"), "executor": "CELERY",
        "clusterId": cluster, "workerQueues": [queue],
    });
    let mut path = app.path("/deployments");
    let mut body = new.clone();
    if operation_id == "UpdateDeployment" {
        let made = app.post(&app.owner, &path, new).await.ok();
        let id = made["id"].as_str().expect("an id");
        app.set_column("deployments", id.parse::<Id>().expect("an id"), "status", "'HEALTHY'").await;
        path = format!("{path}/{id}");
        let members = body.as_object_mut().expect("an object");
        members.remove("clusterId");
        let fixed = json!({
            "isCicdEnforced": true, "isDagDeployEnabled": false, "environmentVariables": [],
            "scheduler": { "au": 5, "replicas": 1 },
        });
        members.extend(fixed.as_object().expect("an object").clone());
        body["workerQueues"][0]["id"] = made["workerQueues"][0]["id"].clone();
    }
    let mut on_pods = body.clone();
    on_pods["executor"] = json!("KUBERNETES");
    on_pods["workerQueues"] = json!([]);
    on_pods["taskPodNodePoolId"] = json!(pool);
    [body, on_pods].map(|body| Shape { path: path.clone(), body }).into()
}

/// A default queue of workers.
pub(super) fn queue(others: &Value) -> Value {
    let mut queue = json!({
        "name": "default", "isDefault": true, "minWorkerCount": 0, "maxWorkerCount": 2, "workerConcurrency": 5,
    });
    queue.as_object_mut().expect("an object").extend(others.as_object().expect("an object").clone());
    queue
}

/// A cluster with a node pool for these workspaces only, or for all, and the pool.
pub(super) async fn hybrid(app: &TestApp, workspaces: &[WorkspaceId]) -> (String, String) {
    let pool =
        json!({ "name": "main", "isDefault": true, "maxNodeCount": 20, "nodeInstanceType": "m5.xlarge" });
    let others = json!({
        "type": "HYBRID", "providerAccount": "012345678901", "dbInstanceType": "db.t3.medium", "nodePools": [pool],
        "workspaceIds": workspaces,
    });
    let id = app.new_cluster(&fresh(app), others).await;
    app.settle_cluster(id, ClusterStatus::Created).await;
    let cluster = app.get(&app.owner, &app.path(&format!("/clusters/{id}"))).await.ok();
    (id.to_string(), cluster["nodePools"][0]["id"].as_str().expect("an id").to_owned())
}
