//! From a request to its answer, whatever the request is.

mod answering;
mod built_in_pages;
mod metrics_page;
mod panics;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use http::header::ALLOW;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use matchit::Router;
use podium_api::openapi::PREFIX;
use podium_api::{FieldError, Id, SubjectId};
use podium_app::{App, caller, front_door};
use podium_dataplane::Planes;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::assets::Assets;
use crate::bind::Env;
use crate::body::{self, Body, RequestBody};
use crate::connections::Connections;
use crate::cors;
use crate::errors::Failure;
use crate::front_door::{DoorPage, FrontDoor, InboundRequest, ListenerKind};
use crate::in_process::InProcessCalls;
use crate::incoming::Incoming;
use crate::metrics::Meter;
use crate::pace::Pace;
use crate::pages::{self, Page};
use crate::peer::Peer;
use crate::planes::PlanesInScope;
use crate::respond;
use crate::response_cache::ResponseCache;
use crate::routes::{self, Route};
use crate::settings::Settings;
use crate::uploads;
use panics::Panics;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const API_VERSION: &str = "x-api-version";
const CURRENT_API_VERSION: &str = "1.0";
/// The size limit of headers; much larger ones are rejected before they get here.
const MAX_HEADERS: usize = 32 * 1024;

const ENVIRONMENTS: &str = "/airflow/";

/// The HTTP side of an application.
#[derive(Clone)]
pub struct Server(Arc<Shared>);

struct Shared {
    app: App,
    env: Arc<Env>,
    routes: Vec<Arc<Route>>,
    paths: Router<Target>,
    assets: Assets,
    connections: Arc<Connections>,
    compressing: Semaphore,
    pace: Pace,
    requests: AtomicU64,
    uploads: Meter,
    front_door: FrontDoor,
    forwarded: Meter,
    panics: Panics,
    seed: u64,
}

enum Target {
    /// Endpoints by method: indices of routes.
    Endpoints(Vec<usize>),
    /// A page for people or probes.
    Page(Page),
    /// Where archives are uploaded to.
    Uploads,
}

impl Server {
    /// Binds every endpoint and page.
    pub fn new(app: App, planes: Planes, settings: Settings) -> Self {
        let connections = Connections::new(&settings);
        // One core is left for requests, where there are several.
        let compressing = std::thread::available_parallelism().map_or(1, |all| (all.get() - 1).max(1));
        let pace = Pace { bytes: settings.upload_floor, within: settings.upload_idle_timeout };
        let env = Arc::new(Env {
            settings,
            response_cache: ResponseCache::default(),
            stopping: watch::Sender::new(false),
        });
        let routes: Vec<Arc<Route>> = routes::all(&env).into_iter().map(Arc::new).collect();
        let mut paths = Router::new();
        for (path, indices) in routes::by_path(&routes) {
            for prefix in [PREFIX, ""] {
                let target = Target::Endpoints(indices.clone());
                paths.insert(format!("{prefix}{path}"), target).expect("paths of endpoints do not collide");
            }
        }
        for prefix in [PREFIX, ""] {
            let path = format!("{prefix}{}", podium_api::uploads::PATH);
            paths.insert(path, Target::Uploads).expect("paths of uploads do not collide");
        }
        for (path, page) in pages::PATHS {
            paths.insert(*path, Target::Page(*page)).expect("paths of pages do not collide");
        }
        // An application with several servers has the same endpoints on all of them.
        let endpoints = Arc::new(InProcessCalls::new(routes.clone()));
        let _ = app.calls.set(Arc::clone(&endpoints) as _);
        let planes = PlanesInScope::new(planes);
        let _ = app.observer.set(Arc::new(planes.clone()));
        let api_url = format!("{}{PREFIX}", app.config.public_url);
        let mut seed = [0; 8];
        app.world.fill(&mut seed);
        let seed = u64::from_le_bytes(seed);
        let front_door = FrontDoor::new(app.clone(), planes, endpoints, &env.settings);
        Self(Arc::new(Shared {
            app,
            env,
            routes,
            paths,
            assets: Assets::new(api_url),
            connections: Arc::new(connections),
            compressing: Semaphore::new(compressing),
            pace,
            requests: AtomicU64::new(0),
            uploads: Meter::default(),
            front_door,
            forwarded: Meter::default(),
            panics: Panics::watch(),
            seed,
        }))
    }

    pub fn settings(&self) -> &Settings {
        &self.0.env.settings
    }

    pub fn app(&self) -> &App {
        &self.0.app
    }

    /// Ends open-ended responses.
    pub(crate) fn stop(&self) {
        self.0.env.stopping.send_replace(true);
    }

    /// Turns true once the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.0.env.stopping.subscribe()
    }

    pub(crate) fn connections(&self) -> &Arc<Connections> {
        &self.0.connections
    }

    /// Permits to compress large responses.
    pub(crate) fn compressing(&self) -> &Semaphore {
        &self.0.compressing
    }

    /// Handles a request from `peer`.
    pub async fn call<B>(&self, request: Request<B>, peer: SocketAddr) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        self.answer(ListenerKind::Main, request, Arc::new(Peer::new(peer, None, None))).await
    }

    /// Handles a request from `peer` to an environment's own port.
    pub async fn call_on_port<B>(&self, port: u16, request: Request<B>, peer: SocketAddr) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        self.answer(ListenerKind::Port(port), request, Arc::new(Peer::new(peer, None, None))).await
    }

    pub(crate) async fn answer<B>(
        &self,
        listener: ListenerKind,
        request: Request<B>,
        peer: Arc<Peer>,
    ) -> Response<Body>
    where
        B: hyper::body::Body<Data = Bytes> + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let is_read = parts.method == Method::GET || parts.method == Method::HEAD;
        let body = if is_read {
            body::empty()
        } else {
            body::request_body(body, self.0.pace, peer.connection.clone())
        };
        let request_id = self.request_id(&parts);
        let address = self.client_address(&parts, peer.address.ip());
        let own = self.0.front_door.own_origin(listener, &parts);
        let allowed = || cors::allowed(&self.0.env.settings.cors_origins, &parts.headers);
        let origin = if own.is_some() { None } else { allowed() };
        let (method, path) = (parts.method.clone(), parts.uri.path().to_owned());
        let preflight = origin.as_ref().and_then(|origin| cors::preflight(&method, &parts.headers, origin));
        let answering =
            self.answering((parts, body), (address, peer), (preflight, own), (&request_id, started));
        let (answered, caller) = caller::noting(answering).await;
        let (operation, mut response) =
            answered.unwrap_or_else(|failure| ("", failure.into_response(&request_id)));
        if method == Method::HEAD {
            response = respond::head_of(response);
        }
        if let Ok(id) = HeaderValue::from_str(&request_id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        if let Some(origin) = origin {
            cors::permit(&mut response, origin);
        }
        let user = caller.as_ref().map_or("", SubjectId::as_str);
        let (status, micros) = (response.status().as_u16(), started.elapsed().as_micros() as u64);
        if pages::PROBES.contains(&path.as_str()) {
            // Probes call every few seconds, and nobody reads the log of that.
            tracing::debug!(target: "podium::request", %method, path, status, micros, %address, request_id);
        } else {
            tracing::info!(
                target: "podium::request", %method, path, operation, status, micros, %address, user, request_id,
            );
        }
        response
    }

    fn inbound(
        &self,
        parts: Parts,
        (address, peer): (IpAddr, Arc<Peer>),
        request_id: &str,
    ) -> InboundRequest {
        InboundRequest {
            parts,
            address,
            peer,
            request_id: request_id.to_owned(),
            now: self.0.app.world.now(),
        }
    }

    async fn dispatch(
        &self,
        mut parts: Parts,
        body: RequestBody,
        from: (IpAddr, Arc<Peer>),
        request_id: &str,
        started: Instant,
    ) -> (&'static str, Response<Body>) {
        let shared = &self.0;
        let fail = |failure: Failure| ("", failure.into_response(request_id));
        let size: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if size > MAX_HEADERS {
            let message = format!("The headers are too large: at most {MAX_HEADERS} bytes are read.");
            return fail(Failure::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, message));
        }
        if parts.uri.path().starts_with(ENVIRONMENTS) {
            let passing = Box::pin(shared.front_door.in_place(self.inbound(parts, from, request_id), body));
            return (
                front_door::OPERATION_ID,
                self.counted(&shared.forwarded, passing, request_id, started).await,
            );
        }
        if let Some(page) = DoorPage::at(parts.uri.path()) {
            let answering = shared.front_door.page(page, self.inbound(parts, from, request_id), body);
            return ("", Box::pin(answering).await);
        }
        let (address, peer) = from;
        // HEAD gets the head of the same response as GET.
        if parts.method == Method::HEAD {
            parts.method = Method::GET;
        }
        let Ok(found) = shared.paths.at(parts.uri.path()) else {
            let message = "There is no resource at this path: see /docs for the API.";
            return fail(Failure::new(StatusCode::NOT_FOUND, message));
        };
        let indices = match found.value {
            Target::Endpoints(indices) => indices,
            Target::Page(page) => {
                return ("", Box::pin(self.page(*page, &parts, (address, &peer), request_id)).await);
            }
            Target::Uploads => {
                let deploy_id = found.params.get("deployId").unwrap_or_default();
                let uploading = Box::pin(self.upload(&parts, deploy_id, body, request_id));
                let response = self.counted(&shared.uploads, uploading, request_id, started).await;
                return (podium_api::uploads::ID, response);
            }
        };
        let Some(route) = indices
            .iter()
            .map(|index| &shared.routes[*index])
            .find(|route| route.endpoint.method.as_str() == parts.method)
        else {
            let allowed: Vec<&str> =
                indices.iter().map(|index| shared.routes[*index].endpoint.method.as_str()).collect();
            return ("", method_not_allowed(&allowed.join(", "), request_id));
        };
        if let Some(failure) = wrong_version(&parts) {
            return fail(failure);
        }
        // A malformed id matches nothing: it is looked up and not found, like any other.
        let nowhere = Id::from_parts(0, 0, 0);
        let ids = found.params.iter().map(|(_, text)| text.parse().unwrap_or(nowhere)).collect();
        let mut incoming =
            Incoming::new(shared.app.clone(), parts, ids, address, request_id.to_owned(), body);
        incoming.connection.clone_from(&peer.connection);
        let answering = async {
            let answer = Box::pin(route.handler.handle(incoming)).await;
            answer.unwrap_or_else(|failure| failure.into_response(request_id))
        };
        let response = self.counted(&route.meter, answering, request_id, started).await;
        (route.endpoint.id, response)
    }

    async fn upload(
        &self,
        parts: &Parts,
        deploy_id: &str,
        body: RequestBody,
        request_id: &str,
    ) -> Response<Body> {
        if parts.method != Method::PUT {
            return method_not_allowed("PUT", request_id);
        }
        if let Some(failure) = wrong_version(parts) {
            return failure.into_response(request_id);
        }
        let answer = uploads::receive(&self.0.app, self.settings(), parts, deploy_id, body).await;
        answer.unwrap_or_else(|failure| failure.into_response(request_id))
    }

    /// The client's own id if it is valid, a new one otherwise.
    fn request_id(&self, parts: &Parts) -> String {
        let sane = |id: &&str| {
            (1..=128).contains(&id.len())
                && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        let given = parts.headers.get(REQUEST_ID).and_then(|value| value.to_str().ok()).filter(sane);
        given.map(str::to_owned).unwrap_or_else(|| {
            // Unlike others, and no secret: a counter, spread by a seed of this process.
            let count = self.0.requests.fetch_add(1, Ordering::Relaxed);
            let bytes = xxh3_128_with_seed(&count.to_le_bytes(), self.0.seed).to_le_bytes();
            uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
        })
    }

    /// The nearest address that is not a trusted proxy.
    fn client_address(&self, parts: &Parts, peer: IpAddr) -> IpAddr {
        let trusted = &self.0.env.settings.trusted_proxies;
        let is_trusted =
            |address: IpAddr| trusted.iter().any(|range| range.contains(&address.to_canonical()));
        if !is_trusted(peer) {
            return peer.to_canonical();
        }
        let headers = parts.headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
        let hops: Vec<&str> = headers.flat_map(|value| value.split(',')).map(str::trim).collect();
        let mut client = peer;
        for hop in hops.into_iter().rev() {
            let Ok(address) = hop.parse::<IpAddr>() else { break };
            client = address;
            if !is_trusted(address) {
                break;
            }
        }
        client.to_canonical()
    }

    /// The OpenAPI document as it is served.
    pub fn openapi(&self) -> Value {
        serde_json::from_slice(&self.0.assets.openapi().plain).unwrap_or_default()
    }
}

fn method_not_allowed(allowed: &str, request_id: &str) -> Response<Body> {
    let message = format!("This path supports {allowed} only.");
    let mut response = Failure::new(StatusCode::METHOD_NOT_ALLOWED, message).into_response(request_id);
    if let Ok(allowed) = HeaderValue::from_str(allowed) {
        response.headers_mut().insert(ALLOW, allowed);
    }
    response
}

fn wrong_version(parts: &Parts) -> Option<Failure> {
    let version = parts.headers.get(API_VERSION)?;
    if version == CURRENT_API_VERSION {
        return None;
    }
    let message = format!("must be {CURRENT_API_VERSION}");
    Some(Failure::fields(vec![FieldError::new("X-API-Version", "enum", message)]))
}
