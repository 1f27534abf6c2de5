//! The front door of environments: their pages and their API, through the control plane and through nothing else.
//!
//! Two ways lead to an environment. A program shows its token at the control plane's own URL and is answered in place;
//! nothing that is answered there can act as the console. A browser goes to the environment's own origin, with a
//! one-time code, and holds a pass there that opens this one environment. Either way every request is judged by the
//! tables of `podium_domain::airflow` before anything is sent on, and what belongs to the control plane (tokens,
//! cookies, forwarding headers) stays on its side.

mod cookies;
mod headers;
mod isolation;
mod notice;
mod own_origin;
mod passage;
pub(crate) mod sign_in;
mod tags;
mod upstream;

use std::net::IpAddr;
use std::sync::Arc;

use http::header::{ACCEPT, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use podium_api::Timestamp;
use podium_app::front_door::Shown;
use podium_app::{App, Error, Unauthenticated};
use podium_dataplane::DataPlane;

use crate::body::{Body, Unread, whole};
use crate::errors::Failure;
use crate::incoming::bearer;

/// The environments, from the outside.
pub(crate) struct FrontDoor {
    app: App,
    plane: Arc<dyn DataPlane>,
    upstream: upstream::Upstream,
    tags: tags::Tags,
}

/// Which listener a request came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// The control plane's.
    Main,
    /// An environment's own port.
    Port(u16),
}

/// A request before the door; its body comes after it.
pub(crate) struct Knock {
    pub(crate) parts: Parts,
    pub(crate) address: IpAddr,
    pub(crate) request_id: String,
    pub(crate) now: Timestamp,
}

/// Where a request is answered.
#[derive(Clone, Debug)]
enum Place {
    /// At the control plane's own URL.
    Console,
    /// At the environment's own origin.
    Own {
        /// The origin.
        origin: String,
    },
}

type Answer = Result<Response<Body>, Failure>;

impl Knock {
    fn path(&self) -> &str {
        self.parts.uri.path()
    }

    /// Path and query, as they were sent.
    fn target(&self) -> &str {
        self.parts.uri.path_and_query().map_or("/", |target| target.as_str())
    }

    /// Whether a person looks at the answer.
    fn wants_page(&self) -> bool {
        let is_read = self.parts.method == Method::GET || self.parts.method == Method::HEAD;
        is_read && accepts_pages(&self.parts.headers)
    }
}

impl FrontDoor {
    pub(crate) fn new(app: App, plane: Arc<dyn DataPlane>) -> Self {
        Self { app, plane, upstream: upstream::Upstream::new(), tags: tags::Tags::default() }
    }

    /// What the environments of this machine take. Measuring reads files, so it is done where nobody waits with it.
    pub(crate) async fn vitals(&self) -> Vec<podium_dataplane::Vitals> {
        let plane = Arc::clone(&self.plane);
        tokio::task::spawn_blocking(move || plane.vitals()).await.unwrap_or_default()
    }

    /// Answers a request below `/airflow/` at the control plane's own URL.
    pub(crate) async fn in_place(&self, knock: Knock, body: Unread) -> Response<Body> {
        let (request_id, wants_page) = (knock.request_id.clone(), knock.wants_page());
        let answer = self.at_the_console(knock, body).await;
        answer.unwrap_or_else(|failure| notice::refusal(failure, wants_page, &request_id))
    }

    async fn at_the_console(&self, knock: Knock, body: Unread) -> Answer {
        let (namespace, rest) = split(knock.path()).unwrap_or_default();
        let (namespace, rest) = (namespace.to_owned(), rest.to_owned());
        if let Some(token) = bearer(&knock.parts.headers) {
            let token = token?.to_owned();
            let deployment = self.app.deployment_in(&namespace).await?;
            return self.pass((knock, body), Place::Console, Shown::Token(&token), deployment, &rest).await;
        }
        if !knock.wants_page() || !isolation::is_navigation(&knock.parts.headers) {
            return Err(Error::Unauthenticated(Unauthenticated::Missing).into());
        }
        self.lead_to_own_origin(&knock, &namespace).await
    }

    /// Sends a browser to the environment's own origin, by way of signing in where it has not.
    async fn lead_to_own_origin(&self, knock: &Knock, namespace: &str) -> Answer {
        let to_sign_in = || redirect(&sign_in::leading_to(knock.target()));
        let name = cookies::session_name(self.app.public_url().is_encrypted());
        let Some(token) = cookies::find(&knock.parts.headers, name) else { return to_sign_in() };
        let deployment = self.app.deployment_in(namespace).await?;
        let counted = Some(podium_api::Method::Get);
        let admitted =
            self.app.admit(Shown::Token(token), deployment, knock.address, counted, knock.now).await;
        let visitor = match admitted {
            Err(Error::Unauthenticated(_)) => return to_sign_in(),
            admitted => admitted?,
        };
        passage::may_see_pages(&visitor)?;
        let way = self.app.way_in(&visitor.authority, &visitor.deployment, knock.target(), knock.now).await?;
        redirect(&way)
    }
}

/// The namespace and what follows it in a path below `/airflow/`.
fn split(path: &str) -> Option<(&str, &str)> {
    let below = path.strip_prefix("/airflow/")?;
    Some(below.find('/').map_or((below, ""), |at| below.split_at(at)))
}

/// Somewhere else; nobody keeps the way.
fn redirect(to: &str) -> Answer {
    let mut response = Response::new(whole(""));
    *response.status_mut() = StatusCode::SEE_OTHER;
    let to = HeaderValue::from_str(to)
        .map_err(|_| Failure::new(StatusCode::BAD_REQUEST, "The path cannot be written in a header."))?;
    response.headers_mut().insert(LOCATION, to);
    headers::never_keep(response.headers_mut());
    Ok(response)
}

fn accepts_pages(headers: &HeaderMap) -> bool {
    headers
        .get(ACCEPT)
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("text/html"))
}
