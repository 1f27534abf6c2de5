//! What a deployment is given, and what Airflow reads of it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::made;
use crate::environment_objects::environment::variables;
use crate::environment_objects::resolve::{Candidate, Resolved, resolve};
use crate::fixtures::{d1, d1b};

fn candidate(key: &str, object_type: &str, more: Value) -> Candidate<Value, ()> {
    Candidate { key: key.to_owned(), object: made(object_type, more), more: () }
}

fn own() -> Value {
    json!({ "scope": "DEPLOYMENT", "scopeEntityId": d1() })
}

fn environment_variable(value: &str, mut more: Value) -> Value {
    more["environmentVariable"] = json!({ "value": value });
    more
}

fn resolved(candidates: Vec<Candidate<Value, ()>>, own: &[&str]) -> Vec<Resolved<Value, ()>> {
    resolve(d1(), candidates, &own.iter().copied().collect::<BTreeSet<_>>())
}

#[test]
fn the_nearer_beats_the_farther() {
    let auto = json!({ "autoLinkDeployments": true });
    let overridden = json!({ "links": [{
        "scope": "DEPLOYMENT", "scopeEntityId": d1(),
        "overrides": { "environmentVariable": { "value": "of the link" } },
    }] });
    let excluded = json!({
        "autoLinkDeployments": true, "excludeLinks": [{ "scope": "DEPLOYMENT", "scopeEntityId": d1() }],
    });
    let elsewhere = json!({ "links": [{ "scope": "DEPLOYMENT", "scopeEntityId": d1b() }] });
    let candidates = vec![
        candidate("A", "ENVIRONMENT_VARIABLE", environment_variable("of the workspace", auto.clone())),
        candidate("A", "ENVIRONMENT_VARIABLE", environment_variable("of the deployment", own())),
        candidate("B", "ENVIRONMENT_VARIABLE", environment_variable("of the workspace", overridden)),
        candidate("C", "ENVIRONMENT_VARIABLE", environment_variable("excluded", excluded)),
        candidate("D", "ENVIRONMENT_VARIABLE", environment_variable("not linked", elsewhere)),
        candidate("E", "ENVIRONMENT_VARIABLE", environment_variable("beaten", own())),
        candidate("e", "ENVIRONMENT_VARIABLE", environment_variable("another key", auto.clone())),
        candidate(
            "e",
            "AIRFLOW_VARIABLE",
            json!({ "airflowVariable": { "value": "another type" }, "autoLinkDeployments": true }),
        ),
        candidate(
            "limit",
            "AIRFLOW_VARIABLE",
            json!({ "airflowVariable": { "value": "beaten" }, "autoLinkDeployments": true }),
        ),
        candidate("LIMIT", "AIRFLOW_VARIABLE", {
            let mut more = own();
            more["airflowVariable"] = json!({ "value": "of the deployment", "isSecret": true });
            more
        }),
    ];
    let resolved = resolved(candidates, &["E", "limit"]);
    let environment: Vec<(String, String)> = variables(&resolved).into_iter().collect();
    let expected = [
        ("A", "of the deployment"),
        ("AIRFLOW_VAR_E", "another type"),
        ("AIRFLOW_VAR_LIMIT", "of the deployment"),
        ("B", "of the link"),
        ("e", "another key"),
    ];
    assert_eq!(environment, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert!(resolved.iter().all(|given| given.object.links.is_empty()));
}

#[test]
fn airflow_reads_connections_as_json() {
    let mut more = own();
    more["connection"] = json!({
        "type": "postgres", "host": "db", "port": 5432, "schema": "", "login": "u", "password": "p",
        "extra": { "sslmode": "require", "keepalives": 1 },
    });
    let export = json!({ "endpoint": "https://m", "exporterType": "PROMETHEUS" });
    let candidates = vec![
        candidate("my-db", "CONNECTION", more),
        candidate("m", "METRICS_EXPORT", json!({ "metricsExport": export, "autoLinkDeployments": true })),
    ];
    let environment = variables(&resolved(candidates, &[]));
    assert_eq!(environment.len(), 1);
    let connection: Value = serde_json::from_str(&environment["AIRFLOW_CONN_MY-DB"]).unwrap();
    assert_eq!(
        connection,
        json!({
            "conn_type": "postgres", "login": "u", "password": "p", "host": "db", "port": 5432,
            "extra": { "keepalives": 1, "sslmode": "require" },
        })
    );
}
