//! Passwords, tokens and links are in no log, no audit record, no error and no table.

use podium_testkit::on_both_engines;
use serde_json::json;

use crate::captured_log::{capture_log, logged};

use super::{PASSWORD, accept, invite, link, post, session, sign_in};

on_both_engines! {
    async fn secrets_stay_secret(app) {
        capture_log();
        let secret = link(&app, &invite(&app, "ada@podium.test").await).await;
        let mut answers = String::new();
        app.call("GET", &format!("/accept-invite?token={secret}")).send().await;
        for body in [
            json!({ "token": secret, "fullName": "", "password": "short secret".get(..9) }),
            json!({ "token": [secret], "fullName": "Ada", "password": { "is": PASSWORD } }),
        ] {
            answers += &accept(&app, body).await.text();
        }
        let broken = format!("{{\"token\":\"{secret}\",\"password\":\"{PASSWORD}\"");
        let broken = app.call("POST", "/v1/auth/accept-invite").header("content-type", "application/json").body(broken);
        answers += &broken.send().await.text();
        let accepted = accept(&app, json!({ "token": secret, "fullName": "Ada", "password": PASSWORD })).await.ok();
        let ada = podium_testkit::Actor {
            id: accepted["userId"].as_str().unwrap().parse().unwrap(),
            token: accepted["session"]["token"].as_str().unwrap().to_owned(),
        };
        let second = session(&ada, &sign_in(&app, "ada@podium.test", PASSWORD).await);
        let wrong = "a secret that was mistyped";
        answers += &sign_in(&app, "ada@podium.test", wrong).await.text();
        let (new, change) = ("the next secret password", "/v1/auth/change-password");
        answers += &app.post(&second, change, json!({ "currentPassword": wrong, "newPassword": "next secr" })).await.text();
        app.post(&second, change, json!({ "currentPassword": PASSWORD, "newPassword": new })).await.ok();
        let renew = app.call("POST", "/v1/auth/renew").by(&second).header("idempotency-key", "a key");
        let third = session(&ada, &renew.send().await);
        answers += &app.get(&second, &app.path("")).await.text();
        answers += &post(&app, &third, "sign-out").await.text();
        answers += &app.get(&app.owner, &app.path("/audit-logs")).await.text();

        let stored = app.stored().await;
        let log = logged();
        assert!(String::from_utf8_lossy(&log).contains("SignIn"), "the log is kept");
        let tail = |token: &str| token.rsplit_once('.').unwrap().1.to_owned();
        let secrets = [
            secret,
            PASSWORD.into(),
            "short sec".into(),
            wrong.into(),
            new.into(),
            "next secr".into(),
            tail(&ada.token),
            tail(&second.token),
            tail(&third.token),
            tail(&app.owner.token),
        ];
        for secret in secrets {
            let holds = |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!holds(&stored), "{secret} is stored");
            assert!(!holds(&log), "{secret} is in the log");
            assert!(!holds(answers.as_bytes()), "{secret} is in an answer");
        }
    }
}
