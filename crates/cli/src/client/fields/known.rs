//! The fields that a request has. The server ignores others, as an API should; somebody who typed one has made a mistake.

use std::collections::BTreeMap;

use podium_api::openapi::Document;
use podium_api::{ENDPOINTS, Endpoint};
use serde_json::Value;

use crate::client::ending::{Failed, Outcome, one_line};
use crate::client::names::most_alike;

/// How another runtime goes live.
const RUNTIME: &str = "To change the runtime, write runtime: VERSION into podium.yaml and run podium deploy";

/// A field that a request does not have.
struct Unknown {
    /// Where it was given, such as `scheduler.replcas`.
    path: String,
    /// Its last name.
    name: String,
    /// The names that there are in its place.
    known: Vec<String>,
}

/// Refuses fields that the request of an endpoint does not have; `what` is what it is about, with its article.
pub(super) fn check<E: Endpoint>(what: &str, given: &Value) -> Outcome {
    let document = Document::collect();
    let index = ENDPOINTS.iter().position(|endpoint| endpoint.id == E::DESCRIPTION.id);
    let Some(schemas) = index.map(|index| &document.endpoints[index]) else { return Ok(()) };
    let Some(body) = &schemas.body else { return Ok(()) };
    let schema = Schema { all: &document.schemas };
    let mut unknown = Vec::new();
    schema.compare(&[body], given, "", &mut unknown);
    let shown: Vec<&Value> = schemas.reply.iter().collect();
    let is_shown = |field: &Unknown| {
        schema.members(&shown).is_some_and(|members| members.contains_key(field.path.as_str()))
    };
    let is_new = E::DESCRIPTION.id.starts_with("Create");
    let said = |field: &Unknown| match (is_shown(field), is_new) {
        (true, true) => format!("{:?} of {what} cannot be set: the server decides it", one_line(&field.path)),
        (true, false) => format!("{:?} of {what} cannot be changed", one_line(&field.path)),
        (false, _) => format!("{what} has no field {:?}", one_line(&field.path)),
    };
    let hint = |field: &Unknown| match (field.path.as_str(), most_alike(&field.known, &field.name)) {
        ("platformRuntimeVersion", _) => RUNTIME.to_owned(),
        _ if is_shown(field) => format!("Fields you can set: {}", field.known.join(", ")),
        (_, Some(name)) => format!("Did you mean {name:?}?"),
        (_, None) => format!("Its fields: {}", field.known.join(", ")),
    };
    match unknown.as_slice() {
        [] => Ok(()),
        [one] => Err(Failed::usage(said(one)).hint(hint(one))),
        several => {
            let lines = several.iter().map(|field| match most_alike(&field.known, &field.name) {
                Some(name) if !is_shown(field) => format!("{}: did you mean {name:?}?", said(field)),
                _ => said(field),
            });
            Err(Failed::usage(format!("{} fields cannot be set", several.len())).details(lines))
        }
    }
}

struct Schema<'a> {
    all: &'a serde_json::Map<String, Value>,
}

impl<'a> Schema<'a> {
    fn compare(&self, schemas: &[&'a Value], given: &Value, path: &str, unknown: &mut Vec<Unknown>) {
        match given {
            Value::Object(fields) => {
                let Some(members) = self.members(schemas) else { return };
                for (name, value) in fields {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    match members.get(name.as_str()) {
                        Some(schemas) => self.compare(schemas, value, &path, unknown),
                        None => unknown.push(Unknown {
                            path,
                            name: name.clone(),
                            known: members.keys().map(|name| (*name).to_owned()).collect(),
                        }),
                    }
                }
            }
            Value::Array(items) => {
                let schemas: Vec<&Value> =
                    self.variants(schemas).into_iter().filter_map(|schema| schema.get("items")).collect();
                if !schemas.is_empty() {
                    items.iter().for_each(|item| self.compare(&schemas, item, path, unknown));
                }
            }
            _ => {}
        }
    }

    /// The members of an object, each with its schemas; none if it is no object, or may have members of any name.
    fn members(&self, schemas: &[&'a Value]) -> Option<BTreeMap<&'a str, Vec<&'a Value>>> {
        let mut members: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for schema in self.variants(schemas) {
            if schema.get("additionalProperties").is_some_and(|more| *more != false) {
                return None;
            }
            for (name, member) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
                members.entry(name).or_default().push(member);
            }
        }
        (!members.is_empty()).then_some(members)
    }

    /// What schemas stand for: references followed, and every option of a choice.
    fn variants(&self, schemas: &[&'a Value]) -> Vec<&'a Value> {
        let mut found = Vec::new();
        let mut open = schemas.to_vec();
        while let Some(schema) = open.pop() {
            let referred =
                schema.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
            open.extend(referred.and_then(|name| self.all.get(name)));
            for choice in ["anyOf", "oneOf", "allOf"] {
                open.extend(schema.get(choice).and_then(Value::as_array).into_iter().flatten());
            }
            found.push(schema);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use podium_api::{clusters, deployments, environment_objects};
    use serde_json::json;

    use super::*;

    fn said<E: Endpoint>(given: &Value) -> String {
        check::<E>("a deployment", given).map_or_else(|failed| failed.text(), |()| String::new())
    }

    #[test]
    fn what_a_request_does_not_have_is_named_with_what_is_alike() {
        assert_eq!(
            said::<deployments::Update>(&json!({ "schedulrSize": "SMALL" })),
            "podium: a deployment has no field \"schedulrSize\"\nDid you mean \"schedulerSize\"?\n"
        );
        assert_eq!(
            said::<deployments::Update>(&json!({ "scheduler": { "replcas": 2 } })),
            "podium: a deployment has no field \"scheduler.replcas\"\nDid you mean \"replicas\"?\n"
        );
        assert_eq!(
            said::<deployments::Update>(&json!({ "platformRuntimeVersion": "3.3.2" })),
            format!("podium: \"platformRuntimeVersion\" of a deployment cannot be changed\n{RUNTIME}\n")
        );
        let status = said::<deployments::Create>(&json!({ "status": "HEALTHY" }));
        assert!(
            status.starts_with("podium: \"status\" of a deployment cannot be set: the server"),
            "{status}"
        );
        let two = said::<deployments::Update>(&json!({ "isCicdEnforcd": true, "zzz": 1 }));
        let lines = "podium: 2 fields cannot be set\n  a deployment has no field \"isCicdEnforcd\": did you mean \
                     \"isCicdEnforced\"?\n  a deployment has no field \"zzz\"\n";
        assert_eq!(two, lines);
    }

    #[test]
    fn every_field_of_a_request_is_known() {
        let fields = json!({
            "platformRuntimeVersion": "3.3.2", "remoteExecution": { "enabled": true }, "scheduler": { "au": 5 },
            "workerQueues": [{ "name": "default" }], "isHighAvailability": true,
        });
        assert_eq!(said::<deployments::Create>(&fields), "");
        assert_eq!(
            said::<clusters::Update>(&json!({ "k8sTags": [], "isFailedOver": true, "name": "x" })),
            ""
        );
        let connection = json!({ "connection": { "type": "x", "extra": { "anything": { "goes": 1 } } } });
        assert_eq!(said::<environment_objects::Create>(&connection), "");
        let queue = said::<deployments::Update>(&json!({ "workerQueues": [{ "nme": "default" }] }));
        assert!(queue.contains("\"workerQueues.nme\"") && queue.contains("\"name\""), "{queue}");
    }
}
