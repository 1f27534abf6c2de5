//! A typed client: the endpoints of `podium-api`, called over HTTP.
//!
//! `client.call::<workspaces::Get>(&path, &Nothing, &Nothing)` takes the method, path and types from the endpoint, so
//! it cannot disagree with the server about them.

use podium_api::endpoint::Input;
use podium_api::path::PathParams;
use podium_api::{Endpoint, ErrorBody, Method, Reply, openapi::PREFIX};
use reqwest::header::{CONTENT_TYPE, ETAG};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server refused it, or failed.
    #[error("{} ({}, request {})", .0.message, .0.status_code, .0.request_id)]
    Refused(ErrorBody),
    /// The server could not be reached, or its answer could not be read.
    #[error(transparent)]
    Transport(#[from] reqwest::Error),
    /// The answer is not what the contract says.
    #[error("the response does not match the contract: {0}")]
    Unexpected(String),
}

/// A client of one server, as one subject.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

/// A resource, and the `ETag` to send back as `If-Match`.
#[derive(Clone, Debug)]
pub struct Fetched<T> {
    /// The resource.
    pub body: T,
    /// Its `ETag`.
    pub etag: Option<String>,
}

impl Client {
    /// A client of the server at `base`, such as `http://127.0.0.1:8080`.
    pub fn new(base: &str, token: Option<String>) -> Result<Self> {
        let http = reqwest::Client::builder().build()?;
        Ok(Self { http, base: base.trim_end_matches('/').to_owned(), token })
    }

    /// Calls an endpoint.
    pub async fn call<E>(
        &self,
        path: &E::Path,
        query: &E::Query,
        body: &E::Body,
    ) -> Result<Fetched<<E::Reply as Reply>::Body>>
    where
        E: Endpoint<Reply: Reply<Body: DeserializeOwned>>,
    {
        let path = fill(E::DESCRIPTION.path, path);
        let url = format!("{}{PREFIX}{path}{}", self.base, query_string(query)?);
        let mut request = match E::DESCRIPTION.method {
            Method::Get => self.http.get(url),
            Method::Post => self.http.post(url),
            Method::Delete => self.http.delete(url),
        };
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        let body = to_value(body)?;
        if !body.is_null() {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let response = request.send().await?;
        let status = response.status();
        let etag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let bytes = response.bytes().await?;
        let unexpected = |error: serde_json::Error| Error::Unexpected(format!("{status}: {error}"));
        if !status.is_success() {
            return Err(Error::Refused(serde_json::from_slice(&bytes).map_err(unexpected)?));
        }
        let bytes: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        Ok(Fetched { body: serde_json::from_slice(bytes).map_err(unexpected)?, etag })
    }
}

fn to_value(input: &impl Input) -> Result<Value> {
    serde_json::to_value(input).map_err(|error| Error::Unexpected(error.to_string()))
}

/// Puts ids in the place of the path's parameters.
fn fill(path: &str, params: &impl PathParams) -> String {
    let mut ids = params.ids().into_iter();
    let part = |part: &str| match part.strip_prefix('{') {
        Some(_) => ids.next().map(|id| id.to_string()).unwrap_or_default(),
        None => part.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Writes a query; a list is a repeated key.
fn query_string(query: &impl Input) -> Result<String> {
    let Value::Object(fields) = to_value(query)? else { return Ok(String::new()) };
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    for (name, value) in fields {
        let values = if let Value::Array(list) = value { list } else { vec![value] };
        for value in values {
            match value {
                Value::Null => {}
                Value::String(text) => _ = pairs.append_pair(&name, &text),
                other => _ = pairs.append_pair(&name, &other.to_string()),
            }
        }
    }
    let pairs = pairs.finish();
    Ok(if pairs.is_empty() { pairs } else { format!("?{pairs}") })
}
