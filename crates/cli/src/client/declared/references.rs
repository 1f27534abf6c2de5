//! `${env:NAME}` in a text stands for an environment variable of whoever applies the file.
//!
//! A secret that is there already is kept without looking at the variable: nobody can tell whether it differs. It is sent
//! again only if that is asked for.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde_json::{Map, Value, json};

use super::compare::{KEPT, counterpart, identity, is_kept};
use crate::client::ending::{Failed, Outcome};

/// The names of the variables that secrets are known by, by the path of each.
pub(super) type Variables = BTreeMap<String, String>;

/// Stands for a secret that is there, in what is there; its member is the name of a variable for it.
pub(super) const SECRET: &str = "$secret";
/// The field of a variable that says whether its value is a secret.
const IS_SECRET: &str = "isSecret";

/// What is there, for a secret; the words make the name of a variable for it.
pub(super) fn secret(words: &[&str]) -> Value {
    json!({ SECRET: variable_name(words) })
}

/// Whether it stands for a secret that is there.
pub(super) fn is_secret(value: Option<&Value>) -> bool {
    value.is_some_and(|value| value.get(SECRET).is_some())
}

/// A value with another one in the place of secrets that stay as they are.
pub(super) fn with_kept(value: Value, kept: &Value) -> Value {
    match value {
        value if is_kept(&value) => kept.clone(),
        Value::Array(items) => items.into_iter().map(|item| with_kept(item, kept)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, with_kept(value, kept))).collect()
        }
        other => other,
    }
}

/// Puts the values of variables in the place of references.
pub(super) struct Resolving<'a> {
    pub(super) updates_secrets: bool,
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    /// The variables that have no value here, and where they are referred to.
    pub(super) missing: RefCell<BTreeMap<String, BTreeSet<String>>>,
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
                let is_revealed = fields.get(IS_SECRET) == Some(&Value::Bool(false));
                let is_secret = current.is_some_and(|current| current[IS_SECRET] == json!(true));
                let mut resolved = self.fields(fields, current.filter(|_| !is_revealed || !is_secret), at)?;
                if is_secret && resolved.values().any(is_kept) {
                    resolved.insert(IS_SECRET.into(), true.into());
                }
                Value::Object(resolved)
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

    /// Ends with an error if a variable has no value here.
    pub(super) fn all_there(&self) -> Outcome {
        let missing = self.missing.borrow();
        let mut all = missing.iter();
        match (all.next(), missing.len()) {
            (None, _) => Ok(()),
            (Some((name, places)), 1) => {
                let at = places.iter().next().map_or("a file", String::as_str);
                Err(Failed::usage(format!(
                    "{at} refers to the environment variable {name}, which has no value"
                ))
                .hint(format!("Set it for this command: {name}=...")))
            }
            (Some(_), count) => {
                let line = |(name, places): (&String, &BTreeSet<String>)| {
                    format!("{name}: {}", places.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
                };
                Err(Failed::usage(format!("{count} environment variables have no value"))
                    .details(missing.iter().map(line))
                    .hint("Set them for this command: NAME=..."))
            }
        }
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
                return Err(Failed::usage(format!("{at} has an unclosed reference: write ${{env:NAME}}")));
            };
            match (self.variable)(name) {
                Some(value) => resolved.push_str(&value),
                // All of them are named at once, at the end.
                None => {
                    self.missing.borrow_mut().entry(name.to_owned()).or_default().insert(at.to_owned());
                }
            }
            rest = after;
        }
        resolved.push_str(rest);
        Ok(resolved)
    }
}

/// The variables that the texts of a declared value stand for, by the path of each: only where a text is nothing but one
/// reference. A set remembers them, so that a file which is exported again refers to the same.
pub(super) fn variables(declared: &Map<String, Value>) -> Variables {
    let mut found = Variables::new();
    walk(&Value::Object(declared.clone()), "", &mut |path, text| {
        let name = text.strip_prefix("${env:").and_then(|rest| rest.strip_suffix('}'));
        if let Some(name) = name.filter(|name| !name.contains(['$', '{', '}'])) {
            found.insert(path.to_owned(), name.to_owned());
        }
    });
    found
}

/// Visits every text of a value with its path.
fn walk(value: &Value, path: &str, visit: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::String(text) => visit(path, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, &below(path, &place(item, index)), visit);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                walk(value, &below(path, name), visit);
            }
        }
        _ => {}
    }
}

/// What an item of a list is known by.
fn place(item: &Value, index: usize) -> String {
    identity(item).map_or_else(|| index.to_string(), |(_, name)| name)
}

fn below(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Writes what is there in the form of a file: secrets as references, and texts that look like references as they are.
#[derive(Default)]
pub(super) struct Exporting {
    /// The variables that are referred to already.
    pub(super) used: HashSet<String>,
}

impl Exporting {
    /// A resource. A secret refers to the variable that the set remembers for its path, or to one of its own.
    pub(super) fn write(&mut self, value: &Value, remembered: &Variables, path: &str) -> Value {
        match value {
            Value::String(text) => Value::String(text.replace("${env:", "$${env:")),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| self.write(item, remembered, &below(path, &place(item, index))))
                .collect(),
            Value::Object(fields) => match fields.get(SECRET).and_then(Value::as_str) {
                Some(variable) => {
                    let known = remembered.get(path).cloned();
                    let name = known.unwrap_or_else(|| distinct(variable, &mut self.used));
                    Value::String(format!("${{env:{name}}}"))
                }
                None => {
                    let written = |(name, value): (&String, &Value)| {
                        (name.clone(), self.write(value, remembered, &below(path, name)))
                    };
                    fields.iter().map(written).collect()
                }
            },
            other => other.clone(),
        }
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
fn variable_name(words: &[&str]) -> String {
    let upper = words.join("_").to_uppercase();
    let name: String = upper.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(declared: &Value, current: Option<&Value>, updates_secrets: bool) -> Result<Value, String> {
        let variable = |name: &str| (name == "KEY").then(|| "value".to_owned());
        let resolving = Resolving { updates_secrets, variable: &variable, missing: RefCell::default() };
        let resolved = resolving.resolve(declared, current, "at");
        resolved.and_then(|it| resolving.all_there().map(|()| it)).map_err(|failed| format!("{failed:?}"))
    }

    #[test]
    fn references_are_resolved_and_texts_that_look_like_them_come_back() {
        assert_eq!(resolve(&json!("a ${env:KEY} b ${env:KEY}"), None, false).unwrap(), "a value b value");
        assert!(resolve(&json!(["x", "${env:NONE}"]), None, false).unwrap_err().contains("at[1] refers to"));
        assert!(resolve(&json!("${env:KEY"), None, false).is_err());
        let there = json!({ "value": "cost: ${env:KEY}", "secret": { SECRET: "KEY" } });
        let written = Exporting::default().write(&there, &Variables::new(), "");
        assert_eq!(written, json!({ "value": "cost: $${env:KEY}", "secret": "${env:KEY}" }));
        let read = resolve(&written, None, false).unwrap();
        assert_eq!(read, json!({ "value": "cost: ${env:KEY}", "secret": "value" }));
    }

    #[test]
    fn every_secret_has_a_variable_of_its_own() {
        let there = json!([secret(&["a-b", "c"]), secret(&["a_b", "c"])]);
        let written = Exporting::default().write(&there, &Variables::new(), "");
        assert_eq!(written, json!(["${env:A_B_C}", "${env:A_B_C_2}"]));
    }

    #[test]
    fn what_a_file_called_its_variables_is_remembered_by_path() {
        let declared = json!({
            "name": "nightly", "connection": { "password": "${env:WAREHOUSE}", "login": "x ${env:USER}" },
            "environmentVariables": [{ "key": "A", "value": "1" }, { "key": "KEY", "value": "${env:KEY_OF_API}" }],
        });
        let known = variables(declared.as_object().unwrap());
        let expected =
            [("connection.password", "WAREHOUSE"), ("environmentVariables.key.value", "KEY_OF_API")];
        assert_eq!(known, expected.map(|(path, name)| (path.to_owned(), name.to_owned())).into());
        let there = json!({
            "connection": { "password": secret(&["P"]), "token": secret(&["WAREHOUSE"]) },
            "environmentVariables": [{ "key": "KEY", "value": secret(&["V"]) }],
        });
        let mut exporting = Exporting { used: known.values().cloned().collect() };
        let written = exporting.write(&there, &known, "");
        let expected = json!({
            "connection": { "password": "${env:WAREHOUSE}", "token": "${env:WAREHOUSE_2}" },
            "environmentVariables": [{ "key": "KEY", "value": "${env:KEY_OF_API}" }],
        });
        assert_eq!(written, expected);
    }

    #[test]
    fn all_variables_without_a_value_are_named() {
        let variable = |_: &str| None;
        let resolving =
            Resolving { updates_secrets: false, variable: &variable, missing: RefCell::default() };
        resolving
            .resolve(&json!(["${env:A}", { "x": "${env:B} ${env:A}" }]), None, "file.yaml: x[0]")
            .unwrap();
        let said = resolving.all_there().unwrap_err().text();
        assert!(
            said.contains("A: file.yaml: x[0][0], file.yaml: x[0][1].x\n")
                && said.contains("B: file.yaml: x[0][1].x"),
            "{said}"
        );
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
