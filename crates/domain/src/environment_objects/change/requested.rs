//! What a request asks for, in one form for creates and updates.

use podium_api::DeploymentId;
use podium_api::enums::EnvironmentObjectType;
use podium_api::environment_objects::links::{
    CreateEnvironmentObjectLinkRequest, ExcludeLinkEnvironmentObjectRequest, OverridesRequest,
    UpdateEnvironmentObjectLinkRequest,
};
use podium_api::environment_objects::{CreateEnvironmentObjectRequest, UpdateEnvironmentObjectRequest};
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::fields::body_name;
use crate::refusal::Fields;

/// The content of a request; absent fields stay unchanged.
pub struct Requested {
    pub(super) description: Option<String>,
    pub(super) auto_link: Option<bool>,
    pub(super) links: Option<Vec<RequestedLink>>,
    pub(super) exclusions: Option<Vec<DeploymentId>>,
    pub(super) bodies: Bodies,
}

pub(super) struct RequestedLink {
    pub(super) deployment_id: DeploymentId,
    pub(super) bodies: Bodies,
    pub(super) unset: Vec<String>,
}

#[derive(Default)]
pub(super) struct Bodies(Vec<(EnvironmentObjectType, Map<String, Value>)>);

impl Bodies {
    fn with(mut self, object_type: EnvironmentObjectType, body: Option<&impl Serialize>) -> Self {
        if let Some(Ok(Value::Object(body))) = body.map(serde_json::to_value) {
            self.0.push((object_type, body));
        }
        self
    }

    pub(super) fn of(&self, object_type: EnvironmentObjectType) -> Option<&Map<String, Value>> {
        self.0.iter().find(|(other, _)| *other == object_type).map(|(_, body)| body)
    }

    /// The body that fits; others must hold nothing.
    pub(super) fn the_one_for(
        &self,
        object_type: EnvironmentObjectType,
        at: &str,
        fields: &mut Fields,
    ) -> Option<&Map<String, Value>> {
        for (other, body) in &self.0 {
            if *other != object_type && !body.is_empty() {
                let message = format!("must be omitted: the object is a {object_type}");
                fields.push(format!("{at}{}", body_name(*other)), "excluded", message);
            }
        }
        self.of(object_type)
    }
}

/// Whether a new object is a variable with a secret value.
pub(super) fn is_secret(request: &CreateEnvironmentObjectRequest) -> bool {
    let body = match request.object_type {
        EnvironmentObjectType::EnvironmentVariable => &request.environment_variable,
        EnvironmentObjectType::AirflowVariable => &request.airflow_variable,
        EnvironmentObjectType::Connection | EnvironmentObjectType::MetricsExport => &None,
    };
    body.as_ref().and_then(|body| body.is_secret).unwrap_or_default()
}

impl Requested {
    pub(super) fn deployments(&self) -> Vec<DeploymentId> {
        let links = self.links.iter().flatten().map(|link| link.deployment_id);
        links.chain(self.exclusions.iter().flatten().copied()).collect()
    }
}

/// The bodies of a request of either kind: the fields have the same names.
macro_rules! bodies {
    ($request:expr) => {
        Bodies::default()
            .with(EnvironmentObjectType::Connection, $request.connection.as_ref())
            .with(EnvironmentObjectType::EnvironmentVariable, $request.environment_variable.as_ref())
            .with(EnvironmentObjectType::AirflowVariable, $request.airflow_variable.as_ref())
            .with(EnvironmentObjectType::MetricsExport, $request.metrics_export.as_ref())
    };
}

macro_rules! requested {
    ($($kind:ty),+) => {$(
        impl From<&$kind> for Requested {
            fn from(request: &$kind) -> Self {
                Self {
                    description: request.description.clone(),
                    auto_link: request.auto_link_deployments,
                    links: request.links.as_ref().map(|links| links.iter().map(RequestedLink::from).collect()),
                    exclusions: request.exclude_links.as_deref().map(ids),
                    bodies: bodies!(request),
                }
            }
        }
    )+};
}

requested!(CreateEnvironmentObjectRequest, UpdateEnvironmentObjectRequest);

fn ids(excluded: &[ExcludeLinkEnvironmentObjectRequest]) -> Vec<DeploymentId> {
    excluded.iter().map(|excluded| excluded.scope_entity_id).collect()
}

fn overrides(request: Option<&OverridesRequest>) -> Bodies {
    request.map(|request| bodies!(request)).unwrap_or_default()
}

impl From<&CreateEnvironmentObjectLinkRequest> for RequestedLink {
    fn from(link: &CreateEnvironmentObjectLinkRequest) -> Self {
        let bodies = overrides(link.overrides.as_ref());
        Self { deployment_id: link.scope_entity_id, bodies, unset: Vec::new() }
    }
}

impl From<&UpdateEnvironmentObjectLinkRequest> for RequestedLink {
    fn from(link: &UpdateEnvironmentObjectLinkRequest) -> Self {
        let bodies = overrides(link.overrides.as_ref().map(|overrides| &overrides.set));
        let unset = link.overrides.as_ref().map(|overrides| overrides.unset_fields.clone());
        Self { deployment_id: link.scope_entity_id, bodies, unset: unset.unwrap_or_default() }
    }
}
