//! `/organizations/{organizationId}/invites`

use std::time::Duration;

use podium_api::enums::OrganizationRole;
use podium_testkit::{Answer, TestApp, on_both_engines};
use serde_json::{Value, json};

const DAY: Duration = Duration::from_secs(24 * 3600);

async fn invite(app: &TestApp, email: &str, role: &str) -> Answer {
    app.post(&app.owner, &app.path("/invites"), json!({ "inviteeEmail": email, "role": role })).await
}

fn path(app: &TestApp, invite: &Value) -> String {
    app.path(&format!("/invites/{}", invite["inviteId"].as_str().unwrap()))
}

async fn link(app: &TestApp, invite: &Value) -> Value {
    app.post(&app.owner, &format!("{}/link", path(app, invite)), json!(null)).await.ok()
}

/// Accepts with a link, as somebody who has no account yet.
async fn accept(app: &TestApp, link: &Value) -> Answer {
    let body = json!({ "token": link["token"], "fullName": "New", "password": "correct horse battery" });
    app.call("POST", "/v1/auth/accept-invite").json(&body).send().await
}

async fn user(app: &TestApp, invite: &Value) -> Answer {
    app.get(&app.owner, &app.path(&format!("/users/{}", invite["userId"].as_str().unwrap()))).await
}

on_both_engines! {
    async fn an_invite_creates_a_pending_user(app) {
        let invited = invite(&app, " New@Podium.test ", "ORGANIZATION_BILLING_ADMIN").await;
        assert_eq!(invited.code(), 200);
        insta::assert_json_snapshot!(invited.ok(), @r#"
        {
          "inviteId": "cmywpiww00004000000000000",
          "expiresAt": "2027-01-22T08:00:00.000Z",
          "invitee": {
            "id": "cmywpiww00005000000000000",
            "subjectType": "USER",
            "username": "New@Podium.test",
            "fullName": "",
            "avatarUrl": "https://podium.test/pictures/N.svg"
          },
          "inviter": {
            "id": "cmywpiww00001000000000000",
            "subjectType": "USER",
            "username": "owner@localhost",
            "fullName": "Owner",
            "avatarUrl": "https://podium.test/pictures/O.svg"
          },
          "organizationId": "cmywpiww00000000000000000",
          "organizationName": "My organization",
          "userId": "cmywpiww00005000000000000"
        }
        "#);
        let user = user(&app, &invited.ok()).await.ok();
        assert_eq!((&user["status"], &user["username"]), (&json!("PENDING"), &json!("New@Podium.test")));
        assert_eq!(user["organizationRole"], "ORGANIZATION_BILLING_ADMIN");
        assert_eq!(user["fullName"], "", "a required string without a value");
        assert_eq!(app.get(&app.owner, &app.path("/users")).await.ok()["totalCount"], 2);
    }

    async fn accepting_makes_the_user_active_and_grants_the_role(app) {
        let invited = invite(&app, "new@podium.test", "ORGANIZATION_BILLING_ADMIN").await.ok();
        let accepted = accept(&app, &link(&app, &invited).await).await.ok();
        let actor = podium_testkit::Actor {
            id: accepted["userId"].as_str().unwrap().parse().unwrap(),
            token: accepted["session"]["token"].as_str().unwrap().into(),
        };
        let user = user(&app, &invited).await.ok();
        assert_eq!(
            (&user["status"], &user["organizationRole"]),
            (&json!("ACTIVE"), &json!("ORGANIZATION_BILLING_ADMIN"))
        );
        let settings = json!({ "name": "Acme", "billingEmail": "", "isScimEnabled": false });
        assert_eq!(app.post(&actor, &app.path(""), settings).await.code(), 200);
        assert_eq!(
            app.delete(&app.owner, &path(&app, &invited)).await.code(),
            404,
            "an accepted invite is no more"
        );
        assert_eq!(app.get(&actor, "/v1/users/self").await.ok()["invites"], json!([]));
    }

    async fn a_member_is_not_invited(app) {
        app.member("eve").await;
        let message = invite(&app, "EVE@podium.TEST", "ORGANIZATION_MEMBER").await.refused(409);
        assert_eq!(message, "`eve@podium.test` already belongs to the organization.");
        assert_eq!(invite(&app, "owner@localhost", "ORGANIZATION_MEMBER").await.code(), 409);
    }

    async fn inviting_a_pending_user_renews_the_invite(app) {
        let first = invite(&app, "new@podium.test", "ORGANIZATION_MEMBER").await.ok();
        let old = link(&app, &first).await;
        app.advance(6 * DAY);
        let again = invite(&app, "NEW@podium.test", "ORGANIZATION_OWNER").await;
        assert_eq!(again.code(), 200);
        let again = again.ok();
        assert_eq!((&again["inviteId"], &again["userId"]), (&first["inviteId"], &first["userId"]));
        assert_eq!(again["expiresAt"], "2027-01-28T08:00:00.000Z");
        assert_eq!(user(&app, &first).await.ok()["organizationRole"], "ORGANIZATION_OWNER");
        assert_eq!(app.get(&app.owner, &app.path("/users")).await.ok()["totalCount"], 2);
        assert_eq!(accept(&app, &old).await.code(), 404, "the old link is dead");
        app.advance(2 * DAY);
        assert_eq!(accept(&app, &link(&app, &again).await).await.code(), 200);
    }

    async fn an_invite_lasts_seven_days_and_can_be_renewed_after(app) {
        let invited = invite(&app, "new@podium.test", "ORGANIZATION_MEMBER").await.ok();
        assert_eq!(invited["expiresAt"], "2027-01-22T08:00:00.000Z");
        let late = link(&app, &invited).await;
        app.advance(7 * DAY);
        assert_eq!(accept(&app, &late).await.code(), 404);
        assert_eq!(user(&app, &invited).await.ok()["status"], "PENDING");
        let again = invite(&app, "new@podium.test", "ORGANIZATION_MEMBER").await.ok();
        assert_eq!(again["inviteId"], invited["inviteId"]);
        assert_eq!(accept(&app, &link(&app, &again).await).await.code(), 200);
    }

    async fn a_withdrawn_invite_leaves_nothing_behind(app) {
        let workspace = app.workspace("Data").await;
        let invited = invite(&app, "new@podium.test", "ORGANIZATION_MEMBER").await.ok();
        let roles = json!({ "workspaceRoles": [{ "workspaceId": workspace, "role": "WORKSPACE_OWNER" }] });
        let user_path = app.path(&format!("/users/{}/roles", invited["userId"].as_str().unwrap()));
        app.post(&app.owner, &user_path, roles).await.ok();
        let body = json!({ "name": "Crew", "memberIds": [invited["userId"]] });
        let team = app.post(&app.owner, &app.path("/teams"), body).await.id();
        let dead = link(&app, &invited).await;

        let gone = app.delete(&app.owner, &path(&app, &invited)).await;
        assert_eq!((gone.code(), gone.bytes.len()), (204, 0));
        let message = app.delete(&app.owner, &path(&app, &invited)).await.refused(404);
        assert_eq!(message, "There is no such invite, or you may not see it.");
        assert_eq!(user(&app, &invited).await.code(), 404);
        assert_eq!(accept(&app, &dead).await.code(), 404);
        let members = app.get(&app.owner, &app.path(&format!("/teams/{team}/members"))).await.ok();
        assert_eq!(members["totalCount"], 0);
        let again = invite(&app, "new@podium.test", "ORGANIZATION_MEMBER").await.ok();
        assert_eq!(again["userId"], invited["userId"], "the account is the same");
        assert_ne!(again["inviteId"], invited["inviteId"]);
        assert_eq!(user(&app, &again).await.ok().get("workspaceRoles"), None);
    }

    async fn roles_of_a_pending_user_count_once_it_accepts(app) {
        let workspace = app.workspace("Data").await;
        let invited = invite(&app, "new@podium.test", "ORGANIZATION_MEMBER").await.ok();
        let roles = json!({
            "organizationRole": "ORGANIZATION_BILLING_ADMIN",
            "workspaceRoles": [{ "workspaceId": workspace, "role": "WORKSPACE_OWNER" }],
        });
        let user_path = app.path(&format!("/users/{}/roles", invited["userId"].as_str().unwrap()));
        app.post(&app.owner, &user_path, roles).await.ok();
        accept(&app, &link(&app, &invited).await).await.ok();
        let user = user(&app, &invited).await.ok();
        assert_eq!(user["organizationRole"], "ORGANIZATION_BILLING_ADMIN");
        assert_eq!(user["workspaceRoles"], json!([{ "role": "WORKSPACE_OWNER", "workspaceId": workspace }]));
    }

    async fn a_link_is_made_from_the_public_url_and_replaces_the_one_before(app) {
        let invited = invite(&app, "new@podium.test", "ORGANIZATION_MEMBER").await.ok();
        let first = link(&app, &invited).await;
        let call = app.call("POST", &format!("{}/link", path(&app, &invited))).by(&app.owner);
        let second = call.header("host", "evil.test").send().await.ok();
        for link in [&first, &second] {
            let token = link["token"].as_str().unwrap();
            assert_eq!(link["url"], format!("https://podium.test/accept-invite?token={token}"));
            assert_eq!(link["expiresAt"], "2027-01-22T08:00:00.000Z");
        }
        assert_eq!(accept(&app, &first).await.code(), 404);
        assert_eq!(accept(&app, &second).await.code(), 200);
    }

    async fn every_wrong_field_is_named(app) {
        for (email, wrong) in [
            ("nobody", "inviteeEmail: format"),
            ("", "inviteeEmail: format"),
            ("a@b\r\nBcc: c@d", "inviteeEmail: format"),
        ] {
            assert_eq!(invite(&app, email, "ORGANIZATION_MEMBER").await.wrong_fields(), [wrong], "{email:?}");
        }
        let long = format!("{}@podium.test", "x".repeat(250));
        assert_eq!(invite(&app, &long, "").await.wrong_fields(), ["inviteeEmail: maxLength", "role: enum"]);
        let empty = app.post(&app.owner, &app.path("/invites"), json!({})).await.wrong_fields();
        assert_eq!(empty, ["inviteeEmail: required", "role: required"]);
    }

    async fn only_owners_invite(app) {
        let invited = invite(&app, "new@podium.test", "ORGANIZATION_MEMBER").await.ok();
        let body = json!({ "inviteeEmail": "friend@podium.test", "role": "ORGANIZATION_MEMBER" });
        for role in [OrganizationRole::Member, OrganizationRole::BillingAdmin] {
            let actor = app.member_as(role.as_str(), role).await;
            assert_eq!(app.post(&actor, &app.path("/invites"), body.clone()).await.code(), 403);
            assert_eq!(app.delete(&actor, &path(&app, &invited)).await.code(), 403);
            assert_eq!(
                app.post(&actor, &format!("{}/link", path(&app, &invited)), json!(null)).await.code(),
                403
            );
        }
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
        let by_token = app.post(&token, &app.path("/invites"), body).await.ok();
        assert_eq!(
            by_token["inviter"],
            json!({ "id": token.id, "subjectType": "SERVICEKEY", "apiTokenName": "ci" })
        );
    }
}
