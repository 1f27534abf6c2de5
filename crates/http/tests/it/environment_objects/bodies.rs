//! What objects of each type take. The tables of every rule are with the rules; here is what callers are told.

use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{create, made, read, variable, with};

fn of(object_type: &str, workspace: podium_api::WorkspaceId, body: Value) -> Value {
    let base = json!({ "objectKey": "KEY", "objectType": object_type, "scope": "WORKSPACE", "scopeEntityId": workspace });
    with(base, body)
}

on_both_engines! {
    async fn exactly_the_body_that_fits_is_taken(app) {
        let workspace = app.workspace("Data").await;
        let (value, connection) = (json!({ "value": "v" }), json!({ "type": "http" }));
        for (object_type, body, wrong) in [
            ("CONNECTION", json!({}), &["connection: required"][..]),
            ("CONNECTION", json!({ "connection": null }), &["connection: required"]),
            ("CONNECTION", json!({ "connection": {} }), &["connection.type: required"]),
            (
                "CONNECTION",
                json!({ "connection": connection, "environmentVariable": value, "airflowVariable": value }),
                &["environmentVariable: excluded", "airflowVariable: excluded"],
            ),
            ("ENVIRONMENT_VARIABLE", json!({ "airflowVariable": value }), &["environmentVariable: required", "airflowVariable: excluded"]),
            ("METRICS_EXPORT", json!({ "metricsExport": { "endpoint": "https://m" } }), &["metricsExport.exporterType: required"]),
            ("METRICS_EXPORT", json!({ "metricsExport": { "endpoint": "m", "exporterType": "PROMETHEUS", "authType": "BASIC" } }), &[
                "metricsExport.endpoint: format", "metricsExport.username: required", "metricsExport.password: required",
            ]),
            ("METRICS_EXPORT", json!({ "metricsExport": { "endpoint": "https://m", "exporterType": "PROMETHEUS", "headers": { "a": 1 } } }), &[
                "metricsExport.headers.a: type",
            ]),
            ("CONNECTION", json!({ "connection": { "type": "http", "port": 65536 } }), &["connection.port: maximum"]),
            ("CONNECTION", json!({ "connection": { "type": "http", "authTypeId": "x" }, "objectKey": "a b" }), &[
                "objectKey: format", "connection.authTypeId: unknown",
            ]),
            ("ENVIRONMENT_VARIABLE", json!({ "environmentVariable": value, "objectKey": "AIRFLOW__CORE__FERNET_KEY" }), &["objectKey: reserved"]),
        ] {
            let answer = create(&app, &app.owner, of(object_type, workspace, body.clone())).await;
            assert_eq!(answer.wrong_fields(), wrong, "{object_type} {body}");
        }
    }

    async fn every_type_of_connection_has_an_auth_type(app) {
        let workspace = app.workspace("Data").await;
        let unknown = json!({ "connection": { "type": "http", "authTypeId": "none-such" } });
        let message = create(&app, &app.owner, of("CONNECTION", workspace, unknown)).await.refused(400);
        let listed_at = "/docs/connection-auth-types.json";
        assert_eq!(message, format!("connection.authTypeId must be one of the auth types listed at {listed_at}"));
        let page = app.call("GET", listed_at).send().await.ok();
        let listed = page["connectionAuthTypes"].as_array().unwrap();
        assert!(listed.len() > 150, "{}", listed.len());
        // What the packages of the default runtimes register, and one whose provider names members of `extra`.
        for kind in ["fs", "ftp", "http", "imap", "package_index", "postgres", "smtp", "sqlite", "google_cloud_platform"] {
            let entry = listed.iter().find(|entry| entry["id"] == kind).unwrap_or_else(|| panic!("{kind}"));
            let named = json!({ "project": "p1", "keyfile_dict": "k3y", "unheard_of": "s3cret" });
            let at = made(&app, of("CONNECTION", workspace, json!({
                "objectKey": kind, "connection": { "type": kind, "authTypeId": kind, "extra": named, "password": "p4ss" },
            }))).await;
            let shown = read(&app, &at).await["connection"].clone();
            assert_eq!(shown["connectionAuthType"], *entry, "{kind}");
            let plain = if kind == "google_cloud_platform" { "p1" } else { "" };
            assert_eq!(shown["extra"], json!({ "project": plain, "keyfile_dict": "", "unheard_of": "" }), "{kind}");
            assert_eq!(shown["password"], "");
        }
    }

    async fn a_type_with_user_and_password_has_an_auth_type_for_them(app) {
        let workspace = app.workspace("Data").await;
        for (kind, plain) in [("snowflake", "warehouse"), ("mysql", "ssl_mode"), ("redshift", "sslmode"), ("http", "timeout")] {
            let auth_type = format!("{kind}-password");
            let extra = json!({ plain: "shown", "private_key_content": "k3y" });
            let at = made(&app, of("CONNECTION", workspace, json!({
                "objectKey": kind, "connection": {
                    "type": kind, "authTypeId": auth_type, "login": "ada", "password": "p4ss", "extra": extra,
                },
            }))).await;
            let shown = read(&app, &at).await["connection"].clone();
            assert_eq!(shown["connectionAuthType"]["id"], auth_type);
            assert_eq!(shown["extra"], json!({ plain: "shown", "private_key_content": "" }), "{kind}");
            assert_eq!(shown["password"], "");
        }
        let other = json!({ "connection": { "type": "mysql", "authTypeId": "snowflake-password" } });
        let refused = create(&app, &app.owner, of("CONNECTION", workspace, other)).await;
        assert_eq!(refused.wrong_fields(), ["connection.authTypeId: conflict"]);
    }

    async fn headers_that_are_known_to_be_plain_are_answered(app) {
        let workspace = app.workspace("Data").await;
        let headers = json!({
            "X-Scope-OrgID": "team-a", "x-tenant-id": "7", "THANOS-TENANT": "eu", "user-agent": "podium/1", "Accept": "*/*",
            "Accept-Encoding": "gzip", "Content-Type": "application/x-protobuf",
            "X-Prometheus-Remote-Write-Version": "0.1.0", "X-Key": "s3cret-a", "Authorization": "s3cret-b",
            "X-Tenant-Token": "s3cret-c", "Acceptance": "s3cret-d", "Contents": "s3cret-e",
        });
        let export = json!({ "endpoint": "https://metrics.test/write", "exporterType": "PROMETHEUS", "headers": headers });
        let at = made(&app, of("METRICS_EXPORT", workspace, json!({ "metricsExport": export }))).await;
        let shown = read(&app, &at).await;
        for (name, sent) in headers.as_object().unwrap() {
            let is_secret = sent.as_str().unwrap().starts_with("s3cret");
            let expected = if is_secret { "" } else { sent.as_str().unwrap() };
            assert_eq!(shown["metricsExport"]["headers"][name], expected, "{name}");
        }
        assert_eq!(shown["setFields"].as_array().unwrap().iter().filter(|it| it.as_str().unwrap().starts_with("headers.")).count(), 13);
    }

    async fn an_update_keeps_what_is_absent(app) {
        let workspace = app.workspace("Data").await;
        let at = made(&app, of("CONNECTION", workspace, json!({
            "description": "the database",
            "connection": {
                "type": "postgres", "authTypeId": "postgres-password", "host": "db", "port": 5432, "login": "etl",
                "password": "p4ss", "extra": { "sslmode": "require", "sslkey": "k3y" },
            },
        }))).await;
        let before = read(&app, &at).await;
        assert_eq!(before["setFields"], json!([
            "type", "host", "port", "login", "password", "extra.sslkey", "extra.sslmode",
        ]));
        assert_eq!(before["connection"]["extra"], json!({ "sslkey": "", "sslmode": "require" }));
        assert_eq!(before["connection"]["connectionAuthType"]["id"], "postgres-password");
        for change in [
            json!({}),
            json!({ "description": null, "links": null, "connection": null }),
            json!({ "connection": { "type": "postgres", "password": "", "host": null, "extra": { "sslmode": "require", "sslkey": "" } } }),
        ] {
            let mut after = app.post(&app.owner, &at, change).await.ok();
            after["updatedAt"] = before["updatedAt"].clone();
            assert_eq!(after, before);
        }
        let change = json!({ "connection": { "type": "postgres", "host": "other", "extra": {} } });
        let after = app.post(&app.owner, &at, change).await.ok();
        assert_eq!(after["setFields"], json!(["type", "host", "port", "login", "password"]));
        assert_eq!((&after["connection"]["host"], &after["description"]), (&json!("other"), &json!("the database")));
    }

    async fn whether_a_variable_is_secret_is_fixed_at_creation(app) {
        let workspace = app.workspace("Data").await;
        let plain = made(&app, variable("PLAIN", workspace, "v")).await;
        let secret = with(variable("SECRET", workspace, ""), json!({ "environmentVariable": { "value": "v", "isSecret": true } }));
        let secret = made(&app, secret).await;
        let change = |is_secret: bool| json!({ "environmentVariable": { "value": "w", "isSecret": is_secret } });
        let shown = app.post(&app.owner, &plain, change(true)).await.ok();
        assert_eq!(shown["environmentVariable"], json!({ "value": "w", "isSecret": false }));
        let shown = app.post(&app.owner, &secret, change(false)).await.ok();
        assert_eq!(shown["environmentVariable"], json!({ "value": "", "isSecret": true }));
    }
}
