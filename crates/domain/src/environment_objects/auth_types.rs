//! Ways in which connections authenticate: a catalogue, as data.
//!
//! An auth type lists the parameters of a connection of its kind, and above all which members of `extra` are not
//! secrets. It helps people and forms; a connection without one works the same, with all of `extra` secret.
//!
//! `data/auth-types.json` is written by hand. `data/auth-types-of-providers.json` has every connection type that a
//! provider package on PyPI registers, under Airflow's id for it; `cargo xtask auth-types` regenerates it. Members of
//! `extra` that the packages document without registering them are in `data/auth-type-members.json`, written by hand.
//! Every connection type that takes a user and a password also has the auth type `<type>-password`.

use std::sync::LazyLock;

use podium_api::environment_objects::bodies::{ConnectionAuthType, ConnectionAuthTypeParameter};
use serde::Deserialize;

/// Where callers find the catalogue.
pub const LISTED_AT: &str = "/docs/connection-auth-types.json";

/// A way in which connections of a kind authenticate.
pub type AuthType = ConnectionAuthType;

static CATALOGUE: LazyLock<Vec<AuthType>> = LazyLock::new(|| {
    let mut all = read(include_str!("../../data/auth-types.json"));
    let registered = read(include_str!("../../data/auth-types-of-providers.json"));
    let by_password: Vec<AuthType> = registered
        .iter()
        .filter_map(by_password)
        .filter(|one| all.iter().all(|known| known.id != one.id))
        .collect();
    all.extend(registered.into_iter().chain(by_password));
    add_members(&mut all);
    all
});

/// The catalogue: what is written by hand, then every connection type by name.
pub fn all() -> &'static [AuthType] {
    &CATALOGUE
}

pub fn by_id(id: &str) -> Option<&'static AuthType> {
    all().iter().find(|auth_type| auth_type.id == id)
}

/// Whether an auth type names this member of `extra` as plain.
pub fn shows(auth_type: &AuthType, member: &str) -> bool {
    let is_plain = |known: &ConnectionAuthTypeParameter| known.is_in_extra && !known.is_secret;
    auth_type.parameters.iter().any(|known| is_plain(known) && known.airflow_param_name == member)
}

/// The auth type of those who sign in with a user and a password, where a connection type takes both.
fn by_password(registered: &AuthType) -> Option<AuthType> {
    let mut one = registered.clone();
    one.parameters.retain(|parameter| !(parameter.is_in_extra && parameter.is_secret));
    for name in ["login", "password"] {
        let is_it =
            |known: &&mut ConnectionAuthTypeParameter| !known.is_in_extra && known.airflow_param_name == name;
        one.parameters.iter_mut().find(is_it)?.is_required = true;
    }
    one.id = format!("{}-password", one.airflow_type);
    one.description = format!("{}, by user and password", one.name);
    one.auth_method_name = "User and password".into();
    Some(one)
}

/// Adds the members of `extra` that are documented and not registered.
fn add_members(all: &mut [AuthType]) {
    let file: Members = serde_json::from_str(include_str!("../../data/auth-type-members.json"))
        .expect("the catalogue is tested before it is built");
    for Documented { types, fields } in file.members {
        for auth_type in all.iter_mut().filter(|known| types.contains(&known.airflow_type)) {
            for field in &fields {
                let is_known = |known: &ConnectionAuthTypeParameter| {
                    known.is_in_extra && known.airflow_param_name == field.name
                };
                if !auth_type.parameters.iter().any(is_known) {
                    auth_type.parameters.push(field.clone().into_parameter());
                }
            }
        }
    }
}

#[derive(Deserialize)]
struct Members {
    members: Vec<Documented>,
}

#[derive(Deserialize)]
struct Documented {
    types: Vec<String>,
    fields: Vec<Parameter>,
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

#[derive(Clone, Deserialize)]
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
        let usual = "fs ftp generic http imap package_index postgres smtp sqlite aws azure docker \
            google_cloud_platform jdbc kafka kubernetes mysql ssh";
        for kind in usual.split(' ') {
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
        let pairs = |text: &'static str| text.split(' ').filter_map(|pair| pair.split_once(':'));
        let google = by_id("google_cloud_platform").unwrap();
        assert!(shows(google, "project") && !shows(google, "keyfile_dict") && !shows(google, "anything"));
        let postgres = by_id("postgres-password").unwrap();
        assert!(shows(postgres, "sslmode") && !shows(postgres, "host"), "only members of `extra`");
        let documented = "postgres:sslmode redshift:cluster_identifier mysql:charset aws:region_name \
            aws-access-key:role_arn snowflake:authenticator databricks:http_path kafka:bootstrap.servers \
            ssh:key_file trino:jwt__file oracle:service_name";
        for (id, member) in pairs(documented) {
            assert!(shows(by_id(id).unwrap(), member), "{id} {member}");
        }
        let secret = "postgres:sslkey postgres:sslpassword aws:aws_secret_access_key aws:aws_session_token \
            kafka:sasl.password ssh:private_key trino:jwt__token databricks:token \
            snowflake:private_key_content snowflake:client_secret http:Authorization";
        for (id, member) in pairs(secret) {
            assert!(!shows(by_id(id).unwrap(), member), "{id} {member}");
        }
    }

    #[test]
    fn every_documented_member_is_of_a_type_that_is_registered() {
        let file: Members = serde_json::from_str(include_str!("../../data/auth-type-members.json")).unwrap();
        for Documented { types, fields } in file.members {
            for kind in types {
                assert!(by_id(&kind).is_some(), "{kind}");
                for field in &fields {
                    assert!(field.extra && !field.secret, "{kind} {}", field.name);
                    assert!(shows(by_id(&kind).unwrap(), &field.name), "{kind} {}", field.name);
                }
            }
        }
    }

    #[test]
    fn a_type_with_a_user_and_a_password_has_an_auth_type_for_them() {
        let has = |known: &AuthType, name: &str| {
            known.parameters.iter().any(|one| !one.is_in_extra && one.airflow_param_name == name)
        };
        let mut family = 0;
        for known in all().iter().filter(|known| known.id == known.airflow_type) {
            let id = format!("{}-password", known.id);
            let takes_both = has(known, "login") && has(known, "password");
            assert_eq!(by_id(&id).is_some(), takes_both, "{id}");
            if let Some(own) = by_id(&id) {
                family += 1;
                assert_eq!(own.airflow_type, known.airflow_type);
                let needed = |name: &&str| {
                    own.parameters.iter().any(|one| one.airflow_param_name == *name && one.is_required)
                };
                assert!(["login", "password"].iter().all(needed), "{id}");
            }
        }
        assert!(family > 80, "{family}");
        for id in ["snowflake-password", "mysql-password", "mssql-password", "sftp-password", "ssh-password"]
        {
            assert!(by_id(id).is_some(), "{id}");
        }
        for (id, kind) in
            [("snowflake-private-key", "snowflake"), ("databricks-token", "databricks"), ("sftp-key", "sftp")]
        {
            assert_eq!(by_id(id).map(|known| known.airflow_type.as_str()), Some(kind));
        }
    }
}
