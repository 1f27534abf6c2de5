//! The calls of a plan, which refer to each other by what they make.

use podium_api::enums::PlannedMethod;
use podium_api::plans::PlannedCall;
use serde_json::{Value, json};

use super::keys::{Key, Kind};

const MADE: &str = "$made";

/// Finds the call that makes what has a key.
type Maker<'a> = dyn Fn(&Value) -> Option<usize> + 'a;

/// What a call does to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Change,
    Delete,
    /// Records what a set owns.
    Own,
}

/// What a call acts on.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// The list of a kind, or another list.
    List(&'static str),
    /// Something that is there.
    Id(String),
    /// What an earlier call makes.
    Made,
}

/// A call that is to be planned.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) verb: Verb,
    pub(crate) key: Key,
    /// What people call it.
    pub(crate) label: String,
    /// Where it is declared.
    pub(crate) at: String,
    pub(crate) target: Target,
    /// What follows the target in the path.
    pub(crate) rest: &'static str,
    /// What is acted on within the target.
    pub(crate) member: Option<Value>,
    pub(crate) body: Option<Value>,
    pub(crate) if_match: Option<String>,
    /// Who changed it last, and when, if that was not this set.
    pub(crate) drift: Option<String>,
    /// What the plan of the server does not show.
    pub(crate) details: Vec<String>,
}

impl Planned {
    /// Whether an id in a body, or what stands for one, is that of what the call is about.
    pub(crate) fn is_about(&self, id: &Value) -> bool {
        match &self.target {
            Target::Id(own) => id == own,
            Target::List(_) | Target::Made => *id == made(&self.key),
        }
    }
}

/// Stands for the id of what an earlier call makes.
pub(super) fn made(key: &Key) -> Value {
    json!({ MADE: key.to_value() })
}

/// The calls as the server plans them.
pub(crate) fn rendered(calls: &[Planned], organization: &str) -> Vec<PlannedCall> {
    let maker = |key: &Value| {
        let is_it = |call: &Planned| call.verb == Verb::Create && matches!(call.target, Target::List(_));
        calls.iter().position(|call| is_it(call) && call.key.to_value() == *key)
    };
    calls.iter().map(|call| one(call, organization, &maker)).collect()
}

fn one(call: &Planned, organization: &str, maker: &Maker<'_>) -> PlannedCall {
    let field = call.key.kind.id_field();
    let target = match &call.target {
        Target::List(list) => (*list).to_owned(),
        Target::Id(id) => format!("{}/{id}", collection(call)),
        Target::Made => {
            let index = maker(&call.key.to_value()).unwrap_or_default();
            format!("{}/{{{index}.{field}}}", collection(call))
        }
    };
    let member = match &call.member {
        Some(Value::String(id)) => format!("/{id}"),
        _ => String::new(),
    };
    PlannedCall {
        method: if call.body.is_none() { PlannedMethod::Delete } else { PlannedMethod::Post },
        path: format!("/organizations/{organization}/{target}{}{member}", call.rest),
        body: call.body.as_ref().and_then(|body| replaced(body, maker).as_object().cloned()),
        if_match: call.if_match.clone(),
    }
}

fn collection(call: &Planned) -> &'static str {
    if call.verb == Verb::Own { super::sets::COLLECTION } else { call.key.kind.collection() }
}

/// Puts references to calls in the place of what they make.
fn replaced(value: &Value, maker: &Maker<'_>) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| replaced(item, maker)).collect(),
        Value::Object(fields) => match fields.get(MADE) {
            Some(key) => {
                let kind = Kind::ALL.into_iter().find(|kind| key[0] == kind.section());
                json!({ "$call": maker(key), "field": kind.map_or("id", Kind::id_field) })
            }
            None => fields.iter().map(|(name, value)| (name.clone(), replaced(value, maker))).collect(),
        },
        other => other.clone(),
    }
}
