//! What a call causes beyond the fields that it changes.

use podium_api::enums::ClusterStatus;
use podium_api::{ClusterId, DeploymentId};
use podium_dataplane::{Fault, RunningTasks};
use podium_domain::{On, Permission};
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{call, plan};

const GRACE: &str = "end first, up to the deployment's grace period.";

/// A deployment that was made as users make one, in development mode, and is up.
async fn deployment(app: &TestApp, name: &str, workspace_id: podium_api::WorkspaceId) -> DeploymentId {
    let body = json!({ "name": name, "workspaceId": workspace_id, "isDevelopmentMode": true });
    let made = app.post(&app.owner, &app.path("/deployments"), body).await.ok();
    app.settle().await;
    made["id"].as_str().unwrap().parse().unwrap()
}

fn runs(app: &TestApp, id: DeploymentId, names: &[&str]) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let count = names.len() as u64;
    app.plane.script().lock().running_tasks.insert(id, Ok(RunningTasks { names, count }));
}

async fn effects(app: &TestApp, method: &str, path: &str, body: impl Into<Value>) -> Value {
    let shown = plan(app, &app.owner, &[call(app, method, path, body)]).await;
    assert_eq!(shown["calls"][0]["error"], Value::Null, "{shown}");
    shown["calls"][0]["effects"].clone()
}

/// Deployment `nightly` with another variable.
async fn with_variable(app: &TestApp, id: DeploymentId) -> Value {
    let mut body = app.get(&app.owner, &app.path(&format!("/deployments/{id}"))).await.ok();
    body["environmentVariables"] = json!([{ "key": "NEW", "value": "1", "isSecret": false }]);
    body
}

on_both_engines! {
    async fn a_plan_shows_the_running_tasks_that_a_restart_waits_for(app) {
        let id = deployment(&app, "nightly", app.workspace("Data").await).await;
        runs(&app, id, &["sales/run-1/load", "sales/run-1/check[2]"]);
        let body = with_variable(&app, id).await;
        let path = format!("/deployments/{id}");
        let found = effects(&app, "POST", &path, body.clone()).await;
        let now = app.world.now();
        assert_eq!(found[0]["type"], "RESTART");
        assert_eq!(found[1], json!({
            "type": "DRAIN", "message": format!("Running tasks of nightly {GRACE}"),
            "names": ["sales/run-1/load", "sales/run-1/check[2]"], "count": 2, "observedAt": now,
        }));
        runs(&app, id, &[]);
        let idle = effects(&app, "POST", &path, body.clone()).await;
        assert_eq!(idle[1], json!({ "type": "DRAIN", "message": "No task of nightly is running.", "names": [], "count": 0, "observedAt": now }));
        app.plane.script().lock().running_tasks.insert(id, Err(Fault::Failed("its API returned status 500".into())));
        let unknown = effects(&app, "POST", &path, body).await;
        assert_eq!(unknown[1]["message"], "Which tasks of nightly are running is not known: its API returned status 500.");
        assert_eq!(unknown[1]["count"], Value::Null);
    }

    async fn what_restarts_nothing_asks_no_environment(app) {
        let id = deployment(&app, "nightly", app.workspace("Data").await).await;
        runs(&app, id, &["sales/run-1/load"]);
        let mut body = app.get(&app.owner, &app.path(&format!("/deployments/{id}"))).await.ok();
        body["description"] = json!("Sales of the day");
        assert_eq!(effects(&app, "POST", &format!("/deployments/{id}"), body).await, json!([]));
        let workspace = app.workspace("Other").await;
        let made = json!({ "name": "new", "workspaceId": workspace, "environmentVariables": [{ "key": "A", "value": "1", "isSecret": false }] });
        assert_eq!(effects(&app, "POST", "/deployments", made).await, json!([]), "nothing runs yet that could restart");
    }

    async fn hibernation_waits_for_running_tasks_and_deletion_where_that_is_asked_for(app) {
        let id = deployment(&app, "nightly", app.workspace("Data").await).await;
        runs(&app, id, &["sales/run-1/load"]);
        let types = |effects: &Value| effects.as_array().unwrap().iter().map(|it| format!("{}: {}", it["type"].as_str().unwrap(), it["message"].as_str().unwrap())).collect::<Vec<_>>();
        let path = format!("/deployments/{id}");
        let sleeps = effects(&app, "POST", &format!("{path}/hibernation-override"), json!({ "isHibernating": true })).await;
        assert_eq!(types(&sleeps), [
            "STOP: Its environment is stopped once running tasks have ended, at the latest after the deployment's grace period.".to_owned(),
            format!("DRAIN: Running tasks of nightly {GRACE}"),
        ]);
        let deleted = effects(&app, "DELETE", &path, Value::Null).await;
        assert_eq!(types(&deleted), [
            "STOP: Its environment is stopped and its data is deleted.", "STOP: Running tasks of nightly are stopped.",
        ]);
        let drained = effects(&app, "DELETE", &format!("{path}?drain=true"), Value::Null).await;
        assert_eq!(types(&drained)[1], format!("DRAIN: Running tasks of nightly {GRACE}"));
    }

    async fn a_move_to_another_workspace_says_what_restarts_and_what_it_leaves(app) {
        let id = deployment(&app, "nightly", app.workspace("Data").await).await;
        let mut body = with_variable(&app, id).await;
        body["workspaceId"] = json!(app.workspace("Other").await);
        let found = effects(&app, "POST", &format!("/deployments/{id}"), body).await;
        let types: Vec<&Value> = found.as_array().unwrap().iter().map(|effect| &effect["type"]).collect();
        assert_eq!(types, ["RESTART", "ACCESS"], "{found}");
    }

    async fn an_environment_object_names_the_deployments_that_restart(app) {
        let workspace = app.workspace("Data").await;
        let first = deployment(&app, "first", workspace).await;
        deployment(&app, "second", workspace).await;
        runs(&app, first, &["sales/run-1/load"]);
        let object = json!({
            "objectKey": "STAGE", "objectType": "ENVIRONMENT_VARIABLE", "scope": "WORKSPACE", "scopeEntityId": workspace,
            "environmentVariable": { "value": "v" }, "autoLinkDeployments": true,
        });
        let found = effects(&app, "POST", "/environment-objects", object.clone()).await;
        assert_eq!((&found[0]["type"], &found[0]["count"]), (&json!("RESTART"), &json!(2)), "{found}");
        let mut names: Vec<&str> = found[0]["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["first", "second"]);
        assert_eq!(found[1]["message"], format!("Running tasks of first {GRACE}"));
        assert_eq!(found[2], Value::Null, "the other one has no web server that could be asked");
        let may = Permission::known("workspace.envObjects.create");
        let author = app.holder_of("ana", may, On::Workspace(workspace)).await;
        let shown = plan(&app, &author, &[call(&app, "POST", "/environment-objects", object)]).await;
        assert_eq!(shown["calls"][0]["effects"], json!([]), "of deployments that they may not see: {shown}");
    }

    async fn a_failover_names_the_deployments_that_move(app) {
        let (mine, theirs) = (app.workspace("Mine").await, app.workspace("Theirs").await);
        let cluster = json!({
            "cloudProvider": "AWS", "name": "Main", "type": "DEDICATED", "vpcSubnetRange": "172.20.0.0/20",
            "region": "us-east-1", "drRegion": "us-west-2",
        });
        let cluster = app.post(&app.owner, &app.path("/clusters"), cluster).await.ok();
        let cluster: ClusterId = cluster["id"].as_str().unwrap().parse().unwrap();
        app.settle_cluster(cluster, ClusterStatus::Created).await;
        let change = |is_failed_over| {
            json!({ "clusterType": "DEDICATED", "name": "Main", "k8sTags": [], "isFailedOver": is_failed_over })
        };
        let path = format!("/clusters/{cluster}");
        assert_eq!(effects(&app, "POST", &path, change(true)).await, json!([]), "no deployment runs there");
        for (name, workspace) in [("nightly", mine), ("hourly", mine), ("other", theirs)] {
            let id = deployment(&app, name, workspace).await;
            app.set_column("deployments", id, "cluster_id", &format!("'{cluster}'")).await;
        }
        let moved = |to: &str, names: &[&str]| {
            let message = format!("These deployments move {to} region. Their ids, names and URLs stay.");
            json!([{ "type": "RESTART", "message": message, "names": names, "count": names.len() }])
        };
        let all = ["hourly", "nightly", "other"];
        assert_eq!(effects(&app, "POST", &path, change(true)).await, moved("to the standby", &all));
        assert_eq!(effects(&app, "POST", &path, change(false)).await, json!([]), "it is there already");
        app.post(&app.owner, &app.path(&path), change(true)).await.ok();
        app.settle_cluster(cluster, ClusterStatus::Created).await;
        assert_eq!(effects(&app, "POST", &path, change(false)).await, moved("back to the primary", &all));
    }

    async fn a_plan_shows_whose_access_changes(app) {
        let (ana, bea) = (app.member("ana").await, app.member("bea").await);
        let team = app.team("Analysts", &[&ana, &bea]).await;
        let access = async |method: &str, path: &str, body: Value| {
            let found = effects(&app, method, path, body).await;
            let of_access: Vec<Value> = found.as_array().unwrap().iter().filter(|it| it["type"] == "ACCESS").cloned().collect();
            assert_eq!(of_access.len(), 1, "{found}");
            let mut names: Vec<String> = of_access[0]["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
            names.sort();
            (of_access[0]["message"].as_str().unwrap().to_owned(), names, of_access[0]["count"].clone())
        };
        let (_, names, count) = access("POST", &format!("/teams/{team}/roles"), json!({ "organizationRole": "ORGANIZATION_BILLING_ADMIN" })).await;
        assert_eq!(count, 2);
        let two = names.clone();
        assert_eq!(two.len(), 2);
        let (message, names, _) = access("DELETE", &format!("/teams/{team}"), Value::Null).await;
        assert_eq!((message.as_str(), names), ("Its members lose what they may do through the team.", two.clone()));
        let (_, names, _) = access("POST", &format!("/users/{}/roles", ana.id), json!({ "organizationRole": "ORGANIZATION_OWNER" })).await;
        assert_eq!(names, [two[0].clone()]);
        let (message, _, _) = access("DELETE", &format!("/teams/{team}/members/{}", ana.id), Value::Null).await;
        assert_eq!(message, "The member loses what the roles of Analysts allow.");
        let workspace = app.workspace("Data").await;
        let token = app.token("ci", "WORKSPACE", workspace, "WORKSPACE_MEMBER").await;
        let (_, names, _) = access("DELETE", &format!("/tokens/{}", token.id), Value::Null).await;
        assert_eq!(names, ["ci"]);
        let role = app.custom_role("Reader", "DEPLOYMENT", &["deployment.get"]).await;
        let id = deployment(&app, "nightly", app.workspace("Other").await).await;
        let give = json!({
            "organizationRole": "ORGANIZATION_MEMBER",
            "workspaceRoles": [{ "workspaceId": workspace, "role": "WORKSPACE_MEMBER" }],
            "deploymentRoles": [{ "deploymentId": id, "role": "Reader" }],
        });
        app.post(&app.owner, &app.path(&format!("/users/{}/roles", bea.id)), give).await.ok();
        let change = json!({ "name": "Reader", "description": "", "permissions": ["deployment.get", "deployment.logs.get"] });
        let (message, names, count) = access("POST", &format!("/roles/{role}"), change).await;
        assert_eq!((message.as_str(), names, count), ("What the holders of this role may do changes with it.", vec![two[1].clone()], json!(1)));
        let (message, names, _) = access("DELETE", &format!("/workspaces/{workspace}"), Value::Null).await;
        assert_eq!((message.as_str(), names), ("These users lose the roles that they have in the workspace.", vec![two[1].clone()]));
    }
}
