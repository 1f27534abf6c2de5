//! Environment objects: connections, variables and metrics exports that deployments are given.
//!
//! An object belongs to a workspace, and then reaches deployments there by links, or to one deployment. What it holds
//! is in the one body that fits its type ([`bodies`]); links and what they override are in [`links`].

pub mod bodies;
pub mod links;

use crate::enums::{EnvironmentObjectScope, EnvironmentObjectType};
use crate::path::{InOrganization, OfEnvironmentObject};
use crate::reply::{Blank, Many, One};
use crate::subjects::SubjectProfile;
use crate::{DeploymentId, EntityId, EnvironmentObjectId, Named, Timestamp, WorkspaceId};

use bodies::{
    ConnectionRequest, EnvironmentObjectConnection, EnvironmentObjectVariable, MetricsExport,
    MetricsExportRequest, MetricsExportSettings, VariableRequest, VariableValue,
};
use links::{
    CreateEnvironmentObjectLinkRequest, EnvironmentObjectLink, ExcludeLinkEnvironmentObjectRequest,
    UpdateEnvironmentObjectLinkRequest,
};

const GATE: &str = "organization.envObjects.access";

endpoints! {
    tag "Environment";

    /// List environment objects
    List: GET "/organizations/{organizationId}/environment-objects" as "ListEnvironmentObjects" {
        path: InOrganization, query: ListEnvironmentObjects, reply: Many<EnvironmentObjectsPaginated>,
        permission: GATE, also: [405], marks: [live],
    }
    /// Create an environment object
    Create: POST "/organizations/{organizationId}/environment-objects" as "CreateEnvironmentObject" {
        path: InOrganization, body: CreateEnvironmentObjectRequest, reply: One<CreateEnvironmentObject>,
        permission: GATE, event: EnvironmentObjectCreated, also: [405, 409],
    }
    /// Get an environment object
    Get: GET "/organizations/{organizationId}/environment-objects/{environmentObjectId}"
        as "GetEnvironmentObject" {
        path: OfEnvironmentObject, reply: One<EnvironmentObject>,
        permission: GATE, also: [405],
    }
    /// Update an environment object
    Update: POST "/organizations/{organizationId}/environment-objects/{environmentObjectId}"
        as "UpdateEnvironmentObject" {
        path: OfEnvironmentObject, body: UpdateEnvironmentObjectRequest, reply: One<EnvironmentObject>,
        permission: GATE, event: EnvironmentObjectUpdated, also: [405, 409],
    }
    /// Delete an environment object
    Delete: DELETE "/organizations/{organizationId}/environment-objects/{environmentObjectId}"
        as "DeleteEnvironmentObject" {
        path: OfEnvironmentObject,
        permission: GATE, event: EnvironmentObjectDeleted, also: [405, 409, 412],
    }
    /// Exclude a deployment from linking to an environment object
    ExcludeLinking: POST "/organizations/{organizationId}/environment-objects/{environmentObjectId}/exclude-linking"
        as "ExcludeLinkingEnvironmentObject" {
        path: OfEnvironmentObject, body: ExcludeLinkEnvironmentObjectRequest, reply: Blank,
        permission: GATE, event: EnvironmentObjectUpdated, also: [405, 409],
    }
}

wire! {
    /// Which environment objects to list.
    clamped sorted["objectType", "objectKey", "createdAt", "updatedAt"] pub struct ListEnvironmentObjects {
        /// Only objects of this workspace.
        pub workspace_id: Option<Named<WorkspaceId>>,
        /// Only objects of this deployment; with `resolveLinked` also objects that are linked to it.
        pub deployment_id: Option<Named<DeploymentId>>,
        /// Only objects of this type.
        pub object_type: Option<EnvironmentObjectType>,
        /// Only objects with this key.
        pub object_key: Option<String>,
        /// Show secrets. Requires the right to change the objects shown, and a server that allows it.
        pub show_secrets: Option<bool>,
        /// Show what the deployment is given: its own objects and those linked to it, with overrides in place. Without a
        /// deployment there is nothing to resolve, and objects are shown as they are.
        pub resolve_linked: Option<bool>,
    }

    /// An environment object. Secrets are empty; `setFields` names the fields that have a value.
    pub struct EnvironmentObject {
        /// Its id; none where it is shown as a deployment is given it.
        pub id: Option<EnvironmentObjectId>,
        /// Its key, unique for its type in what it belongs to.
        pub object_key: String,
        /// The type of the object.
        pub object_type: EnvironmentObjectType,
        /// Whether it belongs to a workspace or a deployment.
        pub scope: EnvironmentObjectScope,
        /// The workspace or deployment that it belongs to.
        pub scope_entity_id: EntityId,
        /// Where a deployment is given it from.
        pub source_scope: Option<EnvironmentObjectScope>,
        /// The workspace or deployment that it is given from.
        pub source_scope_entity_id: Option<EntityId>,
        /// Its description.
        pub description: Option<String>,
        /// Whether it applies to every deployment of its workspace that is not excluded.
        pub auto_link_deployments: bool,
        /// The deployments that it is linked to.
        pub links: Vec<EnvironmentObjectLink>,
        /// The excluded deployments.
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
    page EnvironmentObjectsPaginated {
        /// The objects.
        environment_objects: Vec<EnvironmentObject>
    }

    /// The id of an environment object that was created.
    pub struct CreateEnvironmentObject {
        /// Its id.
        pub id: EnvironmentObjectId,
    }

    /// A new environment object, with the one body that fits its type.
    pub struct CreateEnvironmentObjectRequest {
        /// Its key, unique for its type in what it belongs to.
        pub object_key: String,
        /// The type of the object.
        pub object_type: EnvironmentObjectType,
        /// Whether it belongs to a workspace or a deployment.
        pub scope: EnvironmentObjectScope,
        /// The workspace or deployment that it belongs to.
        pub scope_entity_id: EntityId,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
        /// Whether it applies to every deployment of its workspace that is not excluded.
        pub auto_link_deployments: Option<bool>,
        /// The deployments that it is linked to.
        #[schemars(length(max = 1000))]
        pub links: Option<Vec<CreateEnvironmentObjectLinkRequest>>,
        /// The excluded deployments.
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

    /// Changes to an environment object: absent fields stay unchanged.
    #[derive(Default)]
    pub struct UpdateEnvironmentObjectRequest {
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
        /// Whether it applies to every deployment of its workspace that is not excluded.
        pub auto_link_deployments: Option<bool>,
        /// The deployments that it is linked to, all of them: links to other deployments are removed.
        #[schemars(length(max = 1000))]
        pub links: Option<Vec<UpdateEnvironmentObjectLinkRequest>>,
        /// The excluded deployments, all of them: other deployments are no longer excluded.
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
}
