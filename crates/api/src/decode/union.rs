//! Tagged unions: the tag names the variant, and fields of other variants are recognized and refused.

use serde_json::{Map, Value, json};

use super::Field;
use crate::FieldError;

/// Checks an object against the variant that its tag names, or against the one that fits best where it has no tag.
pub(super) fn visit(
    tag: &str,
    variants: &[(String, Vec<Field>)],
    object: &mut Map<String, Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match object.get(tag) {
        Some(Value::String(word)) if !word.is_empty() => {
            let Some(index) = variants.iter().position(|(known, _)| known == word) else {
                let words: Vec<&str> = variants.iter().map(|(word, _)| word.as_str()).collect();
                let message = format!("must be one of {}", words.join(", "));
                errors.push(FieldError::new(at(tag), "enum", message));
                return;
            };
            check(variants, index, object, path, errors);
        }
        None | Some(Value::Null | Value::String(_)) => {
            object.remove(tag);
            let tries = (0..variants.len()).map(|index| {
                let (mut object, mut errors) = (object.clone(), Vec::new());
                check(variants, index, &mut object, path, &mut errors);
                if variants.iter().any(|(_, fields)| !requires(fields, tag)) {
                    errors.retain(|error| error.field != at(tag));
                }
                (object, errors)
            });
            // A field that only a sibling has says more of what is meant than a field that is wrong.
            let misfit = |errors: &[FieldError]| {
                (errors.iter().filter(|error| error.code == "excluded").count(), errors.len())
            };
            if let Some((fitting, found)) = tries.min_by_key(|(_, errors)| misfit(errors)) {
                *object = fitting;
                errors.extend(found);
            }
        }
        Some(other) => {
            let message = format!("must be a string, is {}", super::name_of(other));
            errors.push(FieldError::new(at(tag), "type", message));
        }
    }
}

fn requires(fields: &[Field], name: &str) -> bool {
    fields.iter().any(|field| field.name == name && field.required)
}

fn check(
    variants: &[(String, Vec<Field>)],
    index: usize,
    object: &mut Map<String, Value>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let (word, own) = &variants[index];
    let has = |fields: &[Field], name: &str| fields.iter().any(|field| field.name == name);
    object.retain(|name, value| {
        let is_siblings = !has(own, name) && variants.iter().any(|(_, fields)| has(fields, name));
        if is_siblings && !is_blank(value) {
            let field = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let message = format!("must be omitted: {word} does not support it");
            errors.push(FieldError::new(field, "excluded", message));
        }
        !is_siblings
    });
    for field in own {
        field.visit(object, path, errors);
    }
}

/// Values that clients send for fields they do not intend to set.
pub(super) fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty() || is_off(fields),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

/// `{"enabled": false}`, which some clients send along with empty fields.
fn is_off(fields: &Map<String, Value>) -> bool {
    let is_empty = |value: &Value| matches!(value, Value::Object(fields) if fields.is_empty());
    fields.iter().all(|(name, value)| match name.as_str() {
        "enabled" => *value == false,
        _ => value.is_null() || *value == "" || *value == json!([]) || is_empty(value),
    }) && fields.contains_key("enabled")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Check;
    use super::*;

    /// Cats must have a name and may have lives; dogs may have tricks. `kind` is required of dogs only.
    fn pets() -> Check {
        let schemas = json!({
            "Cat": { "type": "object", "required": ["name"],
                "properties": { "kind": { "type": "string", "enum": ["CAT", "DOG"] }, "name": { "type": "string" },
                    "lives": { "type": "integer", "minimum": 0 } } },
            "Dog": { "type": "object", "required": ["kind"],
                "properties": { "kind": { "type": "string", "enum": ["CAT", "DOG"] },
                    "tricks": { "type": "array", "items": { "type": "string" } } } },
        });
        let mapping = json!({ "CAT": "#/x/Cat", "DOG": "#/x/Dog" });
        let options = json!([{ "$ref": "#/x/Cat" }, { "$ref": "#/x/Dog" }]);
        let union =
            json!({ "oneOf": options, "discriminator": { "propertyName": "kind", "mapping": mapping } });
        Check::compile(&union, schemas.as_object().unwrap()).unwrap()
    }

    #[test]
    fn a_variant_is_checked_and_a_siblings_field_is_refused() {
        let table = [
            (json!({ "kind": "CAT", "name": "Tom" }), "ok"),
            (json!({ "kind": "CAT", "name": "Tom", "unknown": 1 }), "ok"),
            (json!({ "kind": "CAT", "name": "Tom", "tricks": [] }), "ok"),
            (json!({ "kind": "CAT", "name": "Tom", "tricks": null }), "ok"),
            (json!({ "kind": "CAT", "name": "Tom", "tricks": false }), "ok"),
            (json!({ "kind": "CAT", "name": "Tom", "tricks": { "enabled": false } }), "ok"),
            (json!({ "kind": "CAT", "name": "Tom", "tricks": ["sit"] }), "tricks excluded"),
            (
                json!({ "kind": "CAT", "lives": -1, "tricks": ["sit"] }),
                "tricks excluded, name required, lives minimum",
            ),
            (json!({ "kind": "DOG", "tricks": ["sit"] }), "ok"),
            (json!({ "kind": "DOG", "lives": 9 }), "lives excluded"),
            (json!({ "kind": "FISH" }), "kind enum"),
            (json!({ "kind": 7 }), "kind type"),
            (json!([]), " type"),
        ];
        for (body, expected) in table {
            let found = match pets().checked(body.clone()) {
                Ok(_) => "ok".into(),
                Err(errors) => {
                    let errors: Vec<_> = errors.iter().map(|e| format!("{} {}", e.field, e.code)).collect();
                    errors.join(", ")
                }
            };
            assert_eq!(found, expected, "{body}");
        }
    }

    #[test]
    fn without_a_tag_the_best_fit_is_taken() {
        assert_eq!(pets().checked(json!({ "name": "Tom" })), Ok(json!({ "name": "Tom" })));
        assert_eq!(pets().checked(json!({ "tricks": ["sit"] })), Ok(json!({ "tricks": ["sit"] })));
        assert_eq!(pets().checked(json!({ "kind": "", "tricks": [] })), Ok(json!({ "tricks": [] })));
        let errors = pets().checked(json!({ "tricks": "sit" })).unwrap_err();
        assert_eq!((errors[0].field.as_str(), errors[0].code.as_str()), ("tricks", "type"));
    }

    #[test]
    fn a_part_may_lack_what_a_siblings_part_has() {
        let part = json!({ "type": "object", "properties": { "own": { "type": "string" } }, "x-sibling-fields": ["other"] });
        let check = Check::compile(&part, &Map::new()).unwrap();
        let off = json!({ "enabled": false, "a": null, "b": [], "c": "", "d": {} });
        for blank in
            [json!(null), json!(""), json!([]), json!(false), json!({}), json!({ "enabled": false }), off]
        {
            let body = json!({ "own": "a", "other": blank });
            assert_eq!(check.checked(body), Ok(json!({ "own": "a" })));
        }
        let said =
            [json!("b"), json!(true), json!(0), json!([0]), json!({ "a": null }), json!({ "enabled": true })];
        for said in
            said.into_iter().chain([json!({ "enabled": null }), json!({ "enabled": false, "a": false })])
        {
            let errors = check.checked(json!({ "other": said })).unwrap_err();
            assert_eq!((errors[0].field.as_str(), errors[0].code.as_str()), ("other", "excluded"), "{said}");
        }
        assert_eq!(check.without_secrets(&json!({ "own": "a", "other": "b" })), Some(json!({ "own": "a" })));
    }

    #[test]
    fn fields_of_every_variant_are_shown_to_the_audit_log() {
        let body = json!({ "kind": "CAT", "name": "Tom", "tricks": ["sit"], "unknown": 1 });
        let shown = json!({ "kind": "CAT", "name": "Tom", "tricks": ["sit"] });
        assert_eq!(pets().without_secrets(&body), Some(shown));
    }
}
