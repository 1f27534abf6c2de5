//! Environment variables: secrets are kept, replaced and never shown.

use std::time::Duration;

use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{change, create, made, path, read};

const FIRST: &str = "planted-secret-one";
const SECOND: &str = "planted-secret-two";

fn secret(key: &str, value: impl Into<Value>) -> Value {
    json!({ "key": key, "value": value.into(), "isSecret": true })
}

fn plain(key: &str, value: impl Into<Value>) -> Value {
    json!({ "key": key, "value": value.into(), "isSecret": false })
}

/// Key, value, whether it is a secret and the second of its last change.
fn shown(deployment: &Value) -> Vec<(String, Value, bool, String)> {
    let variables = deployment["environmentVariables"].as_array().unwrap().iter();
    let show = |variable: &Value| {
        let text = |field: &str| variable[field].as_str().unwrap().to_owned();
        let second = text("updatedAt")[17..19].to_owned();
        (text("key"), variable["value"].clone(), variable["isSecret"].as_bool().unwrap(), second)
    };
    variables.map(show).collect()
}

/// What is stored for a deployment, as text.
async fn spec(app: &TestApp, id: podium_api::DeploymentId) -> Value {
    serde_json::from_str(&app.column("deployments", id, "spec").await).unwrap()
}

on_both_engines! {
    async fn a_secret_reads_back_without_a_value(app) {
        let workspace = app.workspace("Analytics").await;
        let body = json!({ "environmentVariables": [secret("TOKEN", json!(FIRST)), plain("MODE", json!("fast"))] });
        let answer = create(&app, workspace, body).await;
        assert_eq!(answer.ok()["environmentVariables"], json!([
            { "key": "MODE", "value": "fast", "isSecret": false, "updatedAt": "2027-01-15T08:00:00.000Z" },
            { "key": "TOKEN", "isSecret": true, "updatedAt": "2027-01-15T08:00:00.000Z" },
        ]));
        let read = app.get(&app.owner, &path(&app, answer.id())).await.ok();
        assert_eq!(read, answer.ok());
        let list = app.get(&app.owner, &app.path("/deployments")).await.ok();
        assert_eq!(list["deployments"][0], read);
    }

    async fn reserved_variables_are_refused_with_the_reason(app) {
        let workspace = app.workspace("Analytics").await;
        for (key, reason) in [
            ("AIRFLOW__CORE__AUTH_MANAGER", "users sign in to the platform"),
            ("AIRFLOW__API__PORT", "which runs the web server"),
            ("AIRFLOW__CORE__EXECUTOR", "`workerQueues`"),
            ("LD_PRELOAD", "`LD_LIBRARY_PATH`"),
            ("PYTHONSTARTUP", "`PYTHONPATH`"),
            ("PODIUM_ENVIRONMENT", "`PODIUM_`"),
        ] {
            let variables = json!({ "environmentVariables": [plain(key, json!("x"))] });
            let answer = create(&app, workspace, variables).await;
            assert_eq!(answer.wrong_fields(), ["environmentVariables[0].key: reserved"], "{key}");
            assert!(answer.text().contains(reason), "{}", answer.text());
            let object = json!({
                "objectKey": key, "objectType": "ENVIRONMENT_VARIABLE", "scope": "WORKSPACE",
                "scopeEntityId": workspace, "environmentVariable": { "value": "x", "isSecret": false },
            });
            let answer = app.post(&app.owner, &app.path("/environment-objects"), object).await;
            assert_eq!(answer.wrong_fields(), ["objectKey: reserved"], "{key}");
            assert!(answer.text().contains(reason), "{}", answer.text());
        }
        let theirs = ["AIRFLOW__CORE__PARALLELISM", "PYTHONPATH", "LD_LIBRARY_PATH", "LD_SDK_KEY"];
        let theirs = theirs.map(|key| plain(key, json!("1")));
        create(&app, workspace, json!({ "environmentVariables": theirs })).await.ok();
    }

    async fn variables_are_replaced_as_a_list(app) {
        let workspace = app.workspace("Analytics").await;
        let list = |variables: &[Value]| json!({ "environmentVariables": variables });
        let first = [secret("TOKEN", json!(FIRST)), plain("MODE", json!("fast")), plain("GONE", json!("x"))];
        let id = made(&app, workspace, list(&first)).await;
        app.advance(Duration::from_secs(7));
        let after = [plain("MODE", json!("fast")), secret("TOKEN", Value::Null), plain("NEW", json!(""))];
        let after = change(&app, id, list(&after)).await.ok();
        assert_eq!(shown(&after), [
            ("MODE".into(), json!("fast"), false, "00".into()),
            ("NEW".into(), json!(""), false, "07".into()),
            ("TOKEN".into(), Value::Null, true, "00".into()),
        ]);
        assert_eq!(shown(&change(&app, id, list(&[])).await.ok()), []);
    }

    async fn a_secret_without_a_value_is_kept(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({ "environmentVariables": [secret("TOKEN", json!(FIRST))] })).await;
        let kept = spec(&app, id).await["environmentVariables"].clone();
        app.advance(Duration::from_secs(1));
        let bare = json!({ "key": "TOKEN", "isSecret": true });
        for same in [bare, secret("TOKEN", Value::Null), secret("TOKEN", json!(""))] {
            change(&app, id, json!({ "environmentVariables": [same] })).await.ok();
            assert_eq!(spec(&app, id).await["environmentVariables"], kept);
        }
        let read = read(&app, id).await;
        change(&app, id, json!({ "environmentVariables": read["environmentVariables"] })).await.ok();
        assert_eq!(spec(&app, id).await["environmentVariables"], kept, "what was read may be sent back");
        change(&app, id, json!({ "environmentVariables": [secret("TOKEN", json!(SECOND))] })).await.ok();
        assert_ne!(spec(&app, id).await["environmentVariables"], kept);
    }

    async fn a_variable_that_is_sent_again_keeps_the_time_of_its_change(app) {
        let workspace = app.workspace("Analytics").await;
        let list = |variables: &[Value]| json!({ "environmentVariables": variables });
        let both = [plain("MODE", json!("fast")), secret("TOKEN", json!(FIRST))];
        let id = made(&app, workspace, list(&both)).await;
        let kept = spec(&app, id).await["environmentVariables"].clone();
        app.advance(Duration::from_secs(7));
        let same = change(&app, id, list(&both)).await.ok();
        assert_eq!(shown(&same).iter().map(|variable| variable.3.as_str()).collect::<Vec<_>>(), ["00", "00"]);
        assert_eq!(spec(&app, id).await["environmentVariables"], kept, "nothing of it is written anew");
        // Another value, of the same length or not, and another kind are changes.
        for other in [SECOND, "short", "planted-secret-onE"] {
            app.advance(Duration::from_secs(1));
            let now = app.world.now().to_string()[17..19].to_owned();
            let after = change(&app, id, list(&[both[0].clone(), secret("TOKEN", json!(other))])).await.ok();
            assert_eq!((&shown(&after)[0].3, &shown(&after)[1].3), (&"00".to_owned(), &now), "{other}");
        }
        app.advance(Duration::from_secs(1));
        let now = app.world.now().to_string()[17..19].to_owned();
        let hidden = change(&app, id, list(&[secret("MODE", json!("fast"))])).await.ok();
        assert_eq!(shown(&hidden), [("MODE".into(), Value::Null, true, now)]);
    }

    async fn a_new_secret_needs_a_value_and_a_secret_becomes_plain_only_with_one(app) {
        let workspace = app.workspace("Analytics").await;
        let list = |variable: Value| json!({ "environmentVariables": [variable] });
        for value in [Value::Null, json!("")] {
            let answer = create(&app, workspace, list(secret("TOKEN", value))).await;
            assert_eq!(answer.refused(400), "environmentVariables[0].value is required for a new secret");
        }
        let id = made(&app, workspace, list(secret("TOKEN", json!(FIRST)))).await;
        for value in [Value::Null, json!("")] {
            let answer = change(&app, id, list(plain("TOKEN", value))).await;
            assert_eq!(
                answer.refused(400),
                "environmentVariables[0].value is required: a secret can become plain only with a new value"
            );
        }
        let after = change(&app, id, list(plain("TOKEN", json!("open")))).await.ok();
        assert_eq!(shown(&after), [("TOKEN".into(), json!("open"), false, "00".into())]);
        let answer = change(&app, id, list(secret("TOKEN", Value::Null))).await;
        assert_eq!(answer.wrong_fields(), ["environmentVariables[0].value: required"]);
        let after = change(&app, id, list(secret("TOKEN", json!(SECOND)))).await.ok();
        assert_eq!(shown(&after), [("TOKEN".into(), Value::Null, true, "00".into())]);
    }

    async fn keys_are_names_unique_and_not_the_platforms_own(app) {
        let workspace = app.workspace("Analytics").await;
        let keys = ["ok", "_a.b-9", "9", "a b", "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", "AIRFLOW__CORE__FERNET_KEY",
            "AIRFLOW__CORE__EXECUTOR", "AIRFLOW__CELERY__BROKER_URL", "AIRFLOW__API__BASE_URL",
            "AIRFLOW__LOGGING__REMOTE_BASE_LOG_FOLDER", "ok", "OK", ""];
        let variables = keys.map(|key| plain(key, json!("v")));
        let wrong = create(&app, workspace, json!({ "environmentVariables": variables })).await.wrong_fields();
        assert_eq!(wrong, ["environmentVariables[12].key: minLength"]);
        let wrong = create(&app, workspace, json!({ "environmentVariables": variables[..12] })).await.wrong_fields();
        let expected = [(2, "format"), (3, "format"), (4, "reserved"), (5, "reserved"), (6, "reserved"),
            (7, "reserved"), (8, "reserved"), (9, "reserved"), (10, "duplicate")];
        let expected: Vec<String> =
            expected.iter().map(|(at, code)| format!("environmentVariables[{at}].key: {code}")).collect();
        assert_eq!(wrong, expected);
    }

    async fn secrets_are_nowhere_to_be_read(app) {
        let workspace = app.workspace("Analytics").await;
        let list = |value: &str| json!({ "environmentVariables": [secret("TOKEN", json!(value))] });
        let mut seen = String::new();
        let made = create(&app, workspace, list(FIRST)).await;
        seen.push_str(&made.text());
        let id = made.id().parse().unwrap();
        seen.push_str(&change(&app, id, list(SECOND)).await.text());
        // Refused ones too, whatever they are refused for, and those that are kept under a key.
        let refused = json!({ "environmentVariables": [secret("9", json!(FIRST)), { "key": "K", "value": [SECOND] }] });
        let refused = change(&app, id, refused).await;
        refused.refused(400);
        seen.push_str(&refused.text());
        let body = json!({ "name": "Keyed", "workspaceId": workspace,
            "environmentVariables": [secret("TOKEN", json!(FIRST))] });
        let call = app.call("POST", &app.path("/deployments")).by(&app.owner).header("idempotency-key", "k");
        seen.push_str(&call.json(&body).send().await.text());
        seen.push_str(&app.get(&app.owner, &app.path("/deployments")).await.text());
        let log = Value::from(app.audit().await).to_string();
        let stored = app.stored().await;
        for secret in [FIRST, SECOND] {
            assert!(!seen.contains(secret), "answers show {secret}");
            assert!(!log.contains(secret), "the audit log shows {secret}");
            assert!(!stored.windows(secret.len()).any(|window| window == secret.as_bytes()), "{secret} is stored");
        }
    }

    async fn a_value_is_left_out_of_the_audit_log_even_where_it_is_plain(app) {
        let workspace = app.workspace("Analytics").await;
        create(&app, workspace, json!({ "environmentVariables": [plain("MODE", json!("planted"))] })).await.ok();
        let record = app.audit().await.pop().unwrap();
        assert_eq!(record["requestBody"]["environmentVariables"], json!([{ "key": "MODE", "isSecret": false }]));
    }
}
