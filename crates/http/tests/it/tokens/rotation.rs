//! New values for tokens, and new keys to sign them with.

use std::time::Duration;

use base64::Engine as _;
use podium_app::maintenance;
use podium_testkit::{Actor, TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{REVOKED, START, bearer, create, path, version};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// The ids of the published keys.
async fn published(app: &TestApp) -> Vec<String> {
    let keys = app.call("GET", "/.well-known/jwks.json").send().await.ok();
    keys["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
}

/// The id of the key that signed a token.
fn key_of(token: &Actor) -> String {
    let header = token.token.split('.').next().unwrap();
    let header = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(header).unwrap();
    serde_json::from_slice::<Value>(&header).unwrap()["kid"].as_str().unwrap().to_owned()
}

fn sorted<const N: usize>(mut keys: [&str; N]) -> [&str; N] {
    keys.sort_unstable();
    keys
}

on_both_engines! {
    async fn rotation_gives_a_new_value_and_the_same_time_to_live(app) {
        let body = json!({
            "name": "ci", "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER", "tokenExpiryPeriodInDays": 10,
        });
        let created = create(&app, &app.owner, body).await;
        let old = bearer(&created);
        app.advance(HOUR);
        let rotate = format!("{}/rotate", path(&app, old.id));
        let rotated = app.call("POST", &rotate).by(&app.owner).send().await;
        let new = bearer(&rotated);
        let mut expected = created.ok();
        expected["token"] = json!(new.token);
        expected["shortToken"] = json!(&new.token[new.token.len() - 6..]);
        expected["startAt"] = "2027-01-15T09:00:00.000Z".into();
        expected["lastRotatedAt"] = "2027-01-15T09:00:00.000Z".into();
        expected["updatedAt"] = "2027-01-15T09:00:00.000Z".into();
        expected["endAt"] = "2027-01-25T09:00:00.000Z".into();
        assert_eq!(rotated.ok(), expected);
        assert_eq!((old.id, version(&rotated)), (new.id, "\"2".into()));
        assert_ne!(old.token, new.token);
        expected.as_object_mut().unwrap().remove("token");
        assert_eq!(app.get(&app.owner, &path(&app, old.id)).await.ok(), expected);
        assert_eq!(app.get(&old, &app.path("")).await.refused(401), REVOKED);
        assert_eq!(app.get(&new, &app.path("")).await.code(), 200);
        app.advance(10 * 24 * HOUR);
        assert_eq!(app.get(&new, &app.path("")).await.code(), 401);
        let revived = bearer(&app.call("POST", &rotate).by(&app.owner).send().await);
        assert_eq!(app.get(&revived, &app.path("")).await.code(), 200);
    }

    async fn a_token_without_end_stays_without_end(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
        let rotated = app.call("POST", &format!("{}/rotate", path(&app, token.id))).by(&token).send().await;
        assert_eq!((&rotated.ok()["endAt"], &rotated.ok()["startAt"]), (&Value::Null, &json!(START)));
        app.advance(3650 * 24 * HOUR);
        assert_eq!(app.get(&bearer(&rotated), &app.path("")).await.code(), 200);
        assert_eq!(app.get(&token, &app.path("")).await.code(), 401);
    }

    async fn tokens_outlive_the_key_that_signed_them(app) {
        let first = key_of(&app.owner);
        assert_eq!(published(&app).await, [first.as_str()]);
        let second = app.app.rotate_signing_key(&app.system).await.unwrap();
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        assert_eq!(key_of(&token), second);
        let third = app.app.rotate_signing_key(&app.system).await.unwrap();
        assert_eq!(published(&app).await, sorted([&first, &second, &third]));
        app.advance(365 * 24 * HOUR);
        maintenance::once(&app.app).await.unwrap();
        for actor in [&app.owner, &token] {
            assert_eq!(app.get(actor, &app.path("")).await.code(), 200);
        }
        assert_eq!(published(&app).await, sorted([&first, &second, &third]));

        app.delete(&app.owner, &path(&app, token.id)).await.ok();
        maintenance::once(&app.app).await.unwrap();
        assert_eq!(published(&app).await, sorted([&first, &third]));
        assert_eq!(app.get(&token, &app.path("")).await.code(), 401);
        assert_eq!(app.get(&app.owner, &app.path("")).await.code(), 200);
    }

    async fn a_key_that_was_just_retired_stays_for_those_who_still_sign_with_it(app) {
        let second = app.app.rotate_signing_key(&app.system).await.unwrap();
        let third = app.app.rotate_signing_key(&app.system).await.unwrap();
        maintenance::once(&app.app).await.unwrap();
        assert!(published(&app).await.contains(&second));
        app.advance(2 * HOUR);
        maintenance::once(&app.app).await.unwrap();
        assert_eq!(published(&app).await, sorted([&key_of(&app.owner), &third]));
    }

    async fn the_key_of_an_expired_token_is_deleted_with_it(app) {
        let second = app.app.rotate_signing_key(&app.system).await.unwrap();
        let body = json!({
            "name": "ci", "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER", "tokenExpiryPeriodInDays": 1,
        });
        assert_eq!(key_of(&bearer(&create(&app, &app.owner, body).await)), second);
        app.app.rotate_signing_key(&app.system).await.unwrap();
        app.advance(23 * HOUR);
        maintenance::once(&app.app).await.unwrap();
        assert!(published(&app).await.contains(&second));
        app.advance(2 * HOUR);
        maintenance::once(&app.app).await.unwrap();
        assert!(!published(&app).await.contains(&second));
    }
}
