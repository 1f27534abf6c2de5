//! Small HTML pages: errors, sign-out, and redirects.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response};

use super::headers;
use crate::body::{Body, whole};
use crate::errors::Failure;
use crate::pages;

const PAGE: &str = include_str!("../pages/notice.html");
const AGAIN: &str = include_str!("../pages/again.html");

/// A failure, as a page for people and as JSON for everybody else.
pub(super) fn refusal(failure: Failure, wants_page: bool, request_id: &str) -> Response<Body> {
    let message = failure.message().to_owned();
    let mut response = failure.into_response(request_id);
    if !wants_page {
        return response;
    }
    let title = response.status().canonical_reason().unwrap_or("Refused");
    let text = written(title, &message, None);
    *response.body_mut() = whole(text);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    pages::protect(response.headers_mut(), PAGE, "'none'");
    headers::set_no_store(response.headers_mut());
    response
}

/// A page with a link.
pub(super) fn page(title: &str, message: &str, link: (&str, &str)) -> Response<Body> {
    let mut response = pages::html(written(title, message, Some(link)));
    pages::protect(response.headers_mut(), PAGE, "'none'");
    headers::set_no_store(response.headers_mut());
    response
}

/// A page that redirects by itself, as a same-origin navigation.
pub(super) fn again(to: &str) -> Response<Body> {
    let mut response = pages::html(AGAIN.replace("{{to}}", &pages::escape(to)));
    pages::protect(response.headers_mut(), AGAIN, "'none'");
    headers::set_no_store(response.headers_mut());
    response
}

fn written(title: &str, message: &str, link: Option<(&str, &str)>) -> String {
    let link = link
        .map(|(text, to)| format!("<p><a href=\"{}\">{}</a></p>", pages::escape(to), pages::escape(text)));
    PAGE.replace("{{title}}", &pages::escape(title))
        .replace("{{message}}", &pages::escape(message))
        .replace("{{link}}", &link.unwrap_or_default())
}
