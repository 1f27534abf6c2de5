//! What a metrics export needs to work. Only the form of endpoints is checked: they are never called from here.

use serde_json::Value;

use super::values::Values;
use crate::refusal::Fields;
use crate::urls;

/// What each way of proving oneself needs.
const NEEDS: &[(&str, &[&str])] = &[
    ("BASIC", &["username", "password"]),
    ("AUTH_TOKEN", &["basicToken"]),
    ("SIGV4", &["sigV4AssumeArn", "sigV4StsRegion"]),
];

/// Headers whose values are no secrets: they name a tenant, a client or a format.
const PLAIN_HEADERS: &[&str] = &["x-scope-orgid", "thanos-tenant", "user-agent", "accept"];
/// What the names of others begin with.
const PLAIN_BEGINNINGS: &[&str] = &["x-tenant", "accept-", "content-", "x-prometheus-"];
/// What the name of no plain header contains.
const SECRET_WORDS: &[&str] = &["auth", "key", "pass", "secret", "token"];

/// Whether a header of a metrics export is known to hold no secret.
pub(super) fn is_plain_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_known = PLAIN_HEADERS.contains(&name.as_str())
        || PLAIN_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    is_known && !SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Checks the values of a metrics export; `at` is where they stand in the request.
pub(super) fn check(values: &Values, at: &str, fields: &mut Fields) {
    let text = |name: &str| values.plain.get(name).and_then(Value::as_str).unwrap_or_default();
    let endpoint = text("endpoint");
    if !urls::is_web(endpoint) || urls::has_user(endpoint) {
        let message =
            "must be a URL without a user or password, such as https://metrics.example.com/api/v1/write";
        fields.push(format!("{at}.endpoint"), "format", message);
    }
    let auth_type = text("authType");
    let needs = NEEDS.iter().find(|(name, _)| *name == auth_type).map_or(&[][..], |(_, needs)| needs);
    for name in needs.iter().filter(|name| !values.has(name)) {
        let message = format!("is required when `authType` is {auth_type}");
        fields.push(format!("{at}.{name}"), "required", message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_name_a_tenant_or_a_format_are_plain() {
        let plain = "X-Scope-OrgID x-scope-orgid X-Tenant X-Tenant-ID X-TenantId THANOS-TENANT User-Agent Accept \
            Accept-Encoding Content-Type Content-Encoding X-Prometheus-Remote-Write-Version";
        for plain in plain.split(' ') {
            assert!(is_plain_header(plain), "{plain}");
        }
        let secret = "Authorization Proxy-Authorization Cookie X-Api-Key X-Tenant-Token X-Tenant-Key \
            X-Prometheus-Auth Acceptance Contents User-Agent-Password My-X-Tenant";
        for secret in secret.split(' ').chain(["", " Accept"]) {
            assert!(!is_plain_header(secret), "{secret}");
        }
    }
}
