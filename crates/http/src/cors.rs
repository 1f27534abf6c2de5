//! CORS: pages of other origins get no CORS headers unless the operator has listed the origin.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use crate::body::{Body, whole};

/// The origin of a request, if its pages may call.
pub(crate) fn allowed(origins: &[String], headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()).then(|| origin.clone())
}

/// The answer to a browser that asks before it calls.
pub(crate) fn preflight(
    method: &Method,
    headers: &HeaderMap,
    origin: &HeaderValue,
) -> Option<Response<Body>> {
    if *method != Method::OPTIONS || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = Response::new(whole(""));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let answer = response.headers_mut();
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
    let asked =
        "authorization, content-type, idempotency-key, if-match, if-none-match, x-api-version, x-request-id";
    answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(asked));
    answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("3600"));
    permit(&mut response, origin.clone());
    Some(response)
}

/// Lets the page see the answer.
pub(crate) fn permit(response: &mut Response<Body>, origin: HeaderValue) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    let shown = "etag, podium-operation, retry-after, x-request-id";
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(shown));
    headers.append(VARY, HeaderValue::from_static("origin"));
}
