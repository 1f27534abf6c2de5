//! `/auth`: accounts without an identity provider.

mod accept;
mod links;
mod passwords;
mod secrecy;
pub(crate) mod sessions;
mod throttling;

use std::time::Duration;

use podium_testkit::{Actor, Answer, TestApp, on_both_engines};
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse battery";
const WRONG: &str = "The username or password is wrong.";
const REVOKED: &str = "The token is revoked: it was deleted, rotated or signed out.";
const EIGHT_HOURS: Duration = Duration::from_secs(8 * 60 * 60);

/// Invites a person as a member; answers with the invite.
async fn invite(app: &TestApp, email: &str) -> Value {
    let body = json!({ "inviteeEmail": email, "role": "ORGANIZATION_MEMBER" });
    app.post(&app.owner, &app.path("/invites"), body).await.ok()
}

/// The secret of a fresh link to an invite.
async fn link(app: &TestApp, invite: &Value) -> String {
    let at = app.path(&format!("/invites/{}/link", invite["inviteId"].as_str().unwrap()));
    app.call("POST", &at).by(&app.owner).send().await.ok()["token"].as_str().unwrap().to_owned()
}

/// Accepts an invite as somebody who is not signed in.
async fn accept(app: &TestApp, body: Value) -> Answer {
    app.call("POST", "/v1/auth/accept-invite").json(&body).send().await
}

/// A member with a password, signed in.
async fn person(app: &TestApp, name: &str) -> Actor {
    let secret = link(app, &invite(app, &format!("{name}@podium.test")).await).await;
    let accepted = accept(app, json!({ "token": secret, "fullName": name, "password": PASSWORD })).await.ok();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Actor { id: text(&accepted["userId"]).parse().unwrap(), token: text(&accepted["session"]["token"]) }
}

async fn sign_in(app: &TestApp, username: &str, password: &str) -> Answer {
    let body = json!({ "username": username, "password": password });
    app.call("POST", "/v1/auth/sign-in").header("x-request-id", "same").json(&body).send().await
}

/// The same user with the session of an answer.
fn session(user: &Actor, answer: &Answer) -> Actor {
    Actor { id: user.id, token: answer.ok()["token"].as_str().unwrap().to_owned() }
}

async fn post(app: &TestApp, by: &Actor, operation: &str) -> Answer {
    app.call("POST", &format!("/v1/auth/{operation}")).by(by).send().await
}

/// Whether a token still opens the door.
async fn works(app: &TestApp, actor: &Actor) -> bool {
    match app.get(actor, "/v1/users/self").await.code() {
        200 => true,
        401 => false,
        other => panic!("{other}"),
    }
}

on_both_engines! {
    async fn a_password_opens_a_session_of_eight_hours(app) {
        let ada = person(&app, "ada").await;
        let answer = sign_in(&app, "ada@podium.test", PASSWORD).await;
        let opened = session(&ada, &answer);
        assert_eq!(answer.ok(), json!({
            "token": opened.token,
            "expiresAt": "2027-01-15T16:00:00.000Z",
            "userId": ada.id,
        }));
        assert_eq!(app.get(&opened, "/v1/users/self").await.ok()["username"], "ada@podium.test");
        assert_eq!(sign_in(&app, " ADA@Podium.test ", PASSWORD).await.code(), 200);
        app.advance(EIGHT_HOURS - Duration::from_millis(1));
        assert!(works(&app, &opened).await);
        app.advance(Duration::from_millis(1));
        assert_eq!(
            app.get(&opened, "/v1/users/self").await.refused(401),
            "The token is expired: sign in again, or rotate the API token."
        );
        assert_eq!(sign_in(&app, "ada@podium.test", PASSWORD).await.code(), 200);
    }

    async fn the_response_is_the_same_whatever_is_wrong(app) {
        person(&app, "ada").await;
        let gone = person(&app, "gone").await;
        invite(&app, "pending@podium.test").await;
        let leave = json!({ "organizationRole": null });
        app.post(&app.owner, &app.path(&format!("/users/{}/roles", gone.id)), leave).await.ok();
        let wrong = sign_in(&app, "ada@podium.test", "wrong horse battery").await;
        assert_eq!(wrong.refused(401), WRONG);
        for (username, password) in [
            ("nobody@podium.test", PASSWORD),
            ("no address", PASSWORD),
            ("owner@localhost", PASSWORD),
            ("pending@podium.test", PASSWORD),
            ("gone@podium.test", PASSWORD),
            ("ada@podium.test", "correct horse batter"),
            ("ada@podium.test", "Correct horse battery"),
            ("ada@podium.test", " correct horse battery"),
        ] {
            let answer = sign_in(&app, username, password).await;
            assert_eq!((answer.code(), answer.text()), (401, wrong.text()), "{username}");
            assert_eq!(answer.headers, wrong.headers, "{username}");
        }
    }

    async fn a_name_and_a_password_are_needed(app) {
        for (body, wrong) in [
            (json!({}), vec!["password: required", "username: required"]),
            (json!({ "username": "", "password": "" }), vec!["password: minLength", "username: minLength"]),
            (json!({ "username": "ada", "password": "x".repeat(1025) }), vec!["password: maxLength"]),
            (json!({ "username": "x".repeat(255), "password": "x" }), vec!["username: maxLength"]),
            (json!({ "username": 7, "password": [] }), vec!["password: type", "username: type"]),
        ] {
            let answer = app.call("POST", "/v1/auth/sign-in").json(&body).send().await;
            let mut fields = answer.wrong_fields();
            fields.sort();
            assert_eq!(fields, wrong, "{body}");
        }
    }

    async fn renewal_exchanges_a_session_for_a_fresh_one(app) {
        let ada = person(&app, "ada").await;
        let other = session(&ada, &sign_in(&app, "ada@podium.test", PASSWORD).await);
        app.advance(EIGHT_HOURS / 2);
        let renewed = post(&app, &ada, "renew").await;
        let fresh = session(&ada, &renewed);
        assert_eq!(renewed.ok()["expiresAt"], "2027-01-15T20:00:00.000Z");
        assert_eq!(post(&app, &ada, "renew").await.refused(401), REVOKED);
        assert!(!works(&app, &ada).await);
        assert!(works(&app, &other).await, "a session of its own");
        app.advance(EIGHT_HOURS / 2);
        assert!(works(&app, &fresh).await);
        assert!(!works(&app, &other).await);
        assert_eq!(post(&app, &other, "renew").await.code(), 401);
        assert_eq!(
            post(&app, &app.owner, "renew").await.refused(400),
            "This token never expires, so it needs no renewal: keep using it."
        );
    }

    async fn signing_out_ends_one_session(app) {
        let ada = person(&app, "ada").await;
        let other = session(&ada, &sign_in(&app, "ada@podium.test", PASSWORD).await);
        assert!(works(&app, &ada).await);
        assert_eq!(post(&app, &ada, "sign-out").await.code(), 204);
        assert_eq!(app.get(&ada, "/v1/users/self").await.refused(401), REVOKED);
        assert_eq!(app.get(&ada, &app.path("")).await.refused(401), REVOKED);
        assert_eq!(post(&app, &ada, "sign-out").await.code(), 401);
        assert!(works(&app, &other).await);
    }

    async fn a_session_shows_what_its_user_may_do_now(app) {
        let ada = person(&app, "ada").await;
        let create = async |name: &str| app.post(&ada, &app.path("/workspaces"), json!({ "name": name })).await.code();
        let roles = app.path(&format!("/users/{}/roles", ada.id));
        assert_eq!(create("A").await, 403);
        app.post(&app.owner, &roles, json!({ "organizationRole": "ORGANIZATION_OWNER" })).await.ok();
        assert_eq!(create("B").await, 200);
        app.post(&app.owner, &roles, json!({ "organizationRole": "ORGANIZATION_MEMBER" })).await.ok();
        assert_eq!(create("C").await, 403);
        app.post(&app.owner, &roles, json!({ "organizationRole": null })).await.ok();
        assert_eq!(create("D").await, 404);
        assert_eq!(app.get(&ada, "/v1/organizations").await.ok()["totalCount"], 0);
    }

    async fn a_public_operation_ignores_an_idempotency_key(app) {
        person(&app, "ada").await;
        let ask = async |password: &str, key: &str| {
            let body = json!({ "username": "ada@podium.test", "password": password });
            app.call("POST", "/v1/auth/sign-in").header("idempotency-key", key).json(&body).send().await
        };
        let (first, second) = (ask(PASSWORD, "k").await.ok(), ask(PASSWORD, "k").await.ok());
        assert_ne!(first["token"], second["token"], "each call counts by itself");
        assert_eq!(ask("wrong horse battery", "k").await.refused(401), WRONG);
        assert_eq!(ask(PASSWORD, &"k".repeat(256)).await.code(), 200);
    }
}
