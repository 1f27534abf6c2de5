//! Keys of objects: what they may look like, and when two are the same.
//!
//! A deployment is given connections and variables as environment variables, whose names are made of the keys in upper
//! case. So of those two keys that differ only in case are one; keys of environment variables are compared as they are.

use podium_api::FieldError;
use podium_api::enums::EnvironmentObjectType;

/// Airflow keeps no longer ones.
const MAX: usize = 250;

/// A key that passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// As it is shown.
    pub text: String,
    /// As it is compared.
    pub unique: String,
}

/// Checks the key of an object of a type.
pub fn key(object_type: EnvironmentObjectType, text: &str) -> Result<Key, FieldError> {
    let wrong = |code, message: String| Err(FieldError::new("objectKey", code, message));
    let length = text.chars().count();
    if length == 0 {
        return wrong("required", "must not be empty".into());
    }
    if length > MAX {
        return wrong("maxLength", format!("must have at most {MAX} characters, has {length}"));
    }
    let ends_blank = text.trim() != text;
    match object_type {
        EnvironmentObjectType::EnvironmentVariable => {
            if !is_variable_name(text) {
                let message =
                    "must begin with a letter or `_` and go on with letters, digits, `_`, `.` and `-`";
                return wrong("format", message.into());
            }
            if is_the_platforms_own(text) {
                let message = "must be another key: the platform sets this variable itself";
                return wrong("reserved", message.into());
            }
        }
        EnvironmentObjectType::Connection => {
            let fits = |c: char| c.is_ascii_alphanumeric() || "_-.:/#!()".contains(c);
            if !text.chars().all(fits) {
                return wrong("format", "must consist of letters, digits and `_ - . : / # ! ( )`".into());
            }
        }
        EnvironmentObjectType::AirflowVariable | EnvironmentObjectType::MetricsExport => {
            if ends_blank || text.chars().any(|c| c.is_control() || c == '=') {
                let message = "must not begin or end with a blank, nor contain `=` or control characters";
                return wrong("format", message.into());
            }
        }
    }
    Ok(Key { text: text.to_owned(), unique: unique(object_type, text) })
}

/// The form in which keys of a type are compared.
pub fn unique(object_type: EnvironmentObjectType, text: &str) -> String {
    match object_type {
        EnvironmentObjectType::EnvironmentVariable => text.to_owned(),
        _ => text.to_uppercase(),
    }
}

/// Whether this can be the name of an environment variable.
fn is_variable_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// Variables that the platform sets itself: database, keys, executor, broker, base URL and log storage.
const OWN: &[&str] = &[
    "AIRFLOW_HOME",
    "AIRFLOW__API__BASE_URL",
    "AIRFLOW__API__SECRET_KEY",
    "AIRFLOW__API_AUTH__JWT_SECRET",
    "AIRFLOW__CELERY__BROKER_URL",
    "AIRFLOW__CELERY__RESULT_BACKEND",
    "AIRFLOW__CORE__EXECUTION_API_SERVER_URL",
    "AIRFLOW__CORE__EXECUTOR",
    "AIRFLOW__CORE__FERNET_KEY",
    "AIRFLOW__CORE__SQL_ALCHEMY_CONN",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN",
    "AIRFLOW__LOGGING__BASE_LOG_FOLDER",
    "AIRFLOW__LOGGING__REMOTE_BASE_LOG_FOLDER",
    "AIRFLOW__LOGGING__REMOTE_LOGGING",
    "AIRFLOW__LOGGING__REMOTE_LOG_CONN_ID",
    "AIRFLOW__WEBSERVER__BASE_URL",
    "AIRFLOW__WEBSERVER__SECRET_KEY",
];

/// Whether the platform sets this environment variable itself, as it is or as the command or secret that gives it.
pub fn is_the_platforms_own(key: &str) -> bool {
    let upper = key.to_ascii_uppercase();
    let stem = ["_CMD", "_SECRET"].iter().find_map(|ending| upper.strip_suffix(ending));
    OWN.contains(&upper.as_str()) || stem.is_some_and(|stem| OWN.contains(&stem))
}
