//! `resolveLinked`: what a deployment is given.

use std::time::Duration;

use podium_api::{DeploymentId, Id};
use podium_domain::On;
use podium_domain::environment_objects::environment;
use podium_testkit::{TestApp, on_both_engines, role};
use serde_json::{Value, json};

use super::{ALL, keys, made, to, variable, variable_of, with};

fn overriding(deployment: DeploymentId, value: &str) -> Value {
    let overrides = json!({ "environmentVariable": { "value": value } });
    json!({ "links": [with(to(deployment), json!({ "overrides": overrides }))] })
}

/// What a deployment is given, as `key=value@scope`, by key.
async fn given(app: &TestApp, deployment: DeploymentId) -> Vec<String> {
    let path = app.path(&format!("{ALL}?resolveLinked=true&deploymentId={deployment}&sorts=objectKey:asc"));
    let page = app.get(&app.owner, &path).await.ok();
    let objects = page["environmentObjects"].as_array().unwrap();
    assert_eq!(page["totalCount"], objects.len());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let show = |object: &Value| {
        assert_eq!(object.get("id"), None);
        assert_eq!((&object["scope"], &object["scopeEntityId"]), (&json!("DEPLOYMENT"), &json!(deployment)));
        let value = text(&object["environmentVariable"]["value"]);
        format!("{}={value}@{}", text(&object["objectKey"]), text(&object["sourceScope"]))
    };
    objects.iter().map(show).collect()
}

on_both_engines! {
    async fn the_nearer_beats_the_farther(app) {
        let workspace = app.workspace("Data").await;
        let (one, two) = (app.deployment(workspace).await, app.deployment(workspace).await);
        let auto = || json!({ "autoLinkDeployments": true });
        for request in [
            with(variable("A", workspace, "workspace"), auto()),
            variable_of(one, "A", "own"),
            with(variable("B", workspace, "workspace"), overriding(one, "link")),
            with(variable("C", workspace, "workspace"), with(auto(), json!({ "excludeLinks": [to(one)] }))),
            with(variable("D", workspace, "workspace"), auto()),
            variable("E", workspace, "linked to nobody"),
            variable_of(two, "F", "own"),
        ] {
            made(&app, request).await;
        }
        made(&app, with(variable("D", app.workspace("Other").await, "elsewhere"), auto())).await;
        assert_eq!(given(&app, one).await, ["A=own@DEPLOYMENT", "B=link@WORKSPACE", "D=workspace@WORKSPACE"]);
        assert_eq!(given(&app, two).await, [
            "A=workspace@WORKSPACE", "C=workspace@WORKSPACE", "D=workspace@WORKSPACE", "F=own@DEPLOYMENT",
        ]);
        let spec = "REPLACE(spec, '\"environmentVariables\":[]', \
            '\"environmentVariables\":[{\"key\":\"A\",\"value\":\"v\",\"secret\":null,\"updatedAt\":\"2027-01-15T08:00:00Z\"}]')";
        app.set_column("deployments", one, "spec", spec).await;
        assert_eq!(given(&app, one).await, ["B=link@WORKSPACE", "D=workspace@WORKSPACE"]);
    }

    async fn a_resolved_object_shows_its_source_and_which_fields_are_set(app) {
        let workspace = app.workspace("Data").await;
        let one = app.deployment(workspace).await;
        let overrides = json!({ "connection": { "password": "own", "extra": { "b": "2" } } });
        made(&app, json!({
            "objectKey": "db", "objectType": "CONNECTION", "scope": "WORKSPACE", "scopeEntityId": workspace,
            "connection": { "type": "postgres", "host": "db", "extra": { "a": "1" } },
            "links": [with(to(one), json!({ "overrides": overrides }))],
        })).await;
        let path = app.path(&format!("{ALL}?resolveLinked=true&deploymentId={one}"));
        let page = app.get(&app.owner, &path).await.ok();
        let object = &page["environmentObjects"][0];
        assert_eq!(
            (&object["sourceScope"], &object["sourceScopeEntityId"]),
            (&json!("WORKSPACE"), &json!(workspace))
        );
        assert_eq!(object["setFields"], json!(["type", "host", "password", "extra.a", "extra.b"]));
        assert_eq!(object["connection"], json!({ "type": "postgres", "host": "db", "password": "", "extra": { "a": "", "b": "" } }));
        assert_eq!((&object["links"], &object["excludeLinks"]), (&json!([]), &json!([])));
    }

    async fn resolved_objects_are_filtered_sorted_and_paged(app) {
        let workspace = app.workspace("Data").await;
        let one = app.deployment(workspace).await;
        for (index, key) in ["B", "A", "C"].iter().enumerate() {
            made(&app, with(variable(key, workspace, "v"), json!({ "autoLinkDeployments": true }))).await;
            app.advance(Duration::from_secs(index as u64));
        }
        made(&app, json!({
            "objectKey": "A", "objectType": "CONNECTION", "scope": "DEPLOYMENT", "scopeEntityId": one,
            "connection": { "type": "http" },
        })).await;
        let resolved = format!("resolveLinked=true&deploymentId={one}");
        for (query, expected) in [
            ("", &["A", "C", "A", "B"][..]),
            ("&sorts=objectKey:asc&sorts=objectType:asc", &["A", "A", "B", "C"]),
            ("&sorts=objectKey:desc&limit=2&offset=1", &["B", "A"]),
            ("&objectType=CONNECTION", &["A"]),
            ("&objectKey=B", &["B"]),
            ("&limit=0", &[]),
            (&format!("&workspaceId={workspace}&objectKey=C"), &["C"]),
            (&format!("&workspaceId={}", app.world.id::<Id>()), &[]),
        ] {
            assert_eq!(keys(&app, &app.owner, &format!("{resolved}{query}")).await, expected, "{query}");
        }
    }

    async fn without_a_deployment_objects_are_listed_as_they_are(app) {
        let workspace = app.workspace("Data").await;
        let one = app.deployment(workspace).await;
        let linked = with(variable("A", workspace, "workspace"), overriding(one, "link"));
        for request in [linked, variable("B", workspace, "linked to nobody"), variable_of(one, "C", "own")] {
            made(&app, request).await;
        }
        made(&app, variable("D", app.workspace("Other").await, "elsewhere")).await;
        let member = |on: On| vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(on, "WORKSPACE_AUTHOR")];
        let author = app.user_with("author", member(On::Workspace(workspace))).await;
        for by in [&app.owner, &author] {
            let page = async |query: &str| app.get(by, &app.path(&format!("{ALL}?sorts=objectKey:asc{query}"))).await.ok();
            for of in [format!("&workspaceId={workspace}"), format!("&workspaceId={workspace}&deploymentId=")] {
                let listed = page(&format!("{of}&resolveLinked=true")).await;
                assert_eq!(listed, page(&of).await, "{of}");
                assert_eq!(listed["totalCount"], 2);
                let first = &listed["environmentObjects"][0];
                assert!(first["id"].is_string(), "they have their ids");
                assert_eq!(first["environmentVariable"]["value"], "workspace", "and values of their own");
                assert_eq!(first["links"][0]["scopeEntityId"], json!(one));
            }
            assert_eq!(page("&resolveLinked=true").await, page("").await, "and so are those of all workspaces");
        }
        let stranger = app.member("plain").await;
        let nothing = keys(&app, &stranger, &format!("resolveLinked=true&workspaceId={workspace}")).await;
        assert_eq!(nothing, Vec::<String>::new());
    }

    async fn a_deployment_that_is_not_seen_is_not_resolved(app) {
        let workspace = app.workspace("Data").await;
        let one = app.deployment(workspace).await;
        let list = async |by: &podium_testkit::Actor, query: &str| {
            app.get(by, &app.path(&format!("{ALL}?resolveLinked=true{query}"))).await
        };
        list(&app.owner, &format!("&deploymentId={}", app.world.id::<Id>())).await.refused(404);
        list(&app.owner, "&deploymentId=nonsense").await.refused(404);
        list(&app.member("plain").await, &format!("&deploymentId={one}")).await.refused(404);
        let on = On::Deployment { id: one, workspace_id: workspace };
        let held = |name: &str| vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(on.clone(), name)];
        let accessor = app.user_with("accessor", held("DEPLOYMENT_ACCESSOR")).await;
        list(&accessor, &format!("&deploymentId={one}")).await.refused(403);
        let admin = app.user_with("admin", held("DEPLOYMENT_ADMIN")).await;
        list(&admin, &format!("&deploymentId={one}")).await.ok();
    }

    async fn the_loops_are_given_the_environment_with_secrets(app) {
        let workspace = app.workspace("Data").await;
        let one = app.deployment(workspace).await;
        made(&app, json!({
            "objectKey": "db", "objectType": "CONNECTION", "scope": "WORKSPACE", "scopeEntityId": workspace,
            "connection": { "type": "postgres", "host": "db", "password": "p" }, "autoLinkDeployments": true,
        })).await;
        made(&app, json!({
            "objectKey": "limit", "objectType": "AIRFLOW_VARIABLE", "scope": "DEPLOYMENT", "scopeEntityId": one,
            "airflowVariable": { "value": "7", "isSecret": true },
        })).await;
        let system = app.system;
        let (application, scope) = (app.app.clone(), app.scope());
        let variables = app.app.db(&app.system).scan(None, move |conn| {
            let deployment = podium_store::deployments::get(conn, &scope, one)?.expect("it is there");
            let given = podium_app::environment_objects::resolved_for(&application, &system, conn, &deployment)?;
            Ok::<_, podium_app::Error>(environment::variables(&given))
        });
        let variables: Vec<(String, String)> = variables.await.expect("it reads").into_iter().collect();
        let expected = [
            ("AIRFLOW_CONN_DB", r#"{"conn_type":"postgres","password":"p","host":"db"}"#),
            ("AIRFLOW_VAR_LIMIT", "7"),
        ];
        assert_eq!(variables, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
