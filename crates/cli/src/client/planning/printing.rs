//! How a plan is shown to people: what is made, changed and deleted, field by field, and what would be refused.

use std::collections::HashMap;
use std::fmt::Write as _;

use podium_api::plans::{AppliedCall, PlannedCall, PlannedChange};
use podium_api::{ErrorBody, InviteId, PlanId};
use serde::Deserialize;
use serde_json::Value;

use crate::client::answer::read;
use crate::client::ending::{Exit, Failed, Outcome, printable};

/// How much of a value is shown.
const MOST_SHOWN: usize = 160;

/// Fields that follow from others.
pub(crate) const FOLLOWING: &[&str] = &["rolesCount", "status", "statusReason"];
/// Why a call is refused that refers to a refused one.
const FOLLOWS: &str = "it depends on a change that is refused above";

/// What is read of a plan.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Planned {
    pub(crate) plan_id: Option<PlanId>,
    pub(crate) calls: Vec<Planning>,
}

/// What a call of a plan would do.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Planning {
    #[serde(default)]
    operation_id: String,
    #[serde(default)]
    changes: Vec<PlannedChange>,
    #[serde(default)]
    effects: Vec<Effect>,
    pub(crate) result: Option<Value>,
    error: Option<ErrorBody>,
}

#[derive(Debug, Deserialize)]
struct Effect {
    message: String,
    #[serde(default)]
    names: Vec<String>,
    count: Option<u64>,
}

/// What is read of anything that a call has made or changed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Made {
    #[serde(alias = "userId")]
    pub(crate) id: Option<String>,
    #[serde(alias = "objectKey")]
    pub(crate) name: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) secret: Option<String>,
    pub(crate) invite_id: Option<InviteId>,
}

impl Made {
    /// What a call has answered; nothing if it has answered nothing of that kind.
    pub(crate) fn of(result: Option<&Value>) -> Self {
        result.and_then(|result| read(result).ok()).unwrap_or_default()
    }

    /// What a call of a plan has answered.
    pub(crate) fn by(call: &AppliedCall) -> Self {
        Self::of(call.result.clone().map(Value::Object).as_ref())
    }
}

/// The plan of any calls in words.
pub(crate) fn calls(calls: &[PlannedCall], outcomes: &[Planning], names: &HashMap<String, String>) -> String {
    let mut shown = String::new();
    for (call, outcome) in calls.iter().zip(outcomes) {
        let _ = writeln!(shown, "{}", printable(&title(call, outcome)));
        let is_new = outcome.operation_id.starts_with("Create");
        let is_told = |PlannedChange { path, .. }: &PlannedChange| {
            let is_sent = || call.body.as_ref().is_some_and(|body| body.contains_key(path));
            !path.is_empty() && !FOLLOWING.contains(&path.as_str()) && (!is_new || is_sent())
        };
        lines(&mut shown, outcome, &is_told, names);
    }
    shown
}

/// What a call does, such as `update workspace Reports`.
fn title(call: &PlannedCall, outcome: &Planning) -> String {
    let mut title = String::new();
    for c in outcome.operation_id.chars() {
        if c.is_uppercase() && !title.is_empty() {
            title.push(' ');
        }
        title.extend(c.to_lowercase());
    }
    let deleted = outcome.changes.first().and_then(|change| change.from.as_ref());
    let sent = call.body.clone().map(Value::Object);
    let named = [outcome.result.as_ref(), deleted, sent.as_ref()];
    let name = named.into_iter().find_map(|it| Made::of(it).name.filter(|name| !name.is_empty()));
    match (title.as_str(), name) {
        ("", _) => format!("{} {}", call.method, call.path),
        (_, Some(name)) => format!("{title} {name}"),
        (_, None) => title,
    }
}

/// Writes the fields that change, what else happens, and why a call is refused.
pub(crate) fn lines(
    shown: &mut String,
    outcome: &Planning,
    is_told: &dyn Fn(&PlannedChange) -> bool,
    names: &HashMap<String, String>,
) {
    for change in outcome.changes.iter().filter(|it| is_told(it)) {
        let _ = writeln!(shown, "    {}", printable(&field(change, names)));
    }
    for effect in &outcome.effects {
        let _ = writeln!(shown, "    ! {}", printable(&effect.shown()));
    }
    if let Some(error) = &outcome.error {
        let message = if is_consequence(error) { FOLLOWS } else { &error.message };
        let _ = writeln!(shown, "    refused: {}", printable(message));
    }
}

fn field(PlannedChange { path, from, to }: &PlannedChange, names: &HashMap<String, String>) -> String {
    let short = |value: &Value| short(&readable(value, names));
    let named = path.split_once('[').and_then(|(list, rest)| Some((list, rest.split_once(']')?)));
    let path = match named.and_then(|(list, (id, rest))| Some((list, names.get(id)?, rest))) {
        Some((list, name, rest)) => format!("{list}[{name}]{rest}"),
        None => path.clone(),
    };
    match (from, to) {
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

impl Effect {
    fn shown(&self) -> String {
        match (self.names.as_slice(), self.count) {
            ([], Some(count)) => format!("{} ({count})", self.message),
            ([], None) => self.message.clone(),
            (names, _) => format!("{} ({})", self.message, names.join(", ")),
        }
    }
}

/// Whether a call is refused only because another one is, that it refers to.
fn is_consequence(error: &ErrorBody) -> bool {
    let mut fields = error.field_errors.iter().flatten();
    fields.any(|field| field.code == "noResult")
}

/// Ends with an error if any call would be refused.
pub(crate) fn refused(calls: &[PlannedCall], outcomes: &[Planning]) -> Outcome {
    refused_at(&|index| title(&calls[index], &outcomes[index]), outcomes)
}

/// The same of calls with names of their own.
pub(crate) fn refused_at(place: &dyn Fn(usize) -> String, outcomes: &[Planning]) -> Outcome {
    let (mut details, mut exit) = (Vec::new(), Exit::Failed);
    for (index, outcome) in outcomes.iter().enumerate() {
        let Some(error) = outcome.error.as_ref().filter(|error| !is_consequence(error)) else { continue };
        if details.is_empty() {
            exit = Exit::of(error);
        }
        details.push(format!("{}: {}", place(index), error.message));
        let fields = error.field_errors.iter().flatten();
        details.extend(fields.map(|wrong| format!("  {}: {}", wrong.field, wrong.message)));
    }
    match details.is_empty() {
        true => Ok(()),
        false => Err(Failed::new(exit, "the plan would be refused, so nothing was changed").details(details)),
    }
}
