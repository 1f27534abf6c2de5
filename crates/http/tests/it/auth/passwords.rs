//! Changing a password, or setting the first one.

use podium_testkit::{Actor, Answer, TestApp, on_both_engines};
use serde_json::json;

use super::{PASSWORD, REVOKED, person, session, sign_in, works};

const NEW: &str = "another long password";

async fn change(app: &TestApp, by: &Actor, current: &str, new: &str) -> Answer {
    let body = json!({ "currentPassword": current, "newPassword": new });
    app.post(by, "/v1/auth/change-password", body).await
}

on_both_engines! {
    async fn a_new_password_ends_every_other_session(app) {
        let ada = person(&app, "ada").await;
        let bob = person(&app, "bob").await;
        let other = session(&ada, &sign_in(&app, "ada@podium.test", PASSWORD).await);
        assert!(works(&app, &ada).await && works(&app, &other).await);
        assert_eq!(change(&app, &ada, PASSWORD, NEW).await.code(), 204);
        assert!(works(&app, &ada).await);
        assert_eq!(app.get(&other, "/v1/users/self").await.refused(401), REVOKED);
        assert_eq!(app.get(&other, &app.path("")).await.code(), 401);
        assert!(works(&app, &bob).await);
        assert_eq!(sign_in(&app, "ada@podium.test", PASSWORD).await.code(), 401);
        assert_eq!(sign_in(&app, "ada@podium.test", NEW).await.code(), 200);
        assert_eq!(sign_in(&app, "bob@podium.test", PASSWORD).await.code(), 200);
    }

    async fn only_who_knows_the_password_changes_it(app) {
        let ada = person(&app, "ada").await;
        for (current, new, wrong) in [
            ("wrong horse battery", NEW, vec!["currentPassword: wrong"]),
            ("", NEW, vec!["currentPassword: wrong"]),
            (PASSWORD, "eleven char", vec!["newPassword: minLength"]),
            (PASSWORD, "             ", vec!["newPassword: required"]),
            ("wrong", "             ", vec!["newPassword: required", "currentPassword: wrong"]),
            (PASSWORD, "ADA@PODIUM.TEST", vec!["newPassword: sameAsUsername"]),
        ] {
            assert_eq!(change(&app, &ada, current, new).await.wrong_fields(), wrong, "{current:?} {new:?}");
        }
        let nobody = app.call("POST", "/v1/auth/change-password");
        let body = json!({ "currentPassword": PASSWORD, "newPassword": NEW });
        assert_eq!(nobody.json(&body).send().await.code(), 401);
        assert_eq!(sign_in(&app, "ada@podium.test", PASSWORD).await.code(), 200);
    }

    async fn the_owner_of_the_first_start_sets_a_first_password(app) {
        assert_eq!(change(&app, &app.owner, PASSWORD, NEW).await.wrong_fields(), ["currentPassword: wrong"]);
        assert_eq!(change(&app, &app.owner, "", NEW).await.code(), 204);
        let opened = session(&app.owner, &sign_in(&app, "owner@localhost", NEW).await);
        assert_eq!(change(&app, &app.owner, "", PASSWORD).await.wrong_fields(), ["currentPassword: wrong"]);
        assert_eq!(change(&app, &opened, NEW, PASSWORD).await.code(), 204);
        assert!(works(&app, &app.owner).await, "the token of the first start is no session of a browser");
    }

    async fn of_two_changes_at_once_one_counts(app) {
        let ada = person(&app, "ada").await;
        let news: Vec<String> = (0..3).map(|n| format!("{NEW} {n}")).collect();
        let changes = news.iter().map(|new| change(&app, &ada, PASSWORD, new));
        let answers = futures_util::future::join_all(changes).await;
        let codes: Vec<u16> = answers.iter().map(Answer::code).collect();
        assert_eq!(codes.iter().filter(|code| **code == 204).count(), 1, "{codes:?}");
        assert_eq!(codes.iter().filter(|code| **code == 400).count(), 2, "{codes:?}");
        for (new, code) in news.iter().zip(codes) {
            assert_eq!(sign_in(&app, "ada@podium.test", new).await.code() == 200, code == 204);
        }
    }
}
