//! Connections to environments: pooled, streaming both ways, limited in size, time and number, and shared fairly among
//! callers.

mod tls;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use podium_api::{DeploymentId, SubjectId};
use podium_app::authority::Watch;
use podium_app::shared_capacity::{CapacityPermit, SharedCapacity};
use podium_dataplane::{Upstream, WebServer};
use podium_domain::{Refusal, UserText};
use quick_cache::sync::Cache;

use self::tls::Encrypted;
use crate::body::{self, Body, BodyError, RequestBody, whole};
use crate::errors::Failure;
use crate::respond::Passthrough;

/// The largest body that is forwarded to an environment.
pub(super) const BODY_LIMIT: u64 = 64 * 1024 * 1024;
/// How many requests to one environment run at once, shared fairly among callers.
const AT_ONCE: usize = 64;
const CONNECT: Duration = Duration::from_secs(3);
/// How long an environment may take to start responding.
const HEAD: Duration = Duration::from_secs(120);
/// How long a body may stall, in either direction.
const STILL: Duration = Duration::from_secs(300);
/// Shorter than Airflow keeps an idle connection open: otherwise requests would be sent into closed ones.
const IDLE: Duration = Duration::from_millis(1500);
const ENVIRONMENTS: usize = 10_000;
const LARGEST_PIECE: usize = 64 * 1024;

/// The connections to environments; clones share them.
#[derive(Clone)]
pub(super) struct Upstreams {
    plain: Client<HttpConnector, RequestBody>,
    /// By web server: two of the same name may be behind different certificates.
    encrypted: Arc<Cache<Upstream, Encrypted>>,
    running: Arc<Cache<DeploymentId, Arc<SharedCapacity<SubjectId>>>>,
    refused: Arc<AtomicU64>,
}

type Running = CapacityPermit<SubjectId>;

pub(super) struct Outgoing {
    pub(super) method: Method,
    pub(super) target: String,
    pub(super) headers: HeaderMap,
    pub(super) body: RequestBody,
    /// The caller: request and response bodies end when its rights change.
    pub(super) watch: Watch,
}

/// Why a body was not forwarded completely.
#[derive(Default)]
struct Ended {
    was_too_large: AtomicBool,
    has_lost_rights: AtomicBool,
}

impl Upstreams {
    pub(super) fn new() -> Self {
        Self {
            plain: pooled(connector()),
            encrypted: Arc::new(Cache::new(ENVIRONMENTS)),
            running: Arc::new(Cache::new(ENVIRONMENTS)),
            refused: Arc::default(),
        }
    }

    fn request(&self, upstream: &Upstream, request: Request<RequestBody>) -> Result<ResponseFuture, Failure> {
        let Some(tls) = &upstream.tls else { return Ok(self.plain.request(request)) };
        let client = self.encrypted.get_or_insert_with(upstream, || tls::client(tls)).map_err(|why| {
            tracing::error!(%upstream, %why, "the connection to an environment cannot be encrypted");
            let message = "The connection to the environment cannot be encrypted: the server's log says why.";
            Failure::later(StatusCode::BAD_GATEWAY, message, 30)
        })?;
        Ok(client.request(request))
    }

    /// Sends a request, and returns as soon as the environment starts to respond.
    pub(super) async fn send(
        &self,
        (id, subject_id): (DeploymentId, SubjectId),
        door: &WebServer,
        outgoing: Outgoing,
    ) -> Result<Response<Body>, Failure> {
        let running = self.run(id, subject_id)?;
        let (scheme, authority) = (door.upstream.scheme(), door.upstream.to_string());
        let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(outgoing.target);
        let uri = uri
            .build()
            .map_err(|_| Failure::new(StatusCode::BAD_REQUEST, "The path cannot be forwarded."))?;
        let (ended, watch) = (Arc::new(Ended::default()), outgoing.watch);
        // An empty body is sent as no body, so that the connection can be reused.
        let body = if outgoing.body.is_end_stream() {
            body::empty()
        } else {
            bounded(outgoing.body, watch.clone(), Arc::clone(&ended))
        };
        let mut request = Request::new(body);
        *request.method_mut() = outgoing.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = outgoing.headers;
        let response = match tokio::time::timeout(HEAD, self.request(&door.upstream, request)?).await {
            Ok(Ok(response)) => response,
            Ok(Err(_)) if ended.has_lost_rights.load(Ordering::Relaxed) => {
                let message = "Your rights changed while the body was arriving: send the request again.";
                return Err(Refusal::Forbidden(message.into()).into());
            }
            Ok(Err(_)) if ended.was_too_large.load(Ordering::Relaxed) => {
                let message = format!("The body is too large: at most {BODY_LIMIT} bytes are forwarded.");
                return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message));
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, %id, "an environment does not respond");
                let message = "The environment's web server does not respond: it may be restarting. See the deployment's \
                               status, or try again in a few seconds.";
                return Err(Failure::later(StatusCode::BAD_GATEWAY, message, 5));
            }
            Err(_) => {
                let told = "The environment did not start to respond within {} s.";
                let message = UserText::filled(told, &[&HEAD.as_secs()]);
                return Err(Failure::later(StatusCode::GATEWAY_TIMEOUT, message, 30));
            }
        };
        let (mut parts, incoming) = response.into_parts();
        parts.extensions.clear();
        parts.extensions.insert(Passthrough);
        let body = if incoming.is_end_stream() { whole("") } else { held(incoming, running, watch) };
        Ok(Response::from_parts(parts, body))
    }

    fn run(&self, id: DeploymentId, subject_id: SubjectId) -> Result<Running, Failure> {
        let new = || Ok::<_, Failure>(Arc::new(SharedCapacity::new(AT_ONCE)));
        let capacity = self.running.get_or_insert_with(&id, new)?;
        capacity.take(&[subject_id]).ok_or_else(|| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            let message = "Too many of your requests to this environment are running: read their \
                           responses, or try again in a second.";
            Failure::later(StatusCode::SERVICE_UNAVAILABLE, message, 1)
        })
    }

    /// How many requests were refused for lack of capacity.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_connect_timeout(Some(CONNECT));
    connector.set_nodelay(true);
    connector
}

/// A client that keeps connections open for the next requests.
fn pooled<C: Connect + Clone>(connector: C) -> Client<C, RequestBody> {
    Client::builder(TokioExecutor::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(AT_ONCE)
        .pool_timer(TokioTimer::new())
        // Backpressure: what the reader does not take stays in the environment.
        .http1_max_buf_size(LARGEST_PIECE)
        .build(connector)
}

/// A request body that aborts when it is too large, stalls or its caller loses rights.
fn bounded(body: RequestBody, watch: Watch, ended: Arc<Ended>) -> RequestBody {
    let frames = stream::try_unfold((body, watch, 0u64), move |(mut body, mut watch, read)| {
        let ended = Arc::clone(&ended);
        async move {
            let Some(next) = watched(&mut body, &mut watch).await else {
                ended.has_lost_rights.store(true, Ordering::Relaxed);
                return Err(lost_rights());
            };
            let Some(bytes) = next? else { return Ok(None) };
            let read = read + bytes.len() as u64;
            if read > BODY_LIMIT {
                ended.was_too_large.store(true, Ordering::Relaxed);
                return Err(BodyError::new("the body is too large"));
            }
            Ok(Some((Frame::data(bytes), (body, watch, read))))
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

/// A response body, which counts as running until it ends.
fn held(body: Incoming, running: Running, watch: Watch) -> Body {
    body::stream(stream::try_unfold((body, watch, running), |(mut body, mut watch, running)| async move {
        let next = watched(&mut body, &mut watch).await.ok_or_else(lost_rights)?;
        Ok(next?.map(|bytes| (bytes, (body, watch, running))))
    }))
}

/// The next chunk of a body; `None` once the caller's rights have changed.
async fn watched<B>(body: &mut B, watch: &mut Watch) -> Option<Result<Option<Bytes>, BodyError>>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    tokio::select! {
        biased;
        () = watch.ended() => None,
        next = next(body) => Some(next),
    }
}

fn lost_rights() -> BodyError {
    BodyError::new("the caller's rights have changed")
}

/// The next chunk of a body; trailers are not forwarded.
async fn next<B>(body: &mut B) -> Result<Option<Bytes>, BodyError>
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    loop {
        let frame = tokio::time::timeout(STILL, body.frame()).await;
        match frame.map_err(|_| BodyError::new("the body made no progress for too long"))? {
            None => return Ok(None),
            Some(frame) => {
                if let Ok(bytes) = frame.map_err(BodyError::new)?.into_data() {
                    return Ok(Some(bytes));
                }
            }
        }
    }
}
