//! Everything that is not an endpoint: pages for browsers, responses to probes.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use podium_app::secrets::sha256_base64;
use podium_console::door::{AcceptInvite, DoorPage};
use podium_domain::environment_objects::auth_types;
use serde_json::json;

use crate::body::{Body, whole};

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// A page that is not an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Page {
    Home,
    OpenApi,
    Docs,
    DocsScript,
    AuthTypes,
    Keys,
    Alive,
    Ready,
    Metrics,
    AcceptInvite,
    Picture,
}

pub(crate) const PATHS: &[(&str, Page)] = &[
    ("/", Page::Home),
    ("/openapi.json", Page::OpenApi),
    ("/docs", Page::Docs),
    ("/docs/reference.js", Page::DocsScript),
    (auth_types::LISTED_AT, Page::AuthTypes),
    ("/.well-known/jwks.json", Page::Keys),
    ("/healthz", Page::Alive),
    ("/readyz", Page::Ready),
    ("/metrics", Page::Metrics),
    ("/accept-invite", Page::AcceptInvite),
    ("/pictures/{initials}", Page::Picture),
];

/// Paths that monitoring calls all the time.
pub(crate) const PROBES: &[&str] = &["/healthz", "/readyz", "/metrics"];

fn of_type(media: &'static str, bytes: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(whole(bytes));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

pub(crate) fn json(bytes: impl Into<Bytes>) -> Response<Body> {
    of_type("application/json", bytes)
}

/// Plain text, as Prometheus reads it.
pub(crate) fn text(text: String) -> Response<Body> {
    of_type("text/plain; version=0.0.4", text)
}

/// A page around the console. Its forms are sent to the given targets only, and it is shown in no frame.
pub(crate) fn page(page: &impl DoorPage, form_targets: &str) -> Response<Body> {
    let mut response = of_type("text/html; charset=utf-8", page.html());
    protect(response.headers_mut(), "", form_targets);
    response
}

fn protect(headers: &mut HeaderMap, scripts: &str, form_targets: &str) {
    let policy = format!(
        "default-src 'none'; {scripts}style-src 'self'; img-src 'self'; form-action {form_targets}; base-uri 'none'; \
         frame-ancestors 'none'"
    );
    // In the place of one that is there: a browser obeys all that it gets.
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
}

pub(crate) fn redirect(to: &'static str) -> Response<Body> {
    let mut response = Response::new(whole(""));
    *response.status_mut() = StatusCode::FOUND;
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(to));
    response
}

/// A picture that was drawn. It is the same for everybody and for ever, and whatever shows it, it does nothing.
pub(crate) fn picture(svg: String) -> Response<Body> {
    let mut response = of_type("image/svg+xml", svg);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    response
}

/// The API reference.
pub(crate) fn docs() -> Response<Body> {
    let configuration = json!({
        "url": "/openapi.json",
        "title": "Podium API",
        "hideClientButton": true,
        "telemetry": false,
        "showDeveloperTools": "never",
        "withDefaultFonts": false,
        "agent": { "disabled": true },
    });
    let html = scalar_api_reference::scalar_html(&configuration, Some("/docs/reference.js"));
    // The one script in the page is known; the styles that the reference makes as it runs are not.
    let script = html.split("<script>").nth(1).and_then(|rest| rest.split("</script>").next());
    let hash = sha256_base64(script.unwrap_or_default().as_bytes());
    let policy = format!(
        "default-src 'self'; script-src 'self' 'sha256-{hash}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; \
         img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; frame-ancestors 'none'"
    );
    let mut response = of_type("text/html; charset=utf-8", html);
    response
        .headers_mut()
        .extend(HeaderValue::from_str(&policy).map(|policy| (CONTENT_SECURITY_POLICY, policy)));
    response
}

/// The script of the API reference.
pub(crate) fn docs_script() -> Response<Body> {
    let script = scalar_api_reference::get_asset("scalar.js").unwrap_or_default();
    let mut response = of_type("text/javascript; charset=utf-8", script);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=86400"));
    response
}

pub(crate) fn auth_types() -> Response<Body> {
    json(json!({ "connectionAuthTypes": auth_types::all() }).to_string())
}

/// Where the link of an invite leads.
pub(crate) fn accept_invite() -> Response<Body> {
    let mut response = page(&AcceptInvite, "'none'");
    let headers = response.headers_mut();
    protect(headers, "script-src 'self'; connect-src 'self'; ", "'none'");
    headers.insert(http::header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
