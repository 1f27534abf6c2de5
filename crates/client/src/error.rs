//! Why a call did not succeed.

use podium_api::ErrorBody;
use podium_api::enums::ErrorCode;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server refused it, or failed.
    #[error("{} ({}, request {})", .0.message, .0.status_code, .0.request_id)]
    Refused(ErrorBody),
    /// The server could not be reached, or its answer broke off.
    #[error("{url} cannot be reached: {reason}")]
    Unreachable { url: String, reason: String },
    /// The server points elsewhere; a token is not sent there.
    #[error("the server redirects to {location:?}: use the URL of the API itself")]
    Redirected { location: String },
    /// The response is larger than what is read into memory.
    #[error("the response is larger than {most} bytes")]
    TooLarge { most: usize },
    /// The answer is not what the contract says.
    #[error("the response does not match the contract: {0}")]
    Unexpected(String),
    /// The call cannot be made: a bad URL, a bad token, a file that cannot be read.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// Why the server refused, for programs.
    pub fn code(&self) -> Option<ErrorCode> {
        if let Self::Refused(body) = self { Some(body.code()) } else { None }
    }

    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(body) => Some(body.status_code),
            _ => None,
        }
    }
}

/// An error with its causes: those of the HTTP library say little without them.
pub(crate) fn text_of(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}
