//! What environment objects of each type hold, in requests and in answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::enums::{ExporterType, MetricsAuthType};

wire! {
    /// A connection, as it is set.
    #[schemars(rename = "EnvironmentObjectConnectionRequest")]
    pub struct ConnectionRequest {
        /// Airflow's type of the connection, such as `postgres`.
        #[serde(rename = "type")]
        pub kind: String,
        /// How it authenticates: the id of an auth type, which lists the members of `extra` that are not secrets.
        pub auth_type_id: Option<String>,
        /// The host.
        pub host: Option<String>,
        /// The port.
        #[schemars(range(min = 0, max = 65535))]
        pub port: Option<u16>,
        /// The schema or database.
        pub schema: Option<String>,
        /// The login.
        pub login: Option<String>,
        /// The password, a secret.
        #[schemars(extend("format" = "password"))]
        pub password: Option<String>,
        /// Additional settings; members are secrets unless the auth type lists them as plain.
        pub extra: Option<Map<String, Value>>,
    }

    /// What a link overrides of a connection.
    #[derive(Default)]
    #[schemars(rename = "EnvironmentObjectConnectionOverrides")]
    pub struct ConnectionOverrides {
        /// Airflow's type of the connection.
        #[serde(rename = "type")]
        pub kind: Option<String>,
        /// The host.
        pub host: Option<String>,
        /// The port.
        #[schemars(range(min = 0, max = 65535))]
        pub port: Option<u16>,
        /// The schema or database.
        pub schema: Option<String>,
        /// The login.
        pub login: Option<String>,
        /// The password, a secret.
        #[schemars(extend("format" = "password"))]
        pub password: Option<String>,
        /// Additional settings; members are secrets unless the auth type lists them as plain.
        pub extra: Option<Map<String, Value>>,
    }

    /// A connection, as it is shown.
    pub struct EnvironmentObjectConnection {
        /// Airflow's type of the connection.
        #[serde(rename = "type")]
        pub kind: String,
        /// How it authenticates.
        pub connection_auth_type: Option<ConnectionAuthType>,
        /// The host.
        pub host: Option<String>,
        /// The port.
        #[schemars(range(min = 0, max = 65535))]
        pub port: Option<u16>,
        /// The schema or database.
        pub schema: Option<String>,
        /// The login.
        pub login: Option<String>,
        /// The password; empty.
        pub password: Option<String>,
        /// Additional settings; secrets are empty.
        pub extra: Option<Map<String, Value>>,
    }

    /// A way in which a connection authenticates.
    #[derive(PartialEq, Eq)]
    pub struct ConnectionAuthType {
        /// Its id.
        pub id: String,
        /// Its name.
        pub name: String,
        /// A description of the auth type.
        pub description: String,
        /// Airflow's type of the connections that it is for.
        pub airflow_type: String,
        /// How it authenticates, briefly.
        pub auth_method_name: String,
        /// The Airflow provider that the connections need.
        pub provider_package_name: String,
        /// A picture of the provider.
        pub provider_logo: Option<String>,
        /// The page of the guide about it.
        pub guide_path: Option<String>,
        /// The parameters of the auth type.
        pub parameters: Vec<ConnectionAuthTypeParameter>,
    }

    /// A parameter of an auth type.
    #[derive(PartialEq, Eq)]
    pub struct ConnectionAuthTypeParameter {
        /// The field of the connection, or the member of `extra`.
        pub airflow_param_name: String,
        /// Its name for people.
        pub friendly_name: String,
        /// A description of the parameter.
        pub description: String,
        /// What its values are: `string`, `number`, `boolean` or `json`.
        pub data_type: String,
        /// An example of a value.
        pub example: Option<String>,
        /// What values look like.
        pub pattern: Option<String>,
        /// Whether it is a member of `extra`.
        pub is_in_extra: bool,
        /// Whether the connection does not work without it.
        pub is_required: bool,
        /// Whether it is a secret.
        pub is_secret: bool,
    }

    /// A variable, as it is created.
    #[derive(Default)]
    #[schemars(rename = "EnvironmentObjectVariableRequest")]
    pub struct VariableRequest {
        /// Its value.
        #[schemars(extend("format" = "password"))]
        pub value: Option<String>,
        /// Whether the value is a secret; this never changes.
        pub is_secret: Option<bool>,
    }

    /// The value of a variable, as it is changed or overridden.
    #[derive(Default)]
    #[schemars(rename = "EnvironmentObjectVariableValue")]
    pub struct VariableValue {
        /// Its value.
        #[schemars(extend("format" = "password"))]
        pub value: Option<String>,
    }

    /// A variable, as it is shown.
    pub struct EnvironmentObjectVariable {
        /// Its value; empty if it is a secret.
        pub value: String,
        /// Whether the value is a secret.
        pub is_secret: bool,
    }

    /// The value that a link gives a variable, as it is shown.
    pub struct EnvironmentObjectVariableOverrides {
        /// Its value; empty if it is a secret.
        pub value: String,
    }

    /// A metrics export, as it is created.
    #[schemars(rename = "EnvironmentObjectMetricsExportRequest")]
    pub struct MetricsExportRequest {
        /// Where metrics are sent.
        pub endpoint: String,
        /// How they are sent.
        pub exporter_type: ExporterType,
        /// How it authenticates, and its headers and labels.
        #[serde(flatten)]
        pub access: MetricsAccess,
    }

    /// A metrics export, as it is changed or overridden.
    #[derive(Default)]
    #[schemars(rename = "EnvironmentObjectMetricsExportSettings")]
    pub struct MetricsExportSettings {
        /// Where metrics are sent.
        pub endpoint: Option<String>,
        /// How they are sent.
        pub exporter_type: Option<ExporterType>,
        /// How it authenticates, and its headers and labels.
        #[serde(flatten)]
        pub access: MetricsAccess,
    }

    /// How a metrics export proves itself, and what it sends along.
    #[derive(Default)]
    pub struct MetricsAccess {
        /// How the sender authenticates.
        pub auth_type: Option<MetricsAuthType>,
        /// The user, for BASIC.
        pub username: Option<String>,
        /// The password, for BASIC; a secret.
        #[schemars(extend("format" = "password"))]
        pub password: Option<String>,
        /// The token, for AUTH_TOKEN; a secret.
        #[schemars(extend("format" = "password"))]
        pub basic_token: Option<String>,
        /// The role to assume, for SIGV4.
        pub sig_v4_assume_arn: Option<String>,
        /// The region of the token service, for SIGV4.
        pub sig_v4_sts_region: Option<String>,
        /// Headers to send along. Values are secrets, except the values of headers that are known to be plain, such as `X-Scope-OrgID`,
        /// `User-Agent` or `Content-Type`.
        pub headers: Option<BTreeMap<String, Secret>>,
        /// Labels to add to every metric.
        pub labels: Option<BTreeMap<String, String>>,
    }

    /// A metrics export, as it is shown.
    #[schemars(rename = "EnvironmentObjectMetricsExport")]
    pub struct MetricsExport {
        /// Where metrics are sent.
        pub endpoint: String,
        /// How they are sent.
        pub exporter_type: ExporterType,
        /// How it authenticates, and its headers and labels; secrets are empty.
        #[serde(flatten)]
        pub access: MetricsAccess,
    }
}

/// A text that is never returned.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline, extend("format" = "password"))]
pub struct Secret(pub String);
