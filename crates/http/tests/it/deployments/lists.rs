//! Lists of deployments: filters, order, pages, and who sees what.

use podium_api::Id;
use std::time::Duration;

use podium_domain::On;
use podium_testkit::{Actor, TestApp, on_both_engines, role};
use serde_json::json;

use super::{made, names, path, read, update, with};

async fn listed(app: &TestApp, actor: &Actor, query: &str) -> Vec<String> {
    let list = app.get(actor, &app.path(&format!("/deployments?{query}"))).await.ok();
    let names = names(&list);
    if !query.contains("limit") && !query.contains("offset") {
        assert_eq!(list["totalCount"], names.len(), "{query}");
    }
    names.into_iter().map(str::to_owned).collect()
}

on_both_engines! {
    async fn a_list_shows_what_reading_each_shows(app) {
        let workspace = app.workspace("Analytics").await;
        let first = made(&app, workspace, json!({ "name": "a", "isDevelopmentMode": true })).await;
        app.advance(Duration::from_secs(1));
        let second = made(&app, workspace, json!({ "name": "b" })).await;
        let list = app.get(&app.owner, &app.path("/deployments")).await.ok();
        assert_eq!(list, json!({
            "deployments": [read(&app, second).await, read(&app, first).await], "limit": 20, "offset": 0, "totalCount": 2,
        }));
    }

    async fn a_resource_is_rendered_anew_after_a_change(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({ "name": "a" })).await;
        let shown = async || {
            let list = app.get(&app.owner, &app.path("/deployments")).await.ok();
            let one = read(&app, id).await;
            assert_eq!(list["deployments"][0], one);
            [&one["workspaceName"], &one["status"], &one["createdBy"]["fullName"]].map(Clone::clone)
        };
        let before = shown().await;
        assert_eq!(before, shown().await);
        // Each changes something that another row says, or that no caller has written.
        app.set_column("workspaces", workspace, "name", "'Science'").await;
        assert_eq!(shown().await, [json!("Science"), before[1].clone(), before[2].clone()]);
        app.set_column("deployments", id, "status", "'UNHEALTHY'").await;
        assert_eq!(shown().await, [json!("Science"), json!("UNHEALTHY"), before[2].clone()]);
        app.set_column("subjects", app.owner.id, "full_name", "'Somebody Else'").await;
        assert_eq!(shown().await, [json!("Science"), json!("UNHEALTHY"), json!("Somebody Else")]);
    }

    async fn a_page_that_is_too_large_for_a_worker_is_complete_too(app) {
        let workspace = app.workspace("Analytics").await;
        let mut ids = Vec::new();
        for name in ["a", "b", "c", "d"] {
            let variable = |number| json!({ "key": format!("KEY_{number}"), "value": "v".repeat(4000), "isSecret": false });
            let variables: Vec<_> = (0..30).map(variable).collect();
            ids.push(made(&app, workspace, json!({ "name": name, "environmentVariables": variables })).await);
            app.advance(Duration::from_secs(1));
        }
        let list = app.get(&app.owner, &app.path("/deployments")).await.ok();
        let mut expected = Vec::new();
        for id in ids.into_iter().rev() {
            expected.push(read(&app, id).await);
        }
        assert_eq!(list["deployments"], json!(expected));
        assert_eq!(list["totalCount"], 4);
        assert_eq!(app.get(&app.owner, &app.path("/deployments")).await.ok(), list);
    }

    async fn nothing_is_an_empty_list(app) {
        let list = app.get(&app.owner, &app.path("/deployments")).await.ok();
        assert_eq!(list, json!({ "deployments": [], "limit": 20, "offset": 0, "totalCount": 0 }));
    }

    async fn filters_narrow_and_combine(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let one = made(&app, here, json!({ "name": "one" })).await;
        made(&app, here, json!({ "name": "Two" })).await;
        let three = made(&app, there, json!({ "name": "one" })).await;
        let owner = &app.owner;
        for (query, expected) in [
            (format!("workspaceIds={here}&sorts=name:asc"), vec!["one", "Two"]),
            (format!("workspaceIds={here}&workspaceIds={there}&names=ONE"), vec!["one", "one"]),
            ("names=one&names=two&sorts=name:asc".to_owned(), vec!["one", "one", "Two"]),
            (format!("deploymentIds={one}&deploymentIds={three}"), vec!["one", "one"]),
            (format!("deploymentIds={one}&workspaceIds={there}"), vec![]),
            (format!("deploymentIds={}", app.world.id::<Id>()), vec![]),
            ("deploymentIds=nonsense".to_owned(), vec![]),
            ("names=&workspaceIds=&deploymentIds=&sorts=name:asc".to_owned(), vec!["one", "one", "Two"]),
        ] {
            assert_eq!(listed(&app, owner, &query).await, expected, "{query}");
        }
    }

    async fn newest_first_unless_sorted_and_in_pages(app) {
        let workspace = app.workspace("Analytics").await;
        for name in ["b", "C", "a", "d"] {
            app.advance(Duration::from_secs(1));
            made(&app, workspace, json!({ "name": name })).await;
        }
        let owner = &app.owner;
        assert_eq!(listed(&app, owner, "").await, ["d", "a", "C", "b"]);
        assert_eq!(listed(&app, owner, "sorts=name:asc").await, ["a", "b", "C", "d"]);
        assert_eq!(listed(&app, owner, "sorts=name:desc&limit=2").await, ["d", "C"]);
        assert_eq!(listed(&app, owner, "limit=2&offset=1").await, ["a", "C"]);
        assert_eq!(listed(&app, owner, "limit=0").await, Vec::<String>::new());
        let first = app.get(owner, &app.path("/deployments?names=b")).await.ok()["deployments"][0].clone();
        app.advance(Duration::from_secs(1));
        let at = path(&app, first["id"].as_str().unwrap());
        app.post(owner, &at, update(&first, json!({}))).await.ok();
        assert_eq!(listed(&app, owner, "sorts=updatedAt:desc").await, ["b", "d", "a", "C"]);
        let page = app.get(owner, &app.path("/deployments?limit=5000")).await.ok();
        assert_eq!((&page["limit"], &page["totalCount"]), (&json!(1000), &json!(4)));
    }

    async fn everybody_sees_the_deployments_that_it_has_a_role_in(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let one = made(&app, here, json!({ "name": "one" })).await;
        made(&app, here, json!({ "name": "two" })).await;
        let three = made(&app, there, json!({ "name": "three" })).await;
        let member = || role(On::Organization, "ORGANIZATION_MEMBER");
        let on_one = On::Deployment { id: one, workspace_id: here };
        let dag = On::Dag { deployment_id: three, workspace_id: there, dag_id: "etl".into() };
        let user = async |name: &str, held| app.user_with(name, held).await;
        let of_here = user("of here", vec![member(), role(On::Workspace(here), "WORKSPACE_MEMBER")]).await;
        let accessor = user("accessor", vec![member(), role(On::Workspace(here), "WORKSPACE_ACCESSOR")]).await;
        let admin = user("admin", vec![member(), role(on_one.clone(), "DEPLOYMENT_ADMIN")]).await;
        let both = user("both", vec![member(), role(on_one, "DEPLOYMENT_ACCESSOR"), role(dag, "DAG_VIEWER")]).await;
        let nobody = app.member("nobody").await;
        let ci = app.token("ci", "WORKSPACE", there, "WORKSPACE_MEMBER").await;
        let own = app.token("own", "DEPLOYMENT", one, "DEPLOYMENT_ACCESSOR").await;
        let of_all = app.token("all", "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
        let none = Vec::<&str>::new();
        for (name, actor, expected) in [
            ("owner", &app.owner, vec!["one", "three", "two"]),
            ("of here", &of_here, vec!["one", "two"]),
            ("accessor", &accessor, none.clone()),
            ("admin", &admin, vec!["one"]),
            ("both", &both, vec!["one", "three"]),
            ("nobody", &nobody, none.clone()),
            ("ci", &ci, vec!["three"]),
            ("own", &own, vec!["one"]),
            ("all", &of_all, vec!["one", "three", "two"]),
        ] {
            assert_eq!(listed(&app, actor, "sorts=name:asc").await, expected, "{name}");
            let first = app.get(actor, &app.path("/deployments?sorts=name:asc&limit=1")).await.ok();
            assert_eq!(first["totalCount"], expected.len(), "{name}");
            let asked = format!("deploymentIds={one}");
            let sees_one = expected.contains(&"one");
            assert_eq!(listed(&app, actor, &asked).await.len(), usize::from(sees_one), "{name}");
            let code = app.get(actor, &path(&app, one)).await.code();
            assert_eq!(code, if sees_one { 200 } else { 404 }, "{name}");
        }
    }

    async fn a_list_shows_only_what_its_caller_may_read(app) {
        let workspace = app.workspace("Analytics").await;
        let mine = made(&app, workspace, json!({ "name": "mine" })).await;
        made(&app, workspace, json!({ "name": "other" })).await;
        app.custom_role("Log reader", "DEPLOYMENT", &["deployment.logs.get"]).await;
        app.custom_role("Onlooker", "DEPLOYMENT", &["deployment.get"]).await;
        let names = Vec::<&str>::new;
        for (role, code, expected) in [("Log reader", 403, names()), ("Onlooker", 200, vec!["mine"])] {
            let token = app.token(role, "DEPLOYMENT", mine, role).await;
            let user = app.member(role).await;
            let roles = json!({ "deploymentRoles": [{ "deploymentId": mine, "role": role }] });
            app.post(&app.owner, &app.path(&format!("/users/{}/roles", user.id)), roles).await.ok();
            for actor in [token, user] {
                assert_eq!(app.get(&actor, &path(&app, mine)).await.code(), code, "{role}");
                for query in [String::new(), format!("deploymentIds={mine}"), format!("workspaceIds={workspace}")] {
                    assert_eq!(listed(&app, &actor, &query).await, expected, "{role}: {query}");
                }
            }
        }
    }

    async fn organizations_see_nothing_of_each_other(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({ "name": "Reports" })).await;
        let stranger = app.stranger().await;
        let own = app.get(&stranger, "/v1/organizations").await.ok()["organizations"][0]["id"].clone();
        let there = format!("/v1/organizations/{}", own.as_str().unwrap());
        let list = format!("{there}/deployments");
        assert_eq!(app.get(&stranger, &list).await.ok()["totalCount"], 0);
        let asked = format!("{list}?deploymentIds={id}&workspaceIds={workspace}");
        assert_eq!(app.get(&stranger, &asked).await.ok()["totalCount"], 0);
        let body = update(&read(&app, id).await, json!({}));
        for method in ["GET", "POST", "DELETE"] {
            let call = app.call(method, &format!("{list}/{id}")).by(&stranger).json(&body);
            assert_eq!(call.send().await.refused(404), "There is no such deployment, or you may not see it.");
        }
        for rest in ["hibernation-override", "agent-tokens"] {
            let call = app.call("POST", &format!("{list}/{id}/{rest}")).by(&stranger);
            call.json(&json!({ "isHibernating": true, "name": "x" })).send().await.refused(404);
        }
        let body = json!({ "name": "Mine", "workspaceId": workspace });
        assert_eq!(app.post(&stranger, &list, body.clone()).await.code(), 404);
        let theirs = app.post(&stranger, &format!("{there}/workspaces"), json!({ "name": "Theirs" })).await.id();
        let same = app.post(&stranger, &list, with(body, json!({ "workspaceId": theirs, "name": "Reports" }))).await;
        assert_eq!(same.ok()["organizationId"], own);
        assert_eq!(app.get(&app.owner, &app.path("/deployments")).await.ok()["totalCount"], 1);
    }
}

on_both_engines! {
    async fn the_total_of_one_workspace_follows_creation_removal_and_moves(app) {
        let (from, to) = (app.workspace("From").await, app.workspace("To").await);
        let total = async |workspace: &str| {
            let list = app.get(&app.owner, &app.path(&format!("/deployments?workspaceIds={workspace}"))).await.ok();
            (list["totalCount"].as_u64().unwrap(), list["deployments"].as_array().unwrap().len())
        };
        let (first, second) = (made(&app, from, json!({ "name": "1" })).await, made(&app, from, json!({ "name": "2" })).await);
        assert_eq!((total(from.as_str()).await, total(to.as_str()).await), ((2, 2), (0, 0)));
        app.post(&app.owner, &path(&app, first), update(&read(&app, first).await, json!({ "workspaceId": to }))).await.ok();
        assert_eq!((total(from.as_str()).await, total(to.as_str()).await), ((1, 1), (1, 1)));
        app.delete(&app.owner, &path(&app, second)).await;
        assert_eq!((total(from.as_str()).await, total(to.as_str()).await), ((0, 0), (1, 1)));
        assert_eq!(total("no-such-workspace").await, (0, 0));
        assert_eq!(total(app.world.id::<Id>().as_str()).await, (0, 0));
    }
}
