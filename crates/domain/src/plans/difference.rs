//! What differs between a resource before and after a call.

use podium_api::plans::PlannedChange;
use serde_json::{Map, Value, json};

/// Who changed a resource last and when says nothing about the change.
const STAMPS: &[&str] = &["updatedAt", "updatedBy"];
/// What members of a list are named by, the first that they have.
const KEYS: &[&str] = &["key", "objectKey", "name", "entityId", "id"];
/// Shown in the place of a secret.
const MASK: &str = "********";

/// The fields that differ, in the order of the resource.
pub fn difference(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<PlannedChange> {
    let mut changes = Vec::new();
    members(before, after, "", &mut changes);
    changes
}

/// The fields of a resource that is made.
pub fn created(after: &Map<String, Value>) -> Vec<PlannedChange> {
    let is_told = |name: &String| !STAMPS.contains(&name.as_str());
    let told = after.iter().filter(|(name, value)| is_told(name) && !is_empty(value));
    told.map(|(name, value)| PlannedChange { path: name.clone(), from: None, to: Some(value.clone()) })
        .collect()
}

/// A resource that is deleted: its id and its name.
pub fn deleted(before: &Map<String, Value>) -> Vec<PlannedChange> {
    let named = KEYS.iter().filter_map(|key| Some(((*key).to_owned(), before.get(*key)?.clone())));
    let from: Map<String, Value> = named.collect();
    vec![PlannedChange { path: String::new(), from: Some(Value::Object(from)), to: None }]
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn members(
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    at: &str,
    changes: &mut Vec<PlannedChange>,
) {
    let is_secret = |value: &Map<String, Value>| value.get("isSecret") == Some(&Value::Bool(true));
    // A secret is never shown; when it was set is, and that changes with its value.
    if is_secret(before) && is_secret(after) && before.get("updatedAt") != after.get("updatedAt") {
        let (path, mask) = (join(at, "value"), Some(json!(MASK)));
        changes.push(PlannedChange { path, from: mask.clone(), to: mask });
    }
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    for name in names.filter(|name| !STAMPS.contains(&name.as_str())) {
        compare(before.get(name), after.get(name), &join(at, name), changes);
    }
}

fn compare(before: Option<&Value>, after: Option<&Value>, at: &str, changes: &mut Vec<PlannedChange>) {
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) => members(before, after, at, changes),
        (Some(Value::Array(before)), Some(Value::Array(after))) => match (keyed(before), keyed(after)) {
            (Some(before), Some(after)) => items(&before, &after, at, changes),
            _ if before == after => {}
            _ => changes.push(changed(at, Some(&json!(before)), Some(&json!(after)))),
        },
        (before, after) if before == after => {}
        (before, after) => changes.push(changed(at, before, after)),
    }
}

/// Compares lists whose items are sorted by their keys.
fn items(before: &[(&str, &Value)], after: &[(&str, &Value)], at: &str, changes: &mut Vec<PlannedChange>) {
    let find = |list: &[(&str, &Value)], key: &str| list.binary_search_by_key(&key, |(own, _)| own).ok();
    let added = after.iter().filter(|(key, _)| find(before, key).is_none());
    for (key, _) in before.iter().chain(added) {
        let old = find(before, key).map(|index| before[index].1);
        let new = find(after, key).map(|index| after[index].1);
        compare(old, new, &format!("{at}[{key}]"), changes);
    }
}

/// The items of a list with what they are named by; `None` unless each has a name of its own.
fn keyed(items: &[Value]) -> Option<Vec<(&str, &Value)>> {
    let key =
        KEYS.iter().find(|key| items.iter().all(|item| item.get(**key).is_some_and(Value::is_string)))?;
    let mut keyed: Vec<_> = items.iter().filter_map(|item| Some((item[*key].as_str()?, item))).collect();
    keyed.sort_by_key(|(key, _)| *key);
    let are_distinct = keyed.windows(2).all(|pair| pair[0].0 != pair[1].0);
    are_distinct.then_some(keyed)
}

fn changed(path: &str, from: Option<&Value>, to: Option<&Value>) -> PlannedChange {
    PlannedChange { path: path.to_owned(), from: from.cloned(), to: to.cloned() }
}

fn join(at: &str, name: &str) -> String {
    if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: Value, after: Value) -> Vec<String> {
        let (Value::Object(before), Value::Object(after)) = (before, after) else { unreachable!("objects") };
        let shown = |value: Option<Value>| value.map_or("-".to_owned(), |value| value.to_string());
        let line = |change: PlannedChange| {
            format!("{}: {} -> {}", change.path, shown(change.from), shown(change.to))
        };
        difference(&before, &after).into_iter().map(line).collect()
    }

    #[test]
    fn fields_are_compared_at_any_depth() {
        let before =
            json!({ "name": "a", "same": 1, "gone": 2, "updatedAt": 1, "deep": { "x": [1], "y": 1 } });
        let after =
            json!({ "name": "b", "same": 1, "updatedAt": 2, "deep": { "x": [2], "y": 1 }, "new": null });
        let expected = ["name: \"a\" -> \"b\"", "gone: 2 -> -", "deep.x: [1] -> [2]", "new: - -> null"];
        assert_eq!(told(before, after), expected);
    }

    #[test]
    fn members_of_lists_are_compared_by_name() {
        let before = json!({ "queues": [{ "name": "default", "max": 1 }, { "name": "old", "max": 1 }] });
        let after = json!({ "queues": [{ "name": "new", "max": 2 }, { "name": "default", "max": 3 }] });
        let expected = [
            "queues[default].max: 1 -> 3",
            "queues[old]: {\"name\":\"old\",\"max\":1} -> -",
            "queues[new]: - -> {\"name\":\"new\",\"max\":2}",
        ];
        assert_eq!(told(before, after), expected);
        let twice = json!({ "queues": [{ "name": "a" }, { "name": "a" }] });
        assert_eq!(
            told(json!({ "queues": [] }), twice.clone()),
            ["queues: [] -> [{\"name\":\"a\"},{\"name\":\"a\"}]"]
        );
        assert_eq!(told(twice.clone(), twice), [""; 0]);
    }

    #[test]
    fn a_secret_is_masked_and_its_change_is_told() {
        let secret = |at: i64| json!({ "variables": [{ "key": "K", "isSecret": true, "value": "", "updatedAt": at }] });
        assert_eq!(told(secret(1), secret(2)), ["variables[K].value: \"********\" -> \"********\""]);
        assert_eq!(told(secret(1), secret(1)), [""; 0]);
    }

    #[test]
    fn making_and_deleting_are_told_in_short() {
        let resource = json!({ "id": "c1", "name": "n", "description": "", "size": 0, "updatedAt": 1 });
        let resource = resource.as_object().unwrap();
        let paths: Vec<_> = created(resource).into_iter().map(|change| change.path).collect();
        assert_eq!(paths, ["id", "name", "size"]);
        let [change] = &deleted(resource)[..] else { panic!("one change") };
        assert_eq!((change.path.as_str(), &change.from), ("", &Some(json!({ "name": "n", "id": "c1" }))));
    }
}
