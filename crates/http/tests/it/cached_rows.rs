//! JSON that is kept of a row: whose it is, and that nobody is shown an old one.

use podium_domain::On;
use podium_testkit::{Actor, TestApp, on_both_engines};
use serde_json::json;

use crate::deployments::{made, member_with, path, update};

fn at_workspace(app: &TestApp, id: impl std::fmt::Display) -> String {
    app.path(&format!("/workspaces/{id}"))
}

async fn names(app: &TestApp, actor: &Actor, list: &str) -> Vec<String> {
    let page = app.get(actor, &app.path(&format!("/{list}"))).await.ok();
    let names = page[list].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned());
    names.collect()
}

on_both_engines! {
    async fn it_is_for_those_of_its_organization_and_under_its_own_path(app) {
        let workspace = app.workspace("Analytics").await;
        let deployment = made(&app, workspace, json!({ "name": "a" })).await;
        for _ in 0..2 {
            app.get(&app.owner, &at_workspace(&app, workspace)).await.ok();
            app.get(&app.owner, &path(&app, deployment)).await.ok();
            names(&app, &app.owner, "deployments").await;
        }
        app.get(&app.owner, &at_workspace(&app, deployment)).await.refused(404);
        app.get(&app.owner, &path(&app, workspace)).await.refused(404);
        let stranger = app.stranger().await;
        let organization = app.get(&stranger, "/v1/organizations").await.ok()["organizations"][0]["id"].clone();
        let root = format!("/v1/organizations/{}", organization.as_str().unwrap());
        for one in [format!("{root}/workspaces/{workspace}"), format!("{root}/deployments/{deployment}")] {
            app.get(&stranger, &one).await.refused(404);
        }
        app.get(&stranger, &path(&app, deployment)).await.refused(404);
    }

    async fn who_was_answered_reads_its_own_write(app) {
        let workspace = app.workspace("0").await;
        let at = at_workspace(&app, workspace);
        for number in 1..20 {
            let before = app.get(&app.owner, &at).await.ok();
            assert_eq!(before["name"], (number - 1).to_string());
            let body = json!({ "name": number.to_string(), "description": "", "cicdEnforcedDefault": false });
            app.post(&app.owner, &at, body).await.ok();
            assert_eq!(names(&app, &app.owner, "workspaces").await, [number.to_string()]);
        }
        app.delete(&app.owner, &at).await.ok();
        app.get(&app.owner, &at).await.refused(404);
        assert!(names(&app, &app.owner, "workspaces").await.is_empty());
    }

    async fn a_deployment_that_was_moved_is_judged_by_its_new_workspace(app) {
        let [old, new] = [app.workspace("old").await, app.workspace("new").await];
        let reader = member_with(&app, On::Workspace(old), "WORKSPACE_AUTHOR").await;
        let deployment = made(&app, old, json!({ "name": "a" })).await;
        let one = path(&app, deployment);
        for _ in 0..2 {
            app.get(&reader, &one).await.ok();
            assert_eq!(names(&app, &reader, "deployments").await, ["a"]);
        }
        let shown = app.get(&app.owner, &one).await.ok();
        app.post(&app.owner, &one, update(&shown, json!({ "workspaceId": new }))).await.ok();
        app.get(&reader, &one).await.refused(404);
        assert!(names(&app, &reader, "deployments").await.is_empty());
        assert_eq!(app.get(&app.owner, &one).await.ok()["workspaceName"], "new");
    }
}
