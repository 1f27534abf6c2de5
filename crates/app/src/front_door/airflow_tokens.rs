//! Identifies a caller to Apache Airflow: short-lived tokens, signed with the key that the environment trusts.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use podium_api::Timestamp;
use podium_domain::airflow::AirflowRole;
use serde_json::{Value, json};

/// Airflow checks a token when a request arrives: it need not last longer than that takes.
const LASTS: i64 = 60;
/// What Airflow 3 expects as the audience of tokens of its API.
const AUDIENCE: &str = "apache-airflow";

/// The bearer token of a caller for Airflow 3.
pub fn bearer_for_three(key: &str, name: &str, role: AirflowRole, now: Timestamp) -> String {
    let now = now.millis().div_euclid(1000);
    // Without a `jti`: Airflow would look up each of them among the revoked ones.
    let claims = json!({
        "sub": name, "role": role.upper(), "aud": AUDIENCE, "iat": now, "nbf": now, "exp": now + LASTS,
    });
    signed("HS512", hmac::HMAC_SHA512, key, &claims)
}

/// The header of a caller for Airflow 2.
pub fn header_for_two(key: &str, name: &str, role: AirflowRole, now: Timestamp) -> String {
    let now = now.millis().div_euclid(1000);
    let claims = json!({ "sub": name, "role": role.title(), "iat": now, "exp": now + LASTS });
    signed("HS256", hmac::HMAC_SHA256, key, &claims)
}

fn signed(name: &str, algorithm: hmac::Algorithm, key: &str, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", part(&json!({ "alg": name, "typ": "JWT" })), part(claims));
    let signature = hmac::sign(&hmac::Key::new(algorithm, key.as_bytes()), text.as_bytes());
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(token: &str) -> Value {
        let part = token.split('.').nth(1).unwrap();
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    }

    #[test]
    fn tokens_name_the_caller_and_its_role_and_end_soon() {
        let now = Timestamp::from_millis(1_800_000_000_000);
        let three = claims(&bearer_for_three("key", "ada@example.com", AirflowRole::Op, now));
        assert_eq!(
            three,
            json!({
                "sub": "ada@example.com", "role": "OP", "aud": "apache-airflow",
                "iat": 1_800_000_000, "nbf": 1_800_000_000, "exp": 1_800_000_060,
            })
        );
        let two = claims(&header_for_two("key", "ci", AirflowRole::Viewer, now));
        assert_eq!(two, json!({ "sub": "ci", "role": "Viewer", "iat": 1_800_000_000, "exp": 1_800_000_060 }));
    }

    #[test]
    fn signatures_are_those_of_the_key() {
        let text = "eyJhbGciOiJIUzI1NiJ9.e30";
        let other = |key: &str| signed("HS256", hmac::HMAC_SHA256, key, &json!({}));
        assert_eq!(other("a"), other("a"));
        assert_ne!(other("a"), other("b"));
        assert!(!other("a").starts_with(text), "the type is named too");
    }
}
