//! Objects and links as on the wire.

use podium_api::enums::{EnvironmentObjectType, LinkScope};
use podium_api::environment_objects::EnvironmentObject;
use podium_api::environment_objects::bodies::{EnvironmentObjectConnection, EnvironmentObjectVariable};
use podium_api::environment_objects::links::{EnvironmentObjectLink, ExcludeLinkEnvironmentObjectRequest};
use podium_api::{DeploymentId, EntityId};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::change::Object;
use super::values::{Secrecy, Values};

/// An object on the wire, holding these values; who made it, and what the caller knows it by, is left to be filled in.
pub fn object<S: Secrecy>(
    key: &str,
    entity_id: EntityId,
    object: &Object<S>,
    values: &Values<S>,
) -> EnvironmentObject {
    let object_type = object.object_type;
    let (mut connection, mut environment_variable, mut airflow_variable, mut metrics_export) =
        (None, None, None, None);
    match object_type {
        EnvironmentObjectType::Connection => {
            connection = body(values, object_type).map(|shown: EnvironmentObjectConnection| {
                let connection_auth_type = object.nature().auth_type.cloned();
                EnvironmentObjectConnection { connection_auth_type, ..shown }
            });
        }
        EnvironmentObjectType::EnvironmentVariable => environment_variable = Some(variable(object, values)),
        EnvironmentObjectType::AirflowVariable => airflow_variable = Some(variable(object, values)),
        EnvironmentObjectType::MetricsExport => metrics_export = body(values, object_type),
    }
    EnvironmentObject {
        id: None,
        object_key: key.to_owned(),
        object_type,
        scope: object.scope,
        scope_entity_id: entity_id,
        source_scope: None,
        source_scope_entity_id: None,
        description: Some(object.description.clone()),
        auto_link_deployments: object.auto_link,
        links: object.links.iter().map(|(id, overrides)| link(object_type, *id, overrides)).collect(),
        exclude_links: object.exclusions.iter().map(|id| excluded(*id)).collect(),
        set_fields: values.set_fields(object_type),
        connection,
        environment_variable,
        airflow_variable,
        metrics_export,
        created_at: None,
        created_by: None,
        updated_at: None,
        updated_by: None,
    }
}

fn variable<S: Secrecy>(object: &Object<S>, values: &Values<S>) -> EnvironmentObjectVariable {
    let value = values.nested(object.object_type).remove("value");
    let value = value.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
    EnvironmentObjectVariable { value, is_secret: object.is_secret }
}

fn link<S: Secrecy>(
    object_type: EnvironmentObjectType,
    deployment_id: DeploymentId,
    overrides: &Values<S>,
) -> EnvironmentObjectLink {
    let mut shown = EnvironmentObjectLink {
        scope: LinkScope::Deployment,
        scope_entity_id: deployment_id,
        set_fields: overrides.set_fields(object_type),
        connection_overrides: None,
        environment_variable_overrides: None,
        airflow_variable_overrides: None,
        metrics_export_overrides: None,
    };
    if overrides.is_empty() {
        return shown;
    }
    match object_type {
        EnvironmentObjectType::Connection => shown.connection_overrides = body(overrides, object_type),
        EnvironmentObjectType::EnvironmentVariable => {
            shown.environment_variable_overrides = body(overrides, object_type);
        }
        EnvironmentObjectType::AirflowVariable => {
            shown.airflow_variable_overrides = body(overrides, object_type);
        }
        EnvironmentObjectType::MetricsExport => {
            shown.metrics_export_overrides = body(overrides, object_type);
        }
    }
    shown
}

fn excluded(deployment_id: DeploymentId) -> ExcludeLinkEnvironmentObjectRequest {
    ExcludeLinkEnvironmentObjectRequest { scope: LinkScope::Deployment, scope_entity_id: deployment_id }
}

/// Stored values were checked before, so they always fit the wire types.
fn body<S: Secrecy, T: DeserializeOwned>(
    values: &Values<S>,
    object_type: EnvironmentObjectType,
) -> Option<T> {
    serde_json::from_value(Value::Object(values.nested(object_type))).ok()
}
