//! The fields of each type of object, and which of them are secret.

use podium_api::enums::EnvironmentObjectType;

use super::auth_types::{self, AuthType};
use super::metrics;

#[derive(Debug)]
pub struct Field {
    pub name: &'static str,
    /// Whether it holds members of any names.
    pub is_map: bool,
    secrecy: Secrecy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Secrecy {
    Never,
    Always,
    OfVariable,
    /// Unless the auth type names the member as plain.
    UnlessNamed,
    /// Unless it is a header that is known to be plain.
    UnlessPlainHeader,
}

const fn field(name: &'static str, secrecy: Secrecy) -> Field {
    Field { name, is_map: false, secrecy }
}

const fn map(name: &'static str, secrecy: Secrecy) -> Field {
    Field { name, is_map: true, secrecy }
}

const CONNECTION: &[Field] = &[
    field("type", Secrecy::Never),
    field("host", Secrecy::Never),
    field("port", Secrecy::Never),
    field("schema", Secrecy::Never),
    field("login", Secrecy::Never),
    field("password", Secrecy::Always),
    map("extra", Secrecy::UnlessNamed),
];

const VARIABLE: &[Field] = &[field("value", Secrecy::OfVariable)];

const METRICS_EXPORT: &[Field] = &[
    field("endpoint", Secrecy::Never),
    field("exporterType", Secrecy::Never),
    field("authType", Secrecy::Never),
    field("username", Secrecy::Never),
    field("password", Secrecy::Always),
    field("basicToken", Secrecy::Always),
    field("sigV4AssumeArn", Secrecy::Never),
    field("sigV4StsRegion", Secrecy::Never),
    map("headers", Secrecy::UnlessPlainHeader),
    map("labels", Secrecy::Never),
];

/// What objects of a type can hold, in the order in which it is shown.
pub const fn fields(object_type: EnvironmentObjectType) -> &'static [Field] {
    match object_type {
        EnvironmentObjectType::Connection => CONNECTION,
        EnvironmentObjectType::EnvironmentVariable | EnvironmentObjectType::AirflowVariable => VARIABLE,
        EnvironmentObjectType::MetricsExport => METRICS_EXPORT,
    }
}

/// The field of the wire that holds the body of objects of a type.
pub const fn body_name(object_type: EnvironmentObjectType) -> &'static str {
    match object_type {
        EnvironmentObjectType::Connection => "connection",
        EnvironmentObjectType::EnvironmentVariable => "environmentVariable",
        EnvironmentObjectType::AirflowVariable => "airflowVariable",
        EnvironmentObjectType::MetricsExport => "metricsExport",
    }
}

/// The field of a name such as `host` or `extra.region`, if objects of the type have it.
pub fn named(object_type: EnvironmentObjectType, name: &str) -> Option<&'static Field> {
    let (head, member) = name.split_once('.').map_or((name, None), |(head, member)| (head, Some(member)));
    let field = fields(object_type).iter().find(|field| field.name == head)?;
    (member.is_none() || field.is_map).then_some(field)
}

/// What decides over secrecy in one object.
#[derive(Clone, Copy, Debug)]
pub struct Nature {
    pub object_type: EnvironmentObjectType,
    /// Whether it is a variable with a secret value.
    pub is_secret: bool,
    /// How it authenticates, if it is a connection.
    pub auth_type: Option<&'static AuthType>,
}

impl Nature {
    /// Whether the value of this name is a secret.
    pub fn hides(&self, name: &str) -> bool {
        let Some(field) = named(self.object_type, name) else { return true };
        let member = name.split_once('.').map_or("", |(_, member)| member);
        match field.secrecy {
            Secrecy::Never => false,
            Secrecy::Always => true,
            Secrecy::OfVariable => self.is_secret,
            Secrecy::UnlessNamed => {
                !self.auth_type.is_some_and(|auth_type| auth_types::shows(auth_type, member))
            }
            Secrecy::UnlessPlainHeader => !metrics::is_plain_header(member),
        }
    }
}
