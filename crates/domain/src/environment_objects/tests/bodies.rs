//! Bodies: what each type takes, what is secret, and what an update keeps.

use serde_json::{Value, json};

use super::{changed, made, neighbours, read, refused, request, with};
use crate::environment_objects::{create, keys};
use crate::fixtures::told;

fn postgres(more: Value) -> Value {
    let connection = json!({ "type": "postgres", "host": "db", "password": "p4ss" });
    json!({ "connection": with(connection, more) })
}

fn export(more: Value) -> Value {
    let export = json!({ "endpoint": "https://m.example.com/write", "exporterType": "PROMETHEUS" });
    json!({ "metricsExport": with(export, more) })
}

#[test]
fn exactly_the_body_that_fits_is_taken() {
    let (variable, connection) = (json!({ "value": "v" }), json!({ "type": "http" }));
    let table = [
        ("CONNECTION", json!({ "connection": connection }), &[][..]),
        ("ENVIRONMENT_VARIABLE", json!({ "environmentVariable": variable }), &[]),
        ("ENVIRONMENT_VARIABLE", json!({ "environmentVariable": {} }), &[]),
        ("AIRFLOW_VARIABLE", json!({ "airflowVariable": variable }), &[]),
        ("METRICS_EXPORT", export(json!({})), &[]),
        ("CONNECTION", json!({}), &["connection required"]),
        ("ENVIRONMENT_VARIABLE", json!({}), &["environmentVariable required"]),
        ("METRICS_EXPORT", json!({}), &["metricsExport required"]),
        ("AIRFLOW_VARIABLE", json!({ "airflowVariable": variable, "environmentVariable": {} }), &[]),
        (
            "AIRFLOW_VARIABLE",
            json!({ "environmentVariable": variable, "connection": connection }),
            &["airflowVariable required", "connection excluded", "environmentVariable excluded"],
        ),
    ];
    for (object_type, body, wrong) in table {
        let answer = create(&request(object_type, body), &neighbours());
        let told: Vec<String> = answer.err().iter().flat_map(told).collect();
        assert_eq!(told, wrong, "{object_type}");
    }
    let object = made("CONNECTION", json!({ "connection": connection }));
    refused(changed(&object, json!({ "airflowVariable": variable })), &["airflowVariable excluded"]);
}

#[test]
fn keys_fit_their_type() {
    let long = "k".repeat(251);
    let table = [
        ("CONNECTION", "my-db.eu/1", Ok("MY-DB.EU/1")),
        ("CONNECTION", "my db", Err("format")),
        ("CONNECTION", "", Err("required")),
        ("CONNECTION", &long, Err("maxLength")),
        ("ENVIRONMENT_VARIABLE", "_My.Var-1", Ok("_My.Var-1")),
        ("ENVIRONMENT_VARIABLE", "1VAR", Err("format")),
        ("ENVIRONMENT_VARIABLE", "A B", Err("format")),
        ("ENVIRONMENT_VARIABLE", "AIRFLOW__CORE__FERNET_KEY", Err("reserved")),
        ("ENVIRONMENT_VARIABLE", "airflow__core__fernet_key_cmd", Err("reserved")),
        ("ENVIRONMENT_VARIABLE", "AIRFLOW__CORE__PARALLELISM", Ok("AIRFLOW__CORE__PARALLELISM")),
        ("AIRFLOW_VARIABLE", "daily limit", Ok("DAILY LIMIT")),
        ("AIRFLOW_VARIABLE", " daily", Err("format")),
        ("AIRFLOW_VARIABLE", "a=b", Err("format")),
        ("METRICS_EXPORT", "prod metrics", Ok("PROD METRICS")),
    ];
    for (object_type, text, expected) in table {
        let key = keys::key(object_type.parse().unwrap(), text);
        let got = key.as_ref().map(|key| key.unique.as_str()).map_err(|error| error.code.as_str());
        assert_eq!(got, expected, "{object_type} {text}");
    }
}

#[test]
fn secrets_read_back_empty_and_are_listed_as_set() {
    let object = made("CONNECTION", postgres(json!({ "extra": { "a": 1, "b": { "c": true } } }))).hidden();
    let shown = read(&object);
    assert_eq!(
        shown["connection"],
        json!({ "type": "postgres", "host": "db", "password": "", "extra": { "a": "", "b": "" } })
    );
    assert_eq!(shown["setFields"], json!(["type", "host", "password", "extra.a", "extra.b"]));

    let secret = made("AIRFLOW_VARIABLE", json!({ "airflowVariable": { "value": "s", "isSecret": true } }));
    let shown = read(&secret.hidden());
    assert_eq!(shown["airflowVariable"], json!({ "value": "", "isSecret": true }));
    assert_eq!(shown["setFields"], json!(["value"]));

    let plain = made("ENVIRONMENT_VARIABLE", json!({ "environmentVariable": { "value": "v" } }));
    assert_eq!(read(&plain.hidden())["environmentVariable"], json!({ "value": "v", "isSecret": false }));

    let unset = made("ENVIRONMENT_VARIABLE", json!({ "environmentVariable": { "isSecret": true } }));
    let shown = read(&unset.hidden());
    assert_eq!(shown["environmentVariable"], json!({ "value": "", "isSecret": true }));
    assert_eq!(shown["setFields"], json!([]));

    let more = json!({
        "authType": "BASIC", "username": "u", "password": "p", "basicToken": "t",
        "headers": { "X-Scope.Org": "h" }, "labels": { "env": "prod" },
    });
    let shown = read(&made("METRICS_EXPORT", export(more)).hidden());
    assert_eq!(
        shown["metricsExport"],
        json!({
            "endpoint": "https://m.example.com/write", "exporterType": "PROMETHEUS", "authType": "BASIC",
            "username": "u", "password": "", "basicToken": "",
            "headers": { "X-Scope.Org": "" }, "labels": { "env": "prod" },
        })
    );
    let set = json!([
        "endpoint",
        "exporterType",
        "authType",
        "username",
        "password",
        "basicToken",
        "headers.X-Scope.Org",
        "labels.env",
    ]);
    assert_eq!(shown["setFields"], set);
}

#[test]
fn an_auth_type_lists_the_plain_members() {
    let extra = json!({ "sslmode": "verify-full", "sslkey": "s3cret" });
    let connection = |more: Value| made("CONNECTION", postgres(more));
    let object = connection(json!({ "authTypeId": "postgres-password", "extra": extra }));
    let shown = read(&object.hidden());
    assert_eq!(shown["connection"]["extra"], json!({ "sslmode": "verify-full", "sslkey": "" }));
    assert_eq!(shown["connection"]["connectionAuthType"]["authMethodName"], "User and password");

    let other = changed(&object, json!({ "connection": { "type": "jdbc" } })).unwrap();
    let shown = read(&other.hidden());
    assert_eq!(shown["connection"]["extra"], json!({ "sslmode": "", "sslkey": "" }));
    assert_eq!(shown["connection"]["connectionAuthType"], Value::Null, "it no longer fits");

    let kept = changed(&object, json!({ "connection": { "type": "postgres", "host": "b" } })).unwrap();
    assert_eq!(kept.auth_type_id.as_deref(), Some("postgres-password"));

    let late = connection(json!({ "extra": extra }));
    let late = changed(
        &late,
        json!({ "connection": { "type": "postgres", "authTypeId": "postgres-password", "extra": { "sslmode": "" } } }),
    );
    let late = late.unwrap();
    assert_eq!(
        late.values.secret["extra.sslmode"], "verify-full",
        "a secret does not become plain by itself"
    );
    let anew = json!({ "connection": { "type": "postgres", "extra": { "sslmode": "require" } } });
    assert_eq!(changed(&late, anew).unwrap().values.plain["extra.sslmode"], "require");

    for (more, wrong) in [
        (json!({ "authTypeId": "none-such" }), "connection.authTypeId unknown"),
        (json!({ "authTypeId": "aws-access-key" }), "connection.authTypeId conflict"),
        (json!({ "type": " " }), "connection.type required"),
    ] {
        let refusal = create(&request("CONNECTION", postgres(more)), &neighbours()).unwrap_err();
        assert_eq!(told(&refusal), [wrong]);
    }
}

#[test]
fn an_update_keeps_what_it_does_not_mention() {
    let object = made("CONNECTION", postgres(json!({ "port": 5432, "extra": { "a": "1", "b": "2" } })));
    assert_eq!(changed(&object, json!({})).unwrap(), object);
    let kept = json!({ "connection": { "type": "postgres", "password": "", "extra": { "a": "", "b": "" } } });
    assert_eq!(changed(&object, kept).unwrap(), object);

    let change =
        json!({ "connection": { "type": "postgres", "host": "", "password": "new", "extra": { "a": "" } } });
    let after = changed(&object, change).unwrap();
    assert_eq!(after.values.plain["host"], "", "an empty text is a value where there is no secret");
    assert_eq!(after.values.secret["password"], "new");
    assert_eq!(after.values.secret["extra.a"], "1");
    assert!(!after.values.secret.contains_key("extra.b"), "a map is replaced");
    assert_eq!(after.values.plain["port"], 5432);

    let described = changed(&object, json!({ "description": "  for reports " })).unwrap();
    assert_eq!(described.description, "for reports");
    assert_eq!(described.values, object.values);
}

#[test]
fn a_metrics_export_can_prove_itself() {
    let table = [
        (json!({}), &[][..]),
        (json!({ "authType": "BASIC", "username": "u", "password": "p" }), &[]),
        (
            json!({ "authType": "BASIC" }),
            &["metricsExport.username required", "metricsExport.password required"],
        ),
        (
            json!({ "authType": "BASIC", "username": "", "password": "" }),
            &["metricsExport.username required", "metricsExport.password required"],
        ),
        (json!({ "authType": "AUTH_TOKEN", "basicToken": "t" }), &[]),
        (json!({ "authType": "AUTH_TOKEN" }), &["metricsExport.basicToken required"]),
        (json!({ "authType": "SIGV4", "sigV4AssumeArn": "a", "sigV4StsRegion": "r" }), &[]),
        (json!({ "authType": "SIGV4", "sigV4AssumeArn": "a" }), &["metricsExport.sigV4StsRegion required"]),
        (json!({ "endpoint": "ftp://m" }), &["metricsExport.endpoint format"]),
        (json!({ "endpoint": "https://" }), &["metricsExport.endpoint format"]),
        (json!({ "endpoint": "https://user:p4ss@m.example.com" }), &["metricsExport.endpoint format"]),
    ];
    for (more, wrong) in table {
        let answer = create(&request("METRICS_EXPORT", export(more.clone())), &neighbours());
        let told: Vec<String> = answer.err().iter().flat_map(told).collect();
        assert_eq!(told, wrong, "{more}");
    }
    let open = made("METRICS_EXPORT", export(json!({ "username": "u" })));
    let basic = json!({ "metricsExport": { "authType": "BASIC" } });
    refused(changed(&open, basic.clone()), &["metricsExport.password required"]);
    let with_password = changed(&open, json!({ "metricsExport": { "password": "p" } })).unwrap();
    changed(&with_password, basic).unwrap();
}
