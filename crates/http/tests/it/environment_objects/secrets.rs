//! Secrets go in and do not come out, unless the server allows it and the caller may change them anyway.

use podium_api::{DeploymentId, WorkspaceId};
use podium_domain::On;
use podium_testkit::{Actor, Engine, TestApp, block_on, on_both_engines, role};
use serde_json::{Value, json};

use super::{ALL, create, made, path, read, to, variable, with};

/// Requests with a secret in every place that takes one.
fn planted(workspace: WorkspaceId, deployment: DeploymentId) -> [Value; 4] {
    let of = |object_type: &str, more: Value| {
        let base = json!({
            "objectKey": "KEY", "objectType": object_type, "scope": "WORKSPACE", "scopeEntityId": workspace,
        });
        with(base, more)
    };
    let linked = |overrides: Value| json!([with(to(deployment), json!({ "overrides": overrides }))]);
    let connection = |word: &str| {
        json!({
            "type": "http", "password": format!("planted {word} password"),
            "extra": { "token": format!("planted {word} extra"), "deep": { "er": [format!("planted {word} deep")] } },
        })
    };
    let export = |word: &str| {
        json!({
            "endpoint": "https://m.example.com", "exporterType": "PROMETHEUS", "authType": "BASIC", "username": "u",
            "password": format!("planted {word} password"), "basicToken": format!("planted {word} token"),
            "headers": { "X-Key": format!("planted {word} header") },
        })
    };
    let secret = json!({ "value": "planted value", "isSecret": true });
    let override_value = json!({ "value": "planted override" });
    [
        of(
            "CONNECTION",
            json!({ "connection": connection("own"), "links": linked(json!({ "connection": connection("override") })) }),
        ),
        of(
            "METRICS_EXPORT",
            json!({ "metricsExport": export("own"), "links": linked(json!({ "metricsExport": export("override") })) }),
        ),
        of(
            "AIRFLOW_VARIABLE",
            json!({ "airflowVariable": secret, "links": linked(json!({ "airflowVariable": override_value })) }),
        ),
        of(
            "ENVIRONMENT_VARIABLE",
            json!({ "environmentVariable": secret, "links": linked(json!({ "environmentVariable": override_value })) }),
        ),
    ]
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

on_both_engines! {
    async fn a_secret_is_found_nowhere(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let mut answers = Vec::new();
        let mut places = Vec::new();
        for request in planted(workspace, deployment) {
            let answer = create(&app, &app.owner, request.clone()).await;
            places.push(path(&app, &answer.id()));
            answers.push(answer);
            answers.push(create(&app, &app.owner, request).await);
        }
        for (at, request) in places.iter().zip(planted(workspace, deployment)) {
            answers.push(app.post(&app.owner, at, request.clone()).await);
            answers.push(app.call("POST", at).by(&app.owner).header("idempotency-key", "k").json(&request).send().await);
            let mut wrong = request;
            wrong["description"] = json!(["no text"]);
            wrong["links"][0]["scopeEntityId"] = json!("no id");
            answers.push(app.post(&app.owner, at, wrong).await);
            answers.push(app.get(&app.owner, at).await);
        }
        answers.push(app.get(&app.owner, &app.path(ALL)).await);
        answers.push(app.get(&app.owner, &app.path(&format!("{ALL}?resolveLinked=true&deploymentId={deployment}"))).await);
        answers.push(app.get(&app.owner, &app.path("/audit-logs")).await);
        for answer in &answers {
            assert!(!holds(&answer.bytes, "planted"), "{}", answer.text());
        }
        let stored = app.stored().await;
        assert!(holds(&stored, "https://m.example.com"), "what is no secret is there to be found");
        assert!(!holds(&stored, "planted"), "a secret is in the database");
        assert!(!places.is_empty());
    }

    async fn secrets_are_listed_as_set_and_kept_when_written_empty(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let [connection, export, ..] = planted(workspace, deployment);
        let shown = read(&app, &made(&app, connection).await).await;
        assert_eq!(shown["connection"], json!({ "type": "http", "password": "", "extra": { "deep": "", "token": "" } }));
        assert_eq!(shown["setFields"], json!(["type", "password", "extra.deep", "extra.token"]));
        assert_eq!(shown["links"], json!([{
            "scope": "DEPLOYMENT", "scopeEntityId": deployment,
            "setFields": ["type", "password", "extra.deep", "extra.token"],
            "connectionOverrides": { "type": "http", "password": "", "extra": { "deep": "", "token": "" } },
        }]));
        let at = made(&app, export).await;
        let shown = read(&app, &at).await;
        assert_eq!(shown["metricsExport"], json!({
            "endpoint": "https://m.example.com", "exporterType": "PROMETHEUS", "authType": "BASIC", "username": "u",
            "password": "", "basicToken": "", "headers": { "X-Key": "" },
        }));
        let back = json!({ "metricsExport": shown["metricsExport"] });
        assert_eq!(app.post(&app.owner, &at, back).await.ok()["setFields"], shown["setFields"]);
    }

    async fn secrets_are_not_shown_where_the_server_does_not_allow_it(app) {
        let message = app.get(&app.owner, &app.path(&format!("{ALL}?showSecrets=true"))).await.refused(403);
        assert!(message.starts_with("showSecrets is not allowed by the organization"), "{message}");
        app.get(&app.owner, &app.path(&format!("{ALL}?showSecrets=false"))).await.ok();
    }
}

async fn where_the_server_allows_it(engine: Engine) {
    let app = TestApp::start_with(engine, |config, _| config.show_secrets = true).await;
    let workspace = app.workspace("Data").await;
    let deployment = app.deployment(workspace).await;
    for request in planted(workspace, deployment) {
        made(&app, request).await;
    }
    made(&app, variable("PLAIN", workspace, "v")).await;
    let list = async |by: &Actor, query: &str| app.get(by, &app.path(&format!("{ALL}?{query}"))).await;
    let operator = member(&app, "operator", On::Workspace(workspace), "WORKSPACE_OPERATOR").await;
    let author = member(&app, "author", On::Workspace(workspace), "WORKSPACE_AUTHOR").await;
    let shown = list(&operator, "showSecrets=true&objectType=CONNECTION").await.ok();
    let object = &shown["environmentObjects"][0];
    assert_eq!(object["connection"]["password"], "planted own password");
    assert_eq!(object["connection"]["extra"]["deep"], json!({ "er": ["planted own deep"] }));
    assert_eq!(object["links"][0]["connectionOverrides"]["password"], "planted override password");
    let resolved =
        format!("showSecrets=true&resolveLinked=true&deploymentId={deployment}&objectType=AIRFLOW_VARIABLE");
    let shown = list(&operator, &resolved).await.ok();
    assert_eq!(shown["environmentObjects"][0]["airflowVariable"]["value"], "planted override");
    for query in ["showSecrets=true", resolved.as_str()] {
        let message = list(&author, query).await.refused(403);
        assert!(message.starts_with("showSecrets is not allowed by the organization"), "{message}");
    }
    let hidden = list(&author, "").await;
    hidden.ok();
    assert!(!holds(&hidden.bytes, "planted"));
    let admin =
        member(&app, "admin", On::Deployment { id: deployment, workspace_id: workspace }, "DEPLOYMENT_ADMIN")
            .await;
    list(&admin, &resolved).await.refused(403);
    let stranger = app.member("plain").await;
    assert_eq!(list(&stranger, "showSecrets=true").await.ok()["totalCount"], 0);
}

async fn member(app: &TestApp, name: &str, on: On, held: &str) -> Actor {
    app.user_with(name, vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(on, held)]).await
}

#[test]
fn secrets_are_shown_to_those_who_may_change_them_on_sqlite() {
    block_on(where_the_server_allows_it(Engine::Sqlite));
}

#[test]
fn secrets_are_shown_to_those_who_may_change_them_on_postgres() {
    block_on(where_the_server_allows_it(Engine::Postgres));
}
