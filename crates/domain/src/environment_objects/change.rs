//! Applies a request to an object. A new object is an empty one that is changed, so each rule is written once.

mod links;
mod requested;

use std::collections::{BTreeMap, BTreeSet};

use podium_api::DeploymentId;
use podium_api::enums::{EnvironmentObjectScope, EnvironmentObjectType};
use podium_api::environment_objects::{CreateEnvironmentObjectRequest, UpdateEnvironmentObjectRequest};
use serde_json::{Map, Value};

use super::auth_types::{self, AuthType};
use super::fields::{Nature, body_name};
use super::keys::{self, Key};
use super::metrics;
use super::values::{Given, Hidden, Secrecy, Values};
use crate::refusal::{Fields, Refusal, Result};
pub use requested::Requested;

/// The content of an environment object; its key and owner are stored separately.
#[derive(Clone, Debug, PartialEq)]
pub struct Object<S = Value> {
    pub object_type: EnvironmentObjectType,
    pub scope: EnvironmentObjectScope,
    pub description: String,
    /// Whether it is a variable with a secret value.
    pub is_secret: bool,
    /// How it authenticates, if it is a connection.
    pub auth_type_id: Option<String>,
    pub values: Values<S>,
    /// Whether it reaches every deployment of its workspace that is not excluded.
    pub auto_link: bool,
    /// The linked deployments, with their overrides.
    pub links: BTreeMap<DeploymentId, Values<S>>,
    pub exclusions: BTreeSet<DeploymentId>,
}

/// The deployments that a request names, to be looked up.
pub fn mentions(request: impl Into<Requested>) -> Vec<DeploymentId> {
    request.into().deployments()
}

/// Checks a new object; `neighbours` are those of the deployments it names that are of its workspace.
pub fn create(
    request: &CreateEnvironmentObjectRequest,
    neighbours: &BTreeSet<DeploymentId>,
) -> Result<(Key, Object)> {
    let mut fields = Fields::new();
    let key = fields.take(keys::key(request.object_type, &request.object_key));
    let empty = Object {
        object_type: request.object_type,
        scope: request.scope,
        description: String::new(),
        is_secret: requested::is_secret(request),
        auth_type_id: None,
        values: Values::default(),
        auto_link: false,
        links: BTreeMap::new(),
        exclusions: BTreeSet::new(),
    };
    let requested = Requested::from(request);
    if requested.bodies.of(request.object_type).is_none() {
        let message = format!("is required when `objectType` is {}", request.object_type);
        fields.push(body_name(request.object_type), "required", message);
    }
    let object = empty.changed(&requested, neighbours, &mut fields);
    fields.finish(key.map(|key| (key, object)))
}

/// Checks a change of an object; `neighbours` are those of the deployments it names that are of its workspace.
pub fn update(
    stored: Object,
    request: &UpdateEnvironmentObjectRequest,
    neighbours: &BTreeSet<DeploymentId>,
) -> Result<Object> {
    let mut fields = Fields::new();
    let object = stored.changed(&Requested::from(request), neighbours, &mut fields);
    fields.finish(Some(object))
}

impl Object {
    fn changed(
        mut self,
        requested: &Requested,
        neighbours: &BTreeSet<DeploymentId>,
        fields: &mut Fields,
    ) -> Self {
        if let Some(description) = &requested.description {
            description.trim().clone_into(&mut self.description);
        }
        if let Some(body) = requested.bodies.the_one_for(self.object_type, "", fields) {
            self.change_values(body, fields);
        }
        self.change_links(requested, neighbours, fields);
        self
    }

    fn change_values(&mut self, body: &Map<String, Value>, fields: &mut Fields) {
        let at = body_name(self.object_type);
        let given = Given::from_body(self.object_type, body);
        if self.object_type == EnvironmentObjectType::Connection {
            self.change_auth_type(body, fields);
        }
        let nature = self.nature();
        self.values.drop_missing_members(&given);
        self.values.write(&given, nature);
        self.values.hide(nature);
        self.links.values_mut().for_each(|overrides| overrides.hide(nature));
        if self.object_type == EnvironmentObjectType::MetricsExport {
            metrics::check(&self.values, at, fields);
        }
    }

    /// An auth type that no longer matches the connection type is dropped, unless it was requested.
    fn change_auth_type(&mut self, body: &Map<String, Value>, fields: &mut Fields) {
        let text = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default();
        let kind = text("type");
        if kind.trim().is_empty() {
            let message = "must be the Airflow connection type, such as postgres";
            fields.push("connection.type", "required", message);
        }
        let asked_for = text("authTypeId");
        if asked_for.is_empty() {
            let fits = |id: &String| auth_types::by_id(id).is_some_and(|known| known.airflow_type == kind);
            self.auth_type_id = self.auth_type_id.take().filter(fits);
            return;
        }
        match auth_types::by_id(asked_for) {
            Some(known) if known.airflow_type == kind => self.auth_type_id = Some(asked_for.to_owned()),
            Some(AuthType { airflow_type, .. }) => {
                let message = format!("must match the connection type; this one is for `{airflow_type}`");
                fields.push("connection.authTypeId", "conflict", message);
            }
            None => {
                let message = format!("must be one of the auth types listed at {}", auth_types::LISTED_AT);
                fields.push("connection.authTypeId", "unknown", message);
            }
        }
    }

    /// Excludes a deployment; returns whether that is new.
    pub fn exclude(&mut self, deployment_id: DeploymentId) -> Result<bool> {
        if self.scope == EnvironmentObjectScope::Deployment {
            let message = "An environment object of a deployment has no links, so nothing can be excluded.";
            return Err(Refusal::NotAllowed(message.into()));
        }
        let was_linked = self.links.remove(&deployment_id).is_some();
        Ok(self.exclusions.insert(deployment_id) || was_linked)
    }
}

impl<S: Secrecy> Object<S> {
    /// What decides over secrecy in it.
    pub fn nature(&self) -> Nature {
        let auth_type = self.auth_type_id.as_deref().and_then(auth_types::by_id);
        Nature { object_type: self.object_type, is_secret: self.is_secret, auth_type }
    }

    /// The same with every secret hidden.
    pub fn hidden(&self) -> Object<Hidden> {
        Object {
            object_type: self.object_type,
            scope: self.scope,
            description: self.description.clone(),
            is_secret: self.is_secret,
            auth_type_id: self.auth_type_id.clone(),
            values: self.values.hidden(),
            auto_link: self.auto_link,
            links: self.links.iter().map(|(id, overrides)| (*id, overrides.hidden())).collect(),
            exclusions: self.exclusions.clone(),
        }
    }

    /// What a deployment of its workspace, or the one that it belongs to, is given by it.
    pub fn given_to(&self, deployment_id: DeploymentId) -> Option<Values<S>> {
        if self.scope == EnvironmentObjectScope::Deployment {
            return Some(self.values.clone());
        }
        match self.links.get(&deployment_id) {
            Some(overrides) => Some(self.values.overlaid(overrides)),
            None if self.auto_link && !self.exclusions.contains(&deployment_id) => Some(self.values.clone()),
            None => None,
        }
    }
}

/// The deployments whose resolved values differ after a change.
pub fn affected(
    before: Option<&Object>,
    after: Option<&Object>,
    deployments: &[DeploymentId],
) -> Vec<DeploymentId> {
    let given = |object: Option<&Object>, id: DeploymentId| object.and_then(|object| object.given_to(id));
    deployments.iter().copied().filter(|id| given(before, *id) != given(after, *id)).collect()
}
