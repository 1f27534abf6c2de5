//! `/organizations/{organizationId}/deployments/{deploymentId}/agent-tokens`

use std::time::Duration;

use podium_api::{DeploymentId, WorkspaceId};
use podium_domain::On;
use podium_testkit::{Actor, TestApp, on_both_engines};
use serde_json::{Value, json};

use crate::deployments::{dedicated, made, member_with, path, read, update};

/// A deployment whose tasks run elsewhere.
pub(crate) async fn remote(app: &TestApp, workspace: WorkspaceId) -> DeploymentId {
    let cluster = dedicated(app, json!({})).await;
    let body =
        json!({ "clusterId": cluster, "executor": "PLATFORM", "remoteExecution": { "enabled": true } });
    made(app, workspace, body).await
}

pub(crate) fn all(app: &TestApp, deployment: DeploymentId) -> String {
    format!("{}/agent-tokens", path(app, deployment))
}

fn one(app: &TestApp, deployment: DeploymentId, id: &str) -> String {
    format!("{}/{id}", all(app, deployment))
}

pub(crate) fn bearer(token: &Value) -> Actor {
    let text = |field: &str| token[field].as_str().unwrap().to_owned();
    Actor { id: text("id").parse().unwrap(), token: text("token") }
}

on_both_engines! {
    async fn an_agent_token_is_made_shown_listed_and_deleted(app) {
        let workspace = app.workspace("Analytics").await;
        let deployment = remote(&app, workspace).await;
        let body = json!({ "name": " Worker ", "description": "On site", "tokenExpiryPeriodInDays": 30 });
        let made = app.post(&app.owner, &all(&app, deployment), body).await;
        let token = made.ok()["token"].as_str().unwrap().to_owned();
        let owner = read(&app, deployment).await["createdBy"].clone();
        let shown = json!({
            "id": made.id(), "name": "Worker", "description": "On site", "scope": "DEPLOYMENT", "kind": "STANDARD",
            "roles": [], "shortToken": token[token.len() - 6..], "expiryPeriodInDays": 30,
            "startAt": "2027-01-15T08:00:00.000Z", "endAt": "2027-02-14T08:00:00.000Z",
            "createdAt": "2027-01-15T08:00:00.000Z", "createdBy": owner,
            "updatedAt": "2027-01-15T08:00:00.000Z", "updatedBy": owner,
        });
        let mut with_value = shown.clone();
        with_value["token"] = token.clone().into();
        assert_eq!(made.ok(), with_value);
        let at = one(&app, deployment, &made.id());
        let read = app.get(&app.owner, &at).await;
        assert_eq!((read.ok(), read.header("etag").split('-').next()), (shown.clone(), Some("\"1")));
        let list = app.get(&app.owner, &all(&app, deployment)).await.ok();
        assert_eq!(list, json!({ "tokens": [shown], "limit": 20, "offset": 0, "totalCount": 1 }));
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
        for answer in [app.get(&app.owner, &at).await, app.delete(&app.owner, &at).await] {
            assert_eq!(answer.refused(404), "There is no such agent token, or you may not see it.");
        }
        assert_eq!(app.get(&app.owner, &all(&app, deployment)).await.ok()["totalCount"], 0);
    }

    async fn a_token_without_a_period_never_expires(app) {
        let workspace = app.workspace("Analytics").await;
        let deployment = remote(&app, workspace).await;
        let made = app.post(&app.owner, &all(&app, deployment), json!({ "name": "Worker" })).await.ok();
        assert_eq!((&made["endAt"], &made["expiryPeriodInDays"]), (&Value::Null, &Value::Null));
        assert_eq!(made["description"], "");
    }

    async fn only_with_remote_execution(app) {
        let workspace = app.workspace("Analytics").await;
        let plain = made(&app, workspace, json!({})).await;
        let told = "Remote execution is off for this deployment: enable `remoteExecution` first.";
        assert_eq!(app.post(&app.owner, &all(&app, plain), json!({ "name": "Worker" })).await.refused(400), told);
        assert_eq!(app.rows("agent_tokens").await, 0);
        assert_eq!(app.get(&app.owner, &all(&app, plain)).await.ok()["totalCount"], 0);
        let deployment = remote(&app, workspace).await;
        let made = app.post(&app.owner, &all(&app, deployment), json!({ "name": "Worker" })).await;
        let off = json!({ "executor": "CELERY", "remoteExecution": { "enabled": false } });
        let off = update(&read(&app, deployment).await, off);
        app.post(&app.owner, &path(&app, deployment), off).await.ok();
        assert_eq!(app.post(&app.owner, &all(&app, deployment), json!({ "name": "More" })).await.refused(400), told);
        assert_eq!(app.get(&app.owner, &one(&app, deployment, &made.id())).await.code(), 200, "what there is can be seen");
        assert_eq!(app.delete(&app.owner, &one(&app, deployment, &made.id())).await.code(), 204);
    }

    async fn it_gives_access_to_the_agent_endpoints_only(app) {
        let workspace = app.workspace("Analytics").await;
        let deployment = remote(&app, workspace).await;
        let made = app.post(&app.owner, &all(&app, deployment), json!({ "name": "Worker" })).await.ok();
        let agent = bearer(&made);
        let told = "This is an agent token: it gives access to the agent endpoints of its deployment only.";
        for path in ["/v1/organizations".into(), "/v1/users/self".into(), app.path(""), app.path("/deployments"),
            path(&app, deployment), all(&app, deployment)] {
            assert_eq!(app.get(&agent, &path).await.refused(403), told, "{path}");
        }
        assert_eq!(app.post(&agent, &all(&app, deployment), json!({ "name": "More" })).await.refused(403), told);
        app.delete(&app.owner, &one(&app, deployment, made["id"].as_str().unwrap())).await.ok();
        assert_eq!(
            app.get(&agent, "/v1/organizations").await.refused(401),
            "The token is revoked: it was deleted, rotated or signed out."
        );
    }

    async fn an_expired_token_is_reported_as_expired(app) {
        let workspace = app.workspace("Analytics").await;
        let deployment = remote(&app, workspace).await;
        let body = json!({ "name": "Worker", "tokenExpiryPeriodInDays": 1 });
        let agent = bearer(&app.post(&app.owner, &all(&app, deployment), body).await.ok());
        app.get(&agent, "/v1/organizations").await.refused(403);
        app.advance(Duration::from_hours(24));
        assert!(app.get(&agent, "/v1/organizations").await.refused(401).contains("expired"));
    }

    async fn its_value_is_only_in_the_first_response(app) {
        let workspace = app.workspace("Analytics").await;
        let deployment = remote(&app, workspace).await;
        let call = app.call("POST", &all(&app, deployment)).by(&app.owner).header("idempotency-key", "k");
        let made = call.json(&json!({ "name": "Worker" })).send().await.ok();
        let token = made["token"].as_str().unwrap();
        let read = app.get(&app.owner, &one(&app, deployment, made["id"].as_str().unwrap())).await.text();
        let list = app.get(&app.owner, &all(&app, deployment)).await.text();
        let log = Value::from(app.audit().await).to_string();
        assert!([read, list, log].iter().all(|text| !text.contains(token)));
        let stored = app.stored().await;
        assert!(!stored.windows(token.len()).any(|window| window == token.as_bytes()));
    }

    async fn names_are_unique_on_the_deployment_and_bounded(app) {
        let workspace = app.workspace("Analytics").await;
        let (here, there) = (remote(&app, workspace).await, remote(&app, workspace).await);
        app.post(&app.owner, &all(&app, here), json!({ "name": "Worker" })).await.ok();
        let taken = app.post(&app.owner, &all(&app, here), json!({ "name": "WORKER " })).await;
        assert_eq!(
            taken.refused(409),
            "The deployment already has an agent token named `WORKER`: choose another name."
        );
        app.post(&app.owner, &all(&app, there), json!({ "name": "Worker" })).await.ok();
        for (body, wrong) in [
            (json!({}), "name: required"),
            (json!({ "name": "" }), "name: minLength"),
            (json!({ "name": " " }), "name: required"),
            (json!({ "name": "x".repeat(257) }), "name: maxLength"),
            (json!({ "name": "x", "description": "x".repeat(501) }), "description: maxLength"),
            (json!({ "name": "x", "tokenExpiryPeriodInDays": 0 }), "tokenExpiryPeriodInDays: minimum"),
            (json!({ "name": "x", "tokenExpiryPeriodInDays": 3651 }), "tokenExpiryPeriodInDays: maximum"),
        ] {
            assert_eq!(app.post(&app.owner, &all(&app, here), body.clone()).await.wrong_fields(), [wrong], "{body}");
        }
    }

    async fn a_token_belongs_to_one_deployment(app) {
        let workspace = app.workspace("Analytics").await;
        let (here, there) = (remote(&app, workspace).await, remote(&app, workspace).await);
        let id = app.post(&app.owner, &all(&app, here), json!({ "name": "Worker" })).await.id();
        assert_eq!(app.get(&app.owner, &one(&app, there, &id)).await.code(), 404);
        assert_eq!(app.delete(&app.owner, &one(&app, there, &id)).await.code(), 404);
        assert_eq!(app.get(&app.owner, &all(&app, there)).await.ok()["totalCount"], 0);
        assert_eq!(app.get(&app.owner, &one(&app, here, &id)).await.code(), 200);
    }

    async fn operators_and_admins_manage_them(app) {
        let workspace = app.workspace("Analytics").await;
        let deployment = remote(&app, workspace).await;
        let on = On::Deployment { id: deployment, workspace_id: workspace };
        let id = app.post(&app.owner, &all(&app, deployment), json!({ "name": "Worker" })).await.id();
        for (on, name, get, create) in [
            (On::Workspace(workspace), "WORKSPACE_OPERATOR", 200, 200),
            (On::Workspace(workspace), "WORKSPACE_AUTHOR", 403, 403),
            (On::Workspace(workspace), "WORKSPACE_ACCESSOR", 404, 404),
            (on.clone(), "DEPLOYMENT_ADMIN", 200, 200),
            (on, "DEPLOYMENT_ACCESSOR", 403, 403),
        ] {
            let actor = member_with(&app, on, name).await;
            assert_eq!(app.get(&actor, &all(&app, deployment)).await.code(), get, "{name}");
            assert_eq!(app.get(&actor, &one(&app, deployment, &id)).await.code(), get, "{name}");
            let made = app.post(&actor, &all(&app, deployment), json!({ "name": name })).await;
            assert_eq!(made.code(), create, "{name}");
            if create == 200 {
                assert_eq!(app.delete(&actor, &one(&app, deployment, &made.id())).await.code(), 204, "{name}");
            } else {
                assert_eq!(app.delete(&actor, &one(&app, deployment, &id)).await.code(), create, "{name}");
            }
        }
    }

    async fn lists_are_sorted_and_paged(app) {
        let workspace = app.workspace("Analytics").await;
        let deployment = remote(&app, workspace).await;
        for (name, description) in [("b", "1"), ("C", "3"), ("a", "2")] {
            app.advance(Duration::from_secs(1));
            let body = json!({ "name": name, "description": description });
            app.post(&app.owner, &all(&app, deployment), body).await.ok();
        }
        let names = async |query: &str| {
            let list = app.get(&app.owner, &format!("{}?{query}", all(&app, deployment))).await.ok();
            assert_eq!(list["totalCount"], 3);
            let tokens = list["tokens"].as_array().unwrap();
            tokens.iter().map(|token| token["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names("").await, "a C b");
        assert_eq!(names("sorts=name:asc").await, "a b C");
        assert_eq!(names("sorts=description:desc").await, "C a b");
        assert_eq!(names("sorts=tokenStartAt:asc&limit=2").await, "b C");
        assert_eq!(names("limit=1&offset=2").await, "b");
    }
}
