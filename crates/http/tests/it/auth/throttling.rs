//! Those who guess are slowed down: by account and by address.

use std::time::Duration;

use podium_testkit::{Answer, TestApp, on_both_engines};
use serde_json::json;

use super::{PASSWORD, person};

const ADDRESS: &str = "192.0.2.1";

async fn try_from(app: &TestApp, address: &str, username: &str, password: &str) -> Answer {
    let body = json!({ "username": username, "password": password });
    app.call("POST", "/v1/auth/sign-in").from(address).json(&body).send().await
}

/// How many seconds the answer asks to wait.
fn wait(answer: &Answer) -> u64 {
    let seconds = answer.header("retry-after").to_owned();
    assert_eq!(answer.refused(429), format!("Too many requests: try again in {seconds} s."));
    seconds.parse().unwrap()
}

on_both_engines! {
    async fn password_guessing_is_throttled_more_after_every_failure(app) {
        person(&app, "ada").await;
        // Whether there is such an account makes no difference.
        for username in ["ada@podium.test", "nobody@podium.test"] {
            for failure in 0..6 {
                assert_eq!(try_from(&app, ADDRESS, username, "wrong").await.code(), 401, "{failure}");
            }
            for seconds in [2, 4, 8] {
                assert_eq!(wait(&try_from(&app, ADDRESS, username, PASSWORD).await), seconds);
                app.advance(Duration::from_millis(seconds * 1000 - 1));
                assert_eq!(wait(&try_from(&app, ADDRESS, username, PASSWORD).await), 1);
                app.advance(Duration::from_millis(1));
                assert_eq!(try_from(&app, ADDRESS, username, "wrong").await.code(), 401);
            }
        }
        app.advance(Duration::from_secs(16));
        assert_eq!(try_from(&app, ADDRESS, "ada@podium.test", PASSWORD).await.code(), 200);
        // A success clears the account, there.
        for _ in 0..6 {
            assert_eq!(try_from(&app, ADDRESS, "ada@podium.test", "wrong").await.code(), 401);
        }
        assert_eq!(wait(&try_from(&app, ADDRESS, "ADA@podium.test", PASSWORD).await), 2);
        // An hour later nothing is held against anybody.
        app.advance(Duration::from_secs(60 * 60));
        for _ in 0..6 {
            assert_eq!(try_from(&app, ADDRESS, "ada@podium.test", "wrong").await.code(), 401);
        }
    }

    async fn the_right_password_from_another_address_always_works(app) {
        person(&app, "ada").await;
        for guess in 0..20 {
            let answer = try_from(&app, ADDRESS, "ada@podium.test", "wrong").await;
            assert_eq!(answer.code(), if guess < 6 { 401 } else { 429 });
        }
        assert_eq!(try_from(&app, "198.51.100.1", "ada@podium.test", PASSWORD).await.code(), 200);
        // Nor do guesses from everywhere lock it.
        for number in 0..120 {
            let answer = try_from(&app, &format!("203.0.113.{number}"), "ada@podium.test", "wrong").await;
            assert_eq!(answer.code(), 401, "{number}");
        }
        assert_eq!(try_from(&app, "198.51.100.2", "ada@podium.test", PASSWORD).await.code(), 200);
        // Only, each address has fewer guesses from then on.
        for code in [401, 401, 429] {
            assert_eq!(try_from(&app, "198.51.100.3", "ada@podium.test", "wrong").await.code(), code);
        }
    }

    async fn an_address_waits_after_many_failures_with_any_account(app) {
        person(&app, "ada").await;
        for guess in 0..49 {
            let body = json!({ "token": format!("guess {guess}"), "fullName": "x", "password": PASSWORD });
            let answer = app.call("POST", "/v1/auth/accept-invite").from(ADDRESS).json(&body).send().await;
            assert_eq!(answer.code(), 404);
        }
        for guess in 0..2 {
            let answer = try_from(&app, ADDRESS, &format!("guess {guess}"), "wrong").await;
            assert_eq!(answer.code(), 401);
        }
        assert_eq!(wait(&try_from(&app, ADDRESS, "guess 0", "wrong").await), 2);
        // Whoever shares the address and has not guessed gets in.
        assert_eq!(try_from(&app, ADDRESS, "ada@podium.test", PASSWORD).await.code(), 200);
        let body = json!({ "token": "guess", "fullName": "x", "password": PASSWORD });
        assert_eq!(wait(&app.call("POST", "/v1/auth/accept-invite").from(ADDRESS).json(&body).send().await), 2);
        assert_eq!(try_from(&app, "192.0.2.2", "ada@podium.test", PASSWORD).await.code(), 200);
        app.advance(Duration::from_secs(2));
        assert_eq!(try_from(&app, ADDRESS, "ada@podium.test", PASSWORD).await.code(), 200);
        // The success of one account clears nothing for its address.
        assert_eq!(try_from(&app, ADDRESS, "guess 0", "wrong").await.code(), 401);
        assert_eq!(wait(&try_from(&app, ADDRESS, "guess 1", "wrong").await), 4);
        // In time its failures drain away.
        app.advance(Duration::from_secs(60 * 2));
        assert_eq!(try_from(&app, ADDRESS, "guess 1", "wrong").await.code(), 401);
        assert_eq!(wait(&try_from(&app, ADDRESS, "guess 1", "wrong").await), 2);
    }

    async fn guessing_the_current_password_is_slowed_down_too(app) {
        let ada = person(&app, "ada").await;
        let body = json!({ "currentPassword": "wrong", "newPassword": "another long password" });
        for _ in 0..6 {
            assert_eq!(app.post(&ada, "/v1/auth/change-password", body.clone()).await.code(), 400);
        }
        assert_eq!(wait(&app.post(&ada, "/v1/auth/change-password", body).await), 2);
        assert_eq!(wait(&try_from(&app, "127.0.0.1", "ada@podium.test", PASSWORD).await), 2);
        assert_eq!(try_from(&app, ADDRESS, "ada@podium.test", PASSWORD).await.code(), 200);
    }
}
