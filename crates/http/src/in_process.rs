//! Calls that are made in this process: handled like those that come over a connection. Plans name what they call by its
//! path, and the console by its endpoint.

use std::pin::Pin;
use std::sync::Arc;

use http::header::{ETAG, IF_MATCH, USER_AGENT};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use matchit::Router;
use podium_api::enums::ErrorCode;
use podium_api::{Description, ErrorBody, Id};
use podium_app::plans::{Calls, Found, Handled, JoinedCall};
use serde_json::Value;

use crate::body::Body;
use crate::errors::Failure;
use crate::incoming::{Given, Incoming};
use crate::routes::{self, Route};

pub(crate) struct InProcessCalls {
    routes: Vec<Arc<Route>>,
    paths: Router<Vec<usize>>,
}

impl InProcessCalls {
    pub(crate) fn new(routes: Vec<Arc<Route>>) -> Self {
        let mut paths = Router::new();
        for (path, indices) in routes::by_path(&routes) {
            paths.insert(path, indices).expect("paths of endpoints do not collide");
        }
        Self { routes, paths }
    }

    pub(crate) fn route_of(&self, endpoint: &'static Description) -> Option<&Arc<Route>> {
        self.routes.iter().find(|route| route.endpoint.id == endpoint.id)
    }

    /// The index of the route of a method and path, and the ids in the path.
    fn route(&self, method: &str, path: &str) -> Option<(usize, Vec<Id>)> {
        let found = self.paths.at(path.split('?').next()?).ok()?;
        let is_of = |index: &&usize| self.routes[**index].endpoint.method.as_str() == method;
        let index = *found.value.iter().find(is_of)?;
        // A malformed id is of nothing: it is looked up and not found, like any other.
        let nowhere = Id::from_parts(0, 0, 0);
        Some((index, found.params.iter().map(|(_, text)| text.parse().unwrap_or(nowhere)).collect()))
    }
}

impl Calls for InProcessCalls {
    fn find(&self, method: &str, path: &str) -> Option<Found> {
        let (index, ids) = self.route(method, path)?;
        Some(Found { endpoint: self.routes[index].endpoint, first_id: ids.first().copied() })
    }

    fn handle(&self, call: JoinedCall) -> Pin<Box<dyn Future<Output = Handled> + Send>> {
        let found = self.route(call.method, &call.path);
        let found = found.map(|(index, ids)| (Arc::clone(&self.routes[index]), ids));
        Box::pin(async move {
            let request_id = call.request_id.clone();
            let answer = match (found, head(&call)) {
                (Some((route, ids)), Ok(parts)) => {
                    let given = Given { query: None, body: call.body.unwrap_or_default() };
                    let from = (call.address, call.request_id, call.now);
                    let incoming = Incoming::joined(call.app, parts, ids, from, given);
                    route.handler.handle_joined(incoming, call.authority).await
                }
                (None, _) => Err(Failure::new(StatusCode::NOT_FOUND, "There is no resource at this path.")),
                (_, Err(failure)) => Err(failure),
            };
            match answer {
                Err(failure) if failure.is_stale => Handled::Stale,
                Err(failure) => refused(failure.into_response(&request_id)),
                Ok(response) => done(response),
            }
        })
    }
}

/// The head of the request that a planned call stands for.
fn head(call: &JoinedCall) -> Result<http::request::Parts, Failure> {
    let mut parts = parts(call.method, &call.path, (&call.user_agent, call.if_match.as_deref()))?;
    if let Some(key) = &call.kept_under {
        parts.extensions.insert(key.clone());
    }
    Ok(parts)
}

/// What the head of a request would be; its path is what the audit log shows.
pub(crate) fn parts(
    method: &str,
    path: &str,
    (user_agent, if_match): (&str, Option<&str>),
) -> Result<Parts, Failure> {
    let mut request = Request::builder().method(method).uri(path);
    if let Ok(agent) = HeaderValue::from_str(user_agent) {
        request = request.header(USER_AGENT, agent);
    }
    if let Some(version) = if_match {
        request = request.header(IF_MATCH, version);
    }
    let request = request.body(());
    let wrong = |_| Failure::new(StatusCode::BAD_REQUEST, "The call is not a request.");
    Ok(request.map_err(wrong)?.into_parts().0)
}

fn done(response: Response<Body>) -> Handled {
    let (parts, body) = response.into_parts();
    let version = parts.headers.get(ETAG).and_then(|tag| tag.to_str().ok());
    let version = version.and_then(|tag| tag.trim_start_matches('"').split('-').next()?.parse().ok());
    Handled::Done { status: parts.status.as_u16(), version, body: json(body) }
}

fn refused(response: Response<Body>) -> Handled {
    let status_code = response.status().as_u16();
    let body = json(response.into_body()).and_then(|body| serde_json::from_value(body).ok());
    Handled::Refused(body.unwrap_or_else(|| ErrorBody {
        message: "The call failed.".to_owned(),
        request_id: String::new(),
        status_code,
        code: Some(ErrorCode::of_status(status_code).to_string()),
        field_errors: None,
    }))
}

fn json(body: Body) -> Option<Value> {
    if let Body::Whole(bytes) = body { serde_json::from_slice(&bytes).ok() } else { None }
}
