//! Cookies: which belong to the control plane, which to the environment, and how they are kept apart.
//!
//! Browsers send a cookie to every port of a host, so an environment on its own port would receive the console's
//! cookies. All of our names begin with the same prefix, and no cookie with that prefix passes the front door in
//! either direction.

use std::time::Duration;

use http::header::{COOKIE, HeaderName, SET_COOKIE};
use http::{HeaderMap, HeaderValue};

const OURS: &str = "podium_";
/// Browsers take a cookie with this prefix only from the very host, encrypted, for all paths.
const PINNED: &str = "__Host-";

pub(crate) fn session_name(is_encrypted: bool) -> &'static str {
    if is_encrypted { "__Host-podium_session" } else { "podium_session" }
}

/// The name of an environment's pass: ports share cookies, so the name returns whose it is.
pub(crate) fn pass_name(namespace: &str, is_encrypted: bool) -> String {
    format!("{}{OURS}pass_{namespace}", if is_encrypted { PINNED } else { "" })
}

pub(crate) fn find<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    pairs(headers).find(|(key, value)| *key == name && !value.is_empty()).map(|(_, value)| value)
}

/// When browsers send a cookie along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SameSite {
    /// Only with requests from pages of the same site.
    Strict,
    /// Also on navigation from another site's page.
    Lax,
}

/// A cookie that only the server reads, for this host alone.
pub(crate) fn set(
    name: &str,
    value: &str,
    lasts: Duration,
    same_site: SameSite,
    is_encrypted: bool,
) -> Option<HeaderValue> {
    let secure = if is_encrypted { "; Secure" } else { "" };
    let seconds = lasts.as_secs();
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite={same_site:?}; Max-Age={seconds}{secure}");
    HeaderValue::from_str(&text).ok()
}

pub(crate) fn clear(name: &str, is_encrypted: bool) -> Option<HeaderValue> {
    set(name, "", Duration::ZERO, SameSite::Strict, is_encrypted)
}

/// The environment's own cookies of a request.
pub(crate) fn keep_foreign(headers: &HeaderMap) -> Option<HeaderValue> {
    let kept: Vec<String> = pairs(headers)
        .filter(|(name, _)| !is_ours(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    if kept.is_empty() { None } else { HeaderValue::from_str(&kept.join("; ")).ok() }
}

/// Lets an environment set cookies of its own, below its own path; none of ours, and none for other hosts.
pub(crate) fn confine(headers: &mut HeaderMap, namespace: &str) {
    let given: Vec<HeaderValue> = headers.get_all(SET_COOKIE).iter().cloned().collect();
    headers.remove(SET_COOKIE);
    for cookie in given.iter().filter_map(|cookie| confined(cookie.to_str().ok()?, namespace)) {
        headers.append(SET_COOKIE, cookie);
    }
}

fn confined(cookie: &str, namespace: &str) -> Option<HeaderValue> {
    let mut parts = cookie.split(';').map(str::trim);
    let pair = parts.next()?;
    let (name, _) = pair.split_once('=')?;
    let name = name.trim();
    if name.is_empty() || is_ours(name) || has_prefix(name, PINNED) {
        return None;
    }
    let mut text = pair.to_owned();
    for attribute in parts {
        match attribute.split('=').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "domain" => return None,
            "path" => {}
            _ => {
                text.push_str("; ");
                text.push_str(attribute);
            }
        }
    }
    HeaderValue::from_str(&format!("{text}; Path=/airflow/{namespace}")).ok()
}

fn is_ours(name: &str) -> bool {
    let bare = if has_prefix(name, PINNED) { &name[PINNED.len()..] } else { name };
    has_prefix(bare, OURS)
}

fn has_prefix(name: &str, prefix: &str) -> bool {
    name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let name: HeaderName = COOKIE;
    let lines = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(';')).filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        Some((name.trim(), value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_environments_cookies_pass() {
        let mut headers = HeaderMap::new();
        headers
            .append(COOKIE, HeaderValue::from_static("podium_session=a; session=b; __Host-podium_pass_x=c"));
        headers.append(COOKIE, HeaderValue::from_static("__host-PODIUM_session=d; csrf=e=f; broken"));
        assert_eq!(keep_foreign(&headers).unwrap(), "session=b; csrf=e=f");
        assert_eq!(find(&headers, "podium_session"), Some("a"));
        assert_eq!(find(&headers, "nothing"), None);
    }

    #[test]
    fn an_environment_sets_cookies_for_itself_only() {
        let table = [
            (
                "session=x; HttpOnly; Path=/; SameSite=Lax",
                Some("session=x; HttpOnly; SameSite=Lax; Path=/airflow/calm"),
            ),
            ("session=x", Some("session=x; Path=/airflow/calm")),
            ("podium_session=x", None),
            (" podium_session =x", None),
            ("__Host-podium_session=x; Secure; Path=/", None),
            ("PODIUM_pass_other=x", None),
            ("__Host-x=y; Secure; Path=/", None),
            ("session=x; Domain=example.com", None),
            ("session=x; domain = .example.com", None),
            ("=x", None),
            ("nothing", None),
        ];
        for (cookie, expected) in table {
            assert_eq!(
                confined(cookie, "calm").as_ref().map(|value| value.to_str().unwrap()),
                expected,
                "{cookie}"
            );
        }
    }
}
