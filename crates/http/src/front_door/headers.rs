//! Headers: those of the control plane do not reach the environment, and the environment cannot set headers on behalf
//! of the control plane.

use http::header::{
    ACCEPT_RANGES, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, COOKIE,
    EXPECT, FORWARDED, HOST, HeaderName, LOCATION, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, REFERRER_POLICY,
    SERVER, SET_COOKIE, STRICT_TRANSPORT_SECURITY, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method};
use podium_dataplane::WebServer;
use url::{Position, Url};

use super::{InboundRequest, Place, cookies};

/// Headers that are about one connection only.
const HOP_BY_HOP: [HeaderName; 10] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    EXPECT,
];

/// Headers that an environment may not send: they affect a whole host, other origins or other services.
const NOT_THE_ENVIRONMENTS: [HeaderName; 6] = [
    STRICT_TRANSPORT_SECURITY,
    WWW_AUTHENTICATE,
    SERVER,
    HeaderName::from_static("clear-site-data"),
    HeaderName::from_static("service-worker-allowed"),
    HeaderName::from_static("alt-svc"),
];

/// The headers for the environment: the client's, without the control plane's own, plus those that we set.
pub(super) fn for_environment(inbound: &InboundRequest, authority: &str, scheme: &str) -> HeaderMap {
    let sent = &inbound.parts.headers;
    let named = named_by_connection(sent);
    let mut headers = HeaderMap::with_capacity(sent.len() + 6);
    for (name, value) in sent {
        if !HOP_BY_HOP.contains(name) && !named.contains(name) && !is_ours(name) {
            headers.append(name.clone(), value.clone());
        }
    }
    if inbound.parts.method == Method::GET || inbound.parts.method == Method::HEAD {
        headers.remove(CONTENT_LENGTH);
    }
    if let Some(cookie) = cookies::keep_foreign(sent) {
        headers.insert(COOKIE, cookie);
    }
    let address = inbound.address.to_string();
    let vouched = [
        (HOST, authority),
        (HeaderName::from_static("x-forwarded-host"), authority),
        (HeaderName::from_static("x-forwarded-proto"), scheme),
        (HeaderName::from_static("x-forwarded-for"), address.as_str()),
        (HeaderName::from_static("x-request-id"), inbound.request_id.as_str()),
    ];
    for (name, value) in vouched {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    headers
}

/// Whether a request header is for the control plane, or would be trusted by the environment.
fn is_ours(name: &HeaderName) -> bool {
    let text = name.as_str();
    [AUTHORIZATION, COOKIE, HOST, FORWARDED].contains(name)
        || text.starts_with("x-forwarded-")
        || text.starts_with("x-podium-")
        || text == "x-real-ip"
        || text == "x-request-id"
        // Some servers read an underscore as a hyphen.
        || text.contains('_')
}

/// The environment's headers that are forwarded to the client.
pub(super) fn for_client(
    headers: &mut HeaderMap,
    place: &Place,
    namespace: &str,
    door: &WebServer,
    authority: &str,
) {
    let named = named_by_connection(headers);
    let dropped: Vec<HeaderName> = headers
        .keys()
        .filter(|name| {
            let text = name.as_str();
            HOP_BY_HOP.contains(name)
                || named.contains(name)
                || NOT_THE_ENVIRONMENTS.contains(name)
                || text.starts_with("access-control-")
                || text.starts_with("x-podium-")
                || text == "x-request-id"
        })
        .cloned()
        .collect();
    for name in dropped {
        headers.remove(name);
    }
    if let Some(location) = headers.get(LOCATION).and_then(|value| value.to_str().ok()) {
        match without_authority(location, &[&door.upstream.to_string(), authority]) {
            Some(path) => drop(headers.insert(LOCATION, path)),
            None => drop(headers.remove(LOCATION)),
        }
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if !headers.contains_key(CACHE_CONTROL) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    }
    match place {
        Place::Console => {
            headers.remove(SET_COOKIE);
            headers.remove(ACCEPT_RANGES);
            headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
        }
        Place::Own { .. } => {
            cookies::confine(headers, namespace);
            headers.append(CONTENT_SECURITY_POLICY, HeaderValue::from_static("frame-ancestors 'self'"));
        }
    }
}

/// Prevents caching and referrers: the URL may contain a code.
pub(super) fn set_no_store(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}

/// A redirect as a path if it leads to the environment itself, whatever host name it uses.
fn without_authority(location: &str, own: &[&str]) -> Option<HeaderValue> {
    let is_own = |url: &Url| {
        matches!(url.scheme(), "http" | "https")
            && own.contains(&&url[Position::BeforeUsername..Position::AfterPort])
    };
    let Some(url) = Url::parse(location).ok().filter(is_own) else {
        return HeaderValue::from_str(location).ok();
    };
    // Two slashes at the start would name another host.
    let path = format!("/{}", url[Position::BeforePath..].trim_start_matches('/'));
    HeaderValue::from_str(&path).ok()
}

fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let lines = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).filter_map(|name| name.trim().parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_to_the_environment_itself_become_paths() {
        let own = ["127.0.0.1:9000", "podium.test"];
        let table = [
            ("http://127.0.0.1:9000/airflow/calm/", "/airflow/calm/"),
            ("https://podium.test/airflow/calm/?a=b", "/airflow/calm/?a=b"),
            ("http://127.0.0.1:9000", "/"),
            ("http://127.0.0.1:9000//evil.example", "/evil.example"),
            ("http://127.0.0.1:9000/\\\\evil.example", "/evil.example"),
            ("http://127.0.0.1:9000?x", "/?x"),
            ("HTTP://127.0.0.1:9000/x#y", "/x#y"),
            ("http://somebody@127.0.0.1:9000/x", "http://somebody@127.0.0.1:9000/x"),
            ("ftp://127.0.0.1:9000/x", "ftp://127.0.0.1:9000/x"),
            ("/airflow/calm/", "/airflow/calm/"),
            ("https://elsewhere.example/x", "https://elsewhere.example/x"),
        ];
        for (location, expected) in table {
            assert_eq!(without_authority(location, &own).unwrap(), expected, "{location}");
        }
    }
}
