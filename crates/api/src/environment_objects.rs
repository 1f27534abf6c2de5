//! Environment objects: connections, variables and metrics exports that deployments are given.
//!
//! An object belongs to a workspace, and then reaches deployments there by links, or to one deployment. What it holds
//! is in the one body that fits its type ([`bodies`]); links and what they override are in [`links`].

pub mod bodies;
pub mod links;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::enums::{EnvironmentObjectScope, EnvironmentObjectType};
use crate::operation::{Nothing, Operation, Permitted};
use crate::page::{Page, SortKeys};
use crate::path::{InOrganization, OfEnvironmentObject};
use crate::reply::{Blank, Many, One};
use crate::subjects::SubjectProfile;
use crate::{EntityId, EnvironmentObjectId, Timestamp};

use bodies::{
    ConnectionRequest, EnvironmentObjectConnection, EnvironmentObjectVariable, MetricsExport,
    MetricsExportRequest, MetricsExportSettings, VariableRequest, VariableValue,
};
use links::{
    CreateEnvironmentObjectLinkRequest, EnvironmentObjectLink, ExcludeLinkEnvironmentObjectRequest,
    UpdateEnvironmentObjectLinkRequest,
};

const TAG: &str = "Environment";
const GATE: &str = "organization.envObjects.access";
const ALL: &str = "/organizations/{organizationId}/environment-objects";
const EACH: &str = "/organizations/{organizationId}/environment-objects/{environmentObjectId}";

/// Lists environment objects, or what of them reaches a deployment.
pub const LIST: Operation<
    Permitted,
    InOrganization,
    ListEnvironmentObjects,
    Nothing,
    Many<EnvironmentObjectsPaginated>,
> = Operation::get("ListEnvironmentObjects", ALL, GATE)
    .about(TAG, "List environment objects")
    .also(&[405])
    .live();
/// Creates an environment object.
pub const CREATE: Operation<
    Permitted,
    InOrganization,
    Nothing,
    CreateEnvironmentObjectRequest,
    One<CreateEnvironmentObject>,
> = Operation::post("CreateEnvironmentObject", ALL, GATE)
    .about(TAG, "Create an environment object")
    .also(&[405, 409]);
/// Reads an environment object.
pub const GET: Operation<Permitted, OfEnvironmentObject, Nothing, Nothing, One<EnvironmentObject>> =
    Operation::get("GetEnvironmentObject", EACH, GATE).about(TAG, "Get an environment object").also(&[405]);
/// Changes an environment object.
pub const UPDATE: Operation<
    Permitted,
    OfEnvironmentObject,
    Nothing,
    UpdateEnvironmentObjectRequest,
    One<EnvironmentObject>,
> = Operation::post("UpdateEnvironmentObject", EACH, GATE)
    .about(TAG, "Update an environment object")
    .also(&[405, 409]);
/// Deletes an environment object.
pub const DELETE: Operation<Permitted, OfEnvironmentObject, Nothing, Nothing, Nothing> =
    Operation::delete("DeleteEnvironmentObject", EACH, GATE)
        .about(TAG, "Delete an environment object")
        .also(&[405, 409, 412]);
/// Keeps an environment object from a deployment, and drops a link that there was.
pub const EXCLUDE_LINKING: Operation<
    Permitted,
    OfEnvironmentObject,
    Nothing,
    ExcludeLinkEnvironmentObjectRequest,
    Blank,
> = Operation::post(
    "ExcludeLinkingEnvironmentObject",
    "/organizations/{organizationId}/environment-objects/{environmentObjectId}/exclude-linking",
    GATE,
)
.about(TAG, "Exclude a deployment from linking to an environment object")
.also(&[405, 409]);

/// How environment objects can be sorted.
#[derive(Debug)]
pub struct EnvironmentObjectSorts;

impl SortKeys for EnvironmentObjectSorts {
    const KEYS: &'static [&'static str] = &["objectType", "objectKey", "createdAt", "updatedAt"];
    const LIMIT_IS_BOUNDED: bool = false;
}

/// Which environment objects to list.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListEnvironmentObjects {
    /// Only those of this workspace.
    pub workspace_id: Option<String>,
    /// Only those of this deployment; with `resolveLinked` also those that are linked to it.
    pub deployment_id: Option<String>,
    /// Only those of this type.
    pub object_type: Option<EnvironmentObjectType>,
    /// Only those with this key.
    pub object_key: Option<String>,
    /// Show secrets. Takes the right to change what is shown, and a server that allows it.
    pub show_secrets: Option<bool>,
    /// Show what the deployment is given: its own objects and those linked to it, with overrides in place. Without a
    /// deployment there is nothing to resolve, and objects are shown as they are.
    pub resolve_linked: Option<bool>,
    /// The page.
    #[serde(flatten)]
    pub page: Page<EnvironmentObjectSorts>,
}

/// An environment object. Secrets are empty; `setFields` says which of them there are.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentObject {
    /// Its id; none where it is shown as a deployment is given it.
    pub id: Option<EnvironmentObjectId>,
    /// Its key, unique for its type in what it belongs to.
    pub object_key: String,
    /// What it is.
    pub object_type: EnvironmentObjectType,
    /// What it belongs to.
    pub scope: EnvironmentObjectScope,
    /// The workspace or deployment that it belongs to.
    pub scope_entity_id: EntityId,
    /// Where a deployment is given it from.
    pub source_scope: Option<EnvironmentObjectScope>,
    /// The workspace or deployment that it is given from.
    pub source_scope_entity_id: Option<EntityId>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether it reaches every deployment of its workspace that is not excluded.
    pub auto_link_deployments: bool,
    /// The deployments that it is linked to.
    pub links: Vec<EnvironmentObjectLink>,
    /// The deployments that it is kept from.
    pub exclude_links: Vec<ExcludeLinkEnvironmentObjectRequest>,
    /// Names of the fields that have a value; members of maps as `map.member`.
    pub set_fields: Vec<String>,
    /// The connection.
    pub connection: Option<EnvironmentObjectConnection>,
    /// The environment variable.
    pub environment_variable: Option<EnvironmentObjectVariable>,
    /// The Airflow variable.
    pub airflow_variable: Option<EnvironmentObjectVariable>,
    /// The metrics export.
    pub metrics_export: Option<MetricsExport>,
    /// When it was created.
    pub created_at: Option<Timestamp>,
    /// Who created it.
    pub created_by: Option<SubjectProfile>,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
    /// Who last changed it.
    pub updated_by: Option<SubjectProfile>,
}

/// A page of environment objects.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentObjectsPaginated {
    /// The objects.
    pub environment_objects: Vec<EnvironmentObject>,
    /// The limit in force.
    pub limit: u32,
    /// How many were skipped.
    pub offset: u64,
    /// How many there are in all.
    pub total_count: u64,
}

/// The id of an environment object that was created.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct CreateEnvironmentObject {
    /// Its id.
    pub id: EnvironmentObjectId,
}

/// A new environment object, with the one body that fits its type.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateEnvironmentObjectRequest {
    /// Its key, unique for its type in what it belongs to.
    pub object_key: String,
    /// What it is.
    pub object_type: EnvironmentObjectType,
    /// What it belongs to.
    pub scope: EnvironmentObjectScope,
    /// The workspace or deployment that it belongs to.
    pub scope_entity_id: EntityId,
    /// What it is for.
    #[schemars(length(max = 500))]
    pub description: Option<String>,
    /// Whether it reaches every deployment of its workspace that is not excluded.
    pub auto_link_deployments: Option<bool>,
    /// The deployments that it is linked to.
    #[schemars(length(max = 1000))]
    pub links: Option<Vec<CreateEnvironmentObjectLinkRequest>>,
    /// The deployments that it is kept from.
    #[schemars(length(max = 1000))]
    pub exclude_links: Option<Vec<ExcludeLinkEnvironmentObjectRequest>>,
    /// The connection.
    pub connection: Option<ConnectionRequest>,
    /// The environment variable.
    pub environment_variable: Option<VariableRequest>,
    /// The Airflow variable.
    pub airflow_variable: Option<VariableRequest>,
    /// The metrics export.
    pub metrics_export: Option<MetricsExportRequest>,
}

/// Changes to an environment object: what is absent is kept.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateEnvironmentObjectRequest {
    /// What it is for.
    #[schemars(length(max = 500))]
    pub description: Option<String>,
    /// Whether it reaches every deployment of its workspace that is not excluded.
    pub auto_link_deployments: Option<bool>,
    /// The deployments that it is linked to; those that are not named are linked no more.
    #[schemars(length(max = 1000))]
    pub links: Option<Vec<UpdateEnvironmentObjectLinkRequest>>,
    /// The deployments that it is kept from; those that are not named are kept from it no more.
    #[schemars(length(max = 1000))]
    pub exclude_links: Option<Vec<ExcludeLinkEnvironmentObjectRequest>>,
    /// The connection.
    pub connection: Option<ConnectionRequest>,
    /// The environment variable.
    pub environment_variable: Option<VariableValue>,
    /// The Airflow variable.
    pub airflow_variable: Option<VariableValue>,
    /// The metrics export.
    pub metrics_export: Option<MetricsExportSettings>,
}
