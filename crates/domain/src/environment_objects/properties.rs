//! What holds for any object: secrets stay hidden, and what was read can be written back.

use proptest::collection::btree_map;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::Object;
use super::tests::{changed, made, read};
use crate::fixtures::{d1, d1b};

/// A text that must not be seen again.
fn planted() -> impl Strategy<Value = String> {
    "planted[a-z]{4}"
}

fn maybe<T: std::fmt::Debug + Clone>(value: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop_oneof![Just(None), value.prop_map(Some)]
}

/// A connection with secrets where an auth type or none says so.
fn connection() -> impl Strategy<Value = Value> {
    let extra = btree_map("[a-z.]{1,6}", planted(), 0..4);
    let kind = select(&["http", "postgres", "aws"][..]);
    (kind, maybe("[a-z]{0,4}"), maybe(0..65_535u16), maybe(planted()), maybe(extra), any::<bool>()).prop_map(
        |(kind, host, port, password, extra, with_auth_type)| {
            let mut body =
                json!({ "type": kind, "host": host, "port": port, "password": password, "extra": extra });
            if with_auth_type {
                let id = match kind {
                    "http" => "http-password",
                    "postgres" => "postgres-password",
                    _ => "aws-access-key",
                };
                body["authTypeId"] = id.into();
            }
            body
        },
    )
}

fn export() -> impl Strategy<Value = Value> {
    let headers = btree_map("[A-Z][a-z.-]{0,5}", planted(), 0..4);
    let labels = btree_map("[a-z]{1,4}", "[a-z]{0,4}", 0..3);
    (maybe(planted()), maybe(planted()), maybe(headers), maybe(labels)).prop_map(
        |(password, token, headers, labels)| {
            json!({
                "endpoint": "https://m.example.com", "exporterType": "PROMETHEUS", "password": password,
                "basicToken": token, "headers": headers, "labels": labels,
            })
        },
    )
}

fn without_nulls(mut body: Value) -> Value {
    if let Value::Object(fields) = &mut body {
        fields.retain(|_, value| !value.is_null());
    }
    body
}

fn overrides_of(mut body: Value) -> Value {
    if let Value::Object(fields) = &mut body {
        fields.remove("authTypeId");
    }
    without_nulls(body)
}

/// Any object of the workspace, linked to a deployment.
fn object() -> impl Strategy<Value = Object> {
    let with = |object_type: &'static str, name: &'static str, body: Value, overrides: Value| {
        let link = json!({
            "scope": "DEPLOYMENT", "scopeEntityId": d1(), "overrides": { name: overrides_of(overrides) },
        });
        made(object_type, json!({ name: without_nulls(body), "links": [link] }))
    };
    let secret_variable = |value: Option<String>| json!({ "value": value, "isSecret": true });
    let value = |value: Option<String>| json!({ "value": value });
    prop_oneof![
        (connection(), connection()).prop_map(move |(body, over)| with(
            "CONNECTION",
            "connection",
            body,
            over
        )),
        (export(), export()).prop_map(move |(body, over)| with(
            "METRICS_EXPORT",
            "metricsExport",
            body,
            over
        )),
        (maybe(planted()), maybe(planted())).prop_map(move |(body, over)| {
            with("AIRFLOW_VARIABLE", "airflowVariable", secret_variable(body), value(over))
        }),
    ]
}

/// The request that writes back what was read.
fn written_back(shown: &Value) -> Value {
    let mut change = json!({});
    for name in ["connection", "environmentVariable", "airflowVariable", "metricsExport"] {
        if let Some(body) = shown.get(name) {
            let mut body = body.clone();
            if let Some(id) = body["connectionAuthType"]["id"].as_str().map(str::to_owned) {
                body["authTypeId"] = id.into();
            }
            change[name] = body;
        }
    }
    let links = shown["links"].as_array().unwrap().iter().map(|link| {
        let mut overrides = json!({});
        for name in ["connection", "environmentVariable", "airflowVariable", "metricsExport"] {
            if let Some(body) = link.get(format!("{name}Overrides")) {
                overrides[name] = body.clone();
            }
        }
        json!({ "scope": "DEPLOYMENT", "scopeEntityId": link["scopeEntityId"], "overrides": overrides })
    });
    change["links"] = links.collect();
    change
}

proptest! {
    #[test]
    fn no_secret_is_shown(object in object()) {
        let shown = read(&object.hidden()).to_string();
        prop_assert!(!shown.contains("planted"), "{}", shown);
    }

    #[test]
    fn writing_back_what_was_read_changes_nothing(object in object()) {
        let change = written_back(&read(&object.hidden()));
        prop_assert_eq!(changed(&object, change).unwrap(), object);
    }

    #[test]
    fn set_fields_match_the_shown_fields(object in object()) {
        let names = object.values.set_fields(object.object_type);
        let values = object.values.nested(object.object_type);
        for name in &names {
            let shown = match name.split_once('.') {
                Some((map, member)) => values[map].get(member),
                None => values.get(name),
            };
            prop_assert!(shown.is_some(), "{}", name);
        }
        prop_assert_eq!(names.len(), object.values.plain.len() + object.values.secret.len());
    }

    #[test]
    fn a_deployment_gets_its_overrides_and_otherwise_the_workspaces_values(object in object()) {
        let given = object.given_to(d1()).unwrap();
        let overrides = &object.links[&d1()];
        for name in given.set_fields(object.object_type) {
            let of = |values: &super::Values| {
                values.secret.get(&name).or_else(|| values.plain.get(&name)).cloned()
            };
            prop_assert_eq!(of(&given), of(overrides).or_else(|| of(&object.values)));
        }
        prop_assert_eq!(object.given_to(d1b()), None);
    }

    #[test]
    fn unsetting_everything_leaves_an_empty_link(object in object()) {
        let names = object.links[&d1()].set_fields(object.object_type);
        let link = json!({
            "scope": "DEPLOYMENT", "scopeEntityId": d1(), "overrides": { "unsetFields": names },
        });
        let after = changed(&object, json!({ "links": [link] })).unwrap();
        prop_assert!(after.links[&d1()].is_empty());
        prop_assert_eq!(after.values, object.values);
    }
}
