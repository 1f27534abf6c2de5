//! Detects cross-site requests by the headers that browsers send about the origin of a request.

use http::header::ORIGIN;
use http::{HeaderMap, Method, StatusCode};

use crate::errors::Failure;

const SITE: &str = "sec-fetch-site";
const MODE: &str = "sec-fetch-mode";
const DESTINATION: &str = "sec-fetch-dest";

/// Whether a browser navigates to a page; clients that do not send the header are trusted.
pub(super) fn is_navigation(headers: &HeaderMap) -> bool {
    text(headers, MODE).is_none_or(|mode| mode == "navigate")
        && text(headers, DESTINATION).is_none_or(|destination| destination == "document")
}

/// Whether another site's page may have sent a browser here, in which case it did not send its strict cookies. Browsers
/// report this at secure origins (`is_told`); at others it must be assumed.
pub(super) fn is_cross_site(headers: &HeaderMap, is_told: bool) -> bool {
    text(headers, SITE).map_or(!is_told, |site| site == "cross-site")
}

/// Refuses requests that a page of another origin makes a browser send with its cookies.
pub(super) fn check(
    headers: &HeaderMap,
    method: &Method,
    is_write: bool,
    origin: &str,
) -> Result<(), Failure> {
    let site = text(headers, SITE);
    let is_unsafe = *method != Method::GET && *method != Method::HEAD;
    let allowed = match text(headers, "origin") {
        Some(sent) if is_unsafe || is_write => sent == origin,
        None if is_unsafe => site == Some("same-origin"),
        None if is_write => matches!(site, Some("same-origin" | "none")),
        _ => matches!(site, None | Some("same-origin" | "none")) || is_navigation(headers),
    };
    if allowed {
        return Ok(());
    }
    let message = "This request comes from a page of another origin: it is not forwarded with your cookies.";
    Err(Failure::new(StatusCode::FORBIDDEN, message))
}

/// Refuses a form sent by another origin's page; `path` is the form's own path.
pub(super) fn check_form(headers: &HeaderMap, origin: &str, path: &str) -> Result<(), Failure> {
    let is_own = match text(headers, ORIGIN.as_str()) {
        Some(sent) => sent == origin,
        None => text(headers, SITE) == Some("same-origin"),
    };
    if is_own {
        return Ok(());
    }
    let message = format!("This form comes from another origin: open {origin}{path} and submit it there.");
    Err(Failure::new(StatusCode::FORBIDDEN, message))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    const OWN: &str = "http://podium.test:18000";
    type ReplyOutput = &'static [(&'static str, &'static str)];

    #[test]
    fn only_the_environments_own_pages_send_cookies_along() {
        let table: &[(&str, bool, ReplyOutput, bool)] = &[
            ("POST", true, &[("origin", OWN)], true),
            ("POST", true, &[("origin", "http://podium.test:18001")], false),
            ("POST", true, &[("origin", "null")], false),
            ("POST", true, &[], false),
            ("POST", false, &[("sec-fetch-site", "same-origin")], true),
            ("POST", false, &[("sec-fetch-site", "same-site")], false),
            ("GET", false, &[], true),
            ("GET", false, &[("sec-fetch-site", "same-origin")], true),
            ("GET", false, &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")], false),
            ("GET", false, &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "cors")], false),
            (
                "GET",
                false,
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "document"),
                ],
                true,
            ),
            (
                "GET",
                false,
                &[
                    ("sec-fetch-site", "cross-site"),
                    ("sec-fetch-mode", "navigate"),
                    ("sec-fetch-dest", "iframe"),
                ],
                false,
            ),
            ("GET", true, &[("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")], false),
            ("GET", true, &[("sec-fetch-site", "same-origin")], true),
            ("GET", true, &[], false),
        ];
        for (method, is_write, sent, allowed) in table {
            let pair = |(name, value): &(&str, &str)| {
                (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
            };
            let headers: HeaderMap = sent.iter().map(pair).collect();
            let method: Method = method.parse().unwrap();
            let answer = check(&headers, &method, *is_write, OWN);
            assert_eq!(answer.is_ok(), *allowed, "{method} {is_write} {sent:?}");
        }
    }
}
