//! Environment objects in files of declarations.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::enums::{EnvironmentObjectType, ExporterType, MetricsAuthType};

wire! {
    /// A connection, a variable or a metrics export that deployments are given; has the one body that fits its type.
    declared pub struct EnvironmentObject {
        /// Its key, unique for its type in what it belongs to.
        pub object_key: String,
        /// The type of the object.
        pub object_type: EnvironmentObjectType,
        /// The workspace that it belongs to, by name.
        pub workspace: String,
        /// The deployment of the workspace that it belongs to, by name; without one it belongs to the workspace.
        pub deployment: Option<String>,
        /// Its description.
        pub description: Option<String>,
        /// Whether it applies to every deployment of its workspace that is not excluded.
        pub auto_link_deployments: Option<bool>,
        /// The deployments that it is linked to; all of them.
        pub links: Option<Vec<Link>>,
        /// The excluded deployments, by name; all of them.
        pub excluded_deployments: Option<Vec<String>>,
        /// The connection.
        pub connection: Option<Connection>,
        /// The environment variable.
        pub environment_variable: Option<Variable>,
        /// The Airflow variable.
        pub airflow_variable: Option<Variable>,
        /// The metrics export.
        pub metrics_export: Option<MetricsExport>,
    }

    /// A deployment that an object is linked to, with the values that differ for it.
    declared pub struct Link {
        /// The deployment, by name.
        pub deployment: String,
        /// What differs of a connection.
        pub connection: Option<ConnectionOverrides>,
        /// What differs of an environment variable.
        pub environment_variable: Option<VariableOverrides>,
        /// What differs of an Airflow variable.
        pub airflow_variable: Option<VariableOverrides>,
        /// What differs of a metrics export.
        pub metrics_export: Option<MetricsExportOverrides>,
    }

    /// A variable.
    declared pub struct Variable {
        /// Its value; write `${env:NAME}` for a secret.
        pub value: Option<String>,
        /// Whether the value is a secret; never changes.
        pub is_secret: Option<bool>,
    }

    /// The value of a variable for one deployment.
    declared pub struct VariableOverrides {
        /// Its value.
        pub value: String,
    }

    /// A connection.
    declared pub struct Connection {
        /// Airflow's type of the connection, such as `postgres`.
        #[serde(rename = "type")]
        pub kind: String,
        /// How it authenticates: the id of an auth type.
        pub auth_type_id: Option<String>,
        /// The host.
        pub host: Option<String>,
        /// The port.
        pub port: Option<u16>,
        /// The schema or database.
        pub schema: Option<String>,
        /// The login.
        pub login: Option<String>,
        /// The password, a secret.
        pub password: Option<String>,
        /// Additional settings; all of them.
        pub extra: Option<Map<String, Value>>,
    }

    /// What differs of a connection for one deployment.
    declared pub struct ConnectionOverrides {
        /// Airflow's type of the connection.
        #[serde(rename = "type")]
        pub kind: Option<String>,
        /// The host.
        pub host: Option<String>,
        /// The port.
        pub port: Option<u16>,
        /// The schema or database.
        pub schema: Option<String>,
        /// The login.
        pub login: Option<String>,
        /// The password, a secret.
        pub password: Option<String>,
        /// Additional settings.
        pub extra: Option<Map<String, Value>>,
    }

    /// A metrics export.
    declared pub struct MetricsExport {
        /// Where metrics are sent.
        pub endpoint: String,
        /// How they are sent.
        pub exporter_type: ExporterType,
        /// How the sender authenticates.
        pub auth_type: Option<MetricsAuthType>,
        /// The user, for BASIC.
        pub username: Option<String>,
        /// The password, for BASIC; a secret.
        pub password: Option<String>,
        /// The token, for AUTH_TOKEN; a secret.
        pub basic_token: Option<String>,
        /// The role to assume, for SIGV4.
        pub sig_v4_assume_arn: Option<String>,
        /// The region of the token service, for SIGV4.
        pub sig_v4_sts_region: Option<String>,
        /// Headers to send along; values are secrets.
        pub headers: Option<BTreeMap<String, String>>,
        /// Labels to add to every metric.
        pub labels: Option<BTreeMap<String, String>>,
    }

    /// What differs of a metrics export for one deployment.
    declared pub struct MetricsExportOverrides {
        /// Where metrics are sent.
        pub endpoint: Option<String>,
        /// How they are sent.
        pub exporter_type: Option<ExporterType>,
        /// How the sender authenticates.
        pub auth_type: Option<MetricsAuthType>,
        /// The user, for BASIC.
        pub username: Option<String>,
        /// The password, for BASIC; a secret.
        pub password: Option<String>,
        /// The token, for AUTH_TOKEN; a secret.
        pub basic_token: Option<String>,
        /// The role to assume, for SIGV4.
        pub sig_v4_assume_arn: Option<String>,
        /// The region of the token service, for SIGV4.
        pub sig_v4_sts_region: Option<String>,
        /// Headers to send along; values are secrets.
        pub headers: Option<BTreeMap<String, String>>,
        /// Labels to add to every metric.
        pub labels: Option<BTreeMap<String, String>>,
    }
}
