//! The environment variables, names and values, through which Airflow reads a deployment's objects.

use std::collections::BTreeMap;

use podium_api::enums::EnvironmentObjectType;
use serde_json::{Map, Value, json};

use super::keys::unique;
use super::resolve::Resolved;
use super::values::Values;

/// The environment variables that carry connections and variables. Metrics exports are none of Airflow's business.
pub fn variables<M>(resolved: &[Resolved<Value, M>]) -> BTreeMap<String, String> {
    let variable = |given: &Resolved<Value, M>| {
        let object_type = given.object.object_type;
        let key = unique(object_type, &given.key);
        match object_type {
            EnvironmentObjectType::Connection => {
                Some((format!("AIRFLOW_CONN_{key}"), connection(&given.values)))
            }
            EnvironmentObjectType::AirflowVariable => {
                Some((format!("AIRFLOW_VAR_{key}"), value(&given.values)))
            }
            EnvironmentObjectType::EnvironmentVariable => Some((key, value(&given.values))),
            EnvironmentObjectType::MetricsExport => None,
        }
    };
    resolved.iter().filter_map(variable).collect()
}

pub fn value(values: &Values) -> String {
    let value = values.secret.get("value").or_else(|| values.plain.get("value"));
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A connection in the JSON form that Airflow reads; empty fields are left out.
pub fn connection(values: &Values) -> String {
    let mut body = values.nested(EnvironmentObjectType::Connection);
    let mut out = Map::new();
    for (name, airflow_name) in [
        ("type", "conn_type"),
        ("login", "login"),
        ("password", "password"),
        ("host", "host"),
        ("port", "port"),
        ("schema", "schema"),
        ("extra", "extra"),
    ] {
        if let Some(value) = body.remove(name).filter(|value| *value != json!("")) {
            out.insert(airflow_name.to_owned(), value);
        }
    }
    Value::Object(out).to_string()
}
