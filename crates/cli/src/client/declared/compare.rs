//! Whether what is there is what is declared: every field that a file names has that value.

use serde_json::Value;

/// Fields that hold names, which ignore case.
const NAMES: &[&str] = &[
    "name",
    "email",
    "workspace",
    "deployment",
    "cluster",
    "defaultCluster",
    "nodePool",
    "taskPodNodePool",
    "restrictedWorkspaces",
    "workspaces",
    "excludedDeployments",
    "members",
];
/// Fields whose members are declared all or not at all.
const WHOLE: &[&str] = &["extra", "headers", "labels"];
/// What items of a list are told apart by.
const KEYS: &[&str] = &["key", "deployment", "name"];

/// Stands for a secret that stays as it is, in what is declared.
pub(super) const KEPT: &str = "$kept";

/// Whether it stands for a secret that stays as it is.
pub(super) fn is_kept(value: &Value) -> bool {
    value.get(KEPT).is_some()
}

pub(crate) fn has(name: &str, declared: &Value, current: Option<&Value>) -> bool {
    if is_kept(declared) {
        return true;
    }
    match (declared, current) {
        (declared, None | Some(Value::Null)) => is_empty(declared),
        (Value::String(declared), Some(Value::String(current))) if NAMES.contains(&name) => {
            declared.to_lowercase() == current.to_lowercase()
        }
        (Value::Object(declared), Some(Value::Object(current))) => {
            let is_named =
                |(member, value): (&String, &Value)| declared.contains_key(member) || is_empty(value);
            declared.iter().all(|(name, value)| has(name, value, current.get(name)))
                && (!WHOLE.contains(&name) || current.iter().all(is_named))
        }
        (Value::Array(declared), Some(Value::Array(current))) => has_items(name, declared, current),
        (declared, Some(current)) => declared == current,
    }
}

fn has_items(name: &str, declared: &[Value], current: &[Value]) -> bool {
    if declared.len() != current.len() {
        return false;
    }
    let all = Value::Array(current.to_vec());
    if declared.iter().all(|item| identity(item).is_some()) {
        let has_item = |(index, item): (usize, &Value)| has(name, item, counterpart(item, index, Some(&all)));
        return declared.iter().enumerate().all(has_item);
    }
    // Items without a key: the order does not matter.
    let sorted = |items: &[Value]| {
        let text = |item: &Value| {
            let text = canonical(item).to_string();
            if NAMES.contains(&name) || item.is_object() { text.to_lowercase() } else { text }
        };
        let mut texts: Vec<String> = items.iter().map(text).collect();
        texts.sort_unstable();
        texts
    };
    sorted(declared) == sorted(current)
}

pub(super) fn counterpart<'a>(item: &Value, index: usize, current: Option<&'a Value>) -> Option<&'a Value> {
    let items = current?.as_array()?;
    match identity(item) {
        Some((key, name)) => items.iter().find(|other| {
            other.get(key).and_then(Value::as_str).is_some_and(|other| other.to_lowercase() == name)
        }),
        None => items.get(index),
    }
}

/// What an item is told apart by. Roles are told apart by all of their fields.
pub(super) fn identity(item: &Value) -> Option<(&'static str, String)> {
    let fields = item.as_object().filter(|fields| !fields.contains_key("role"))?;
    let named = |key: &&'static str| Some((*key, fields.get(*key)?.as_str()?.to_lowercase()));
    KEYS.iter().find_map(named)
}

/// A value whose fields are in one order.
fn canonical(value: &Value) -> Value {
    let mut value = value.clone();
    value.sort_all_objects();
    value
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_that_is_declared_no_more_is_a_difference() {
        let current = json!({ "region": "eu", "timeout": 3 });
        assert!(has("extra", &json!({ "region": "eu", "timeout": 3 }), Some(&current)));
        assert!(!has("extra", &json!({ "region": "eu" }), Some(&current)));
        assert!(has("connection", &json!({ "region": "eu" }), Some(&current)));
    }

    #[test]
    fn only_what_is_named_is_compared() {
        let current = json!({
            "workspace": "Reports", "size": "SMALL", "more": 1,
            "queues": [{ "name": "default", "max": 3, "disk": "1Gi" }, { "name": "big", "max": 1 }],
            "roles": [{ "workspace": "A", "role": "X" }, { "workspace": "B", "role": "Y" }],
            "members": ["ada@x.test", "bob@x.test"], "emails": ["a", "b"],
        });
        let same = [
            json!({ "workspace": "reports" }),
            json!({ "queues": [{ "name": "big", "max": 1 }, { "name": "default", "max": 3 }] }),
            json!({ "roles": [{ "role": "Y", "workspace": "B" }, { "workspace": "A", "role": "X" }] }),
            json!({ "members": ["Bob@x.test", "ada@x.test"] }),
            json!({ "absent": "", "none": [], "off": false, "nothing": { "a": [] } }),
        ];
        for declared in same {
            assert!(has("", &declared, Some(&current)), "{declared}");
        }
        let different = [
            json!({ "size": "small" }),
            json!({ "queues": [{ "name": "default", "max": 3 }] }),
            json!({ "queues": [{ "name": "default", "max": 3 }, { "name": "other", "max": 1 }] }),
            json!({ "queues": [{ "name": "default", "max": 4 }, { "name": "big", "max": 1 }] }),
            json!({ "roles": [{ "workspace": "A", "role": "X" }, { "workspace": "B", "role": "Z" }] }),
            json!({ "emails": ["a", "c"] }),
            json!({ "absent": "x" }),
        ];
        for declared in different {
            assert!(!has("", &declared, Some(&current)), "{declared}");
        }
    }
}
