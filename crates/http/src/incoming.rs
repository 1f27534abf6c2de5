//! A request on its way to an endpoint: headers, path, query and body, each decoded when it is needed.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, IF_MATCH, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use podium_api::{Access, CredentialId, Description, Endpoint, EntityId, FieldError, Id, Timestamp};
use podium_app::plans::CallKey;
use podium_app::request::Idempotency;
use podium_app::request::OpenSession;
use podium_app::secrets::sha256_hex;
use podium_app::{App, Error, Request, Unauthenticated, audit};
use serde_json::{Map, Value};

use crate::body::{BodyError, RequestBody};
use crate::checks::Checks;
use crate::connections::{AwaitedBody, Connection, Shed};
use crate::credential::Credential;
use crate::errors::Failure;
use crate::response_cache::KeyRef;
use crate::settings::Settings;

const IDEMPOTENCY_KEY: &str = "idempotency-key";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const MAX_HEADER_TEXT: usize = 512;

/// A request on its way to an endpoint.
pub(crate) struct Incoming {
    pub(crate) app: App,
    pub(crate) parts: Parts,
    pub(crate) ids: Vec<Id>,
    pub(crate) address: IpAddr,
    pub(crate) request_id: String,
    pub(crate) now: Timestamp,
    /// The connection it arrived on; none in tests.
    pub(crate) connection: Option<Arc<Connection>>,
    /// The session of the person on whose behalf the console calls, in the place of a token.
    pub(crate) session: Option<OpenSession>,
    body: Option<RequestBody>,
    bytes: Bytes,
    /// What a call in this process says, in the place of bytes that would have to be parsed.
    given: Option<Box<Given>>,
}

/// The query and the body of a call that is made in this process.
#[derive(Default)]
pub(crate) struct Given {
    /// The query; without it, that of the URI counts.
    pub(crate) query: Option<Value>,
    /// The body; `null` if there is none.
    pub(crate) body: Value,
}

/// A checked request: its input or the errors in it, and the part of the body for the audit log.
pub(crate) struct Checked {
    pub(crate) input: Result<Input, Failure>,
    pub(crate) audited_body: Option<Value>,
    /// What the body names as the target of the permission.
    pub(crate) target: Option<EntityId>,
}

/// A checked query and body, before they become the types of the endpoint.
pub(crate) struct Input {
    query: Value,
    body: Value,
}

impl Input {
    pub(crate) fn typed<E: Endpoint>(self) -> Result<(E::Query, E::Body), Failure> {
        match (E::read_query(self.query), E::read_body(self.body)) {
            (Ok(query), Ok(body)) => Ok((query, body)),
            (query, body) => Err(wrong(query.err(), body.err())),
        }
    }
}

impl Incoming {
    pub(crate) fn new(
        app: App,
        parts: Parts,
        ids: Vec<Id>,
        address: IpAddr,
        request_id: String,
        body: RequestBody,
    ) -> Self {
        let now = app.world.now();
        let (connection, session, body, bytes) = (None, None, Some(body), Bytes::new());
        Self { app, parts, ids, address, request_id, now, connection, session, body, bytes, given: None }
    }

    /// A call that is made in this process.
    pub(crate) fn joined(
        app: App,
        parts: Parts,
        ids: Vec<Id>,
        (address, request_id, now): (IpAddr, String, Timestamp),
        given: Given,
    ) -> Self {
        let (connection, session, body) = (None, None, None);
        let written = Some(&given.body).filter(|body| !body.is_null()).map(Value::to_string);
        let (bytes, given) = (Bytes::from(written.unwrap_or_default()), Some(Box::new(given)));
        Self { app, parts, ids, address, request_id, now, connection, session, body, bytes, given }
    }

    pub(crate) fn key_ref(&self, token_id: CredentialId) -> KeyRef<'_> {
        let uri = self.parts.uri.path_and_query().map_or("", |uri| uri.as_str());
        KeyRef { token_id, uri }
    }

    /// Whether the URI says all that is asked for, and so is a key.
    pub(crate) fn is_told_by_uri(&self) -> bool {
        let query = self.given.as_ref().and_then(|given| given.query.as_ref()?.as_object());
        query.is_none_or(Map::is_empty)
    }

    pub(crate) fn credential(&self) -> Result<Credential, Error> {
        match self.session {
            Some(session) => Ok(Credential::Session(session)),
            None => self.bearer().map(|token| Credential::Token(token.to_owned())),
        }
    }

    /// The token in the `Authorization` header.
    pub(crate) fn bearer(&self) -> Result<&str, Error> {
        bearer(&self.parts.headers).unwrap_or(Err(Error::Unauthenticated(Unauthenticated::Missing)))
    }

    /// The token in the `Authorization` header, if there is one at all.
    pub(crate) fn optional_bearer(&self) -> Option<String> {
        bearer(&self.parts.headers)?.ok().map(str::to_owned)
    }

    pub(crate) fn request(
        &self,
        endpoint: &'static Description,
        audited_body: Option<Value>,
    ) -> Result<Request, Failure> {
        let idempotency = if endpoint.takes_idempotency_key() { self.idempotency()? } else { None };
        Ok(Request { idempotency, ..self.request_without_key(endpoint, audited_body) })
    }

    /// The same, of a request whose `Idempotency-Key` cannot be used.
    pub(crate) fn request_without_key(
        &self,
        endpoint: &'static Description,
        audited_body: Option<Value>,
    ) -> Request {
        let headers = &self.parts.headers;
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let short = |text: &str| text.chars().take(MAX_HEADER_TEXT).collect::<String>();
        Request {
            endpoint,
            id: self.request_id.clone(),
            path: self.parts.uri.path().to_owned(),
            address: self.address,
            user_agent: text(USER_AGENT).map(short).unwrap_or_default(),
            if_match: text(IF_MATCH).map(str::to_owned),
            idempotency: None,
            last_event_id: text(LAST_EVENT_ID).map(short),
            audited_body,
            session: self.session,
            now: self.now,
        }
    }

    fn idempotency(&self) -> Result<Option<Idempotency>, Failure> {
        let query = self.parts.uri.query().unwrap_or_default();
        let request_hash = || sha256_hex(&[query.as_bytes(), b"\n", &self.bytes].concat());
        if let Some(CallKey { text, is_replay }) = self.parts.extensions.get::<CallKey>() {
            let (key, is_replay) = (text.clone(), *is_replay);
            return Ok(Some(Idempotency { key, request_hash: request_hash(), is_replay }));
        }
        let Some(header) = self.parts.headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
        let key = header.to_str().ok().filter(|key| (1..=255).contains(&key.len()));
        let Some(key) = key else {
            let message = "must be 1 to 255 visible ASCII characters";
            return Err(Failure::fields(vec![FieldError::new("Idempotency-Key", "format", message)]));
        };
        Ok(Some(Idempotency { key: key.to_owned(), request_hash: request_hash(), is_replay: false }))
    }

    /// Reads and checks query and body; every wrong field of both is reported.
    pub(crate) async fn check(&mut self, checks: &Checks, settings: &Settings, access: Access) -> Checked {
        let (mut audited_body, mut target) = (None, None);
        let input = self.input(checks, (settings, access), &mut audited_body, &mut target).await;
        Checked { input, audited_body, target }
    }

    async fn input(
        &mut self,
        checks: &Checks,
        (settings, access): (&Settings, Access),
        audited_body: &mut Option<Value>,
        target: &mut Option<EntityId>,
    ) -> Result<Input, Failure> {
        let given = self.given.as_ref().and_then(|given| given.query.as_ref());
        let query = match (&checks.query, given) {
            (Some(check), Some(given)) => check.checked(given.clone()),
            (Some(check), None) => {
                check.checked_query(query_pairs(self.parts.uri.query().unwrap_or_default()))
            }
            (None, _) => Ok(Value::Null),
        };
        let body = match &checks.body {
            Some(check) => {
                if let Err(failure) = self.read_body(settings, access).await {
                    *audited_body = audit::kept_body(&self.bytes, None);
                    return Err(failure);
                }
                let parsed: Result<Value, _> = match &self.given {
                    Some(given) if !given.body.is_null() => Ok(given.body.clone()),
                    _ => serde_json::from_slice(&self.bytes),
                };
                let shown = parsed.as_ref().ok().and_then(|value| check.without_secrets(value));
                *audited_body = audit::kept_body(&self.bytes, shown);
                *target = named(parsed.as_ref().ok(), checks.target);
                parsed
                    .map_err(|error| vec![malformed(&self.bytes, &error)])
                    .and_then(|value| check.checked(value))
            }
            None => Ok(Value::Null),
        };
        match (query, body) {
            (Ok(query), Ok(body)) => Ok(Input { query, body }),
            (query, body) => Err(wrong(query.err(), body.err())),
        }
    }

    async fn read_body(&mut self, settings: &Settings, access: Access) -> Result<(), Failure> {
        let Some(body) = self.body.take() else { return Ok(()) };
        self.bytes = if access == Access::Public {
            let (limit, within) = (settings.public_body_limit, settings.public_body_timeout);
            read_public(body, limit, within, self.connection.as_ref()).await?
        } else {
            read_whole(body, settings.body_limit, settings.body_timeout).await?
        };
        if !self.bytes.is_empty() && !is_json(&self.parts.headers) {
            let message = "The body must be JSON: send `Content-Type: application/json`.";
            return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        Ok(())
    }
}

/// Reads a body into memory, up to a size limit and within a time limit.
pub(crate) async fn read_whole(body: RequestBody, limit: usize, within: Duration) -> Result<Bytes, Failure> {
    match tokio::time::timeout(within, Limited::new(body, limit).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let message = format!("The body is too large: at most {limit} bytes are read.");
            Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message))
        }
        Ok(Err(error)) => match error.downcast_ref::<BodyError>() {
            Some(broken) if broken.is_timeout() => Err(late(within)),
            Some(broken) if broken.is_too_much() => Err(no_room()),
            _ => Err(Failure::new(StatusCode::BAD_REQUEST, "The body ended early.")),
        },
        Err(_) => Err(late(within)),
    }
}

/// Reads and buffers the body of an unauthenticated client, whose connection may be closed meanwhile to make room.
pub(crate) async fn read_public(
    body: RequestBody,
    limit: usize,
    within: Duration,
    connection: Option<&Arc<Connection>>,
) -> Result<Bytes, Failure> {
    let awaited = connection.map(Connection::await_public_body);
    let read = read_whole(body, limit, within).await;
    match awaited.map(AwaitedBody::end) {
        Some(Err(Shed)) => Err(no_room()),
        _ => read,
    }
}

/// Too many bodies are being received.
pub(crate) fn no_room() -> Failure {
    let message =
        "Too many request bodies are being received, from your address or in total: try again in a second.";
    Failure::later(StatusCode::SERVICE_UNAVAILABLE, message, 1)
}

pub(crate) fn late(limit: Duration) -> Failure {
    let message = format!("The body did not arrive within {} s.", limit.as_secs());
    Failure::new(StatusCode::REQUEST_TIMEOUT, message)
}

pub(crate) fn bearer(headers: &HeaderMap) -> Option<Result<&str, Error>> {
    let header = headers.get(AUTHORIZATION)?;
    let token = header.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    Some(token.filter(|token| !token.is_empty()).ok_or(Error::Unauthenticated(Unauthenticated::Malformed)))
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    media.is_some_and(|media| {
        media.split(';').next().is_some_and(|m| m.trim().eq_ignore_ascii_case("application/json"))
    })
}

fn malformed(bytes: &[u8], error: &serde_json::Error) -> FieldError {
    if bytes.is_empty() {
        return FieldError::new("", "required", "is required, as JSON");
    }
    FieldError::new("", "json", format!("is not JSON: {error}"))
}

fn named(body: Option<&Value>, field: Option<&str>) -> Option<EntityId> {
    body?.get(field?)?.as_str()?.parse().ok()
}

/// Every wrong field of the query and of the body.
fn wrong(query: Option<Vec<FieldError>>, body: Option<Vec<FieldError>>) -> Failure {
    Failure::fields(query.into_iter().chain(body).flatten().collect())
}

/// Splits a query string into decoded names and values; bytes that are no UTF-8 become the replacement character.
pub(crate) fn query_pairs(query: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_strings_are_decoded() {
        let pairs = query_pairs("names=a%20b&names=c+d&&flag&broken=%zz&signed=%+1&umlaut=%C3%BC&latin=%FC");
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let expected = [
            ("names", "a b"),
            ("names", "c d"),
            ("flag", ""),
            ("broken", "%zz"),
            ("signed", "% 1"),
            ("umlaut", "ü"),
            ("latin", "\u{fffd}"),
        ];
        assert_eq!(pairs, expected);
    }
}
