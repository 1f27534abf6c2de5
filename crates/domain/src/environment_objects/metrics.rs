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
        fields.push(
            format!("{at}.{name}"),
            "required",
            format!("is required when `authType` is {auth_type}"),
        );
    }
}
