//! Environment objects.

mod bodies;
mod links;
mod removal;
mod resolving;
mod rights;
mod secrets;

use std::time::Duration;

use podium_api::{DeploymentId, EntityId};
use podium_testkit::{Actor, Answer, TestApp, on_both_engines};
use serde_json::{Value, json};

pub(crate) const ALL: &str = "/environment-objects";

pub(crate) fn path(app: &TestApp, id: &str) -> String {
    app.path(&format!("{ALL}/{id}"))
}

/// A request for an environment variable of a workspace.
pub(crate) fn variable(key: &str, workspace: impl Into<EntityId>, value: &str) -> Value {
    let workspace: EntityId = workspace.into();
    json!({
        "objectKey": key, "objectType": "ENVIRONMENT_VARIABLE", "scope": "WORKSPACE",
        "scopeEntityId": workspace, "environmentVariable": { "value": value },
    })
}

/// The same, of a deployment.
pub(crate) fn variable_of(deployment: impl Into<EntityId>, key: &str, value: &str) -> Value {
    with(variable(key, deployment, value), json!({ "scope": "DEPLOYMENT" }))
}

/// A request with other fields.
pub(crate) fn with(mut request: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("not an object: {more}") };
    for (name, value) in more {
        request[name] = value;
    }
    request
}

pub(crate) fn to(deployment: DeploymentId) -> Value {
    json!({ "scope": "DEPLOYMENT", "scopeEntityId": deployment })
}

pub(crate) async fn create(app: &TestApp, by: &Actor, body: Value) -> Answer {
    app.post(by, &app.path(ALL), body).await
}

/// Makes an object as the owner; says where it is.
pub(crate) async fn made(app: &TestApp, body: Value) -> String {
    path(app, &create(app, &app.owner, body).await.id())
}

pub(crate) async fn read(app: &TestApp, at: &str) -> Value {
    app.get(&app.owner, at).await.ok()
}

pub(crate) async fn keys(app: &TestApp, by: &Actor, query: &str) -> Vec<String> {
    let page = app.get(by, &app.path(&format!("{ALL}?{query}"))).await.ok();
    let objects = page["environmentObjects"].as_array().expect("a page has objects");
    objects.iter().map(|object| object["objectKey"].as_str().expect("a key").to_owned()).collect()
}

on_both_engines! {
    async fn an_object_is_created_read_changed_and_deleted(app) {
        let workspace = app.workspace("Data").await;
        let answer = create(&app, &app.owner, with(
            variable("REGION", workspace, "eu"), json!({ "description": "where we are" }),
        )).await;
        let id = answer.id();
        assert_eq!(answer.ok(), json!({ "id": id }));
        let at = path(&app, &id);
        let by = json!({ "id": app.owner.id, "subjectType": "USER", "username": "owner@localhost", "fullName": "Owner", "avatarUrl": "https://podium.test/pictures/O.svg" });
        let expected = json!({
            "id": id,
            "objectKey": "REGION",
            "objectType": "ENVIRONMENT_VARIABLE",
            "scope": "WORKSPACE",
            "scopeEntityId": workspace,
            "description": "where we are",
            "autoLinkDeployments": false,
            "links": [],
            "excludeLinks": [],
            "setFields": ["value"],
            "environmentVariable": { "value": "eu", "isSecret": false },
            "createdAt": "2027-01-15T08:00:00.000Z",
            "createdBy": by,
            "updatedAt": "2027-01-15T08:00:00.000Z",
            "updatedBy": by,
        });
        assert_eq!(read(&app, &at).await, expected);
        app.advance(Duration::from_secs(1));
        let change = json!({ "environmentVariable": { "value": "us" } });
        let changed = app.post(&app.owner, &at, change).await.ok();
        assert_eq!(changed, with(expected, json!({
            "environmentVariable": { "value": "us", "isSecret": false }, "updatedAt": "2027-01-15T08:00:01.000Z",
        })));
        assert_eq!(read(&app, &at).await, changed);
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
        app.get(&app.owner, &at).await.refused(404);
        app.delete(&app.owner, &at).await.refused(404);
    }

    async fn a_key_is_taken_once_for_each_type_in_each_place(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let other = app.workspace("Other").await;
        let airflow = |key: &str| json!({
            "objectKey": key, "objectType": "AIRFLOW_VARIABLE", "scope": "WORKSPACE",
            "scopeEntityId": workspace, "airflowVariable": { "value": "v" },
        });
        made(&app, variable("KEY", workspace, "v")).await;
        let message = create(&app, &app.owner, variable("KEY", workspace, "v")).await.refused(409);
        assert_eq!(
            message,
            "An environment object of type ENVIRONMENT_VARIABLE with the key `KEY` already exists there: choose another key."
        );
        made(&app, variable("KEY", other, "v")).await;
        made(&app, variable_of(deployment, "KEY", "v")).await;
        made(&app, variable("key", workspace, "v")).await;
        made(&app, airflow("KEY")).await;
        create(&app, &app.owner, airflow("key")).await.refused(409);
    }

    async fn a_list_is_filtered_and_sorted(app) {
        let workspace = app.workspace("Data").await;
        let (deployment, other) = (app.deployment(workspace).await, app.workspace("Other").await);
        for (key, body) in [
            ("B", variable("B", workspace, "v")),
            ("A", variable("A", workspace, "v")),
            ("C", variable_of(deployment, "C", "v")),
            ("D", variable("D", other, "v")),
            ("E", json!({
                "objectKey": "E", "objectType": "CONNECTION", "scope": "WORKSPACE",
                "scopeEntityId": workspace, "connection": { "type": "http" },
            })),
        ] {
            let at = made(&app, body).await;
            app.advance(Duration::from_secs(1));
            if key == "B" {
                app.post(&app.owner, &at, json!({ "description": "changed" })).await.ok();
            }
        }
        let in_workspace = format!("workspaceId={workspace}");
        let on_deployment = format!("deploymentId={deployment}");
        for (query, expected) in [
            ("", &["E", "D", "C", "A", "B"][..]),
            (&in_workspace, &["E", "A", "B"]),
            (&on_deployment, &["C"]),
            (&format!("{in_workspace}&{on_deployment}"), &["C"]),
            (&format!("workspaceId={other}&{on_deployment}"), &[]),
            ("objectType=CONNECTION", &["E"]),
            ("objectType=", &["E", "D", "C", "A", "B"]),
            ("objectKey=A", &["A"]),
            ("objectKey=a", &[]),
            (&format!("{in_workspace}&objectType=ENVIRONMENT_VARIABLE&objectKey=B"), &["B"]),
            ("workspaceId=nonsense", &[]),
            ("sorts=objectKey:asc", &["A", "B", "C", "D", "E"]),
            ("sorts=objectType:asc&sorts=objectKey:desc", &["E", "D", "C", "B", "A"]),
            ("sorts=createdAt:asc", &["B", "A", "C", "D", "E"]),
            ("sorts=updatedAt:asc&limit=2&offset=1", &["A", "C"]),
        ] {
            assert_eq!(keys(&app, &app.owner, query).await, expected, "{query}");
        }
        let page = app.get(&app.owner, &app.path(&format!("{ALL}?limit=1&offset=1"))).await.ok();
        assert_eq!((&page["totalCount"], &page["limit"], &page["offset"]), (&json!(5), &json!(1), &json!(1)));
    }

    async fn of_two_changes_at_once_none_is_lost(app) {
        let workspace = app.workspace("Data").await;
        let at = made(&app, variable("KEY", workspace, "v")).await;
        let changes = (0..8).map(|number| {
            let body = if number % 2 == 0 {
                json!({ "description": "new" })
            } else {
                json!({ "environmentVariable": { "value": "new" } })
            };
            app.post(&app.owner, &at, body)
        });
        for answer in futures_util::future::join_all(changes).await {
            answer.ok();
        }
        let after = read(&app, &at).await;
        assert_eq!((&after["description"], &after["environmentVariable"]["value"]), (&json!("new"), &json!("new")));
    }
}
