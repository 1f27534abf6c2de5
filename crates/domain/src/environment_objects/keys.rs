//! Keys of objects: their format, and when two are equal.
//!
//! A deployment gets connections and variables as environment variables, whose names are the keys in upper case. So
//! keys of those types that differ only in case are equal; keys of environment variables are compared exactly.

use podium_api::FieldError;
use podium_api::enums::EnvironmentObjectType;

use crate::deployments::variables;

/// Airflow stores no longer ones.
const MAX: usize = 250;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    pub text: String,
    /// As it is compared.
    pub unique: String,
}

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
            if !variables::is_key(text) {
                let message =
                    "must begin with a letter or `_` and continue with letters, digits, `_`, `.` and `-`";
                return wrong("format", message.into());
            }
            if let Some(reason) = variables::refused(text) {
                return wrong("reserved", reason.into());
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
                let message = "must not begin or end with a space, nor contain `=` or control characters";
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
