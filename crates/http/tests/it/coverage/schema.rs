//! A strict checker of JSON against the schemas of the document: a keyword that it does not know is a failure,
//! and so is a property that the schema does not name.

use podium_api::{Id, Timestamp};
use serde_json::{Map, Value, json};

/// What is wrong with a value, each with its path; nothing where it fits.
pub(super) fn violations(schema: &Value, schemas: &Map<String, Value>, value: &Value) -> Vec<String> {
    let mut checker = Checker { schemas, wrong: Vec::new() };
    checker.check(schema, value, "$");
    checker.wrong
}

struct Checker<'a> {
    schemas: &'a Map<String, Value>,
    wrong: Vec<String>,
}

impl Checker<'_> {
    fn check(&mut self, schema: &Value, value: &Value, path: &str) {
        let Some(keywords) = schema.as_object() else {
            return self.require(schema == &json!(true), path, "nothing fits `false`");
        };
        for (keyword, rule) in keywords {
            self.keyword(keyword, rule, schema, value, path);
        }
    }

    fn keyword(&mut self, keyword: &str, rule: &Value, schema: &Value, value: &Value, path: &str) {
        let number = || rule.as_i64().expect("a bound is a number");
        match keyword {
            "description" | "default" => {}
            "$ref" => {
                let name = rule.as_str().and_then(|r| r.strip_prefix("#/components/schemas/"));
                let named = self.schemas.get(name.expect("a reference to a schema")).cloned();
                self.check(&named.expect("the schema that is referred to"), value, path);
            }
            "anyOf" => {
                let mut options = rule.as_array().expect("options").iter();
                let fits = options.any(|option| violations(option, self.schemas, value).is_empty());
                self.require(fits, path, "fits no option");
            }
            "type" => self.require(is_of_type(rule, value), path, &format!("is not of type {rule}")),
            "enum" => {
                let known = rule.as_array().expect("words").contains(value);
                self.require(known, path, &format!("{value} is not one of {rule}"));
            }
            "minimum" => self.require(value.as_i64().is_none_or(|n| n >= number()), path, "is too small"),
            "maximum" => self.require(value.as_i64().is_none_or(|n| n <= number()), path, "is too large"),
            "minLength" => self.require(length(value).is_none_or(|n| n >= number()), path, "is too short"),
            "maxLength" => self.require(length(value).is_none_or(|n| n <= number()), path, "is too long"),
            "minItems" => self.require(items(value).is_none_or(|n| n >= number()), path, "has too few items"),
            "maxItems" => {
                self.require(items(value).is_none_or(|n| n <= number()), path, "has too many items");
            }
            "format" => self.require(has_format(rule, value), path, &format!("is not a {rule}")),
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.check(rule, item, &format!("{path}[{index}]"));
                }
            }
            "required" => {
                for name in rule.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    self.require(value.get(name).is_some(), path, &format!("lacks `{name}`"));
                }
            }
            "properties" => {
                for (name, item) in value.as_object().into_iter().flatten() {
                    match schema["properties"].get(name) {
                        Some(rule) => self.check(rule, item, &format!("{path}.{name}")),
                        None => self.require(false, path, &format!("has `{name}`, which no schema names")),
                    }
                }
            }
            "additionalProperties" => self.require(*rule == true, path, "describes what it may not"),
            unknown => self.require(false, path, &format!("the checker does not know `{unknown}`")),
        }
    }

    fn require(&mut self, holds: bool, path: &str, otherwise: &str) {
        if !holds {
            self.wrong.push(format!("{path}: {otherwise}"));
        }
    }
}

fn is_of_type(rule: &Value, value: &Value) -> bool {
    match rule.as_str().expect("one type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        unknown => panic!("the checker does not know the type `{unknown}`"),
    }
}

fn has_format(rule: &Value, value: &Value) -> bool {
    let Some(text) = value.as_str() else { return true };
    match rule.as_str().expect("a format") {
        "cuid" => text.parse::<Id>().is_ok(),
        "date-time" => Timestamp::parse(text).is_some_and(|time| time.to_string() == text),
        "password" => true,
        unknown => panic!("the checker does not know the format `{unknown}`"),
    }
}

fn length(value: &Value) -> Option<i64> {
    value.as_str().map(|text| text.chars().count() as i64)
}

fn items(value: &Value) -> Option<i64> {
    value.as_array().map(|items| items.len() as i64)
}

#[test]
fn the_checker_finds_errors() {
    let person = json!({
        "type": "object",
        "required": ["id", "at"],
        "properties": {
            "id": { "type": "string", "format": "cuid" },
            "at": { "type": "string", "format": "date-time" },
            "names": { "type": "array", "maxItems": 2, "items": { "type": "string", "minLength": 1 } },
            "mood": { "anyOf": [{ "enum": ["GOOD", "BAD"] }, { "type": "null" }] },
            "age": { "type": "integer", "minimum": 0, "maximum": 200 },
        },
    });
    let schemas = json!({ "Person": person }).as_object().cloned().unwrap();
    let schema = json!({ "$ref": "#/components/schemas/Person" });
    let id = "cm7g5vk8w0001000000000000";
    let at = "2027-01-15T08:00:00.000Z";
    let table = [
        (json!({ "id": id, "at": at, "names": ["a"], "mood": null, "age": 7 }), vec![]),
        (json!({ "id": id }), vec!["$: lacks `at`"]),
        (json!({ "id": "7", "at": "then" }), vec!["$.id: is not a \"cuid\"", "$.at: is not a \"date-time\""]),
        (
            json!({ "id": id, "at": at, "names": ["", 7] }),
            vec!["$.names[0]: is too short", "$.names[1]: is not of type \"string\""],
        ),
        (json!({ "id": id, "at": at, "names": ["a", "b", "c"] }), vec!["$.names: has too many items"]),
        (json!({ "id": id, "at": at, "mood": "SO" }), vec!["$.mood: fits no option"]),
        (json!({ "id": id, "at": at, "age": 201 }), vec!["$.age: is too large"]),
        (json!({ "id": id, "at": at, "more": 1 }), vec!["$: has `more`, which no schema names"]),
        (json!([]), vec!["$: is not of type \"object\"", "$: lacks `id`", "$: lacks `at`"]),
    ];
    for (value, expected) in table {
        assert_eq!(violations(&schema, &schemas, &value), expected, "{value}");
    }
}
