//! The values of tokens: signed, hashed, shown once.

use podium_api::EntityId;
use std::collections::BTreeSet;
use std::time::Duration;

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use podium_testkit::{Actor, TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{REVOKED, bearer, create, path};

const MALFORMED: &str = "The token is malformed: it was not issued by this server, or it is incomplete.";

fn part(token: &str, index: usize) -> Value {
    let part = token.split('.').nth(index).expect("three parts");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// A claim of a token in the order of their names, without what differs from token to token.
fn claims(token: &str) -> Value {
    let mut claims = part(token, 1);
    let nonce = claims.as_object_mut().unwrap().remove("nonce").unwrap();
    assert_eq!(nonce.as_str().unwrap().len(), 16);
    claims
}

/// Whether a published key has signed the token.
async fn is_signed(app: &TestApp, token: &str) -> bool {
    let keys = app.call("GET", "/.well-known/jwks.json").send().await.ok();
    let header = part(token, 0);
    assert_eq!((&header["alg"], &header["typ"]), (&json!("EdDSA"), &json!("JWT")));
    let key = keys["keys"]
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["kid"] == header["kid"])
        .expect("it is published");
    assert_eq!(
        (&key["kty"], &key["crv"], &key["alg"], &key["use"]),
        (&json!("OKP"), &json!("Ed25519"), &json!("EdDSA"), &json!("sig"))
    );
    assert_eq!(key.get("d"), None);
    let public = URL_SAFE_NO_PAD.decode(key["x"].as_str().unwrap()).unwrap();
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    UnparsedPublicKey::new(&ED25519, public).verify(signed.as_bytes(), &signature).is_ok()
}

/// Why a token is refused.
fn with_token(app: &TestApp, token: &str) -> Actor {
    Actor { id: app.owner.id, token: token.to_owned() }
}

/// The owner's token, as if it were signed with keys that do not exist.
fn with_made_up_keys(app: &TestApp) -> Vec<String> {
    let made_up = |kid: usize| {
        let header = json!({ "alg": "EdDSA", "typ": "JWT", "kid": format!("{kid:016x}") }).to_string();
        let rest = app.owner.token.split_once('.').unwrap().1;
        format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header))
    };
    (0..50).map(made_up).collect()
}

async fn refusal(app: &TestApp, token: &str) -> String {
    let answer = app.get(&with_token(app, token), &app.path("")).await;
    assert_eq!(answer.header("www-authenticate"), "Bearer");
    answer.refused(401)
}

on_both_engines! {
    async fn a_token_is_a_jwt_that_anybody_can_verify(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let organization = format!("organizationId:{}", app.organization_id);
        let places = [
            ("ORGANIZATION", EntityId::from(app.organization_id), "ORGANIZATION_MEMBER", json!([organization])),
            ("WORKSPACE", workspace.into(), "WORKSPACE_MEMBER", json!([organization, format!("workspaceId:{workspace}")])),
            (
                "DEPLOYMENT",
                deployment.into(),
                "DEPLOYMENT_ADMIN",
                json!([organization, format!("workspaceId:{workspace}"), format!("deploymentId:{deployment}")]),
            ),
        ];
        for (scope, entity, role, permissions) in places {
            let token = app.token("ci", scope, entity, role).await;
            assert!(is_signed(&app, &token.token).await);
            assert_eq!(claims(&token.token), json!({
                "iss": "https://podium.test",
                "aud": "https://podium.test",
                "sub": token.id,
                "jti": token.id,
                "iat": 1_800_000_000,
                "apiTokenId": token.id,
                "permissions": permissions,
            }));
        }
        let body = json!({
            "name": "brief", "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER", "tokenExpiryPeriodInDays": 2,
        });
        let brief = bearer(&create(&app, &app.owner, body).await);
        assert_eq!(claims(&brief.token)["exp"], 1_800_000_000 + 2 * 24 * 60 * 60);
        assert!(is_signed(&app, &app.owner.token).await);
        let session = claims(&app.owner.token);
        assert_eq!(session["sub"], json!(app.owner.id));
        assert_eq!((session.get("permissions"), session.get("apiTokenId")), (None, None));
    }

    async fn tokens_with_made_up_keys_share_one_key_reload(app) {
        let tokens = with_made_up_keys(&app);
        let started = std::time::Instant::now();
        let refusals = tokens.iter().map(|token| refusal(&app, token));
        for message in futures_util::future::join_all(refusals).await {
            assert_eq!(message, MALFORMED);
        }
        let (looks, seconds) = (app.app.key_reloads().await, started.elapsed().as_secs());
        let most = if app.app.db(&app.system).is_shared() { seconds + 1 } else { 0 };
        assert!(looks <= most, "{looks} looks in {seconds} s");
    }

    async fn a_failed_look_for_a_key_refuses_nobodys_token(app) {
        let tokens = with_made_up_keys(&app);
        app.execute("ALTER TABLE signing_keys RENAME TO lost_keys").await;
        let path = app.path("");
        let actors: Vec<Actor> = tokens.iter().map(|token| with_token(&app, token)).collect();
        let answers = futures_util::future::join_all(actors.iter().map(|actor| app.get(actor, &path))).await;
        let codes: BTreeSet<u16> = answers.iter().map(podium_testkit::Answer::code).collect();
        // The embedded database has no other process that could have made a key, so nobody looks.
        let expected = if app.app.db(&app.system).is_shared() { 500 } else { 401 };
        assert_eq!(codes, BTreeSet::from([expected]));
        app.execute("ALTER TABLE lost_keys RENAME TO signing_keys").await;
        assert_eq!(refusal(&app, &tokens[0]).await, MALFORMED);
    }

    async fn the_message_says_why_a_token_is_not_accepted(app) {
        let missing = app.call("GET", &app.path("")).send().await;
        assert_eq!(missing.header("www-authenticate"), "Bearer");
        assert_eq!(missing.refused(401), "The token is missing: send it as `Authorization: Bearer <token>`.");
        for header in ["", "Bearer", "Bearer ", "Basic b3duZXI6b3duZXI=", "Bearer nonsense", "Bearer a.b.c"] {
            let answer = app.call("GET", &app.path("")).header("authorization", header).send().await;
            assert_eq!(answer.refused(401), MALFORMED, "{header:?}");
        }
        let scheme = app.call("GET", &app.path("")).header("authorization", &format!("bEARER  {}", app.owner.token));
        assert_eq!(scheme.send().await.code(), 200);

        let body = json!({
            "name": "brief", "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER", "tokenExpiryPeriodInDays": 1,
        });
        let brief = bearer(&create(&app, &app.owner, body).await);
        let rotated = app.token("rotated", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        let deleted = app.token("deleted", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        for token in [&brief, &rotated, &deleted] {
            assert_eq!(app.get(token, &app.path("")).await.code(), 200);
        }
        app.call("POST", &format!("{}/rotate", path(&app, rotated.id))).by(&app.owner).send().await.ok();
        app.delete(&app.owner, &path(&app, deleted.id)).await.ok();
        assert_eq!(refusal(&app, &rotated.token).await, REVOKED);
        assert_eq!(refusal(&app, &deleted.token).await, REVOKED);
        app.advance(Duration::from_millis(24 * 60 * 60 * 1000 - 1));
        assert_eq!(app.get(&brief, &app.path("")).await.code(), 200);
        app.advance(Duration::from_millis(1));
        assert_eq!(refusal(&app, &brief.token).await, "The token is expired: sign in again, or rotate the API token.");
        podium_app::maintenance::once(&app.app).await.unwrap();
        assert_eq!(refusal(&app, &brief.token).await, "The token is expired: sign in again, or rotate the API token.");
    }

    async fn a_valid_signature_alone_gives_no_access(app) {
        let unknown = app.app.issue_session(app.owner.user_id(), None, app.world.now());
        assert!(is_signed(&app, &unknown.value).await);
        assert_eq!(refusal(&app, &unknown.value).await, REVOKED);
    }

    async fn a_token_that_was_tampered_with_is_malformed(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await.token;
        let parts: Vec<&str> = token.split('.').collect();
        let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let mut forged = part(&token, 1);
        forged["sub"] = json!(app.owner.id);
        let mut unsigned = part(&token, 0);
        unsigned["alg"] = "none".into();
        let mut foreign = part(&token, 0);
        foreign["kid"] = "0123456789abcdef".into();
        for (what, tampered) in [
            ("claims", format!("{}.{}.{}", parts[0], encode(forged), parts[2])),
            ("algorithm", format!("{}.{}.", encode(unsigned.clone()), parts[1])),
            ("algorithm with a signature", format!("{}.{}.{}", encode(unsigned), parts[1], parts[2])),
            ("key", format!("{}.{}.{}", encode(foreign), parts[1], parts[2])),
            ("signature", format!("{}.{}.{}", parts[0], parts[1], URL_SAFE_NO_PAD.encode([7; 64]))),
            ("length", token[..token.len() - 1].to_owned()),
            ("parts", format!("{token}.{}", parts[2])),
        ] {
            assert_eq!(refusal(&app, &tampered).await, MALFORMED, "{what}");
        }
        assert_eq!(refusal(&app, &format!("{token}=")).await, MALFORMED);
    }

    async fn only_hashes_of_tokens_are_stored(app) {
        let body = json!({ "name": "ci", "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER" });
        let call = app.call("POST", &app.path("/tokens")).by(&app.owner).header("idempotency-key", "once");
        let created = bearer(&call.json(&body).send().await);
        let rotate = app.call("POST", &format!("{}/rotate", path(&app, created.id))).by(&app.owner);
        let rotated = bearer(&rotate.header("idempotency-key", "twice").send().await);
        assert_eq!(app.get(&rotated, &app.path("")).await.code(), 200);
        let stored = app.stored().await;
        let holds = |needle: &str| stored.windows(needle.len()).any(|window| window == needle.as_bytes());
        assert!(holds(&podium_app::secrets::sha256_hex(rotated.token.as_bytes())));
        for token in [&created, &rotated, &app.owner] {
            let signature = token.token.rsplit_once('.').unwrap().1;
            assert!(!holds(&token.token) && !holds(signature) && !holds(&signature[..40]));
        }
    }

    async fn the_value_is_shown_at_creation_and_never_again(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        let at = path(&app, token.id);
        let shown = [
            app.get(&app.owner, &at).await,
            app.get(&app.owner, &app.path("/tokens")).await,
            app.post(&app.owner, &at, json!({ "name": "CI" })).await,
            app.get(&app.owner, &app.path("/audit-logs")).await,
        ];
        for answer in shown {
            assert_eq!(answer.code(), 200);
            assert!(!answer.text().contains(&token.token) && !answer.text().contains("\"token\":"));
        }
    }
}
