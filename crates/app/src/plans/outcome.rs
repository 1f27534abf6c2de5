//! What a call of a plan did, or would do.

use podium_api::enums::ErrorCode;
use podium_api::plans::{AppliedCall, PlannedChange, PlannedEffect, PlannedOutcome};
use podium_api::{DeploymentId, Description, ErrorBody};
use podium_domain::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Error, Result};

/// Fields of a reply that hold a secret, where a reply does.
const SECRETS: &[&str] = &["token", "url", "secret"];

pub(super) struct Outcome {
    endpoint: Option<&'static Description>,
    status: u16,
    done: Done,
    error: Option<ErrorBody>,
}

/// What a call did that was not refused.
#[derive(Default)]
pub(super) struct Done {
    /// The version of the resource before the call; `None` if there was none.
    pub(super) version: Option<i64>,
    pub(super) changes: Vec<PlannedChange>,
    /// Whether the call has made the resource that the changes are about.
    pub(super) is_made: bool,
    pub(super) effects: Vec<PlannedEffect>,
    /// The deployments whose running tasks it concerns.
    pub(super) interrupted: Vec<Interrupted>,
    pub(super) result: Option<Map<String, Value>>,
}

/// What a call was found to do, to be compared when it is made.
#[derive(Serialize, Deserialize, PartialEq)]
pub(super) struct Expected {
    version: Option<i64>,
    changes: Vec<PlannedChange>,
}

/// A deployment whose running tasks a call concerns.
pub(super) struct Interrupted {
    pub(super) deployment_id: DeploymentId,
    pub(super) name: String,
    /// Whether the call waits for them, rather than stopping them.
    pub(super) waits: bool,
}

impl Outcome {
    pub(super) fn done(endpoint: &'static Description, status: u16, done: Done) -> Self {
        Self { endpoint: Some(endpoint), status, done, error: None }
    }

    pub(super) fn refused(endpoint: Option<&'static Description>, error: ErrorBody) -> Self {
        Self { endpoint, status: error.status_code, done: Done::default(), error: Some(error) }
    }

    /// A call that was not tried because too many others were refused.
    pub(super) fn not_tried() -> Self {
        let message =
            "This call was not tried: too many other calls of the plan would be refused.".to_owned();
        let code = Some(ErrorCode::DependsOnRefused.to_string());
        let error =
            ErrorBody { message, request_id: String::new(), status_code: 424, code, field_errors: None };
        Self::refused(None, error)
    }

    pub(super) fn is_refused(&self) -> bool {
        self.error.is_some()
    }

    pub(super) fn result(&self) -> Option<&Map<String, Value>> {
        self.done.result.as_ref()
    }

    /// The deployments whose running tasks it concerns.
    pub(super) fn interrupted(&self) -> impl Iterator<Item = DeploymentId> {
        self.done.interrupted.iter().map(|interrupted| interrupted.deployment_id)
    }

    pub(super) fn add_effects(&mut self, effect: impl FnMut(&Interrupted) -> Option<PlannedEffect>) {
        self.done.effects.extend(self.done.interrupted.iter().filter_map(effect));
    }

    pub(super) fn add_effect(&mut self, effect: PlannedEffect) {
        self.done.effects.push(effect);
    }

    /// What is shown of a call that was taken back: no secret that it would hand out.
    pub(super) fn planned(self) -> PlannedOutcome {
        let Done { mut changes, effects, mut result, .. } = self.done;
        if self.endpoint.is_some_and(|endpoint| endpoint.secret_reply) {
            changes.retain(|change| !SECRETS.contains(&change.path.as_str()));
            for name in SECRETS {
                if let Some(secret) = result.as_mut().and_then(|result| result.get_mut(*name)) {
                    *secret = Value::String(String::new());
                }
            }
        }
        PlannedOutcome {
            operation_id: self.endpoint.map(|endpoint| endpoint.id.to_owned()),
            status_code: self.status,
            changes,
            effects,
            result,
            error: self.error,
        }
    }

    /// What is compared when the plan is applied. What a call makes gets other ids and times the next time, so of that
    /// only the resource that it acts on is compared.
    pub(super) fn expected(&self, made: &MadeIds) -> Expected {
        let Done { version, changes, is_made, .. } = &self.done;
        let is_secret = self.endpoint.is_some_and(|endpoint| endpoint.secret_reply);
        let is_repeatable = !is_made && !is_secret && version.is_some();
        let is_compared = |change: &&PlannedChange| {
            is_repeatable && !change.path.is_empty() && !change.path.ends_with("At")
        };
        let changes = changes.iter().filter(is_compared).map(|change| PlannedChange {
            path: made.named(&change.path),
            from: change.from.as_ref().map(|from| repeatable(from, false, made)),
            to: change.to.as_ref().map(|to| repeatable(to, change.from.is_none(), made)),
        });
        Expected { version: *version, changes: changes.collect() }
    }

    /// Refuses a call that would not do what it was planned to do.
    pub(super) fn is_as_planned(&self, index: usize, planned: &Expected, made: &MadeIds) -> Result<()> {
        let now = self.expected(made);
        if now == *planned {
            return Ok(());
        }
        let name = self.endpoint.map_or("", |endpoint| endpoint.id);
        let unplanned = now.changes.iter().find(|change| !planned.changes.contains(change));
        let missing = || planned.changes.iter().find(|change| !now.changes.contains(change));
        let what = match unplanned.or_else(missing) {
            Some(change) => format!("`{}` would not change as planned", change.path),
            None => "the resource has changed since".to_owned(),
        };
        let message = format!(
            "The plan is out of date: for call {index} ({name}), {what}. Nothing was changed; make a new plan."
        );
        Err(Refusal::Precondition(message).into())
    }

    /// The refusal of the whole plan because of this call.
    pub(super) fn refusal(&self, index: usize) -> Error {
        let why = self.error.as_ref().map_or("", |error| error.message.as_str());
        let message = format!("Call {index} of the plan is refused: {why} Nothing was changed.");
        match self.status {
            403 | 404 => Refusal::Forbidden(message),
            409 => Refusal::Conflict(message),
            _ => Refusal::Precondition(message),
        }
        .into()
    }

    /// The result of a call that was made.
    pub(super) fn applied(self) -> Result<AppliedCall> {
        let endpoint = self.endpoint.ok_or_else(|| Error::Internal("a call without an endpoint".into()))?;
        let (operation_id, result) = (endpoint.id.to_owned(), self.done.result);
        Ok(AppliedCall { operation_id, status_code: self.status, result })
    }
}

/// The ids of what the calls of a plan make, which are others each time, and names for them that are not.
pub(super) struct MadeIds(Vec<(String, String)>);

impl MadeIds {
    pub(super) fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Self {
        let mut ids = Vec::new();
        for (index, outcome) in outcomes.enumerate() {
            let Done { version, result, .. } = &outcome.done;
            // A call on a resource that was there before makes nothing that has an id of its own.
            if let (None, Some(result)) = (version, result) {
                collect(result, &index.to_string(), &mut ids);
            }
        }
        Self(ids)
    }

    fn named(&self, text: &str) -> String {
        let replace = |text: String, (id, name): &(String, String)| match text.contains(id.as_str()) {
            true => text.replace(id.as_str(), name),
            false => text,
        };
        self.0.iter().fold(text.to_owned(), replace)
    }
}

/// Collects the ids in a result, without those of the people who are named in it.
fn collect(result: &Map<String, Value>, at: &str, ids: &mut Vec<(String, String)>) {
    for (name, value) in result {
        match value {
            Value::String(id) if matches!(name.as_str(), "id" | "userId" | "inviteId") => {
                ids.push((id.clone(), format!("{{{at}.{name}}}")));
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    if let Value::Object(item) = item {
                        collect(item, &format!("{at}.{name}[{index}]"), ids);
                    }
                }
            }
            _ => {}
        }
    }
}

/// A value without what differs each time a call is made: times, and the ids of what is new.
fn repeatable(value: &Value, is_new: bool, made: &MadeIds) -> Value {
    let differs = |name: &str| name.ends_with("At") || (is_new && (name == "id" || name.ends_with("Id")));
    match value {
        Value::String(text) => Value::String(made.named(text)),
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !differs(name))
            .map(|(name, value)| (name.clone(), repeatable(value, is_new, made)))
            .collect(),
        Value::Array(items) => items.iter().map(|item| repeatable(item, is_new, made)).collect(),
        other => other.clone(),
    }
}
