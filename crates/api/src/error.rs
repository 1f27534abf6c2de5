//! The one error body of the API.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::enums::ErrorCode;

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
    /// What went wrong, for programs: it never changes, as the message may. See the table in the guide of the API.
    pub code: Option<String>,
    /// Every field that was wrong.
    pub field_errors: Option<Vec<FieldError>>,
}

impl ErrorBody {
    /// What went wrong: as the server says, or what follows from the status if that is all that this version knows.
    pub fn code(&self) -> ErrorCode {
        let said = self.code.as_deref().and_then(|code| code.parse().ok());
        said.unwrap_or(ErrorCode::of_status(self.status_code))
    }
}

impl ErrorCode {
    /// What a status says when nothing more is known.
    pub const fn of_status(status: u16) -> Self {
        match status {
            401 => Self::Unauthenticated,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            405 => Self::NotAllowed,
            409 => Self::Conflict,
            410 => Self::Gone,
            412 => Self::PreconditionFailed,
            413 | 431 => Self::TooLarge,
            424 => Self::DependsOnRefused,
            429 => Self::TooManyRequests,
            502..=504 => Self::Unavailable,
            500.. => Self::Internal,
            _ => Self::Invalid,
        }
    }

    /// Whether it goes with a status.
    pub fn fits(self, status: u16) -> bool {
        match self {
            Self::Hibernating => status == 400,
            Self::InProgress => status == 409,
            plain => plain == Self::of_status(status),
        }
    }
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
    /// What is wrong with the value, and what is expected.
    pub message: String,
}

impl FieldError {
    /// A field error.
    pub fn new(field: impl Into<String>, code: &str, message: impl Into<String>) -> Self {
        Self { field: field.into(), code: code.into(), message: message.into() }
    }
}
