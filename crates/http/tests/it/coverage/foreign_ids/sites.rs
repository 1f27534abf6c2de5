//! Where requests name ids: derived from the document, so that a new endpoint joins by itself.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

/// The part of a request that an id stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Path,
    Query,
    Body,
}

/// A place where a request names an id, such as `roles[].entityId` in a body.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Site {
    pub(super) part: Part,
    pub(super) field: String,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            Part::Path => "path",
            Part::Query => "query",
            Part::Body => "body",
        };
        write!(f, "{part} {}", self.field)
    }
}

/// Every id that requests of an operation can name.
pub(super) fn sites(operation: &Value, schemas: &Map<String, Value>) -> BTreeSet<Site> {
    let mut found = BTreeSet::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let part = match parameter["in"].as_str() {
            Some("path") => Part::Path,
            Some("query") => Part::Query,
            _ => continue,
        };
        let name = parameter["name"].as_str().expect("a parameter has a name");
        let mut walk = Walk { schemas, part, within: Vec::new(), found: &mut found };
        walk.schema(&parameter["schema"], name, name);
    }
    let mut walk = Walk { schemas, part: Part::Body, within: Vec::new(), found: &mut found };
    walk.schema(&operation["requestBody"]["content"]["application/json"]["schema"], "", "");
    found
}

struct Walk<'a> {
    schemas: &'a Map<String, Value>,
    part: Part,
    /// The named schemas around, which may refer to themselves.
    within: Vec<String>,
    found: &'a mut BTreeSet<Site>,
}

impl Walk<'_> {
    fn schema(&mut self, schema: &Value, field: &str, name: &str) {
        if let Some(reference) = schema["$ref"].as_str() {
            if self.within.iter().any(|around| around == reference) {
                return;
            }
            self.within.push(reference.to_owned());
            let named = reference.strip_prefix("#/components/schemas/").expect("a reference to a schema");
            self.schema(&self.schemas[named], field, name);
            self.within.pop();
            return;
        }
        for options in ["anyOf", "oneOf", "allOf"] {
            for option in schema[options].as_array().into_iter().flatten() {
                self.schema(option, field, name);
            }
        }
        if is_id(schema, name) {
            self.found.insert(Site { part: self.part, field: field.to_owned() });
        }
        if schema["items"].is_object() {
            self.schema(&schema["items"], &format!("{field}[]"), name);
        }
        if schema["additionalProperties"].is_object() {
            self.schema(&schema["additionalProperties"], &format!("{field}.*"), name);
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let field = if field.is_empty() { name.clone() } else { format!("{field}.{name}") };
            self.schema(property, &field, name);
        }
    }
}

/// An id says so by its format or, where the contract leaves that out, by the name of its field.
fn is_id(schema: &Value, name: &str) -> bool {
    let is_text = schema["type"] == "string" && schema["format"].is_null() && schema["enum"].is_null();
    let is_named_so = name == "id" || name.ends_with("Id") || name.ends_with("Ids");
    schema["format"] == "cuid" || is_text && is_named_so
}

/// Puts an id into every place of a body that fits the field; returns whether there is one.
pub(super) fn put(body: &mut Value, field: &str, id: &str) -> bool {
    let (name, rest) = field.split_once('.').unwrap_or((field, ""));
    if let Some(name) = name.strip_suffix("[]") {
        let Some(items) = body.get_mut(name).and_then(Value::as_array_mut) else { return false };
        if rest.is_empty() {
            items.truncate(1);
            items.iter_mut().for_each(|item| *item = id.into());
            return !items.is_empty();
        }
        let mut is_put = false;
        for item in items {
            is_put |= put(item, rest, id);
        }
        return is_put;
    }
    match body.get_mut(name) {
        Some(value) if rest.is_empty() => {
            *value = id.into();
            true
        }
        Some(value) => put(value, rest, id),
        None => false,
    }
}

#[test]
fn ids_are_found_wherever_they_stand() {
    let id = serde_json::json!({ "type": "string", "format": "cuid" });
    let text = serde_json::json!({ "type": "string" });
    let schemas = serde_json::json!({
        "Node": { "properties": { "parent": { "$ref": "#/components/schemas/Node" }, "ids": { "items": id } } },
    });
    let body = serde_json::json!({ "oneOf": [
        { "properties": { "teamId": text, "name": text, "kindId": { "type": "string", "enum": ["A"] } } },
        { "properties": { "node": { "$ref": "#/components/schemas/Node" }, "by": { "additionalProperties": id } } },
    ]});
    let operation = serde_json::json!({
        "parameters": [
            { "in": "path", "name": "roleId", "schema": text },
            { "in": "query", "name": "targetIds", "schema": { "type": "array", "items": text } },
            { "in": "header", "name": "Last-Event-ID", "schema": text },
        ],
        "requestBody": { "content": { "application/json": { "schema": body } } },
    });
    let found = sites(&operation, schemas.as_object().unwrap());
    let found: Vec<String> = found.iter().map(Site::to_string).collect();
    assert_eq!(found, ["path roleId", "query targetIds[]", "body by.*", "body node.ids[]", "body teamId"]);
}

#[test]
fn an_id_is_put_where_the_field_says() {
    let mut body =
        serde_json::json!({ "ids": ["a", "b"], "roles": [{ "id": "a" }, {}], "of": { "id": "a" } });
    assert!(
        put(&mut body, "ids[]", "x") && put(&mut body, "roles[].id", "x") && put(&mut body, "of.id", "x")
    );
    assert_eq!(body, serde_json::json!({ "ids": ["x"], "roles": [{ "id": "x" }, {}], "of": { "id": "x" } }));
    assert!(!put(&mut body, "other", "x") && !put(&mut body, "roles[].other", "x"));
}
