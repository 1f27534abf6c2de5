//! `${env:NAME}` in a text stands for an environment variable of whoever applies the file.
//!
//! A secret that is there already is kept without looking at the variable: nobody can tell whether it differs. It is sent
//! again only if that is asked for.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::compare::counterpart;
use crate::client::ending::{Failed, Outcome};

/// Stands for a secret that is there, in what is there; its member is the name of a variable for it.
pub(super) const SECRET: &str = "$secret";
/// Stands for a secret that stays as it is, in what is declared.
const KEPT: &str = "$kept";

/// What is there, for a secret.
pub(super) fn secret(variable: &str) -> Value {
    json!({ SECRET: variable })
}

/// Whether it stands for a secret that is there.
pub(super) fn is_secret(value: Option<&Value>) -> bool {
    value.is_some_and(|value| value.get(SECRET).is_some())
}

/// Whether it stands for a secret that stays as it is.
pub(super) fn is_kept(value: &Value) -> bool {
    value.get(KEPT).is_some()
}

/// Puts the values of variables in the place of references.
pub(super) struct Resolving<'a> {
    pub(super) updates_secrets: bool,
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Resolving<'_> {
    /// A declared value with the values of variables, given what is there.
    pub(super) fn resolve(&self, declared: &Value, current: Option<&Value>, at: &str) -> Outcome<Value> {
        if is_secret(current) && !self.updates_secrets {
            return Ok(json!({ KEPT: true }));
        }
        Ok(match declared {
            Value::String(text) => Value::String(self.text(text, at)?),
            Value::Array(items) => {
                let resolved = items.iter().enumerate().map(|(index, item)| {
                    let current = counterpart(item, index, current);
                    self.resolve(item, current, &format!("{at}[{index}]"))
                });
                Value::Array(resolved.collect::<Outcome<_>>()?)
            }
            Value::Object(fields) => {
                // What is to be a secret no more needs its value.
                let is_revealed = fields.get("isSecret") == Some(&Value::Bool(false));
                let current = current.filter(|current| !is_revealed || current["isSecret"] != json!(true));
                Value::Object(self.fields(fields, current, at)?)
            }
            other => other.clone(),
        })
    }

    /// The same for the fields of an object.
    pub(super) fn fields(
        &self,
        declared: &Map<String, Value>,
        current: Option<&Value>,
        at: &str,
    ) -> Outcome<Map<String, Value>> {
        let resolved = declared.iter().map(|(name, value)| {
            let current = current.and_then(|current| current.get(name));
            Ok((name.clone(), self.resolve(value, current, &format!("{at}.{name}"))?))
        });
        resolved.collect()
    }

    fn text(&self, text: &str, at: &str) -> Outcome<String> {
        let (mut resolved, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${env:") {
            // `$${env:` is the text itself.
            if let Some(before) = before.strip_suffix('$') {
                resolved.push_str(before);
                resolved.push_str("${env:");
                rest = after;
                continue;
            }
            resolved.push_str(before);
            let Some((name, after)) = after.split_once('}') else {
                return Err(Failed::usage(format!(
                    "{at} has a reference without an end: write ${{env:NAME}}"
                )));
            };
            let Some(value) = (self.variable)(name) else {
                return Err(Failed::usage(format!(
                    "{at} refers to the environment variable {name}, which has no value here"
                ))
                .hint(format!("Set it for this command: {name}=...")));
            };
            resolved.push_str(&value);
            rest = after;
        }
        resolved.push_str(rest);
        Ok(resolved)
    }
}

/// What is there in the form of a file: secrets as references, each to a variable of its own, and texts that look like
/// references as they are.
pub(super) fn exported(value: &Value, variables: &mut HashSet<String>) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("${env:", "$${env:")),
        Value::Array(items) => items.iter().map(|item| exported(item, variables)).collect(),
        Value::Object(fields) => match fields.get(SECRET).and_then(Value::as_str) {
            Some(variable) => Value::String(format!("${{env:{}}}", distinct(variable, variables))),
            None => fields.iter().map(|(name, value)| (name.clone(), exported(value, variables))).collect(),
        },
        other => other.clone(),
    }
}

/// A name that no other secret has: two names that differ may be made of the same letters.
fn distinct(variable: &str, variables: &mut HashSet<String>) -> String {
    let numbered =
        |number: u64| if number == 1 { variable.to_owned() } else { format!("{variable}_{number}") };
    let free = (1..).map(numbered).find(|name| !variables.contains(name)).unwrap_or_default();
    variables.insert(free.clone());
    free
}

/// A name of an environment variable that is made of these words.
pub(super) fn variable_name(words: &[&str]) -> String {
    let upper = words.join("_").to_uppercase();
    let name: String = upper.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(declared: &Value, current: Option<&Value>, updates_secrets: bool) -> Result<Value, String> {
        let variable = |name: &str| (name == "KEY").then(|| "value".to_owned());
        let resolving = Resolving { updates_secrets, variable: &variable };
        resolving.resolve(declared, current, "at").map_err(|failed| format!("{failed:?}"))
    }

    #[test]
    fn references_are_resolved_and_texts_that_look_like_them_come_back() {
        assert_eq!(resolve(&json!("a ${env:KEY} b ${env:KEY}"), None, false).unwrap(), "a value b value");
        assert!(resolve(&json!(["x", "${env:NONE}"]), None, false).unwrap_err().contains("at[1] refers to"));
        assert!(resolve(&json!("${env:KEY"), None, false).is_err());
        let there = json!({ "value": "cost: ${env:KEY}", "secret": { SECRET: "KEY" } });
        let written = exported(&there, &mut HashSet::new());
        assert_eq!(written, json!({ "value": "cost: $${env:KEY}", "secret": "${env:KEY}" }));
        let read = resolve(&written, None, false).unwrap();
        assert_eq!(read, json!({ "value": "cost: ${env:KEY}", "secret": "value" }));
    }

    #[test]
    fn every_secret_has_a_variable_of_its_own() {
        let there = json!([secret(&variable_name(&["a-b", "c"])), secret(&variable_name(&["a_b", "c"]))]);
        assert_eq!(exported(&there, &mut HashSet::new()), json!(["${env:A_B_C}", "${env:A_B_C_2}"]));
    }

    #[test]
    fn a_secret_that_is_there_is_kept_unless_asked_otherwise() {
        let current = json!([{ "key": "B", "value": "x" }, { "key": "A", "value": { SECRET: "A" } }]);
        let declared = json!([{ "key": "A", "value": "${env:KEY}" }]);
        assert!(is_kept(&resolve(&declared, Some(&current), false).unwrap()[0]["value"]));
        assert_eq!(resolve(&declared, Some(&current), true).unwrap()[0]["value"], "value");
        let current = json!([{ "key": "A", "value": { SECRET: "A" }, "isSecret": true }]);
        let declared = json!([{ "key": "A", "value": "${env:KEY}", "isSecret": false }]);
        assert_eq!(resolve(&declared, Some(&current), false).unwrap()[0]["value"], "value", "revealed");
    }
}
