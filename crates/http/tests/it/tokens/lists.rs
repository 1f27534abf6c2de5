//! Lists of tokens: filters, order, pages, and what each caller sees.

use podium_api::{DeploymentId, Id, WorkspaceId};
use podium_domain::On;
use podium_testkit::{Actor, TestApp, on_both_engines, role};
use serde_json::{Value, json};

use super::{create, path};

async fn names(app: &TestApp, by: &Actor, query: &str) -> String {
    let list = app.get(by, &app.path(&format!("/tokens?sorts=name:asc&{query}"))).await.ok();
    let tokens = list["tokens"].as_array().unwrap();
    assert_eq!(list["totalCount"], tokens.len());
    tokens.iter().map(|token| token["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

/// Gives a token roles beside its primary one.
async fn also(app: &TestApp, token: &Actor, roles: Value) {
    let at = app.path(&format!("/tokens/{}/roles", token.id));
    app.post(&app.owner, &at, json!({ "roles": roles })).await.ok();
}

/// Two workspaces with a deployment each, and a token of everything, named for what it belongs to.
struct Place {
    workspaces: [WorkspaceId; 2],
    deployments: [DeploymentId; 2],
    organization_token: Actor,
    deployment_token: Actor,
}

async fn place(app: &TestApp) -> Place {
    let workspaces = [app.workspace("A").await, app.workspace("B").await];
    let deployments = [app.deployment(workspaces[0]).await, app.deployment(workspaces[1]).await];
    let organization_token = app.token("o", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
    app.token("wa", "WORKSPACE", workspaces[0], "WORKSPACE_MEMBER").await;
    app.token("wb", "WORKSPACE", workspaces[1], "WORKSPACE_MEMBER").await;
    let deployment_token = app.token("da", "DEPLOYMENT", deployments[0], "DEPLOYMENT_ADMIN").await;
    app.token("db", "DEPLOYMENT", deployments[1], "DEPLOYMENT_ADMIN").await;
    Place { workspaces, deployments, organization_token, deployment_token }
}

on_both_engines! {
    async fn a_list_is_filtered_by_what_tokens_hold(app) {
        let Place { workspaces: [a, b], deployments: [da, db], organization_token, deployment_token } =
            place(&app).await;
        let body = json!({
            "name": "x", "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER", "kind": "DIRECT_ACCESS",
        });
        create(&app, &app.owner, body).await.ok();
        also(&app, &organization_token, json!([
            { "entityType": "WORKSPACE", "entityId": b, "role": "WORKSPACE_MEMBER" },
            { "entityType": "DAG", "entityId": "etl", "deploymentId": da, "role": "DAG_VIEWER" },
        ])).await;
        also(&app, &deployment_token, json!([
            { "entityType": "DAG_TAG", "entityId": "daily", "deploymentId": da, "role": "DAG_AUTHOR" },
            { "entityType": "DAG_TAG", "entityId": "weekly", "deploymentId": da, "role": "DAG_AUTHOR" },
        ])).await;
        let absent = app.world.id::<Id>();
        for (query, expected) in [
            (String::new(), "da db o wa wb x"),
            (format!("workspaceId={a}"), "da o wa"),
            (format!("workspaceId={b}"), "db o wb"),
            (format!("workspaceId={absent}"), ""),
            ("workspaceId=nonsense".into(), ""),
            ("workspaceId=".into(), "da db o wa wb x"),
            (format!("deploymentId={da}"), "da o"),
            (format!("deploymentId={db}"), "db"),
            (format!("deploymentId={da}&workspaceId={b}"), "o"),
            ("includeOnlyOrganizationTokens=true".into(), "o x"),
            ("includeOnlyOrganizationTokens=false".into(), "da db o wa wb x"),
            ("kind=DIRECT_ACCESS".into(), "x"),
            ("kind=STANDARD".into(), "da db o wa wb"),
            ("kind=".into(), "da db o wa wb x"),
            ("dagId=etl".into(), "o"),
            ("dagId=daily".into(), ""),
            ("dagTags=daily".into(), "da"),
            ("dagTags=daily&dagTags=weekly".into(), "da"),
            ("dagTags=other&dagTags=weekly".into(), "da"),
            ("dagTags=etl".into(), ""),
            (format!("includeOnlyOrganizationTokens=true&workspaceId={b}"), "o"),
        ] {
            assert_eq!(names(&app, &app.owner, &query).await, expected, "{query}");
        }
        for (query, wrong) in [
            ("kind=OTHER", "kind: enum"),
            ("includeOnlyOrganizationTokens=perhaps", "includeOnlyOrganizationTokens: type"),
            ("limit=1001", "limit: maximum"),
            ("sorts=shortToken:asc", "sorts[0]: enum"),
        ] {
            let answer = app.get(&app.owner, &app.path(&format!("/tokens?{query}"))).await;
            assert_eq!(answer.wrong_fields(), [wrong], "{query}");
        }
    }

    async fn a_list_comes_newest_first_and_in_pages(app) {
        for name in ["b", "a", "c"] {
            app.token(name, "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
            app.advance(std::time::Duration::from_secs(1));
        }
        for (query, expected) in [
            ("", vec!["c", "a", "b"]),
            ("sorts=name:desc", vec!["c", "b", "a"]),
            ("sorts=tokenStartAt:asc", vec!["b", "a", "c"]),
            ("sorts=createdAt:desc&limit=2", vec!["c", "a"]),
            ("sorts=description:asc&sorts=name:asc&offset=1&limit=1", vec!["b"]),
            ("limit=0", vec![]),
            ("offset=3", vec![]),
        ] {
            let list = app.get(&app.owner, &app.path(&format!("/tokens?{query}"))).await.ok();
            let names: Vec<_> = list["tokens"].as_array().unwrap().iter().map(|token| token["name"].clone()).collect();
            assert_eq!(names, expected, "{query}");
            assert_eq!(list["totalCount"], 3);
        }
    }

    async fn callers_see_the_tokens_that_they_could_manage(app) {
        let Place { workspaces: [a, _], deployments: [da, _], organization_token, .. } = place(&app).await;
        let (on_workspace, on_deployment) = (On::Workspace(a), On::Deployment { id: da, workspace_id: a });
        for (held, seen) in [
            (role(On::Organization, "ORGANIZATION_OWNER"), "da db o wa wb"),
            (role(On::Organization, "ORGANIZATION_BILLING_ADMIN"), ""),
            (role(on_workspace.clone(), "WORKSPACE_OWNER"), "da wa"),
            (role(on_workspace.clone(), "WORKSPACE_OPERATOR"), "da wa"),
            (role(on_workspace.clone(), "WORKSPACE_AUTHOR"), ""),
            (role(on_workspace, "WORKSPACE_ACCESSOR"), ""),
            (role(on_deployment.clone(), "DEPLOYMENT_ADMIN"), "da"),
            (role(on_deployment, "DEPLOYMENT_ACCESSOR"), ""),
        ] {
            let name = held.held.name().to_owned();
            let mut all = vec![held];
            if !name.starts_with("ORGANIZATION") {
                all.push(role(On::Organization, "ORGANIZATION_MEMBER"));
            }
            let actor = app.user_with(&name, all).await;
            assert_eq!(names(&app, &actor, "").await, seen, "{name}");
            let list = app.get(&app.owner, &app.path("/tokens")).await.ok();
            for token in list["tokens"].as_array().unwrap() {
                let is_seen = seen.split(' ').any(|name| token["name"] == name);
                let read = app.get(&actor, &path(&app, token["id"].as_str().unwrap())).await;
                assert_eq!(read.code(), if is_seen { 200 } else { 404 }, "{name} reads {}", token["name"]);
            }
        }
        assert_eq!(names(&app, &organization_token, "").await, "");
        let stranger = app.stranger().await;
        assert_eq!(app.get(&stranger, &app.path("/tokens")).await.code(), 404);
    }
}
