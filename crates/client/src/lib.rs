//! A typed client: the endpoints of `podium-api`, called over HTTP.
//!
//! `client.call::<workspaces::Get>(&path, &Nothing, &Nothing)` takes the method, path and types from the endpoint, so
//! it cannot disagree with the server about them. [`Client::send`] does the same for a [`Call`] that is put together
//! piece by piece, or that names a path which this version does not know.
//!
//! Everything is bounded: responses in size, requests in time, and retries in number. A request is sent again only if
//! that cannot take effect twice: reads, and writes that carry an `Idempotency-Key` ([`retry`]).

mod call;
mod error;
mod lines;
mod of_airflow;
mod pages;
mod retry;
mod upload;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use podium_api::{Endpoint, ErrorBody, OperationId, Reply};
use reqwest::header::{
    AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_MATCH, LOCATION,
};
use serde::de::DeserializeOwned;
use url::Url;

pub use call::Call;
pub use error::{Error, Result};
pub use lines::{Event, Events, Lines};
pub use pages::Pages;
pub use retry::Retry;
pub use upload::Progress;

use retry::Verdict;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const OPERATION: HeaderName = HeaderName::from_static("podium-operation");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The largest response that is read into memory.
const MOST_BYTES: usize = 64 << 20;
/// How long a server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a call may take in all, each time that it is sent.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Clone, Default)]
pub struct Settings {
    pub token: Option<String>,
    /// Certificates (PEM) to trust in addition to those of the system.
    pub certificates: Option<Vec<u8>>,
    /// The `User-Agent`.
    pub user_agent: Option<String>,
    /// How often, and after how long, requests are sent again.
    pub retry: Retry,
    /// Is told about every request that was sent.
    pub observer: Option<Observer>,
    /// The server's own socket on this machine, in the place of a connection to its address and of a token.
    pub socket: Option<Socket>,
}

/// The socket of a server on this machine, and what whoever uses it must know.
#[derive(Clone)]
pub struct Socket {
    pub path: PathBuf,
    /// The key that the server keeps next to it.
    pub key: String,
    /// Where the server keeps it: each start of the server has a key of its own.
    pub key_file: PathBuf,
}

/// Is told about every request that was sent.
pub type Observer = Arc<dyn Fn(&Sent<'_>) + Send + Sync>;

/// A request that was sent: never its body, and never a query that carries a signature.
pub struct Sent<'a> {
    pub method: &'a str,
    /// The path, with the query of a call.
    pub path: &'a str,
    /// What came of it: a status, or why there is none.
    pub outcome: &'a str,
    /// The id of the request, where the server gave one.
    pub request_id: &'a str,
    pub took: Duration,
}

/// A client of one server, as one subject.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    settings: Arc<Settings>,
    /// The key of the socket that the server took last.
    key: Arc<Mutex<Option<String>>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// A resource, and the `ETag` to send back as `If-Match`.
#[derive(Clone, Debug)]
pub struct Fetched<T> {
    pub body: T,
    /// Its `ETag`.
    pub etag: Option<String>,
    /// The operation that the call has started.
    pub operation: Option<OperationId>,
}

/// The operation that a call has started, according to the headers of its response.
pub fn started(headers: &HeaderMap) -> Option<OperationId> {
    headers.get(OPERATION)?.to_str().ok()?.parse().ok()
}

impl Client {
    /// A client of the server at `base`, such as `http://127.0.0.1:8080`.
    pub fn new(base: &str, token: Option<String>) -> Result<Self> {
        Self::with(base, Settings { token, ..Settings::default() })
    }

    /// A client of the server at `base`, with these settings.
    pub fn with(base: &str, settings: Settings) -> Result<Self> {
        let base = base_url(base)?;
        let mut builder = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            // A redirect would carry a token, or a body, to somewhere else.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(settings.user_agent.clone().unwrap_or_else(|| "podium-client".into()));
        if let Some(pem) = &settings.certificates {
            let certificates = reqwest::Certificate::from_pem_bundle(pem)
                .map_err(|_| Error::Invalid("the certificates are not PEM".into()))?;
            if certificates.is_empty() {
                return Err(Error::Invalid("there are no certificates in the PEM file".into()));
            }
            builder = builder.tls_certs_merge(certificates);
        }
        if let Some(socket) = &settings.socket {
            builder = builder.unix_socket(socket.path.as_path());
        }
        let http = builder.build().map_err(|error| Error::Invalid(error::text_of(&error)))?;
        let key = settings.socket.as_ref().map(|socket| socket.key.clone());
        let client = Self { http, base, settings: Arc::new(settings), key: Arc::new(Mutex::new(key)) };
        client.authorization()?;
        Ok(client)
    }

    /// The URL of the server, without a slash at its end.
    pub fn base(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// The socket that is used in the place of the URL.
    pub fn socket(&self) -> Option<&Path> {
        self.settings.socket.as_ref().map(|socket| socket.path.as_path())
    }

    pub async fn call<E>(
        &self,
        path: &E::Path,
        query: &E::Query,
        body: &E::Body,
    ) -> Result<Fetched<<E::Reply as Reply>::Body>>
    where
        E: Endpoint<Reply: Reply<Body: DeserializeOwned>>,
    {
        self.send(Call::to::<E>(path).query_params(query)?.body(body)?).await
    }

    /// Sends a call, and again where that is safe; reads the whole response.
    pub async fn send<T: DeserializeOwned>(&self, call: Call) -> Result<Fetched<T>> {
        let (headers, bytes) = self.send_for_bytes(&call).await?;
        let etag = headers.get(ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let operation = started(&headers);
        let bytes: &[u8] = if bytes.is_empty() { b"null" } else { &bytes };
        let body = serde_json::from_slice(bytes)
            .map_err(|error| Error::Unexpected(format!("{} {}: {error}", call.method, call.path)))?;
        Ok(Fetched { body, etag, operation })
    }

    /// Sends a call, and gives the headers and bytes of the response as they are.
    pub async fn send_for_bytes(&self, call: &Call) -> Result<(HeaderMap, Vec<u8>)> {
        let mut tries = 0;
        loop {
            tries += 1;
            let done = match self.exchange(call, Some(CALL_TIMEOUT)).await {
                Ok(response) => {
                    let headers = response.headers().clone();
                    read(response, MOST_BYTES).await.map(|bytes| (headers, bytes))
                }
                Err(failed) => Err(failed),
            };
            match done {
                Ok(done) => return Ok(done),
                Err(error) => match self.settings.retry.verdict(&error, call.is_repeatable(), tries) {
                    Verdict::GiveUp => return Err(error.into_error()),
                    Verdict::Again(delay) => tokio::time::sleep(delay).await,
                },
            }
        }
    }

    /// Sends a call once, or twice if the server has restarted and has another key; a response that is not a success is
    /// an error.
    async fn exchange(&self, call: &Call, timeout: Option<Duration>) -> Result<reqwest::Response, Attempt> {
        let used = self.socket_key();
        match self.exchange_once(call, timeout).await {
            Err(failed) if self.has_new_key(&failed, used.as_deref()) => {
                self.exchange_once(call, timeout).await
            }
            done => done,
        }
    }

    fn socket_key(&self) -> Option<String> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether a refusal was of the key that was used for the socket, and there is another one now.
    fn has_new_key(&self, failed: &Attempt, used: Option<&str>) -> bool {
        let Some(socket) = &self.settings.socket else { return false };
        if failed.error.status() != Some(401) {
            return false;
        }
        let Ok(read) = std::fs::read_to_string(&socket.key_file) else { return false };
        let found = read.trim();
        let is_new = used != Some(found);
        *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.to_owned());
        is_new
    }

    pub fn token(&self) -> Option<&str> {
        self.settings.token.as_deref()
    }

    /// What says who the caller is: a token, or the key of a socket.
    fn authorization(&self) -> Result<Option<HeaderValue>> {
        let text = match (self.socket_key(), &self.settings.token) {
            (Some(key), _) => format!("Operator {key}"),
            (None, Some(token)) => format!("Bearer {token}"),
            (None, None) => return Ok(None),
        };
        let mut value = HeaderValue::from_str(&text)
            .map_err(|_| Error::Invalid("the token holds characters that no token has".into()))?;
        value.set_sensitive(true);
        Ok(Some(value))
    }

    async fn exchange_once(
        &self,
        call: &Call,
        timeout: Option<Duration>,
    ) -> Result<reqwest::Response, Attempt> {
        let url = format!("{}{}", self.base(), call.target());
        let mut request = self.http.request(call.method.clone(), url);
        if let Some(timeout) = timeout {
            request = request.timeout(timeout);
        }
        if let Some(value) = self.authorization().map_err(Attempt::from)? {
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(body) = &call.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        if let Some(etag) = &call.if_match {
            request = request.header(IF_MATCH, etag);
        }
        if let Some(key) = &call.idempotency_key {
            request = request.header(IDEMPOTENCY_KEY, key);
        }
        if let Some(media_type) = call.accept {
            request = request.header(reqwest::header::ACCEPT, media_type);
        }
        if let Some(id) = &call.last_event_id {
            request = request.header("Last-Event-ID", id);
        }
        self.perform(request, call.method.as_str(), &call.target()).await
    }

    /// Sends a request, tells the observer, and makes errors of everything that is not a success.
    async fn perform(
        &self,
        request: reqwest::RequestBuilder,
        method: &str,
        shown: &str,
    ) -> Result<reqwest::Response, Attempt> {
        let started = Instant::now();
        let sent = request.send().await;
        if let Some(observer) = &self.settings.observer {
            let outcome = match &sent {
                Ok(response) => response.status().to_string(),
                Err(error) => error::text_of(error),
            };
            let request_id = sent.as_ref().map_or("", |response| text(response.headers(), &REQUEST_ID));
            let took = started.elapsed();
            observer(&Sent { method, path: shown, outcome: &outcome, request_id, took });
        }
        let response = sent.map_err(|error| {
            let socket = self.socket().map(|path| path.display().to_string());
            Attempt::unreachable(socket.as_deref().unwrap_or(self.base()), &error)
        })?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        if status.is_redirection() {
            let location = text(response.headers(), &LOCATION).to_owned();
            return Err(Error::Redirected { location }.into());
        }
        let retry_after = retry::retry_after(response.headers());
        let request_id = text(response.headers(), &REQUEST_ID).to_owned();
        let bytes = read(response, MOST_BYTES).await?;
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| ErrorBody {
            message: of_airflow::reason(&bytes).unwrap_or_else(|| unexplained(status, &request_id)),
            request_id,
            status_code: status.as_u16(),
            code: None,
            field_errors: None,
        });
        Err(Attempt { error: Error::Refused(body), was_sent: true, retry_after })
    }
}

/// A refusal without a reason: Podium gives one, and an id to every response.
fn unexplained(status: reqwest::StatusCode, request_id: &str) -> String {
    let said = format!("the server answered {status} and did not say why");
    if request_id.is_empty() { format!("{said}: it may not be a Podium server") } else { said }
}

/// Why one attempt failed, and what the decision to try again needs.
#[derive(Debug)]
struct Attempt {
    error: Error,
    /// Whether the server may have seen the request.
    was_sent: bool,
    /// When the server wants to be asked again.
    retry_after: Option<Duration>,
}

impl Attempt {
    fn unreachable(base: &str, error: &reqwest::Error) -> Self {
        let was_sent = !error.is_connect();
        let mut reason = error::text_of(error);
        if reason.contains("InvalidContentType") {
            reason = "it does not speak TLS, perhaps its URL begins with http://".to_owned();
        }
        let error = Error::Unreachable { url: base.to_owned(), reason };
        Self { error, was_sent, retry_after: None }
    }

    fn into_error(self) -> Error {
        self.error
    }
}

impl From<Error> for Attempt {
    fn from(error: Error) -> Self {
        Self { error, was_sent: true, retry_after: None }
    }
}

/// Reads a whole response, up to a number of bytes.
async fn read(mut response: reqwest::Response, most: usize) -> Result<Vec<u8>, Attempt> {
    let url = response.url().origin().ascii_serialization();
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| Attempt::unreachable(&url, &error))? {
        if bytes.len() + chunk.len() > most {
            return Err(Error::TooLarge { most }.into());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The URL of a server: scheme, host, and perhaps a path in front of everything.
fn base_url(text: &str) -> Result<Url> {
    let invalid = |why: &str| Error::Invalid(format!("{text:?} is not the URL of a server: {why}"));
    let url = Url::parse(text).map_err(|error| match text.contains("://") {
        true => invalid(&error.to_string()),
        false => invalid("it must begin with http:// or https://"),
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid("it must begin with http:// or https://"));
    }
    if url.query_pairs().next().is_some() || url.fragment().is_some() || !url.username().is_empty() {
        return Err(invalid("give scheme, host and port only"));
    }
    Ok(url)
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
