//! Calls that are made in this process, by plans and by the console: routed and handled like those that come over a
//! connection.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ETAG, IF_MATCH, USER_AGENT};
use http::{HeaderValue, Request, Response, StatusCode};
use matchit::Router;
use podium_api::enums::ErrorCode;
use podium_api::{Description, ErrorBody, Id};
use podium_app::plans::{Calls, Found, Handled, JoinedCall};
use serde_json::Value;

use crate::body::Body;
use crate::errors::Failure;
use crate::incoming::Incoming;
use crate::routes::{self, Route};

/// The endpoints, by path.
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

    /// The route of a method and path, and the ids in the path.
    pub(crate) fn find_route(&self, method: &str, path: &str) -> Option<(Arc<Route>, Vec<Id>)> {
        self.route(method, path).map(|(index, ids)| (Arc::clone(&self.routes[index]), ids))
    }

    /// The route of an endpoint.
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
        let found = self.find_route(call.method, &call.path);
        Box::pin(async move {
            let request_id = call.request_id.clone();
            let answer = match (found, head(&call)) {
                (Some((route, ids)), Ok(parts)) => {
                    let body = call.body.as_ref().map(Value::to_string).unwrap_or_default();
                    let from = (call.address, call.request_id, call.now);
                    let incoming = Incoming::joined(call.app, parts, ids, from, Bytes::from(body));
                    route.handler.handle_joined(incoming, call.authority).await
                }
                (None, _) => Err(Failure::new(StatusCode::NOT_FOUND, "There is no resource at this path.")),
                (_, Err(_)) => Err(Failure::new(StatusCode::BAD_REQUEST, "The call is not a request.")),
            };
            match answer {
                Err(failure) if failure.is_stale => Handled::Stale,
                Err(failure) => refused(failure.into_response(&request_id)),
                Ok(response) => done(response),
            }
        })
    }
}

/// The head of the request that a call stands for.
fn head(call: &JoinedCall) -> Result<http::request::Parts, http::Error> {
    let mut request = Request::builder().method(call.method).uri(&call.path);
    if let Ok(agent) = HeaderValue::from_str(&call.user_agent) {
        request = request.header(USER_AGENT, agent);
    }
    if let Some(version) = &call.if_match {
        request = request.header(IF_MATCH, version);
    }
    if let Some(key) = &call.kept_under {
        request = request.extension(key.clone());
    }
    Ok(request.body(())?.into_parts().0)
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
