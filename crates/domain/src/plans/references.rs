//! References to the results of earlier calls: `{0.id}` in a path, `{"$call": 0, "field": "id"}` in a body.

use std::fmt;

use podium_api::FieldError;
use serde_json::{Map, Value};

const CALL: &str = "$call";
const FIELD: &str = "field";

/// The results of the calls so far; `None` for a call that was refused or answers nothing.
type Results = [Option<Map<String, Value>>];

pub fn resolve_path(path: &str, call: usize, results: &Results) -> Result<String, FieldError> {
    let (mut resolved, mut rest) = (String::with_capacity(path.len()), path);
    while let Some((before, after)) = rest.split_once('{') {
        resolved.push_str(before);
        let wrong = |why: &str| FieldError::new(format!("calls[{call}].path"), "reference", why);
        let usage = "has a reference that is not understood: write `{0.id}` for the `id` in the result of the first call";
        let (reference, after) = after.split_once('}').ok_or_else(|| wrong(usage))?;
        let parsed = reference.split_once('.').and_then(|(index, field)| Some((index.parse().ok()?, field)));
        let (index, field) = parsed.ok_or_else(|| wrong(usage))?;
        let at = format!("calls[{call}].path");
        let found = look_up(index, field, call, results).map_err(|why| why.at(&at))?;
        let text = found.as_str().ok_or_else(|| wrong("refers to a value that is not a text"))?;
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b)) {
            return Err(wrong("refers to a value that cannot be part of a path"));
        }
        resolved.push_str(text);
        rest = after;
    }
    resolved.push_str(rest);
    Ok(resolved)
}

/// The largest value that a reference stands for, in bytes.
const LONGEST: usize = 256;

pub fn resolve_body(body: &Map<String, Value>, call: usize, results: &Results) -> Result<Value, FieldError> {
    let mut resolved = Value::Object(body.clone());
    replace(&mut resolved, &format!("calls[{call}].body"), call, results)?;
    Ok(resolved)
}

fn replace(value: &mut Value, at: &str, call: usize, results: &Results) -> Result<(), FieldError> {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .enumerate()
            .try_for_each(|(n, item)| replace(item, &format!("{at}[{n}]"), call, results)),
        Value::Object(members) if members.contains_key(CALL) => {
            let wrong = |why: &str| FieldError::new(at, "reference", why);
            let usage = "is not a reference: write {\"$call\": 0, \"field\": \"id\"} for the `id` in the result of the first call";
            let index = members[CALL].as_u64().and_then(|index| usize::try_from(index).ok());
            let field = members.get(FIELD).and_then(Value::as_str);
            let (Some(index), Some(field), 2) = (index, field, members.len()) else {
                return Err(wrong(usage));
            };
            *value = look_up(index, field, call, results).map_err(|why| why.at(at))?;
            Ok(())
        }
        Value::Object(members) => members
            .iter_mut()
            .try_for_each(|(name, member)| replace(member, &format!("{at}.{name}"), call, results)),
        _ => Ok(()),
    }
}

/// Why a reference leads nowhere.
enum Unresolved<'a> {
    NotEarlier(usize),
    NoResult(usize),
    NoField(usize, &'a str),
    NotSimple(usize, &'a str),
    TooLong(usize, &'a str),
}

impl Unresolved<'_> {
    fn at(&self, place: &str) -> FieldError {
        let code = if let Self::NoResult(_) = self { "noResult" } else { "reference" };
        FieldError::new(place, code, self.to_string())
    }
}

impl fmt::Display for Unresolved<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotEarlier(call) => write!(f, "refers to call {call}, which is not an earlier call"),
            Self::NoResult(call) => write!(f, "refers to call {call}, which has no result"),
            Self::NoField(call, field) => {
                write!(f, "refers to `{field}`, which is not in the result of call {call}")
            }
            Self::TooLong(call, field) => {
                write!(f, "refers to `{field}` of call {call}, which is longer than {LONGEST} bytes")
            }
            Self::NotSimple(call, field) => {
                write!(
                    f,
                    "refers to `{field}` of call {call}, which is a list or an object: name one of its values"
                )
            }
        }
    }
}

/// The field of an earlier call's result; `a.b` is the member `b` of `a`.
fn look_up<'a>(
    index: usize,
    field: &'a str,
    call: usize,
    results: &Results,
) -> Result<Value, Unresolved<'a>> {
    if index >= call {
        return Err(Unresolved::NotEarlier(index));
    }
    let Some(Some(result)) = results.get(index) else { return Err(Unresolved::NoResult(index)) };
    let mut names = field.split('.');
    let first = names.next().and_then(|name| result.get(name));
    let found = names.try_fold(first, |value, name| value.map(|value| value.get(name)));
    let found = found.flatten().filter(|value| !value.is_null());
    match found.ok_or(Unresolved::NoField(index, field))? {
        // Copies of large values could make a small plan a large one.
        Value::Object(_) | Value::Array(_) => Err(Unresolved::NotSimple(index, field)),
        Value::String(text) if text.len() > LONGEST => Err(Unresolved::TooLong(index, field)),
        simple => Ok(simple.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn results() -> Vec<Option<Map<String, Value>>> {
        let first = json!({ "id": "c1", "nested": { "n": 7 }, "odd": "../x", "none": null });
        vec![first.as_object().cloned(), None]
    }

    #[test]
    fn paths_refer_to_earlier_results() {
        let path = |text: &str| resolve_path(text, 2, &results()).map_err(|error| error.message);
        assert_eq!(path("/workspaces/{0.id}/x").unwrap(), "/workspaces/c1/x");
        assert_eq!(path("/workspaces").unwrap(), "/workspaces");
        for (wrong, why) in [
            ("/{0.id", "has a reference that is not understood"),
            ("/{id}", "has a reference that is not understood"),
            ("/{1.id}", "refers to call 1, which has no result"),
            ("/{2.id}", "refers to call 2, which is not an earlier call"),
            ("/{0.name}", "refers to `name`, which is not in the result of call 0"),
            ("/{0.none}", "refers to `none`, which is not in the result of call 0"),
            ("/{0.nested}", "refers to `nested` of call 0, which is a list or an object"),
            ("/{0.nested.n}", "refers to a value that is not a text"),
            ("/{0.odd}", "refers to a value that cannot be part of a path"),
        ] {
            let said = path(wrong).unwrap_err();
            assert!(said.starts_with(why), "{wrong}: {said}");
        }
    }

    #[test]
    fn bodies_refer_to_earlier_results_at_any_depth() {
        let body = json!({ "a": { "$call": 0, "field": "id" }, "b": [{ "c": { "$call": 0, "field": "nested.n" } }] });
        let resolved = resolve_body(body.as_object().unwrap(), 1, &results()).unwrap();
        assert_eq!(resolved, json!({ "a": "c1", "b": [{ "c": 7 }] }));
        for (wrong, at) in [
            (json!({ "a": [{ "$call": 0 }] }), "calls[1].body.a[0]"),
            (json!({ "a": { "$call": "0", "field": "id" } }), "calls[1].body.a"),
            (json!({ "a": { "$call": 0, "field": "id", "more": 1 } }), "calls[1].body.a"),
            (json!({ "a": { "b": { "$call": 1, "field": "id" } } }), "calls[1].body.a.b"),
        ] {
            assert_eq!(resolve_body(wrong.as_object().unwrap(), 1, &results()).unwrap_err().field, at);
        }
    }
}
