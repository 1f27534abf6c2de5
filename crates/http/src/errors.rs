//! Errors as responses: one body, the right status, and headers that tell the client what to do next.

use http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use podium_api::enums::ErrorCode;
use podium_api::text::escaped_json_bytes;
use podium_api::{ErrorBody, FieldError};
use podium_app::Error;
use podium_app::WhoseStreams;
use podium_domain::{Given, Refusal, UserText};

use crate::body::{Body, whole};

const INTERNAL: &str = "Internal server error: please report the requestId.";

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    code: ErrorCode,
    message: String,
    fields: Vec<FieldError>,
    retry_after: Option<u64>,
    /// The details of an internal error for operators; logged with the request id.
    fault: Option<String>,
    /// The cached caller was stale: the request has to be authorized again.
    pub(crate) is_stale: bool,
    /// Whether it leaves an audit record: a refusal does, a fault or a request to come back later does not.
    pub(crate) is_refusal: bool,
}

impl Failure {
    /// A refusal (4xx), whose message may repeat what the caller sent. For a 5xx the message is replaced: use
    /// [`Self::server`], which takes only texts that users may read.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        if status.is_server_error() {
            return Self::server(status, INTERNAL);
        }
        Self::of(status, message.into())
    }

    /// A server error (5xx).
    pub(crate) fn server(status: StatusCode, message: impl Into<UserText>) -> Self {
        Self::of(status, message.into().to_string())
    }

    fn of(status: StatusCode, message: String) -> Self {
        Self {
            status,
            code: ErrorCode::of_status(status.as_u16()),
            message,
            fields: Vec::new(),
            retry_after: None,
            fault: None,
            is_stale: false,
            is_refusal: status.is_client_error(),
        }
    }

    /// A temporary failure: retry after this many seconds.
    pub(crate) fn later(status: StatusCode, message: impl Into<UserText>, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), is_refusal: false, ..Self::server(status, message) }
    }

    /// An internal error; the message reveals no details.
    pub(crate) fn fault() -> Self {
        Self::server(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL)
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn fields(fields: Vec<FieldError>) -> Self {
        Refusal::from(fields).into()
    }

    pub(crate) fn into_response(self, request_id: &str) -> Response<Body> {
        if let Some(error) = self.fault {
            tracing::error!(error, request_id, "a request failed");
        }
        let body = ErrorBody {
            message: self.message,
            request_id: request_id.to_owned(),
            status_code: self.status.as_u16(),
            code: Some(self.code.to_string()),
            field_errors: Some(self.fields).filter(|fields| !fields.is_empty()),
        };
        let mut response =
            Response::new(whole(escaped_json_bytes(serde_json::to_vec(&body).unwrap_or_default())));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::BAD_REQUEST);
        let (message, code) = (refusal.message(), refusal.code());
        let fields = if let Refusal::Invalid { fields, .. } = refusal { fields } else { Vec::new() };
        Self { fields, code, ..Self::new(status, message) }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.into(),
            Error::Unauthenticated(why) => Self::new(StatusCode::UNAUTHORIZED, why.message()),
            Error::TooMany { retry_after } => {
                let message = UserText::filled("Too many requests: try again in {} s.", &[&retry_after]);
                Self::later(StatusCode::TOO_MANY_REQUESTS, message, retry_after)
            }
            Error::TooManyStreams { whose, retry_after } => {
                let whose = match whose {
                    WhoseStreams::Caller => {
                        "You have too many streams open: close one, or try again in {} s."
                    }
                    WhoseStreams::Organization => {
                        "The members and tokens of your organization have too many streams open: close some, or try again in {} s."
                    }
                    WhoseStreams::Everybody => "Too many streams are open on this server: try again in {} s.",
                };
                let message = UserText::filled(whose, &[&retry_after]);
                Self::later(StatusCode::TOO_MANY_REQUESTS, message, retry_after)
            }
            Error::StillRunning => {
                let message =
                    "The first request with this Idempotency-Key is still running: try again in a second.";
                Self { code: ErrorCode::InProgress, ..Self::later(StatusCode::CONFLICT, message, 1) }
            }
            Error::TooMuch(why) => Self::new(StatusCode::PAYLOAD_TOO_LARGE, why),
            Error::DiskFull(why) => {
                tracing::warn!(%why, "request refused");
                Self::later(StatusCode::SERVICE_UNAVAILABLE, why.user_text().clone(), 60)
            }
            Error::OtherNode(node) => {
                let told = "The deployment runs on node {}: send the request to that node.";
                let message = UserText::filled(told, &[&Given::word(&node)]);
                Self::later(StatusCode::SERVICE_UNAVAILABLE, message, 10)
            }
            away if away.unavailable().is_some() => {
                tracing::error!(error = %away, "the database is unavailable");
                Self::later(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "The database is unavailable: try again in a few seconds.",
                    5,
                )
            }
            stale if stale.is_stale() => {
                let message = "Your rights changed during the request: try again.";
                Self { is_stale: true, ..Self::later(StatusCode::SERVICE_UNAVAILABLE, message, 1) }
            }
            lost if lost.is_lost() => {
                let message = "Other requests kept changing the same resource: try again.";
                Self::later(StatusCode::SERVICE_UNAVAILABLE, message, 1)
            }
            fault => Self { fault: Some(fault.to_string()), ..Self::fault() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_shows_nothing_but_texts_for_users() {
        let said = || String::from("no such table: grants");
        assert_eq!(Failure::new(StatusCode::BAD_REQUEST, said()).message(), said());
        assert_eq!(Failure::new(StatusCode::INTERNAL_SERVER_ERROR, said()).message(), INTERNAL);
        let fault = Failure::from(Error::Internal(said()));
        assert_eq!((fault.status.as_u16(), fault.message()), (500, INTERNAL));
        let elsewhere = Failure::from(Error::OtherNode("/srv/data is full".into()));
        assert_eq!(
            elsewhere.message(),
            "The deployment runs on node (not shown): send the request to that node."
        );
    }
}
