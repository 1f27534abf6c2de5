//! What a token can do: act as a member of its organization, within its own scopes.

use std::time::Duration;

use podium_app::maintenance;
use podium_testkit::{Actor, TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{REVOKED, path, version};

async fn total(app: &TestApp, by: &Actor, rest: &str) -> Value {
    app.get(by, &app.path(rest)).await.ok()["totalCount"].clone()
}

async fn last_used(app: &TestApp, token: &Actor) -> Value {
    maintenance::flush_uses(&app.app).await.unwrap();
    app.get(&app.owner, &path(app, token.id)).await.ok()["lastUsedAt"].clone()
}

on_both_engines! {
    async fn every_token_acts_as_a_member_of_its_organization(app) {
        let (a, b) = (app.workspace("A").await, app.workspace("B").await);
        let deployment = app.deployment(a).await;
        app.member("eve").await;
        app.team("Crew", &[]).await;
        app.custom_role("Tuner", "DEPLOYMENT", &["deployment.update"]).await;
        let of_workspace = app.token("w", "WORKSPACE", a, "WORKSPACE_ACCESSOR").await;
        let of_deployment = app.token("d", "DEPLOYMENT", deployment, "DEPLOYMENT_ACCESSOR").await;
        for token in [&of_workspace, &of_deployment] {
            assert_eq!(app.get(token, &app.path("")).await.ok()["id"], json!(app.organization_id));
            assert_eq!(total(&app, token, "/users").await, 2);
            assert_eq!(total(&app, token, "/teams").await, 1);
            assert_eq!(total(&app, token, "/roles").await, 1);
            let workspaces = app.get(token, &app.path("/workspaces")).await.ok();
            assert_eq!((&workspaces["totalCount"], &workspaces["workspaces"][0]["id"]), (&json!(1), &json!(a)));
            assert_eq!(app.get(token, &app.path(&format!("/workspaces/{a}"))).await.code(), 200);
            assert_eq!(app.get(token, &app.path(&format!("/workspaces/{b}"))).await.code(), 404);
            assert_eq!(app.post(token, &app.path("/workspaces"), json!({ "name": "C" })).await.code(), 403);
            assert_eq!(app.get(token, &app.path("/audit-logs")).await.code(), 403);
        }
        let member = app.token("o", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        assert_eq!(total(&app, &member, "/workspaces").await, 0);
        let owner = app.token("p", "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
        assert_eq!(total(&app, &owner, "/workspaces").await, 3);
        assert_eq!(app.post(&owner, &app.path("/workspaces"), json!({ "name": "C" })).await.code(), 200);
    }

    async fn a_token_is_not_a_user(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
        for query in ["", "?createIfNotExist=true"] {
            assert_eq!(
                app.get(&token, &format!("/v1/users/self{query}")).await.refused(403),
                "An API token is not a user: sign in as a user to read your own account."
            );
        }
        for (path, body, message) in [
            ("renew", Value::Null, "An API token is not a user's session: rotate the API token instead."),
            ("sign-out", Value::Null, "An API token is not a user's session: delete the API token instead."),
            (
                "change-password",
                json!({ "currentPassword": "", "newPassword": "correct horse battery" }),
                "An API token is not a user's session: sign in as the user whose password is to change.",
            ),
        ] {
            let call = app.call("POST", &format!("/v1/auth/{path}")).by(&token);
            let call = if body.is_null() { call } else { call.json(&body) };
            assert_eq!(call.send().await.refused(403), message);
        }
        assert_eq!(app.get(&token, &app.path("")).await.code(), 200);
    }

    async fn a_token_reads_itself_whatever_it_may_do(app) {
        let workspace = app.workspace("Data").await;
        let token = app.token("ci", "WORKSPACE", workspace, "WORKSPACE_ACCESSOR").await;
        let other = app.token("other", "WORKSPACE", workspace, "WORKSPACE_ACCESSOR").await;
        app.get(&token, &path(&app, other.id.to_string())).await.refused(404);
        let shown = app.get(&token, &path(&app, token.id.to_string())).await.ok();
        assert_eq!((&shown["id"], &shown["name"], &shown["scope"]), (&json!(token.id), &json!("ci"), &json!("WORKSPACE")));
        let role = json!([{ "entityType": "WORKSPACE", "entityId": workspace, "role": "WORKSPACE_ACCESSOR" }]);
        assert_eq!((&shown["roles"], shown.get("token")), (&role, None));
        let body = json!({ "name": "mine" });
        assert!(matches!(app.post(&token, &path(&app, token.id.to_string()), body).await.code(), 403 | 404));
    }

    async fn a_token_knows_its_own_organization_only(app) {
        let stranger = app.stranger().await;
        let elsewhere = app.get(&stranger, "/v1/organizations").await.ok()["organizations"][0]["id"].clone();
        let elsewhere = format!("/v1/organizations/{}", elsewhere.as_str().unwrap());
        let token = app.token("ci", "WORKSPACE", app.workspace("Data").await, "WORKSPACE_OWNER").await;
        let list = app.get(&token, "/v1/organizations").await.ok();
        assert_eq!((&list["totalCount"], &list["organizations"][0]["id"]), (&json!(1), &json!(app.organization_id)));
        assert_eq!(app.get(&token, "/v1/authorization/permission-groups").await.code(), 200);
        for rest in ["", "/workspaces", "/tokens"] {
            assert_eq!(app.get(&token, &format!("{elsewhere}{rest}")).await.code(), 404);
        }
        let body = json!({ "name": "x", "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER" });
        let made = app.post(&stranger, &format!("{elsewhere}/tokens"), body).await;
        assert_eq!(app.get(&app.owner, &path(&app, made.id())).await.code(), 404);
        assert_eq!(app.delete(&app.owner, &path(&app, made.id())).await.code(), 404);
    }

    async fn what_a_token_does_is_recorded_under_its_name(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
        let made = app.post(&token, &app.path("/workspaces"), json!({ "name": "Data" })).await.ok();
        assert_eq!(made["createdBy"], json!({ "id": token.id, "subjectType": "SERVICEKEY", "apiTokenName": "ci" }));
        let record = app.audit().await.pop().unwrap();
        assert_eq!(
            (&record["subjectId"], &record["subjectType"], &record["subjectName"], &record["operationId"]),
            (&json!(token.id), &json!("SERVICEKEY"), &json!("ci"), &json!("CreateWorkspace"))
        );
        app.delete(&app.owner, &path(&app, token.id)).await.ok();
        let read = app.get(&app.owner, &app.path(&format!("/workspaces/{}", made["id"].as_str().unwrap()))).await;
        assert_eq!(read.ok()["createdBy"]["apiTokenName"], "ci");
    }

    async fn the_last_use_is_known_to_the_minute(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        let before = version(&app.get(&app.owner, &path(&app, token.id)).await);
        assert_eq!(last_used(&app, &token).await, Value::Null);
        app.advance(Duration::from_secs(30));
        app.get(&token, &app.path("")).await.ok();
        app.get(&token, "/v1/organizations").await.ok();
        assert_eq!(last_used(&app, &token).await, "2027-01-15T08:00:00.000Z");
        app.advance(Duration::from_secs(29));
        app.get(&token, &app.path("")).await.ok();
        assert_eq!(last_used(&app, &token).await, "2027-01-15T08:00:00.000Z");
        app.advance(Duration::from_secs(61));
        app.get(&token, &app.path("/audit-logs")).await.refused(403);
        assert_eq!(last_used(&app, &token).await, "2027-01-15T08:02:00.000Z");
        let read = app.get(&app.owner, &path(&app, token.id)).await;
        assert_eq!(version(&read), before, "a use is no change");
        assert_eq!(read.ok()["updatedAt"], "2027-01-15T08:00:00.000Z");
    }

    async fn a_use_that_could_not_be_written_down_is_written_down_later(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        app.get(&token, &app.path("")).await.ok();
        app.execute("ALTER TABLE api_tokens RENAME TO lost_tokens").await;
        maintenance::flush_uses(&app.app).await.unwrap_err();
        app.execute("ALTER TABLE lost_tokens RENAME TO api_tokens").await;
        assert_eq!(last_used(&app, &token).await, "2027-01-15T08:00:00.000Z");
    }

    async fn a_use_that_cannot_be_written_down_keeps_nothing_else_from_being_done(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        app.get(&token, &app.path("")).await.ok();
        let session = app.session_of(&app.owner).await;
        let before = app.rows("credentials").await;
        app.advance(app.app.config.session * 2);
        app.execute("ALTER TABLE api_tokens RENAME TO lost_tokens").await;
        maintenance::once(&app.app).await.unwrap_err();
        assert_eq!(app.rows("credentials").await, before - 1, "the session of {} is over", session.id);
        app.execute("ALTER TABLE lost_tokens RENAME TO api_tokens").await;
        maintenance::once(&app.app).await.unwrap();
    }

    async fn deleting_a_workspace_kills_its_tokens_at_once(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let tokens = [
            app.token("w", "WORKSPACE", workspace, "WORKSPACE_OWNER").await,
            app.token("d", "DEPLOYMENT", deployment, "DEPLOYMENT_ADMIN").await,
        ];
        for token in &tokens {
            assert_eq!(app.get(token, &app.path("")).await.code(), 200);
        }
        app.set_column("deployments", deployment, "workspace_id", "'elsewhere'").await;
        assert_eq!(app.delete(&tokens[0], &app.path(&format!("/workspaces/{workspace}"))).await.code(), 204);
        for token in &tokens {
            assert_eq!(app.get(token, &app.path("")).await.refused(401), REVOKED);
        }
        assert_eq!(total(&app, &app.owner, "/tokens").await, 0);
    }

    async fn a_use_is_not_written_down_by_the_request_itself(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        app.get(&token, &app.path("")).await.ok();
        let read = app.get(&app.owner, &path(&app, token.id)).await.ok();
        assert_eq!(read["lastUsedAt"], Value::Null);
        assert_eq!(last_used(&app, &token).await, "2027-01-15T08:00:00.000Z");
    }
}
