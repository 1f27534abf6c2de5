//! Accepting an invite: as a newcomer with a password, or as somebody who is signed in.

use std::time::Duration;

use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{EIGHT_HOURS, PASSWORD, accept, invite, link, person, sign_in, works};

on_both_engines! {
    async fn a_new_user_chooses_a_name_and_a_password(app) {
        let invite = invite(&app, "Ada@Podium.test").await;
        let secret = link(&app, &invite).await;
        let user = app.path(&format!("/users/{}", invite["userId"].as_str().unwrap()));
        assert_eq!(app.get(&app.owner, &user).await.ok()["status"], "PENDING");
        let body = json!({ "token": secret, "fullName": " Ada Lovelace ", "password": PASSWORD });
        let accepted = accept(&app, body.clone()).await.ok();
        assert_eq!(accepted, json!({
            "organizationId": app.organization_id,
            "userId": invite["userId"],
            "session": {
                "token": accepted["session"]["token"],
                "expiresAt": "2027-01-15T16:00:00.000Z",
                "userId": invite["userId"],
            },
        }));
        let read = app.get(&app.owner, &user).await.ok();
        assert_eq!(
            (&read["status"], &read["fullName"], &read["username"], &read["organizationRole"]),
            (&json!("ACTIVE"), &json!("Ada Lovelace"), &json!("Ada@Podium.test"), &json!("ORGANIZATION_MEMBER"))
        );
        let own = app.call("GET", &app.path("/users"));
        let token = format!("Bearer {}", accepted["session"]["token"].as_str().unwrap());
        assert_eq!(own.header("authorization", &token).send().await.ok()["totalCount"], 2);
        assert_eq!(sign_in(&app, "ada@podium.test", PASSWORD).await.code(), 200);
        assert_eq!(accept(&app, body).await.refused(404), "There is no such invite, or you may not see it.");
        let mut records = app.audit().await;
        let signed_in = records.pop().unwrap();
        assert_eq!((&signed_in["operationId"], &signed_in["subjectId"]), (&json!("SignIn"), &invite["userId"]));
        let record = records.pop().unwrap();
        assert_eq!(
            (&record["operationId"], &record["subjectId"], &record["subjectName"], &record["statusCode"]),
            (&json!("AcceptInvite"), &invite["userId"], &json!("Ada@Podium.test"), &json!(200))
        );
        assert_eq!(record["requestBody"], json!({ "fullName": " Ada Lovelace " }));
    }

    async fn a_user_of_another_organization_accepts_while_signed_in(app) {
        let stranger = app.stranger().await;
        let invited = invite(&app, "stranger@podium.test").await;
        assert_eq!(invited["userId"], json!(stranger.id));
        let secret = link(&app, &invited).await;
        assert_eq!(app.get(&stranger, &app.path("")).await.code(), 404);
        assert_eq!(
            accept(&app, json!({ "token": secret, "fullName": "Eve", "password": PASSWORD })).await.refused(403),
            "The invited user already has an account: sign in as that user, then accept the invite."
        );
        let signed_in = async |body: Value| app.post(&stranger, "/v1/auth/accept-invite", body).await;
        let more = json!({ "token": secret, "fullName": "Eve", "password": PASSWORD });
        assert_eq!(signed_in(more).await.wrong_fields(), ["fullName: excluded", "password: excluded"]);
        let accepted = signed_in(json!({ "token": secret })).await.ok();
        assert_eq!(accepted, json!({ "organizationId": app.organization_id, "userId": stranger.id }));
        assert_eq!(app.get(&stranger, &app.path("")).await.code(), 200);
        assert_eq!(app.get(&stranger, "/v1/organizations").await.ok()["totalCount"], 2);
        assert_eq!(signed_in(json!({ "token": secret })).await.code(), 404);
        assert_eq!(sign_in(&app, "stranger@podium.test", PASSWORD).await.code(), 401, "no password was set");
    }

    async fn an_invite_is_for_one_user(app) {
        let secret = link(&app, &invite(&app, "ada@podium.test").await).await;
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
        for actor in [&app.owner, &app.stranger().await, &token] {
            assert_eq!(
                app.post(actor, "/v1/auth/accept-invite", json!({ "token": secret })).await.refused(403),
                "This invite is for another user: sign in as the invited user."
            );
        }
        let mut dead = person(&app, "bob").await;
        app.advance(EIGHT_HOURS);
        for expected in ["expired", "malformed"] {
            let answer = app.post(&dead, "/v1/auth/accept-invite", json!({ "token": secret })).await;
            assert!(answer.refused(401).contains(expected));
            dead.token = "nonsense".into();
        }
        let body = json!({ "token": secret, "fullName": "Ada", "password": PASSWORD });
        assert_eq!(accept(&app, body).await.code(), 200);
    }

    async fn a_name_and_a_good_password_are_needed(app) {
        let secret = link(&app, &invite(&app, "adalovelace@podium.test").await).await;
        for (body, wrong) in [
            (json!({}), vec!["fullName: required", "password: required"]),
            (json!({ "fullName": " ", "password": "           " }), vec!["password: minLength"]),
            (json!({ "fullName": " ", "password": "            " }), vec!["fullName: required", "password: required"]),
            (json!({ "fullName": "Ada", "password": "eleven char" }), vec!["password: minLength"]),
            (json!({ "fullName": "Ada", "password": "AdaLovelace@podium.test" }), vec!["password: sameAsUsername"]),
            (json!({ "fullName": "x".repeat(129), "password": PASSWORD }), vec!["fullName: maxLength"]),
            (json!({ "fullName": "Ada", "password": "x".repeat(1025) }), vec!["password: maxLength"]),
        ] {
            let mut request = body.clone();
            request["token"] = json!(secret);
            assert_eq!(accept(&app, request).await.wrong_fields(), wrong, "{body}");
        }
        assert_eq!(accept(&app, json!({ "fullName": "Ada", "password": PASSWORD })).await.wrong_fields(), [
            "token: required",
        ]);
        let long = json!({ "token": secret, "fullName": "ü".repeat(128), "password": "x".repeat(1024) });
        assert_eq!(accept(&app, long).await.code(), 200);
    }

    async fn one_link_is_used_once_however_many_try(app) {
        let secret = link(&app, &invite(&app, "ada@podium.test").await).await;
        let passwords: Vec<String> = (0..4).map(|n| format!("{PASSWORD} {n}")).collect();
        let tries = passwords.iter().map(|password| {
            accept(&app, json!({ "token": secret, "fullName": "Ada", "password": password }))
        });
        let answers = futures_util::future::join_all(tries).await;
        let accepted: Vec<usize> =
            answers.iter().enumerate().filter(|(_, answer)| answer.code() == 200).map(|(index, _)| index).collect();
        assert_eq!(accepted.len(), 1);
        for (index, password) in passwords.iter().enumerate() {
            let code = sign_in(&app, "ada@podium.test", password).await.code();
            assert_eq!(code == 200, accepted == [index]);
        }
    }

    async fn roles_that_were_set_while_waiting_stay(app) {
        let workspace = app.workspace("Data").await;
        let invited = invite(&app, "ada@podium.test").await;
        let user = app.path(&format!("/users/{}", invited["userId"].as_str().unwrap()));
        let roles = json!({
            "organizationRole": "ORGANIZATION_BILLING_ADMIN",
            "workspaceRoles": [{ "workspaceId": workspace, "role": "WORKSPACE_AUTHOR" }],
        });
        app.post(&app.owner, &format!("{user}/roles"), roles.clone()).await.ok();
        let secret = link(&app, &invited).await;
        accept(&app, json!({ "token": secret, "fullName": "Ada", "password": PASSWORD })).await.ok();
        let read = app.get(&app.owner, &user).await.ok();
        assert_eq!(read["status"], "ACTIVE");
        assert_eq!(read["organizationRole"], roles["organizationRole"]);
        assert_eq!(read["workspaceRoles"], roles["workspaceRoles"]);
    }

    async fn invites_are_accepted_from_allowed_addresses_only(app) {
        let secret = link(&app, &invite(&app, "ada@podium.test").await).await;
        let range = json!({ "ipAddressRange": "127.0.0.0/8" });
        app.post(&app.owner, &app.path("/allowed-ip-address-ranges"), range).await.ok();
        let body = json!({ "token": secret, "fullName": "Ada", "password": PASSWORD });
        let outside = app.call("POST", "/v1/auth/accept-invite").from("192.0.2.1").json(&body).send().await;
        assert_eq!(
            outside.refused(403),
            "Requests from 192.0.2.1 are not allowed: ask an owner to allow your address range."
        );
        assert_eq!(accept(&app, body).await.code(), 200);
    }

    async fn an_invite_lasts_for_seven_days(app) {
        let secret = link(&app, &invite(&app, "ada@podium.test").await).await;
        let body = json!({ "token": secret, "fullName": "Ada", "password": PASSWORD });
        app.advance(Duration::from_secs(7 * 24 * 60 * 60));
        assert_eq!(accept(&app, body.clone()).await.code(), 404);
        let renewed = link(&app, &invite(&app, "ada@podium.test").await).await;
        assert_eq!(accept(&app, body.clone()).await.code(), 404);
        app.advance(Duration::from_millis(7 * 24 * 60 * 60 * 1000 - 1));
        let body = json!({ "token": renewed, "fullName": "Ada", "password": PASSWORD });
        let accepted = accept(&app, body).await.ok();
        let token = accepted["session"]["token"].as_str().unwrap().to_owned();
        assert!(works(&app, &podium_testkit::Actor { id: app.owner.id, token }).await);
    }
}
