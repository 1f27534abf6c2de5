//! What a link can do: set a password for one who never had one and belongs nowhere else, and nothing more.

use podium_testkit::{Actor, TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{PASSWORD, accept, invite, link, person, session, sign_in, works};

const SIGN_IN_FIRST: &str =
    "The invited user already has an account: sign in as that user, then accept the invite.";

fn newcomer(secret: &str) -> Value {
    json!({ "token": secret, "fullName": "Mallory", "password": "a password of mallory" })
}

async fn leave(app: &TestApp, user: &Actor) {
    let roles = app.path(&format!("/users/{}/roles", user.id));
    app.post(&app.owner, &roles, json!({ "organizationRole": null })).await.ok();
}

on_both_engines! {
    async fn a_link_does_not_take_over_an_account_with_a_password(app) {
        let ada = person(&app, "ada").await;
        leave(&app, &ada).await;
        assert_eq!(sign_in(&app, "ada@podium.test", PASSWORD).await.code(), 401, "a member of nothing");
        let secret = link(&app, &invite(&app, "ada@podium.test").await).await;
        assert_eq!(accept(&app, newcomer(&secret)).await.refused(403), SIGN_IN_FIRST);
        assert_eq!(sign_in(&app, "ada@podium.test", "a password of mallory").await.code(), 401);
        // One who is invited back signs in with the password of before.
        let back = sign_in(&app, "ada@podium.test", PASSWORD).await;
        let back = session(&ada, &back);
        let accepted = app.post(&back, "/v1/auth/accept-invite", json!({ "token": secret })).await;
        assert_eq!(accepted.ok(), json!({ "organizationId": app.organization_id, "userId": ada.id }));
        let read = app.get(&app.owner, &app.path(&format!("/users/{}", ada.id))).await.ok();
        assert_eq!((&read["status"], &read["fullName"]), (&json!("ACTIVE"), &json!("ada")));
    }

    async fn a_link_does_not_take_over_a_member_of_another_organization(app) {
        let stranger = app.stranger().await;
        let secret = link(&app, &invite(&app, "stranger@podium.test").await).await;
        assert_eq!(accept(&app, newcomer(&secret)).await.refused(403), SIGN_IN_FIRST);
        assert_eq!(sign_in(&app, "stranger@podium.test", "a password of mallory").await.code(), 401);
        assert!(works(&app, &stranger).await);
    }

    async fn one_who_waits_in_two_organizations_sets_a_password_once(app) {
        let stranger = app.stranger().await;
        let elsewhere = app.get(&stranger, "/v1/organizations").await.ok()["organizations"][0]["id"].clone();
        let elsewhere = format!("/v1/organizations/{}/invites", elsewhere.as_str().unwrap());
        let ours = link(&app, &invite(&app, "ada@podium.test").await).await;
        let body = json!({ "inviteeEmail": "ada@podium.test", "role": "ORGANIZATION_OWNER" });
        let theirs = app.post(&stranger, &elsewhere, body).await.ok();
        let at = format!("{elsewhere}/{}/link", theirs["inviteId"].as_str().unwrap());
        let theirs = app.call("POST", &at).by(&stranger).send().await.ok()["token"].as_str().unwrap().to_owned();
        let first = accept(&app, json!({ "token": ours, "fullName": "Ada", "password": PASSWORD })).await.ok();
        assert_eq!(accept(&app, newcomer(&theirs)).await.refused(403), SIGN_IN_FIRST);
        let ada = Actor {
            id: first["userId"].as_str().unwrap().parse().unwrap(),
            token: first["session"]["token"].as_str().unwrap().to_owned(),
        };
        app.post(&ada, "/v1/auth/accept-invite", json!({ "token": theirs })).await.ok();
        assert_eq!(app.get(&ada, "/v1/organizations").await.ok()["totalCount"], 2);
    }

    async fn a_new_link_replaces_the_one_before(app) {
        let invited = invite(&app, "ada@podium.test").await;
        let (first, second) = (link(&app, &invited).await, link(&app, &invited).await);
        assert_ne!(first, second);
        assert_eq!(accept(&app, newcomer(&first)).await.code(), 404);
        let at = app.path(&format!("/invites/{}", invited["inviteId"].as_str().unwrap()));
        app.delete(&app.owner, &at).await.ok();
        assert_eq!(accept(&app, newcomer(&second)).await.code(), 404);
        for secret in ["nonsense", invited["inviteId"].as_str().unwrap()] {
            assert_eq!(accept(&app, newcomer(secret)).await.code(), 404);
        }
    }

    async fn an_account_that_never_had_a_password_and_lost_its_organization_can_be_claimed_again(app) {
        let invited = invite(&app, "ada@podium.test").await;
        let at = app.path(&format!("/invites/{}", invited["inviteId"].as_str().unwrap()));
        app.delete(&app.owner, &at).await.ok();
        let again = invite(&app, "ada@podium.test").await;
        assert_eq!(again["userId"], invited["userId"]);
        let secret = link(&app, &again).await;
        let body = json!({ "token": secret, "fullName": "Ada", "password": PASSWORD });
        assert_eq!(accept(&app, body).await.code(), 200);
        assert_eq!(sign_in(&app, "ada@podium.test", PASSWORD).await.code(), 200);
    }
}
