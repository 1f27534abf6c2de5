//! Ways in which connections authenticate: a catalogue, as data.
//!
//! An auth type lists the parameters of a connection of its kind, and above all which members of `extra` are not
//! secrets. It helps people and forms; a connection without one works the same, with all of `extra` secret.
//!
//! `data/auth-types.json` is written by hand. `data/auth-types-of-providers.json` has every connection type that a
//! provider package on PyPI registers, under Airflow's id for it; `cargo xtask auth-types` regenerates it.

use std::sync::LazyLock;

use podium_api::environment_objects::bodies::{ConnectionAuthType, ConnectionAuthTypeParameter};
use serde::Deserialize;

/// Where callers find the catalogue.
pub const LISTED_AT: &str = "/docs/connection-auth-types.json";

/// A way in which connections of a kind authenticate.
pub type AuthType = ConnectionAuthType;

static CATALOGUE: LazyLock<Vec<AuthType>> = LazyLock::new(|| {
    let files =
        [include_str!("../../data/auth-types.json"), include_str!("../../data/auth-types-of-providers.json")];
    files.into_iter().flat_map(read).collect()
});

/// The catalogue: what is written by hand, then every connection type by name.
pub fn all() -> &'static [AuthType] {
    &CATALOGUE
}

/// The auth type of this id.
pub fn by_id(id: &str) -> Option<&'static AuthType> {
    all().iter().find(|auth_type| auth_type.id == id)
}

/// Whether an auth type names this member of `extra` as plain.
pub fn shows(auth_type: &AuthType, member: &str) -> bool {
    let is_plain = |known: &ConnectionAuthTypeParameter| known.is_in_extra && !known.is_secret;
    auth_type.parameters.iter().any(|known| is_plain(known) && known.airflow_param_name == member)
}

#[derive(Deserialize)]
struct File {
    types: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    id: Option<String>,
    #[serde(rename = "type")]
    airflow_type: String,
    name: String,
    about: Option<String>,
    method: Option<String>,
    package: String,
    fields: Vec<Parameter>,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    label: String,
    #[serde(default)]
    about: String,
    #[serde(default = "text")]
    kind: String,
    example: Option<String>,
    #[serde(default)]
    extra: bool,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    secret: bool,
}

fn text() -> String {
    "string".into()
}

fn read(file: &str) -> Vec<AuthType> {
    let file: File = serde_json::from_str(file).expect("the catalogue is tested before it is built");
    file.types.into_iter().map(Entry::into_auth_type).collect()
}

impl Entry {
    fn into_auth_type(self) -> AuthType {
        let about =
            || format!("A connection of the type {}, with what its provider asks for", self.airflow_type);
        AuthType {
            description: self.about.unwrap_or_else(about),
            id: self.id.unwrap_or_else(|| self.airflow_type.clone()),
            name: self.name,
            airflow_type: self.airflow_type,
            auth_method_name: self.method.unwrap_or_else(|| "Connection form".into()),
            provider_package_name: self.package,
            provider_logo: None,
            guide_path: None,
            parameters: self.fields.into_iter().map(Parameter::into_parameter).collect(),
        }
    }
}

impl Parameter {
    fn into_parameter(self) -> ConnectionAuthTypeParameter {
        ConnectionAuthTypeParameter {
            airflow_param_name: self.name,
            description: if self.about.is_empty() { self.label.clone() } else { self.about },
            friendly_name: self.label,
            data_type: self.kind,
            example: self.example,
            pattern: None,
            is_in_extra: self.extra,
            is_required: self.required,
            is_secret: self.secret,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_type_that_a_provider_registers_is_listed_once() {
        assert!(all().len() > 150, "{}", all().len());
        let ids: BTreeSet<&str> = all().iter().map(|known| known.id.as_str()).collect();
        assert_eq!(ids.len(), all().len(), "ids are unique");
        // What the packages of the default runtimes register, and what many use.
        let usual = ["fs", "ftp", "generic", "http", "imap", "package_index", "postgres", "smtp", "sqlite"];
        let others = [
            "aws",
            "azure",
            "docker",
            "google_cloud_platform",
            "jdbc",
            "kafka",
            "kubernetes",
            "mysql",
            "ssh",
        ];
        for kind in usual.into_iter().chain(others) {
            assert_eq!(by_id(kind).map(|known| known.airflow_type.as_str()), Some(kind));
        }
        for known in all() {
            assert!(by_id(&known.airflow_type).is_some(), "{}", known.airflow_type);
            assert!(known.provider_package_name.starts_with("apache-airflow-providers-"), "{}", known.id);
        }
    }

    #[test]
    fn parameters_are_named_once_and_secrets_are_marked() {
        const STANDARD: [&str; 5] = ["host", "schema", "login", "password", "port"];
        for known in all() {
            let names: BTreeSet<_> = known
                .parameters
                .iter()
                .map(|one| (one.is_in_extra, one.airflow_param_name.as_str()))
                .collect();
            assert_eq!(names.len(), known.parameters.len(), "{}", known.id);
            for one in &known.parameters {
                let name = one.airflow_param_name.as_str();
                let at = format!("{} {name}", known.id);
                assert!(one.is_in_extra || STANDARD.contains(&name), "{at}");
                assert!(!one.friendly_name.is_empty() && !one.description.is_empty(), "{at}");
                assert!(["string", "number", "boolean", "json"].contains(&one.data_type.as_str()), "{at}");
                let sounds_secret = ["password", "secret", "token"].iter().any(|word| name.ends_with(word));
                assert!(one.is_secret || !sounds_secret || one.data_type == "boolean", "{at}");
                assert!(!one.is_secret || one.example.is_none(), "{at}: an example of a secret");
            }
        }
    }

    #[test]
    fn members_are_plain_where_they_are_named_so() {
        let google = by_id("google_cloud_platform").unwrap();
        assert!(shows(google, "project") && !shows(google, "keyfile_dict") && !shows(google, "anything"));
        let postgres = by_id("postgres-password").unwrap();
        assert!(shows(postgres, "sslmode") && !shows(postgres, "host"), "only members of `extra`");
    }
}
