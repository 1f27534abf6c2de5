//! Moving a deployment to another workspace.

use podium_api::{DeploymentId, Id, WorkspaceId};
use podium_domain::{Grant, On};
use podium_testkit::{Actor, Engine, TestApp, block_on, on_both_engines, role};
use serde_json::json;

use super::{change, change_by, dedicated, made, path, read, update};

async fn user(app: &TestApp, name: &str, held: Vec<Grant>) -> Actor {
    let member = role(On::Organization, "ORGANIZATION_MEMBER");
    app.user_with(name, [vec![member], held].concat()).await
}

fn on(id: DeploymentId, workspace_id: WorkspaceId) -> On {
    On::Deployment { id, workspace_id }
}

on_both_engines! {
    async fn a_deployment_moves_and_stays_itself(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let id = made(&app, here, json!({ "name": "Reports", "isDevelopmentMode": true })).await;
        let before = read(&app, id).await;
        let after = change(&app, id, json!({ "workspaceId": there })).await.ok();
        assert_eq!((&after["workspaceId"], &after["workspaceName"]), (&json!(there), &json!("There")));
        for field in ["id", "name", "namespace", "webServerUrl", "apiUrl", "uiUrl", "imageRepository", "workerQueues",
            "createdAt", "isDevelopmentMode"] {
            assert_eq!(after[field], before[field], "{field}");
        }
        assert_eq!(after["status"], "DEPLOYING");
        assert_eq!(read(&app, id).await, after);
        let listed = async |workspace: WorkspaceId| {
            let path = app.path(&format!("/deployments?workspaceIds={workspace}"));
            app.get(&app.owner, &path).await.ok()["totalCount"].clone()
        };
        assert_eq!((listed(here).await, listed(there).await), (json!(0), json!(1)));
        app.delete(&app.owner, &app.path(&format!("/workspaces/{here}"))).await.ok();
        app.delete(&app.owner, &app.path(&format!("/workspaces/{there}"))).await.refused(400);
    }

    async fn a_mover_has_rights_in_both_workspaces(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let operator = |workspace| role(On::Workspace(workspace), "WORKSPACE_OPERATOR");
        let seen = |workspace| role(On::Workspace(workspace), "WORKSPACE_AUTHOR");
        for (name, held, status) in [
            ("operator of both", vec![operator(here), operator(there)], 200),
            ("operator of the first who sees the second", vec![operator(here), seen(there)], 403),
            ("operator of the first", vec![operator(here)], 404),
            ("operator of the second who sees the first", vec![seen(here), operator(there)], 403),
            ("operator of the second", vec![operator(there)], 404),
        ] {
            let id = made(&app, here, json!({})).await;
            let actor = user(&app, name, held).await;
            let answer = change_by(&app, &actor, id, json!({ "workspaceId": there })).await;
            assert_eq!(answer.code(), status, "{name}: {}", answer.text());
            let is_there = read(&app, id).await["workspaceId"] == json!(there);
            assert_eq!(is_there, status == 200, "{name}");
        }
        let id = made(&app, here, json!({})).await;
        let admin = user(&app, "admin", vec![role(on(id, here), "DEPLOYMENT_ADMIN"), operator(there)]).await;
        let refused = change_by(&app, &admin, id, json!({ "workspaceId": there })).await;
        assert!(refused.refused(403).contains("`workspace.deployments.create` in both workspaces"));
        let id = made(&app, here, json!({})).await;
        let unknown = change(&app, id, json!({ "workspaceId": app.world.id::<Id>() })).await;
        assert_eq!(unknown.refused(404), "There is no such workspace, or you may not see it.");
    }

    async fn moving_a_deployment_gives_nobody_more_rights(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let owner = |workspace| role(On::Workspace(workspace), "WORKSPACE_OWNER");
        let operator = |workspace| role(On::Workspace(workspace), "WORKSPACE_OPERATOR");
        app.custom_role("Tuner", "DEPLOYMENT", &["deployment.get", "deployment.update"]).await;
        let id = made(&app, here, json!({})).await;
        let tuner = user(&app, "tuner", vec![operator(there)]).await;
        let roles = json!({ "deploymentRoles": [{ "deploymentId": id, "role": "Tuner" }] });
        app.post(&app.owner, &app.path(&format!("/users/{}/roles", tuner.id)), roles).await.ok();
        change_by(&app, &tuner, id, json!({})).await.ok();
        change_by(&app, &tuner, id, json!({ "workspaceId": there })).await.refused(403);
        for (name, held, status) in [
            ("would own it", vec![operator(here), owner(there)], 403),
            ("owns it already", vec![owner(here), owner(there)], 200),
            ("gives something up", vec![owner(there), operator(here)], 200),
        ] {
            // The third moves it back: from where it owns to where it operates.
            let (from, to) = if name == "gives something up" { (there, here) } else { (here, there) };
            let id = made(&app, from, json!({})).await;
            let mover = user(&app, name, held).await;
            let answer = change_by(&app, &mover, id, json!({ "workspaceId": to })).await;
            assert_eq!(answer.code(), status, "{name}: {}", answer.text());
        }
        let unseen = user(&app, "operator of one", vec![operator(here)]).await;
        let same = async |to: WorkspaceId| change_by(&app, &unseen, id, json!({ "workspaceId": to })).await.refused(404);
        assert_eq!(same(there).await, same(app.world.id()).await, "there is no telling whether it exists");
    }

    async fn rights_are_judged_before_versions(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let id = made(&app, here, json!({})).await;
        let actor = user(&app, "operator", vec![role(On::Workspace(here), "WORKSPACE_OPERATOR")]).await;
        let body = update(&read(&app, id).await, json!({ "workspaceId": there }));
        let call = app.call("POST", &path(&app, id)).by(&actor).header("if-match", "\"0-0\"").json(&body);
        call.send().await.refused(404);
    }

    async fn a_cluster_must_take_the_other_workspace(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let closed = dedicated(&app, json!({ "workspaceIds": [here] })).await;
        let open = dedicated(&app, json!({})).await;
        let id = made(&app, here, json!({ "clusterId": closed })).await;
        let refused = change(&app, id, json!({ "workspaceId": there })).await;
        assert_eq!(refused.wrong_fields(), ["workspaceId: notAdmitted"]);
        assert_eq!(read(&app, id).await["status"], "HEALTHY", "nothing has changed");
        let id = made(&app, here, json!({ "clusterId": open })).await;
        assert_eq!(change(&app, id, json!({ "workspaceId": there })).await.ok()["clusterId"], json!(open));
    }

    async fn a_name_is_free_in_the_other_workspace_too(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        made(&app, there, json!({ "name": "Reports" })).await;
        let id = made(&app, here, json!({ "name": "reports" })).await;
        let taken = change(&app, id, json!({ "workspaceId": there })).await;
        assert_eq!(taken.refused(409), "The workspace already has a deployment named `reports`: choose another name.");
        let moved = change(&app, id, json!({ "workspaceId": there, "name": "Numbers" })).await.ok();
        assert_eq!((&moved["name"], &moved["workspaceId"]), (&json!("Numbers"), &json!(there)));
    }

    async fn roles_of_the_old_workspace_end_and_those_of_the_new_begin(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let id = made(&app, here, json!({})).await;
        let at = path(&app, id);
        let dag = On::Dag { deployment_id: id, workspace_id: here, dag_id: "etl".into() };
        let old = user(&app, "old", vec![role(On::Workspace(here), "WORKSPACE_OWNER")]).await;
        let admin = user(&app, "admin", vec![role(on(id, here), "DEPLOYMENT_ADMIN")]).await;
        let viewer = user(&app, "viewer", vec![role(dag, "DAG_VIEWER")]).await;
        let new = user(&app, "new", vec![role(On::Workspace(there), "WORKSPACE_MEMBER")]).await;
        let codes = async || {
            let mut codes = Vec::new();
            for actor in [&old, &admin, &viewer, &new] {
                codes.push(app.get(actor, &at).await.code());
            }
            codes
        };
        assert_eq!(codes().await, [200, 200, 200, 404]);
        change(&app, id, json!({ "workspaceId": there })).await.ok();
        assert_eq!(codes().await, [404, 404, 404, 200]);
        for actor in [&admin, &viewer] {
            let roles = app.get(&app.owner, &app.path(&format!("/users/{}", actor.id))).await.ok();
            assert_eq!((roles.get("deploymentRoles"), roles.get("dagRoles")), (None, None));
            assert_eq!(app.get(actor, &app.path(&format!("/workspaces/{here}"))).await.code(), 404);
        }
    }

    async fn a_deployments_own_tokens_are_deleted_with_it_and_others_lose_their_role(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let id = made(&app, here, json!({})).await;
        let own = app.token("own", "DEPLOYMENT", id, "DEPLOYMENT_ADMIN").await;
        let of_old = app.token("ci", "WORKSPACE", here, "WORKSPACE_OPERATOR").await;
        let narrow = app.token("narrow", "WORKSPACE", here, "WORKSPACE_ACCESSOR").await;
        let roles = json!({ "roles": [
            { "entityType": "WORKSPACE", "entityId": here, "role": "WORKSPACE_ACCESSOR" },
            { "entityType": "DEPLOYMENT", "entityId": id, "role": "DEPLOYMENT_ADMIN" },
        ] });
        app.post(&app.owner, &app.path(&format!("/tokens/{}/roles", narrow.id)), roles).await.ok();
        let of_new = app.token("ci", "WORKSPACE", there, "WORKSPACE_OPERATOR").await;
        let codes = async || {
            let mut codes = Vec::new();
            for token in [&own, &of_old, &narrow, &of_new] {
                codes.push(app.get(token, &path(&app, id)).await.code());
            }
            codes
        };
        assert_eq!(codes().await, [200, 200, 200, 404]);
        change(&app, id, json!({ "workspaceId": there })).await.ok();
        assert_eq!(codes().await, [200, 404, 404, 200]);
        assert_eq!(app.post(&own, &path(&app, id), update(&read(&app, id).await, json!({}))).await.code(), 200);
        app.get(&own, &app.path(&format!("/workspaces/{there}"))).await.ok();
        app.get(&own, &app.path(&format!("/workspaces/{here}"))).await.refused(404);
        let tokens = async |workspace: WorkspaceId| {
            let path = app.path(&format!("/tokens?workspaceId={workspace}"));
            let list = app.get(&app.owner, &path).await.ok();
            let mut ids: Vec<String> =
                list["tokens"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect();
            ids.sort();
            ids
        };
        assert!(tokens(there).await.contains(&own.id.to_string()));
        assert!(!tokens(here).await.contains(&own.id.to_string()));
        // It goes when its deployment goes, not when the workspace does that it was made in.
        app.delete(&app.owner, &app.path(&format!("/workspaces/{here}"))).await.ok();
        assert_eq!(codes().await, [200, 401, 401, 200]);
    }

    async fn a_token_of_the_old_workspace_cannot_move_what_it_may_not_put_there(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let id = made(&app, here, json!({})).await;
        let token = app.token("ci", "WORKSPACE", here, "WORKSPACE_OWNER").await;
        change_by(&app, &token, id, json!({ "workspaceId": there })).await.refused(404);
        assert_eq!(read(&app, id).await["workspaceId"], json!(here));
    }
}

#[test]
fn where_a_deployment_is_may_be_remembered_but_not_longer_than_it_is_true() {
    block_on(async {
        let app = TestApp::start(Engine::Postgres).await;
        let other = app.replica().await;
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let id = made(&app, here, json!({})).await;
        let seer = user(&app, "seer", vec![role(On::Workspace(here), "WORKSPACE_MEMBER")]).await;
        let (at, deploys) = (path(&app, id), format!("{}/deploys", path(&app, id)));
        for _ in 0..2 {
            assert_eq!(
                (other.get(&seer, &at).await.code(), other.get(&seer, &deploys).await.code()),
                (200, 200)
            );
        }
        change(&app, id, json!({ "workspaceId": there })).await.ok();
        assert_eq!((other.get(&seer, &at).await.code(), other.get(&seer, &deploys).await.code()), (404, 404));
        change(&app, id, json!({ "workspaceId": here })).await.ok();
        assert_eq!(other.get(&seer, &at).await.code(), 200);
        // Nobody holds a role on it: no rights change.
        app.delete(&app.owner, &at).await.ok();
        for actor in [&seer, &app.owner] {
            for path in [&at, &deploys] {
                let gone = other.get(actor, path).await;
                assert_eq!(gone.refused(404), "There is no such deployment, or you may not see it.");
            }
            // Something that the seer would not be allowed to do is answered alike.
            assert_eq!(other.delete(actor, &at).await.code(), 404);
        }
    });
}
