//! Others' roles tell nobody of things that it cannot see.

use podium_domain::On;
use podium_testkit::{Actor, TestApp, on_both_engines, role};
use serde_json::{Value, json};

/// What roles are shown: workspaces, deployments, DAGs and tags.
fn shown(holder: &Value) -> [Vec<String>; 3] {
    let each = |list: &str, names: &[&str]| {
        let entries = holder[list].as_array().into_iter().flatten();
        let mut found: Vec<String> = entries
            .map(|entry| {
                names.iter().find_map(|name| entry[*name].as_str()).expect("it names something").to_owned()
            })
            .collect();
        found.sort();
        found
    };
    [
        each("workspaceRoles", &["workspaceId"]),
        each("deploymentRoles", &["deploymentId"]),
        each("dagRoles", &["dagId", "dagTag"]),
    ]
}

fn texts(ids: &[impl ToString]) -> Vec<String> {
    let mut texts: Vec<String> = ids.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

async fn count(app: &TestApp, by: &Actor, path: &str) -> u64 {
    let page = app.get(by, &app.path(path)).await.ok();
    let items =
        ["users", "teams"].iter().find_map(|name| page[*name].as_array()).expect("a page").len() as u64;
    assert_eq!(page["totalCount"], items, "{path}");
    items
}

on_both_engines! {
    async fn members_see_of_others_what_they_could_see_anyway(app) {
        let (open, secret) = (app.workspace("Open").await, app.workspace("Secret").await);
        let (d_open, d_secret) = (app.deployment(open).await, app.deployment(secret).await);
        let on = |id, workspace_id| On::Deployment { id, workspace_id };
        let dag = |deployment_id, workspace_id, dag_id: &str| {
            role(On::Dag { deployment_id, workspace_id, dag_id: dag_id.into() }, "DAG_VIEWER")
        };
        let tag = |deployment_id, workspace_id, tag: &str| {
            role(On::DagTag { deployment_id, workspace_id, tag: tag.into() }, "DAG_VIEWER")
        };
        let member = || role(On::Organization, "ORGANIZATION_MEMBER");
        let held = vec![
            member(),
            role(On::Workspace(open), "WORKSPACE_MEMBER"), role(On::Workspace(secret), "WORKSPACE_OWNER"),
            role(on(d_open, open), "DEPLOYMENT_ADMIN"), role(on(d_secret, secret), "DEPLOYMENT_ADMIN"),
            dag(d_open, open, "etl"), dag(d_secret, secret, "takeover"), tag(d_secret, secret, "salaries"),
        ];
        let ada = app.user_with("ada", held.clone()).await;
        let team = app.team("Team", &[&ada]).await;
        app.set_grants(podium_store::grants::Subject::Team, team, held).await;
        let plain = app.member("plain").await;
        let colleague = app.user_with("colleague", vec![member(), role(On::Workspace(open), "WORKSPACE_MEMBER")]).await;
        let manager = app.user_with("manager", vec![member(), role(On::Workspace(secret), "WORKSPACE_OWNER")]).await;
        let narrow = app.user_with("narrow", vec![member(), dag(d_open, open, "other")]).await;
        let none: [Vec<String>; 3] = Default::default();
        let everything =
            [texts(&[open, secret]), texts(&[d_open, d_secret]), vec!["etl".into(), "salaries".into(), "takeover".into()]];
        let table: [(&str, &Actor, [Vec<String>; 3]); 6] = [
            ("the owner", &app.owner, everything.clone()),
            ("herself", &ada, everything),
            ("a plain member", &plain, none),
            ("a colleague", &colleague, [texts(&[open]), texts(&[d_open]), vec!["etl".into()]]),
            ("a manager", &manager, [texts(&[secret]), texts(&[d_secret]), vec!["salaries".into(), "takeover".into()]]),
            ("one with a DAG there", &narrow, [texts(&[open]), texts(&[d_open]), vec![]]),
        ];
        for (name, viewer, expected) in &table {
            let path = app.path(&format!("/users/{}", ada.id));
            assert_eq!(shown(&app.get(viewer, &path).await.ok()), *expected, "{name}");
            let users = app.get(viewer, &app.path("/users")).await.ok();
            let listed = users["users"].as_array().unwrap().iter().find(|user| user["id"] == json!(ada.id));
            assert_eq!(shown(listed.expect("everybody sees everybody")), *expected, "{name}, in a list");
            let path = app.path(&format!("/teams/{team}"));
            assert_eq!(shown(&app.get(viewer, &path).await.ok()), *expected, "{name}, of her team");
            let teams = app.get(viewer, &app.path(&format!("/users/{}/teams", ada.id))).await.ok();
            assert_eq!(shown(&teams["teams"][0]), *expected, "{name}, of her teams");
            let text = app.get(viewer, &app.path("/teams")).await.text();
            assert_eq!(text.contains("takeover"), expected[2].contains(&"takeover".to_owned()), "{name}");
        }
    }

    async fn filters_do_not_reveal_who_works_on_invisible_resources(app) {
        let secret = app.workspace("Secret").await;
        let deployment = app.deployment(secret).await;
        let dag = On::Dag { deployment_id: deployment, workspace_id: secret, dag_id: "takeover".into() };
        let tag = On::DagTag { deployment_id: deployment, workspace_id: secret, tag: "salaries".into() };
        let member = || role(On::Organization, "ORGANIZATION_MEMBER");
        let ada = app.user_with("ada", vec![member(), role(dag, "DAG_VIEWER"), role(tag, "DAG_VIEWER")]).await;
        let team = app.team("Team", &[]).await;
        let on_it = On::Deployment { id: deployment, workspace_id: secret };
        let held = vec![member(), role(on_it, "DEPLOYMENT_ADMIN")];
        app.set_grants(podium_store::grants::Subject::Team, team, held).await;
        let plain = app.member("plain").await;
        for filter in [
            format!("/users?workspaceId={secret}"),
            format!("/users?deploymentId={deployment}"),
            "/users?dagId=takeover".to_owned(),
            "/users?dagTags=salaries".to_owned(),
            format!("/users?deploymentId={deployment}&dagId=takeover"),
            format!("/teams?workspaceId={secret}"),
            format!("/teams?deploymentId={deployment}"),
        ] {
            assert_eq!(count(&app, &app.owner, &filter).await, 1, "{filter}");
            assert_eq!(count(&app, &plain, &filter).await, 0, "{filter}");
        }
        assert_eq!(count(&app, &ada, "/users?dagId=takeover").await, 1, "she sees it");
        assert_eq!(count(&app, &app.owner, "/users?dagId=salaries").await, 0, "a tag is no DAG");
    }
}
