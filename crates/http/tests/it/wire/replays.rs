//! An answer is given again to a caller who may still have it: its rights are judged again, those behind gates too.

use podium_api::WorkspaceId;
use podium_domain::{Grant, On};
use podium_store::grants::Subject;
use podium_testkit::{Actor, Answer, TestApp, on_both_engines, role};
use serde_json::{Value, json};

async fn user(app: &TestApp, name: &str, held: Vec<Grant>) -> Actor {
    app.user_with(name, with_membership(held)).await
}

fn with_membership(mut held: Vec<Grant>) -> Vec<Grant> {
    held.push(role(On::Organization, "ORGANIZATION_MEMBER"));
    held
}

async fn set_grants(app: &TestApp, actor: &Actor, held: Vec<Grant>) {
    app.set_grants(Subject::User, actor.id, with_membership(held)).await;
}

async fn once(app: &TestApp, by: &Actor, path: &str, body: &Value) -> Answer {
    let call = app.call("POST", &app.path(path)).by(by).header("idempotency-key", "once");
    if body.is_null() { call.send().await } else { call.json(body).send().await }
}

fn in_workspace(id: WorkspaceId, name: &str) -> Grant {
    role(On::Workspace(id), name)
}

on_both_engines! {
    async fn the_value_of_a_token_is_not_repeated_after_the_right_to_make_it_is_lost(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let operator = in_workspace(here, "WORKSPACE_OPERATOR");
        let maker = user(&app, "maker", vec![operator.clone(), in_workspace(there, "WORKSPACE_MEMBER")]).await;
        let body = json!({ "name": "ci", "scope": "WORKSPACE", "entityId": here, "role": "WORKSPACE_OPERATOR" });
        let made = once(&app, &maker, "/tokens", &body).await.ok();
        // Other rights come and go.
        set_grants(&app, &maker, vec![operator.clone()]).await;
        assert_eq!(once(&app, &maker, "/tokens", &body).await.ok(), made);
        let lacking = [in_workspace(here, "WORKSPACE_AUTHOR"), in_workspace(there, "WORKSPACE_OWNER")];
        for held in lacking.map(|role| vec![role]).into_iter().chain([vec![]]) {
            set_grants(&app, &maker, held).await;
            let refused = once(&app, &maker, "/tokens", &body).await;
            // The token that was made is one that it may not see now.
            refused.refused(404);
            assert!(!refused.text().contains(made["token"].as_str().unwrap()));
        }
        set_grants(&app, &maker, vec![operator]).await;
        assert_eq!(once(&app, &maker, "/tokens", &body).await.ok(), made);
    }

    async fn the_value_of_a_rotated_token_is_not_repeated_to_one_who_could_not_rotate_it(app) {
        let workspace = app.workspace("Data").await;
        let token = app.token("ci", "WORKSPACE", workspace, "WORKSPACE_OWNER").await;
        let owner = user(&app, "owner", vec![in_workspace(workspace, "WORKSPACE_OWNER")]).await;
        let path = format!("/tokens/{}/rotate", token.id);
        let rotated = once(&app, &owner, &path, &Value::Null).await.ok();
        assert_eq!(once(&app, &owner, &path, &Value::Null).await.ok(), rotated);
        // An operator may rotate tokens, though none that can do more than it can.
        for (name, status) in [("WORKSPACE_OPERATOR", 403), ("WORKSPACE_MEMBER", 404)] {
            set_grants(&app, &owner, vec![in_workspace(workspace, name)]).await;
            once(&app, &owner, &path, &Value::Null).await.refused(status);
        }
    }

    async fn responses_about_tokens_and_objects_are_not_repeated_either(app) {
        let workspace = app.workspace("Data").await;
        let token = app.token("ci", "WORKSPACE", workspace, "WORKSPACE_MEMBER").await;
        let object = json!({
            "objectKey": "warehouse", "objectType": "CONNECTION", "scope": "WORKSPACE", "scopeEntityId": workspace,
            "connection": { "type": "postgres", "host": "db" },
        });
        let operator = user(&app, "operator", vec![in_workspace(workspace, "WORKSPACE_OPERATOR")]).await;
        let made = once(&app, &operator, "/environment-objects", &object).await.ok();
        let at = format!("/environment-objects/{}", made["id"].as_str().unwrap());
        let roles = json!({ "roles": [
            { "entityType": "WORKSPACE", "entityId": workspace, "role": "WORKSPACE_AUTHOR" },
        ] });
        let calls = [
            ("/environment-objects".to_owned(), object),
            (at, json!({ "description": "new" })),
            (format!("/tokens/{}", token.id), json!({ "name": "renamed" })),
            (format!("/tokens/{}/roles", token.id), roles),
        ];
        for (path, body) in &calls {
            once(&app, &operator, path, body).await.ok();
            once(&app, &operator, path, body).await.ok();
        }
        set_grants(&app, &operator, vec![in_workspace(workspace, "WORKSPACE_AUTHOR")]).await;
        for (path, body) in &calls {
            // An author sees objects, and no tokens.
            let status = if path.starts_with("/tokens") { 404 } else { 403 };
            assert_eq!(once(&app, &operator, path, body).await.code(), status, "{path}");
        }
        set_grants(&app, &operator, vec![]).await;
        for (path, body) in &calls {
            assert_eq!(once(&app, &operator, path, body).await.code(), 404, "{path}");
        }
    }

    async fn roles_that_were_given_are_not_repeated_to_one_who_could_not_give_them(app) {
        let workspace = app.workspace("Data").await;
        let (owner, user_id) =
            (user(&app, "owner", vec![in_workspace(workspace, "WORKSPACE_OWNER")]).await, app.member("ada").await.id);
        let team_id = app.team("Team", &[]).await;
        let given = json!([{ "workspaceId": workspace, "role": "WORKSPACE_AUTHOR" }]);
        let body = json!({ "organizationRole": "ORGANIZATION_MEMBER", "workspaceRoles": given });
        for path in [format!("/users/{user_id}/roles"), format!("/teams/{team_id}/roles")] {
            set_grants(&app, &owner, vec![in_workspace(workspace, "WORKSPACE_OWNER")]).await;
            let given = once(&app, &owner, &path, &body).await.ok();
            assert_eq!(once(&app, &owner, &path, &body).await.ok(), given);
            set_grants(&app, &owner, vec![in_workspace(workspace, "WORKSPACE_AUTHOR")]).await;
            once(&app, &owner, &path, &body).await.refused(403);
        }
    }
    async fn roles_that_were_given_are_not_repeated_to_one_who_could_give_only_some_of_them(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let all = || vec![in_workspace(here, "WORKSPACE_OWNER"), in_workspace(there, "WORKSPACE_OWNER")];
        let (owner, user_id) = (user(&app, "owner", all()).await, app.member("ada").await.id);
        let team_id = app.team("Team", &[]).await;
        let given = [here, there].map(|id| json!({ "workspaceId": id, "role": "WORKSPACE_AUTHOR" }));
        let body = json!({ "organizationRole": "ORGANIZATION_MEMBER", "workspaceRoles": given });
        for path in [format!("/users/{user_id}/roles"), format!("/teams/{team_id}/roles")] {
            set_grants(&app, &owner, all()).await;
            let given = once(&app, &owner, &path, &body).await.ok();
            for kept in all() {
                set_grants(&app, &owner, vec![kept]).await;
                once(&app, &owner, &path, &body).await.refused(403);
            }
            set_grants(&app, &owner, all()).await;
            assert_eq!(once(&app, &owner, &path, &body).await.ok(), given);
        }
    }

    async fn an_applied_plan_is_not_repeated_after_the_right_to_its_calls_is_lost(app) {
        let here = app.workspace("Here").await;
        let operator = in_workspace(here, "WORKSPACE_OPERATOR");
        let maker = user(&app, "maker", vec![operator.clone()]).await;
        let token = json!({ "name": "ci", "scope": "WORKSPACE", "entityId": here, "role": "WORKSPACE_OPERATOR" });
        let at = |rest: &str| format!("/organizations/{}{rest}", app.organization_id);
        let calls = json!({ "calls": [
            { "method": "POST", "path": at("/tokens"), "body": token },
            { "method": "POST", "path": at("/tokens/{0.id}"), "body": { "name": "ci 2" } },
        ] });
        let plan = app.post(&maker, &app.path("/plans"), calls).await.ok();
        let path = app.path(&format!("/plans/{}/apply", plan["planId"].as_str().unwrap()));
        let apply = async || app.post(&maker, &path, Value::Null).await;
        let applied = apply().await.ok();
        let value = applied["calls"][0]["result"]["token"].as_str().unwrap().to_owned();
        assert_eq!(apply().await.ok(), applied);
        for held in [vec![in_workspace(here, "WORKSPACE_AUTHOR")], vec![]] {
            set_grants(&app, &maker, held).await;
            let refused = apply().await;
            refused.refused(403);
            assert!(!refused.text().contains(&value) && !refused.text().contains("ci 2"), "{}", refused.text());
        }
        set_grants(&app, &maker, vec![operator.clone()]).await;
        assert_eq!(apply().await.ok(), applied);
        let tokens = app.get(&maker, &app.path("/tokens")).await.ok();
        assert_eq!(tokens["totalCount"], 1, "nothing is done again");
        // A value that is dead is not repeated either.
        app.delete(&app.owner, &app.path(&format!("/tokens/{}", applied["calls"][0]["result"]["id"].as_str().unwrap()))).await;
        let refused = apply().await;
        assert!(refused.code() >= 400 && !refused.text().contains(&value), "{}", refused.text());
    }

    async fn an_applied_plan_that_deletes_is_repeated_as_it_was(app) {
        let here = app.workspace("Here").await;
        let at = |rest: &str| format!("/organizations/{}{rest}", app.organization_id);
        let calls = json!({ "calls": [
            { "method": "POST", "path": at("/workspaces"), "body": { "name": "There" } },
            { "method": "DELETE", "path": at(&format!("/workspaces/{here}")) },
        ] });
        let plan = app.post(&app.owner, &app.path("/plans"), calls).await.ok();
        let path = app.path(&format!("/plans/{}/apply", plan["planId"].as_str().unwrap()));
        let applied = app.post(&app.owner, &path, Value::Null).await.ok();
        assert_eq!(app.post(&app.owner, &path, Value::Null).await.ok(), applied);
        let left = app.get(&app.owner, &app.path("/workspaces")).await.ok();
        assert_eq!(left["totalCount"], 2, "the first one and There: {left}");
    }
}
