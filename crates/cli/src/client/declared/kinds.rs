//! Each kind of resources: its form in the files, and the calls that make and change it.

mod clusters;
mod deployments;
mod environment_objects;
mod grants;
mod roles;
mod teams;
mod tokens;
mod users;
mod workspaces;

use serde_json::{Map, Value, json};

use super::files::Entry;
use super::keys::{Fields, Kind};
use super::planner::{Difference, Planner, Standing};
use super::state::Names;
use crate::client::answer::read;
use crate::client::edit::pick;
use crate::client::ending::{Failed, Outcome};
use crate::client::fields::given;
use crate::client::session::text;

/// A resource that is there, in the form of the files.
pub(super) fn form(kind: Kind, names: &Names, wire: &Value) -> Fields {
    let mut fields = match kind {
        Kind::Workspace => workspaces::form(names, wire),
        Kind::Cluster => clusters::form(names, wire),
        Kind::Role => roles::form(names, wire),
        Kind::User => users::form(names, wire),
        Kind::Team => teams::form(names, wire),
        Kind::Deployment => deployments::form(names, wire),
        Kind::EnvironmentObject => environment_objects::form(names, wire),
        Kind::Token => tokens::form(names, wire),
    };
    fields.retain(|_, value| !value.is_null());
    fields
}

/// Adds the calls that make what is there what is declared.
pub(super) fn plan(planner: &mut Planner<'_>, entry: &Entry, standing: Standing) -> Outcome {
    match entry.key.kind {
        Kind::Workspace => workspaces::plan(planner, entry, standing),
        Kind::Cluster => clusters::plan(planner, entry, standing),
        Kind::Role => roles::plan(planner, entry, standing),
        Kind::User => users::plan(planner, entry, standing),
        Kind::Team => teams::plan(planner, entry, standing),
        Kind::Deployment => deployments::plan(planner, entry, standing),
        Kind::EnvironmentObject => environment_objects::plan(planner, entry, standing),
        Kind::Token => tokens::plan(planner, entry, standing),
    }
}

/// The object of some fields.
fn fields(value: Value) -> Fields {
    if let Value::Object(fields) = value { fields } else { Map::new() }
}
