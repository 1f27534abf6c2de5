//! How a plan is shown to people: what is made, changed and deleted, field by field, and what would be refused.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::calls::{Planned, Verb};
use crate::client::ending::{Exit, Failed, Outcome, printable};
use crate::client::session::text;

/// How much of a value is shown.
const MOST_SHOWN: usize = 160;

/// Fields that the label of something new says already.
const OF_THE_LABEL: &[&str] = &["name", "objectKey", "objectType", "scope", "inviteeEmail"];
/// Fields that follow from others.
const FOLLOWING: &[&str] = &["rolesCount", "status", "statusReason"];
/// Why a call is refused that refers to a refused one.
const FOLLOWS: &str = "it depends on a change that is refused above";

/// How many resources are made, changed and deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) created: usize,
    pub(crate) changed: usize,
    pub(crate) deleted: usize,
}

impl Count {
    pub(crate) fn of(calls: &[Planned]) -> Self {
        let mut count = Self::default();
        for (index, call) in calls.iter().enumerate() {
            // A resource that takes several calls is counted once.
            if calls[..index].iter().any(|other| other.key == call.key) {
                continue;
            }
            match call.verb {
                Verb::Create => count.created += 1,
                Verb::Change => count.changed += 1,
                Verb::Delete => count.deleted += 1,
                Verb::Own => {}
            }
        }
        count
    }

    /// In words, such as `1 to create, 2 to change, 0 to delete`.
    pub(crate) fn in_words(self, words: [&str; 3]) -> String {
        let Self { created, changed, deleted } = self;
        format!("{created} {}, {changed} {}, {deleted} {}", words[0], words[1], words[2])
    }
}

/// A plan in words; names are given by id.
pub(crate) fn plan(calls: &[Planned], outcomes: &Value, mut names: HashMap<String, String>) -> String {
    let mut shown = String::new();
    for (call, outcome) in calls.iter().zip(outcomes.as_array().into_iter().flatten()) {
        if let Some(id) = outcome["result"][call.key.kind.id_field()].as_str() {
            names.insert(id.to_owned(), call.label.clone());
        }
    }
    for (call, outcome) in calls.iter().zip(outcomes.as_array().into_iter().flatten()) {
        let sign = match call.verb {
            Verb::Create => '+',
            Verb::Change => '~',
            Verb::Delete => '-',
            Verb::Own => ' ',
        };
        let noun = if call.verb == Verb::Own { "set" } else { call.key.kind.noun() };
        let _ = writeln!(shown, "{sign} {noun} {}", printable(&call.label));
        if let Some(drift) = &call.drift {
            let _ = writeln!(shown, "    {}", printable(drift));
        }
        for detail in &call.details {
            let _ = writeln!(shown, "    {}", printable(detail));
        }
        lines(&mut shown, outcome, &|change| is_told(call, change), &names);
    }
    let _ = writeln!(shown, "Plan: {}.", Count::of(calls).in_words(["to create", "to change", "to delete"]));
    shown
}

/// The plan of any calls in words.
pub(crate) fn calls(calls: &[Value], outcomes: &Value, names: &HashMap<String, String>) -> String {
    let mut shown = String::new();
    for (call, outcome) in calls.iter().zip(outcomes.as_array().into_iter().flatten()) {
        let _ = writeln!(shown, "{}", printable(&title(call, outcome)));
        let is_new = text(&outcome["operationId"]).starts_with("Create");
        let is_told = |change: &Value| {
            let path = text(&change["path"]);
            !path.is_empty() && !FOLLOWING.contains(&path) && (!is_new || call["body"].get(path).is_some())
        };
        lines(&mut shown, outcome, &is_told, names);
    }
    shown
}

/// What a call does, such as `update workspace Reports`.
fn title(call: &Value, outcome: &Value) -> String {
    let mut title = String::new();
    for c in text(&outcome["operationId"]).chars() {
        if c.is_uppercase() && !title.is_empty() {
            title.push(' ');
        }
        title.extend(c.to_lowercase());
    }
    let deleted = outcome["changes"].as_array().and_then(|changes| changes.first()).map(|it| &it["from"]);
    let named = [Some(&outcome["result"]), deleted, call.get("body")].into_iter().flatten();
    let name =
        named.flat_map(|it| ["name", "objectKey"].map(|field| text(&it[field]))).find(|it| !it.is_empty());
    match (title.as_str(), name) {
        ("", _) => format!("{} {}", text(&call["method"]), text(&call["path"])),
        (_, Some(name)) => format!("{title} {name}"),
        (_, None) => title,
    }
}

/// The fields that change, what else happens, and why a call is refused.
fn lines(
    shown: &mut String,
    outcome: &Value,
    is_told: &dyn Fn(&Value) -> bool,
    names: &HashMap<String, String>,
) {
    for change in outcome["changes"].as_array().into_iter().flatten().filter(|it| is_told(it)) {
        let _ = writeln!(shown, "    {}", printable(&field(change, names)));
    }
    for effect in outcome["effects"].as_array().into_iter().flatten() {
        let _ = writeln!(shown, "    ! {}", printable(&effect_of(effect)));
    }
    if let Some(error) = outcome.get("error") {
        let message = if is_consequence(error) { FOLLOWS } else { text(&error["message"]) };
        let _ = writeln!(shown, "    refused: {}", printable(message));
    }
}

/// Whether a change is worth a line: of what is made only what was declared, without ids.
fn is_told(call: &Planned, change: &Value) -> bool {
    let path = text(&change["path"]);
    match call.verb {
        Verb::Create => {
            let is_sent = call.body.as_ref().is_some_and(|body| body.get(path).is_some());
            is_sent && !OF_THE_LABEL.contains(&path) && !path.ends_with("Id") && !path.ends_with("Ids")
        }
        Verb::Change => !path.is_empty() && !FOLLOWING.contains(&path),
        Verb::Delete | Verb::Own => false,
    }
}

fn field(change: &Value, names: &HashMap<String, String>) -> String {
    let short = |value: &Value| short(&readable(value, names));
    let path = text(&change["path"]);
    let named = path.split_once('[').and_then(|(list, rest)| Some((list, rest.split_once(']')?)));
    let path = match named.and_then(|(list, (id, rest))| Some((list, names.get(id)?, rest))) {
        Some((list, name, rest)) => format!("{list}[{name}]{rest}"),
        None => path.to_owned(),
    };
    match (change.get("from"), change.get("to")) {
        (None, Some(to)) => format!("{path}: {}", short(to)),
        (Some(from), Some(to)) => format!("{path}: {} -> {}", short(from), short(to)),
        (Some(from), None) => format!("{path}: {} -> nothing", short(from)),
        (None, None) => path,
    }
}

/// A value with names in the place of ids, and without times.
fn readable(value: &Value, names: &HashMap<String, String>) -> Value {
    match value {
        Value::String(id) => names.get(id).unwrap_or(id).as_str().into(),
        Value::Array(items) => items.iter().map(|item| readable(item, names)).collect(),
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, _)| !name.ends_with("At"))
            .map(|(name, value)| (name.clone(), readable(value, names)))
            .collect(),
        other => other.clone(),
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

fn effect_of(effect: &Value) -> String {
    let names: Vec<&str> = effect["names"].as_array().into_iter().flatten().map(text).collect();
    let mut shown = text(&effect["message"]).to_owned();
    if !names.is_empty() {
        let _ = write!(shown, " ({})", names.join(", "));
    } else if let Some(count) = effect["count"].as_u64() {
        let _ = write!(shown, " ({count})");
    }
    shown
}

/// Whether a call is refused only because another one is, that it refers to.
fn is_consequence(error: &Value) -> bool {
    let fields = error["fieldErrors"].as_array().into_iter().flatten();
    fields.map(|field| text(&field["message"])).any(|message| message.ends_with("which has no result"))
}

/// Ends with an error if a call of files would be refused.
pub(crate) fn refusals(calls: &[Planned], outcomes: &Value) -> Outcome {
    let place = |index: usize| {
        let call = &calls[index];
        let noun = if call.verb == Verb::Own { "set" } else { call.key.kind.noun() };
        let at = if call.at.is_empty() { String::new() } else { format!("{}: ", call.at) };
        format!("{at}{noun} {}", call.label)
    };
    refused_at(&place, outcomes)
}

/// Ends with an error if any call would be refused.
pub(crate) fn refused(calls: &[Value], outcomes: &Value) -> Outcome {
    refused_at(&|index| title(&calls[index], &outcomes[index]), outcomes)
}

fn refused_at(place: &dyn Fn(usize) -> String, outcomes: &Value) -> Outcome {
    let (mut details, mut exit) = (Vec::new(), Exit::Failed);
    for (index, outcome) in outcomes.as_array().into_iter().flatten().enumerate() {
        let Some(error) = outcome.get("error").filter(|error| !is_consequence(error)) else { continue };
        if details.is_empty() {
            exit = Exit::of_status(error["statusCode"].as_u64().unwrap_or_default());
        }
        details.push(format!("{}: {}", place(index), text(&error["message"])));
        for wrong in error["fieldErrors"].as_array().into_iter().flatten() {
            details.push(format!("  {}: {}", text(&wrong["field"]), text(&wrong["message"])));
        }
    }
    match details.is_empty() {
        true => Ok(()),
        false => Err(Failed::new(exit, "the plan would be refused, so nothing was changed").details(details)),
    }
}
