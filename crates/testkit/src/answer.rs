//! The response to a call.

use http::{HeaderMap, StatusCode};
use podium_api::enums::ErrorCode;
use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub bytes: Vec<u8>,
}

impl Answer {
    pub fn code(&self) -> u16 {
        self.status.as_u16()
    }

    /// The body as JSON; `null` if there is none.
    pub fn json(&self) -> Value {
        if self.bytes.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The JSON of a success; panics with the body otherwise.
    #[track_caller]
    pub fn ok(&self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, self.text());
        self.json()
    }

    /// The message of a refusal with this status; panics otherwise.
    #[track_caller]
    pub fn refused(&self, status: u16) -> String {
        assert_eq!(self.code(), status, "{}", self.text());
        let body = self.json();
        assert_eq!(body["statusCode"], status);
        let code: ErrorCode =
            body["code"].as_str().expect("an error has a code").parse().expect("a known code");
        assert!(code.fits(status), "{status} is not {code}");
        assert_eq!(body["requestId"], self.header("x-request-id"));
        body["message"].as_str().expect("an error has a message").to_owned()
    }

    /// `field: code` of each wrong field of a 400.
    #[track_caller]
    pub fn wrong_fields(&self) -> Vec<String> {
        self.refused(400);
        let body = self.json();
        let field = |error: &Value| {
            format!(
                "{}: {}",
                error["field"].as_str().unwrap_or_default(),
                error["code"].as_str().unwrap_or_default()
            )
        };
        body["fieldErrors"].as_array().into_iter().flatten().map(field).collect()
    }

    #[track_caller]
    pub fn id(&self) -> String {
        self.ok()["id"].as_str().expect("the body has an id").to_owned()
    }
}
