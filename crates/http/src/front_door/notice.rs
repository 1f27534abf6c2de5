//! Small HTML pages: errors, sign-out, and redirects.

use http::header::REFERRER_POLICY;
use http::{HeaderValue, Response};
use podium_console::door::{Again, DoorPage, Notice};

use super::headers;
use crate::body::Body;
use crate::errors::Failure;
use crate::pages;

/// A failure, as a page for people and as JSON for everybody else.
pub(super) fn refusal(failure: Failure, wants_page: bool, request_id: &str) -> Response<Body> {
    let message = failure.message().to_owned();
    let mut response = failure.into_response(request_id);
    if !wants_page {
        return response;
    }
    let title = response.status().canonical_reason().unwrap_or("Refused");
    let (shown, body) = pages::page(&Notice { title, message: &message, link: None }, "'none'").into_parts();
    response.headers_mut().extend(shown.headers);
    headers::set_no_store(response.headers_mut());
    response.map(|_| body)
}

pub(super) fn page(title: &str, message: &str, link: (&str, &str)) -> Response<Body> {
    unstored(&Notice { title, message, link: Some(link) }, "'none'")
}

/// A page that redirects by itself, as a same-origin navigation.
pub(super) fn again(to: &str) -> Response<Body> {
    unstored(&Again { to }, "'none'")
}

/// A page with a form, which is sent to these targets only.
pub(super) fn form(page: &impl DoorPage, targets: &str) -> Response<Body> {
    let mut response = unstored(page, targets);
    // Without it a browser would not send the origin of a form.
    response.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

fn unstored(page: &impl DoorPage, targets: &str) -> Response<Body> {
    let mut response = pages::page(page, targets);
    headers::set_no_store(response.headers_mut());
    response
}
