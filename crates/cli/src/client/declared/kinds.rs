//! Each kind of resources: its form in the files, and the calls that make and change it.
//!
//! A resource that is there is brought into the form of the files by their schema ([`form`]); only what a file has in another
//! shape stands in the file of its kind. What a newer server says in words of its own is kept as it is.

mod clusters;
mod deployments;
mod environment_objects;
mod grants;
mod roles;
mod teams;
mod tokens;
mod users;
mod workspaces;

use std::sync::LazyLock;

use podium_api::declarations::{self, Declarations};
use podium_api::path::InOrganization;
use podium_api::{Endpoint, Id};
use podium_client::Call;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::calls::path;
use super::compare::has;
use super::existing::{Difference, Found, Names};
use super::files::Entry;
use super::keys::{Fields, Kind, identity};
use super::planner::Planner;
use super::references::with_kept;
use crate::client::answer::read;
use crate::client::ending::{Failed, Outcome};
use crate::client::fields::{merged, object};

pub(super) trait Resource: Serialize + DeserializeOwned {
    type List: Endpoint<Path = InOrganization>;
    type Get: Endpoint;
    /// Fields that never change.
    const FIXED: &'static [&'static str] = &[];
    /// What stands for a secret that stays as it is, where values are declared.
    const KEPT: Value = Value::Null;

    /// What a file has in another shape than the API; a field that is null is left out.
    fn reshaped(_: &Names, _: &Value) -> Outcome<Value> {
        Ok(json!({}))
    }

    fn create(self, planner: &mut Planner<'_>, entry: &Entry) -> Outcome;

    /// Adds the calls that change what is there.
    fn change(planner: &mut Planner<'_>, entry: &Entry, found: Difference<Self>) -> Outcome;
}

/// What is done with the resources of a kind.
pub(super) struct Handling {
    pub(super) list: fn(&InOrganization) -> Call,
    pub(super) get: fn(&InOrganization, Id) -> Call,
    reshaped: fn(&Names, &Value) -> Outcome<Value>,
    /// Adds the calls that make what is there what is declared.
    pub(super) plan: fn(&mut Planner<'_>, &Entry, Fields, Option<Found>) -> Outcome,
}

impl Handling {
    const fn of<R: Resource>() -> Self {
        Self {
            list: Call::to::<R::List>,
            get: |organization, id| Call::to::<R::Get>(&path::<R::Get>(organization, id)),
            reshaped: R::reshaped,
            plan: plan::<R>,
        }
    }
}

impl Kind {
    pub(super) const fn handling(self) -> Handling {
        match self {
            Self::Workspace => Handling::of::<declarations::Workspace>(),
            Self::Cluster => Handling::of::<declarations::Cluster>(),
            Self::Role => Handling::of::<declarations::Role>(),
            Self::User => Handling::of::<declarations::User>(),
            Self::Team => Handling::of::<declarations::Team>(),
            Self::Deployment => Handling::of::<declarations::Deployment>(),
            Self::EnvironmentObject => Handling::of::<declarations::EnvironmentObject>(),
            Self::Token => Handling::of::<declarations::Token>(),
        }
    }

    /// A resource that is there, in the form of the files.
    pub(super) fn form(self, names: &Names, wire: &Value) -> Outcome<Fields> {
        let reshaped = (self.handling().reshaped)(names, wire)?;
        let list = &SCHEMA["properties"][self.section()];
        let Value::Object(mut fields) = held(&list["items"], &merged(wire.clone(), reshaped), names) else {
            return Ok(Fields::new());
        };
        fields.retain(|_, value| !value.is_null());
        Ok(fields)
    }
}

fn plan<R: Resource>(
    planner: &mut Planner<'_>,
    entry: &Entry,
    fields: Fields,
    found: Option<Found>,
) -> Outcome {
    let typed = |fields: Fields| same::<R>(with_kept(Value::Object(fields), &R::KEPT), &entry.at);
    let Some((existing, etag)) = found else { return typed(fields)?.create(planner, entry) };
    let mut changed = fields.clone();
    changed.retain(|name, value| !has(name, value, existing.form.get(name)));
    let names: Vec<String> = changed.keys().cloned().collect();
    if let Some(name) = R::FIXED.iter().find(|name| changed.contains_key(**name)) {
        let is = existing.form.get(*name).map_or("not set".to_owned(), ToString::to_string);
        return Err(Failed::usage(format!(
            "{}.{name} cannot be changed: it is {is}, but declared as {}",
            entry.at, fields[*name]
        ))
        .hint("Delete the resource and apply again, or correct the file."));
    }
    let known = identity(entry.key.kind).iter();
    changed.extend(known.filter_map(|name| Some(((*name).to_owned(), fields.get(*name)?.clone()))));
    let (declared, changed) = (typed(fields)?, typed(changed)?);
    R::change(planner, entry, Difference { declared, changed, fields: names, existing, etag })
}

/// What is declared as another type, whose fields have the same names.
fn same<T: DeserializeOwned>(declared: Value, at: &str) -> Outcome<T> {
    serde_json::from_value(declared).map_err(|error| Failed::usage(format!("{at}: {error}")))
}

static SCHEMA: LazyLock<Value> = LazyLock::new(Declarations::json_schema);

/// What a file can hold of a value, by the schema of files: with names where the API has ids.
fn held(schema: &Value, value: &Value, names: &Names) -> Value {
    let referred = schema["$ref"].as_str().and_then(|path| SCHEMA.pointer(path.trim_start_matches('#')));
    let schema = referred.unwrap_or(schema);
    match (value, schema["properties"].as_object()) {
        (Value::Object(fields), Some(properties)) => {
            let field = |(name, schema): (&String, &Value)| {
                let value = match fields.get(name) {
                    Some(value) => held(schema, value, names),
                    None => named(name, fields, names)?,
                };
                Some((name.clone(), value))
            };
            properties.iter().filter_map(field).collect()
        }
        (Value::Array(items), _) => items.iter().map(|item| held(&schema["items"], item, names)).collect(),
        (other, _) => other.clone(),
    }
}

/// The name of `cluster` where the API has a `clusterId`, and the names of `workspaces` where it has `workspaceIds`.
fn named(name: &str, fields: &Fields, names: &Names) -> Option<Value> {
    if let Some(id) = fields.get(&format!("{name}Id")) {
        return Some(json!(names.of(id.as_str()?)));
    }
    let ids = fields.get(&format!("{}Ids", name.strip_suffix('s')?))?.as_array()?;
    Some(json!(names.all(ids.iter().filter_map(Value::as_str))))
}
