//! The front door of environments: the only way to their pages and their API is through the control plane.
//!
//! There are two ways to an environment. A program sends its token to the control plane's own URL and gets its
//! response there; no response served there can act as the console. A browser goes to the environment's own origin
//! with a one-time code, and gets a pass there that gives access to this one environment. Either way every request is
//! checked against the tables of `podium_domain::airflow` before anything is forwarded, and what belongs to the
//! control plane (tokens, cookies, forwarding headers) never reaches the environment.

mod console;
mod console_airflow;
mod console_pages;
mod cookies;
mod device;
mod forward;
mod headers;
mod isolation;
mod notice;
mod own_origin;
mod sign_in;
mod sign_out;
mod tags;
mod upstream;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, LOCATION, USER_AGENT};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use podium_api::{Description, Timestamp};
use podium_app::front_door::PresentedCredential;
use podium_app::{App, Error, Request, Unauthenticated};
use podium_console::door::SignOut;

pub(crate) use own_origin::OwnOrigin;

use crate::body::{Body, RequestBody, whole};
use crate::errors::Failure;
use crate::in_process::InProcessCalls;
use crate::incoming::bearer;
use crate::peer::Peer;
use crate::planes::PlanesInScope;
use crate::settings::Settings;

const LONGEST_USER_AGENT: usize = 512;

pub(crate) struct FrontDoor {
    app: App,
    planes: PlanesInScope,
    upstreams: upstream::Upstreams,
    tags: tags::Tags,
    /// The endpoints, for the pages of the console.
    endpoints: Arc<InProcessCalls>,
    /// How long a form may take to arrive.
    form_timeout: Duration,
    /// How long a page of the console waits for what it asks of an environment.
    airflow_timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListenerKind {
    /// The control plane's.
    Main,
    Port(u16),
}

/// A page that the front door has at the control plane's own URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoorPage {
    SignIn,
    SignOut,
    /// Where a person approves the sign-in of a terminal.
    Device,
    Console,
    /// Leads to a deployment in the console.
    Deployment,
}

impl DoorPage {
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            sign_in::PATH => Some(Self::SignIn),
            sign_out::PATH => Some(Self::SignOut),
            device::PATH => Some(Self::Device),
            path if console_pages::is_of_console(path) => Some(Self::Console),
            path => path.starts_with(console::DEPLOYMENTS).then_some(Self::Deployment),
        }
    }
}

/// A request at the front door, without its body.
pub(crate) struct InboundRequest {
    pub(crate) parts: Parts,
    pub(crate) address: IpAddr,
    pub(crate) peer: Arc<Peer>,
    pub(crate) request_id: String,
    pub(crate) now: Timestamp,
}

#[derive(Clone, Debug)]
enum Place {
    /// At the control plane's own URL.
    Console,
    Own {
        origin: String,
    },
}

type HttpResult = Result<Response<Body>, Failure>;

impl InboundRequest {
    fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// Path and query, as they were sent.
    fn target(&self) -> &str {
        self.parts.uri.path_and_query().map_or("/", |target| target.as_str())
    }

    /// The request's metadata, as a call of the given endpoint.
    fn request(&self, endpoint: &'static Description) -> Request {
        Request {
            endpoint,
            id: self.request_id.clone(),
            path: self.path().to_owned(),
            address: self.address,
            user_agent: self.user_agent(),
            if_match: None,
            last_event_id: None,
            idempotency: None,
            audited_body: None,
            session: None,
            now: self.now,
        }
    }

    fn user_agent(&self) -> String {
        let text = self.parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        text.unwrap_or_default().chars().take(LONGEST_USER_AGENT).collect()
    }

    /// Whether it may change something.
    fn is_unsafe(&self) -> bool {
        self.parts.method != Method::GET && self.parts.method != Method::HEAD
    }

    /// Whether a person will see the response.
    fn wants_page(&self) -> bool {
        !self.is_unsafe() && accepts_pages(&self.parts.headers)
    }
}

impl FrontDoor {
    pub(crate) fn new(
        app: App,
        planes: PlanesInScope,
        endpoints: Arc<InProcessCalls>,
        settings: &Settings,
    ) -> Self {
        let (upstreams, tags) = (upstream::Upstreams::new(), tags::Tags::default());
        let (form_timeout, airflow_timeout) =
            (settings.public_body_timeout, settings.console_airflow_timeout);
        Self { app, planes, upstreams, tags, endpoints, form_timeout, airflow_timeout }
    }

    /// How many requests were refused because their caller already had its share running.
    pub(crate) fn refused(&self) -> u64 {
        self.upstreams.refused()
    }

    /// Resource usage of this machine's environments.
    pub(crate) async fn vitals(&self) -> Vec<podium_dataplane::EnvironmentMetrics> {
        self.planes.vitals().await
    }

    /// Answers at one of its own pages at the control plane's URL.
    pub(crate) async fn page(
        &self,
        page: DoorPage,
        inbound: InboundRequest,
        body: RequestBody,
    ) -> Response<Body> {
        // All but one are for people only.
        let wants_page = page != DoorPage::Deployment || inbound.wants_page();
        let (request_id, method) = (inbound.request_id.clone(), inbound.parts.method.clone());
        let answer = match (page, method) {
            (DoorPage::Console, _) => self.show_console(inbound, body).await,
            (DoorPage::Deployment, _) => self.show_deployment(&inbound).await,
            (DoorPage::SignIn, Method::GET | Method::HEAD) => self.offer(&inbound).await,
            (DoorPage::SignIn, Method::POST) => self.receive(inbound, body).await,
            (DoorPage::SignOut, Method::GET | Method::HEAD) => Ok(notice::form(&SignOut, "'self'")),
            (DoorPage::SignOut, Method::POST) => self.end_session(&inbound).await,
            (DoorPage::Device, Method::GET | Method::HEAD) => self.ask_for_decision(&inbound).await,
            (DoorPage::Device, Method::POST) => self.take_decision(&inbound, body).await,
            _ => Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, "This path supports GET and POST only.")),
        };
        answer.unwrap_or_else(|failure| notice::refusal(failure, wants_page, &request_id))
    }

    /// Handles a request below `/airflow/` at the control plane's own URL.
    pub(crate) async fn in_place(&self, inbound: InboundRequest, body: RequestBody) -> Response<Body> {
        let (request_id, wants_page) = (inbound.request_id.clone(), inbound.wants_page());
        let answer = self.at_the_console(inbound, body).await;
        answer.unwrap_or_else(|failure| notice::refusal(failure, wants_page, &request_id))
    }

    async fn at_the_console(&self, inbound: InboundRequest, body: RequestBody) -> HttpResult {
        let (namespace, rest) = split(inbound.path()).unwrap_or_default();
        let (namespace, rest) = (namespace.to_owned(), rest.to_owned());
        if let Some(token) = bearer(&inbound.parts.headers) {
            let token = token?.to_owned();
            let deployment = self.app.deployment_in(&namespace).await?;
            return self
                .forward(
                    (inbound, body),
                    Place::Console,
                    PresentedCredential::Token(&token),
                    deployment,
                    &rest,
                )
                .await;
        }
        if !inbound.wants_page() || !isolation::is_navigation(&inbound.parts.headers) {
            return Err(Error::Unauthenticated(Unauthenticated::Missing).into());
        }
        self.redirect_to_own_origin(&inbound, &namespace).await
    }
}

/// The namespace and what follows it in a path below `/airflow/`.
fn split(path: &str) -> Option<(&str, &str)> {
    let below = path.strip_prefix("/airflow/")?;
    Some(below.find('/').map_or((below, ""), |at| below.split_at(at)))
}

/// A redirect that must not be cached.
fn redirect(to: &str) -> HttpResult {
    let mut response = Response::new(whole(""));
    *response.status_mut() = StatusCode::SEE_OTHER;
    let to = HeaderValue::from_str(to)
        .map_err(|_| Failure::new(StatusCode::BAD_REQUEST, "The path cannot be sent in a header."))?;
    response.headers_mut().insert(LOCATION, to);
    headers::set_no_store(response.headers_mut());
    Ok(response)
}

fn accepts_pages(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}
