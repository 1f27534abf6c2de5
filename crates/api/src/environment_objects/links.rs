//! Links: how an object of a workspace reaches its deployments, and what it is for each of them.

use super::bodies::{
    ConnectionOverrides, EnvironmentObjectVariableOverrides, MetricsExportSettings, VariableValue,
};
use crate::DeploymentId;
use crate::enums::LinkScope;

wire! {
    /// A link to a new object.
    pub struct CreateEnvironmentObjectLinkRequest {
        /// The kind of resource that is linked.
        pub scope: LinkScope,
        /// The deployment that is linked.
        pub scope_entity_id: DeploymentId,
        /// Values that differ for it.
        pub overrides: Option<OverridesRequest>,
    }

    /// A link to an object that is changed.
    pub struct UpdateEnvironmentObjectLinkRequest {
        /// The kind of resource that is linked.
        pub scope: LinkScope,
        /// The deployment that is linked.
        pub scope_entity_id: DeploymentId,
        /// Values that differ for it; absent ones stay unchanged.
        pub overrides: Option<UpdateEnvironmentObjectOverridesRequest>,
    }

    /// Values that differ for one deployment, in the body that matches the object's type.
    #[derive(Default)]
    #[schemars(rename = "CreateEnvironmentObjectOverridesRequest")]
    pub struct OverridesRequest {
        /// Of a connection.
        pub connection: Option<ConnectionOverrides>,
        /// Of an environment variable.
        pub environment_variable: Option<VariableValue>,
        /// Of an Airflow variable.
        pub airflow_variable: Option<VariableValue>,
        /// Of a metrics export.
        pub metrics_export: Option<MetricsExportSettings>,
    }

    /// Changes to the values that differ for one deployment.
    #[derive(Default)]
    pub struct UpdateEnvironmentObjectOverridesRequest {
        /// The values that differ.
        #[serde(flatten)]
        pub set: OverridesRequest,
        /// Names of fields that are no longer overridden, as in `setFields`.
        #[serde(default)]
        #[schemars(length(max = 100))]
        pub unset_fields: Vec<String>,
    }

    /// A link, as it is shown.
    pub struct EnvironmentObjectLink {
        /// The kind of resource that is linked.
        pub scope: LinkScope,
        /// The deployment that is linked.
        pub scope_entity_id: DeploymentId,
        /// Names of the fields that are different there; members of maps as `map.member`.
        pub set_fields: Vec<String>,
        /// Overrides of a connection; secrets are empty.
        pub connection_overrides: Option<ConnectionOverrides>,
        /// Overrides of an environment variable.
        pub environment_variable_overrides: Option<EnvironmentObjectVariableOverrides>,
        /// Overrides of an Airflow variable.
        pub airflow_variable_overrides: Option<EnvironmentObjectVariableOverrides>,
        /// Overrides of a metrics export; secrets are empty.
        pub metrics_export_overrides: Option<MetricsExportSettings>,
    }

    /// A deployment that an object excludes.
    #[derive(PartialEq, Eq)]
    pub struct ExcludeLinkEnvironmentObjectRequest {
        /// The kind of resource that is excluded.
        pub scope: LinkScope,
        /// The excluded deployment.
        pub scope_entity_id: DeploymentId,
    }
}
