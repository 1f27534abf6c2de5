//! The calls of a plan, which refer to each other by what they make.
//!
//! Requests have typed ids, so something stands in for the id of what an earlier call makes: an id that no server gives, with no
//! time in it. It becomes a reference to that call when the plan is sent.

use std::collections::HashMap;

use podium_api::path::{InOrganization, PathParams as _};
use podium_api::plans::PlannedCall;
use podium_api::{Endpoint, Id};
use podium_client::Call;
use serde_json::{Value, json};

use super::keys::{Key, Kind};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Create,
    Change,
    Delete,
    /// Records what a set owns.
    Own,
}

#[derive(Clone, Debug)]
pub(super) struct Planned {
    pub(super) verb: Verb,
    pub(super) key: Key,
    pub(super) label: String,
    pub(super) at: String,
    pub(super) call: PlannedCall,
    pub(super) makes: Option<Id>,
    /// The kind of resources that must all be there before.
    pub(super) after: Option<Kind>,
    /// Whether it makes a deployment on a cluster that another call makes.
    pub(super) is_on_new_cluster: bool,
    /// Who changed it last, and when, if that was not this set.
    pub(super) drift: Option<String>,
    /// What the plan of the server does not show.
    pub(super) details: Vec<String>,
}

impl Planned {
    pub(super) fn new(verb: Verb, key: Key, label: String, call: &Call) -> Self {
        let (at, call) = (String::new(), call.planned());
        let (drift, details) = (None, Vec::new());
        Self {
            verb,
            key,
            label,
            at,
            call,
            makes: None,
            after: None,
            is_on_new_cluster: false,
            drift,
            details,
        }
    }

    pub(super) fn noun(&self) -> &'static str {
        if self.verb == Verb::Own { "set" } else { self.key.kind.noun() }
    }
}

pub(super) fn path<E: Endpoint>(organization: &InOrganization, id: Id) -> E::Path {
    E::Path::from_ids(&[organization.organization_id.id(), id])
}

/// Stands in for the id of what is made for the entry with this index.
pub(super) fn stand_in(index: usize) -> Id {
    Id::from_parts(0, 0, index as u64)
}

/// The calls as the server plans them.
pub(super) fn rendered(calls: &[Planned]) -> Vec<PlannedCall> {
    let made =
        calls.iter().enumerate().filter_map(|(index, call)| Some((call.makes?, (index, call.key.kind))));
    let made: HashMap<Id, (usize, Kind)> = made.collect();
    let maker = |text: &str| {
        let (index, kind) = made.get(&text.parse::<Id>().ok()?)?;
        Some((*index, if *kind == Kind::User { "userId" } else { "id" }))
    };
    let part =
        |part: &str| maker(part).map_or(part.to_owned(), |(index, field)| format!("{{{index}.{field}}}"));
    let rendered = |Planned { call, .. }: &Planned| PlannedCall {
        path: call.path.split('/').map(part).collect::<Vec<_>>().join("/"),
        body: call
            .body
            .as_ref()
            .map(|body| body.iter().map(|(name, value)| (name.clone(), referring(value, &maker))).collect()),
        ..call.clone()
    };
    calls.iter().map(rendered).collect()
}

/// A value with references to calls in the place of what stands in for ids.
fn referring(value: &Value, maker: &dyn Fn(&str) -> Option<(usize, &'static str)>) -> Value {
    match value {
        Value::String(text) => match maker(text) {
            Some((index, field)) => json!({ "$call": index, "field": field }),
            None => value.clone(),
        },
        Value::Array(items) => items.iter().map(|item| referring(item, maker)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), referring(value, maker))).collect()
        }
        other => other.clone(),
    }
}
