//! Forged bearer tokens: each is refused, whatever it claims and however it is signed.

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Value, json};

use crate::program::{Installation, Program};

/// A real token, taken apart.
struct Real {
    whole: String,
    header: Value,
    claims: Value,
    signature: String,
}

impl Real {
    fn take_apart(token: &str) -> Self {
        let parts: Vec<&str> = token.split('.').collect();
        let read = |part: &str| serde_json::from_slice(&BASE64.decode(part).unwrap()).unwrap();
        Self {
            whole: token.to_owned(),
            header: read(parts[0]),
            claims: read(parts[1]),
            signature: parts[2].to_owned(),
        }
    }

    /// The header with this in place of what it says.
    fn header(&self, changes: &Value) -> Value {
        with(&self.header, changes)
    }

    fn claims(&self, changes: &Value) -> Value {
        with(&self.claims, changes)
    }
}

fn with(object: &Value, changes: &Value) -> Value {
    let mut object = object.clone();
    for (key, value) in changes.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

fn unsigned(header: &Value, claims: &Value) -> String {
    format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(claims.to_string()))
}

fn signed(header: &Value, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let text = unsigned(header, claims);
    let signature = sign(text.as_bytes());
    format!("{text}.{}", BASE64.encode(signature))
}

/// The same signature with the bits flipped that its last character does not need.
fn malleated(token: &str) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (rest, last) = token.split_at(token.len() - 1);
    let place = ALPHABET.iter().position(|letter| *letter == last.as_bytes()[0]).unwrap();
    format!("{rest}{}", char::from(ALPHABET[place ^ 1]))
}

fn forgeries(program: &Program, token: &str) -> Vec<(&'static str, String)> {
    let real = Real::take_apart(token);
    let keys = program.get("/.well-known/jwks.json", "").json();
    let public = BASE64.decode(keys["keys"][0]["x"].as_str().unwrap()).unwrap();
    let ours =
        Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap().as_ref())
            .unwrap();
    let by_us = |text: &[u8]| ours.sign(text).as_ref().to_vec();
    let by_public_key =
        |text: &[u8]| hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &public), text).as_ref().to_vec();
    let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": BASE64.encode(ours.public_key().as_ref()) });
    let other_id = json!({ "jti": "c00000000000000000000000z" });
    let none = unsigned(&real.header(&json!({ "alg": "none" })), &real.claims);
    let (head, body) = (&real.header, &real.claims);
    vec![
        ("no algorithm", format!("{none}.")),
        (
            "no algorithm, in capitals",
            format!("{}.", unsigned(&real.header(&json!({ "alg": "NONE" })), body)),
        ),
        ("no algorithm, with a signature", format!("{none}.{}", real.signature)),
        ("the public key as a secret", signed(&real.header(&json!({ "alg": "HS256" })), body, by_public_key)),
        ("another key under the same name", signed(head, body, by_us)),
        ("another key under its own name", signed(&real.header(&json!({ "kid": "attacker" })), body, by_us)),
        ("a key inside the token", signed(&real.header(&json!({ "jwk": jwk })), body, by_us)),
        (
            "a key by its address",
            signed(&real.header(&json!({ "jku": "http://127.0.0.1:1/keys" })), body, by_us),
        ),
        ("a key file as its name", signed(&real.header(&json!({ "kid": "../../owner-token" })), body, by_us)),
        (
            "another token under the old signature",
            format!("{}.{}", unsigned(head, &real.claims(&other_id)), real.signature),
        ),
        (
            "another end under the old signature",
            format!(
                "{}.{}",
                unsigned(head, &real.claims(&json!({ "exp": 9_999_999_999_u64 }))),
                real.signature
            ),
        ),
        ("half a signature", real.whole[..real.whole.len() - 43].to_owned()),
        ("a signature with padding", format!("{}==", real.whole)),
        ("spare bits of the signature", malleated(&real.whole)),
        ("a fourth part", format!("{}.e30", real.whole)),
        ("no part at all", "..".to_owned()),
    ]
}

#[test]
fn a_token_that_was_not_issued_opens_nothing() {
    let installation = Installation::new();
    let program = installation.serve(&["--log", "error"]);
    let token = installation.read("owner-token");
    let organization = program.organization(&token);
    for (name, forged) in forgeries(&program, token.trim()) {
        for (method, path) in
            [("GET", "/v1/organizations"), ("GET", "/v1/users/self"), ("DELETE", &organization)]
        {
            let reply = program.call(method, path, &forged, None);
            assert!(matches!(reply.status, 401 | 405), "{name}: {method} {path}: {}", reply.status);
        }
        let reply = program.get(&format!("{organization}/workspaces"), &forged);
        assert_eq!(reply.status, 401, "{name}");
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{name}");
    }
    assert_eq!(program.get("/v1/organizations", &token).status, 200);
    program.stop();
}
