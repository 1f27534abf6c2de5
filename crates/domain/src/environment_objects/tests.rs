//! The rules of environment objects, as tables.

mod bodies;
mod links;
mod resolving;

use std::collections::BTreeSet;

use podium_api::DeploymentId;
use podium_api::environment_objects::{CreateEnvironmentObjectRequest, UpdateEnvironmentObjectRequest};
use serde_json::{Value, json};

use super::*;
use crate::fixtures::{d1, d1b, told, w1};
use crate::refusal::Result;

/// The deployments of the workspace that the tests are about.
pub(super) fn neighbours() -> BTreeSet<DeploymentId> {
    BTreeSet::from([d1(), d1b()])
}

/// A request for an object of the workspace, or of what the fields say.
pub(super) fn request(object_type: &str, more: Value) -> CreateEnvironmentObjectRequest {
    let request = json!({
        "objectKey": "KEY", "objectType": object_type, "scope": "WORKSPACE", "scopeEntityId": w1(),
    });
    serde_json::from_value(with(request, more)).unwrap()
}

/// An object of JSON with the fields of another in place of its own.
pub(super) fn with(mut base: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("not an object: {more}") };
    for (name, value) in more {
        base[name] = value;
    }
    base
}

pub(super) fn made(object_type: &str, more: Value) -> Object {
    create(&request(object_type, more), &neighbours()).unwrap().1
}

pub(super) fn changed(object: &Object, change: Value) -> Result<Object> {
    let change: UpdateEnvironmentObjectRequest = serde_json::from_value(change).unwrap();
    update(object.clone(), &change, &neighbours())
}

/// What a caller reads, without what tells nothing.
pub(super) fn read<S: Secrecy>(object: &Object<S>) -> Value {
    serde_json::to_value(show::object("KEY", w1().into(), object, &object.values)).unwrap()
}

#[track_caller]
fn refused(answer: Result<Object>, wrong: &[&str]) {
    assert_eq!(told(&answer.expect_err("it is refused")), wrong);
}
