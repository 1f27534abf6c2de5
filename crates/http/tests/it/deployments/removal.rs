//! What a deleted deployment takes with it.

use podium_domain::On;
use podium_testkit::{on_both_engines, role};
use serde_json::json;

use super::{create, dedicated, made, names, path};

on_both_engines! {
    async fn a_deleted_deployment_is_gone_from_reads_at_once(app) {
        let workspace = app.workspace("Analytics").await;
        let (gone, stays) = (
            made(&app, workspace, json!({ "name": "Gone" })).await,
            made(&app, workspace, json!({ "name": "Stays" })).await,
        );
        app.forget_work().await;
        let answer = app.delete(&app.owner, &path(&app, gone)).await;
        assert_eq!((answer.code(), answer.text().as_str()), (204, ""));
        for method in ["GET", "DELETE"] {
            app.call(method, &path(&app, gone)).by(&app.owner).send().await.refused(404);
        }
        let list = app.get(&app.owner, &app.path("/deployments")).await.ok();
        assert_eq!((names(&list), &list["totalCount"]), (vec!["Stays"], &json!(1)));
        assert_eq!(app.get(&app.owner, &path(&app, stays)).await.code(), 200);
        assert_eq!(app.column("work", gone, "kind").await, "deployments", "the data plane is cleaned up after");
    }

    async fn its_name_is_free_and_its_workspace_may_go(app) {
        let workspace = app.workspace("Analytics").await;
        let at = app.path(&format!("/workspaces/{workspace}"));
        let first = made(&app, workspace, json!({ "name": "Reports" })).await;
        app.delete(&app.owner, &path(&app, first)).await.ok();
        let second = create(&app, workspace, json!({ "name": "Reports" })).await;
        assert_ne!(second.id(), first.to_string());
        app.delete(&app.owner, &at).await.refused(400);
        app.delete(&app.owner, &path(&app, second.id())).await.ok();
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
    }

    async fn its_tokens_die_at_once_and_others_live(app) {
        let workspace = app.workspace("Analytics").await;
        let place = json!({ "clusterId": dedicated(&app, json!({})).await, "executor": "PLATFORM",
            "remoteExecution": { "enabled": true } });
        let (gone, stays) = (made(&app, workspace, place).await, made(&app, workspace, json!({})).await);
        let dead = app.token("dead", "DEPLOYMENT", gone, "DEPLOYMENT_ADMIN").await;
        let alive = app.token("alive", "DEPLOYMENT", stays, "DEPLOYMENT_ADMIN").await;
        let ci = app.token("ci", "WORKSPACE", workspace, "WORKSPACE_MEMBER").await;
        let agents = format!("{}/agent-tokens", path(&app, gone));
        let agent = app.post(&app.owner, &agents, json!({ "name": "worker" })).await.ok();
        let agent = agent["token"].as_str().unwrap().to_owned();
        assert_eq!(app.get(&dead, &path(&app, gone)).await.code(), 200);
        app.delete(&app.owner, &path(&app, gone)).await.ok();
        assert_eq!(
            app.get(&dead, &path(&app, stays)).await.refused(401),
            "The token is revoked: it was deleted, rotated or signed out."
        );
        let call = app.call("GET", &path(&app, stays)).header("authorization", &format!("Bearer {agent}"));
        call.send().await.refused(401);
        assert_eq!(app.get(&alive, &path(&app, stays)).await.code(), 200);
        assert_eq!(app.get(&ci, &path(&app, gone)).await.code(), 404);
        assert_eq!(app.rows("agent_tokens").await, 0);
        let tokens = app.get(&app.owner, &app.path("/tokens")).await.ok();
        assert_eq!(tokens["totalCount"], 2);
    }

    async fn a_token_can_delete_its_own_deployment_and_itself_with_it(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({})).await;
        let token = app.token("ci", "DEPLOYMENT", id, "DEPLOYMENT_ADMIN").await;
        assert_eq!(app.delete(&token, &path(&app, id)).await.code(), 204);
        assert_eq!(app.delete(&token, &path(&app, id)).await.code(), 401);
    }

    async fn other_callers_stay_cached_unless_somebody_loses_a_right(app) {
        let workspace = app.workspace("Analytics").await;
        let epoch = async || app.column("organizations", app.organization_id, "authorization_epoch").await;
        let id = made(&app, workspace, json!({})).await;
        let on = |id| On::Deployment { id, workspace_id: workspace };
        let member = app.user_with("of the workspace", vec![
            role(On::Organization, "ORGANIZATION_MEMBER"),
            role(On::Workspace(workspace), "WORKSPACE_MEMBER"),
        ]).await;
        assert_eq!(app.get(&member, &path(&app, id)).await.code(), 200);
        let before = epoch().await;
        app.delete(&app.owner, &path(&app, id)).await.ok();
        assert_eq!(epoch().await, before, "nobody has lost anything");
        assert_eq!(app.get(&member, &path(&app, id)).await.code(), 404);
        for held in ["role", "token"] {
            let id = made(&app, workspace, json!({})).await;
            match held {
                "role" => app.user_with(held, vec![role(on(id), "DEPLOYMENT_ADMIN")]).await,
                _ => app.token(held, "DEPLOYMENT", id, "DEPLOYMENT_ADMIN").await,
            };
            let before = epoch().await;
            app.delete(&app.owner, &path(&app, id)).await.ok();
            assert_ne!(epoch().await, before, "{held}");
        }
    }

    async fn roles_on_it_are_removed_and_others_stay(app) {
        let workspace = app.workspace("Analytics").await;
        let (gone, stays) = (made(&app, workspace, json!({})).await, made(&app, workspace, json!({})).await);
        let on = |id| On::Deployment { id, workspace_id: workspace };
        let held = vec![
            role(On::Organization, "ORGANIZATION_MEMBER"),
            role(on(gone), "DEPLOYMENT_ADMIN"),
            role(on(stays), "DEPLOYMENT_ACCESSOR"),
            role(On::Dag { deployment_id: gone, workspace_id: workspace, dag_id: "etl".into() }, "DAG_AUTHOR"),
        ];
        let eve = app.user_with("eve", held).await;
        app.delete(&app.owner, &path(&app, gone)).await.ok();
        let shown = app.get(&app.owner, &app.path(&format!("/users/{}", eve.id))).await.ok();
        assert_eq!(shown["deploymentRoles"], json!([{ "deploymentId": stays, "role": "DEPLOYMENT_ACCESSOR" }]));
        assert_eq!(shown.get("dagRoles"), None);
        assert_eq!(app.get(&eve, &path(&app, stays)).await.code(), 200);
    }

    async fn a_namespace_is_not_shared_after_a_name_is_taken_again(app) {
        let workspace = app.workspace("Analytics").await;
        let first = create(&app, workspace, json!({ "name": "Reports" })).await;
        app.delete(&app.owner, &path(&app, first.id())).await.ok();
        let second = create(&app, workspace, json!({ "name": "Reports" })).await.ok();
        assert_ne!(second["namespace"], first.ok()["namespace"]);
    }
}
