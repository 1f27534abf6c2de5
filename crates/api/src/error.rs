//! The one error body of the API.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The body of every refused or failed request.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Error")]
pub struct ErrorBody {
    /// What went wrong and, where possible, what to do next.
    pub message: String,
    /// The id of the request, as in the `X-Request-Id` header, the server's log and the audit log.
    pub request_id: String,
    /// The HTTP status, repeated.
    #[schemars(range(min = 400, max = 600))]
    pub status_code: u16,
    /// Every field that was wrong.
    pub field_errors: Option<Vec<FieldError>>,
}

/// A count with its noun: `1 item`, `3 items`.
pub fn counted(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// One wrong field of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "FieldValidationError")]
pub struct FieldError {
    /// The JSON path of the field, such as `workspaceRoles[1].role`, or the name of a query parameter.
    pub field: String,
    /// A code that a program can act on, such as `required` or `maxLength`.
    pub code: String,
    /// What was wrong, and what is expected.
    pub message: String,
}

impl FieldError {
    /// A field error.
    pub fn new(field: impl Into<String>, code: &str, message: impl Into<String>) -> Self {
        Self { field: field.into(), code: code.into(), message: message.into() }
    }
}
