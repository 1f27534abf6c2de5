//! A caller is judged again when its body has arrived, whatever it was when its head came.

use std::time::Duration;

use podium_api::enums::OrganizationRole;
use podium_domain::On;
use podium_testkit::{Actor, Call, TestApp, on_both_engines, role};
use serde_json::{Value, json};

/// A call that makes an API token with every right there is.
fn new_token<'a>(app: &'a TestApp, by: &Actor) -> Call<'a> {
    let body = json!({ "name": "left behind", "scope": "ORGANIZATION", "role": "ORGANIZATION_OWNER" });
    app.call("POST", &app.path("/tokens")).by(by).json(&body)
}

async fn tokens(app: &TestApp) -> Value {
    app.get(&app.owner, &app.path("/tokens")).await.ok()["totalCount"].clone()
}

async fn set_roles(app: &TestApp, by: &Actor, of: &Actor, body: Value) {
    app.post(by, &app.path(&format!("/users/{}/roles", of.id)), body).await.ok();
}

on_both_engines! {
    async fn an_owner_who_is_removed_concurrently_leaves_nothing_behind(app) {
        let leaver = app.member_as("leaver", OrganizationRole::Owner).await;
        let meanwhile = set_roles(&app, &app.owner, &leaver, json!({ "organizationRole": null }));
        let answer = new_token(&app, &leaver).send_with_delayed_body(meanwhile).await;
        assert_eq!(answer.refused(404), "There is no such organization, or you may not see it.");
        assert_eq!(tokens(&app).await, 0);
    }

    async fn an_owner_who_is_demoted_meanwhile_is_a_member(app) {
        let demoted = app.member_as("demoted", OrganizationRole::Owner).await;
        let meanwhile = set_roles(&app, &app.owner, &demoted, json!({ "organizationRole": "ORGANIZATION_MEMBER" }));
        new_token(&app, &demoted).send_with_delayed_body(meanwhile).await.refused(403);
        assert_eq!(tokens(&app).await, 0);
        let promoted = app.member("promoted").await;
        let meanwhile = set_roles(&app, &app.owner, &promoted, json!({ "organizationRole": "ORGANIZATION_OWNER" }));
        new_token(&app, &promoted).send_with_delayed_body(meanwhile).await.ok();
    }

    async fn a_token_that_is_deleted_or_rotated_meanwhile_is_revoked(app) {
        for (name, method, rest) in [("deleted", "DELETE", ""), ("rotated", "POST", "/rotate")] {
            let token = app.token(name, "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
            let before = tokens(&app).await.as_u64().unwrap();
            let path = app.path(&format!("/tokens/{}{rest}", token.id));
            let meanwhile = async {
                let done = app.call(method, &path).by(&app.owner).send().await;
                assert!(done.status.is_success(), "{}", done.text());
            };
            let refused = new_token(&app, &token).send_with_delayed_body(meanwhile).await;
            assert!(refused.refused(401).contains("revoked"));
            let gone = u64::from(method == "DELETE");
            assert_eq!(tokens(&app).await, before - gone);
        }
    }

    async fn a_session_that_ends_meanwhile_is_over(app) {
        let owner = app.member_as("owner", OrganizationRole::Owner).await;
        let session = app.session_of(&owner).await;
        let meanwhile = async { drop(app.post(&session, "/v1/auth/sign-out", json!({})).await) };
        assert!(new_token(&app, &session).send_with_delayed_body(meanwhile).await.refused(401).contains("revoked"));
        let session = app.session_of(&owner).await;
        let body = json!({ "currentPassword": "", "newPassword": "a password that is new" });
        let meanwhile = async { drop(app.post(&owner, "/v1/auth/change-password", body).await) };
        assert!(new_token(&app, &session).send_with_delayed_body(meanwhile).await.refused(401).contains("revoked"));
        let session = app.session_of(&owner).await;
        let meanwhile = async { app.advance(app.app.config.session) };
        assert!(new_token(&app, &session).send_with_delayed_body(meanwhile).await.refused(401).contains("expired"));
        assert_eq!(tokens(&app).await, 0);
    }

    async fn an_address_that_is_shut_out_meanwhile_stays_out(app) {
        let meanwhile = async {
            let call = app.call("POST", &app.path("/allowed-ip-address-ranges")).by(&app.owner).from("192.0.2.1");
            call.json(&json!({ "ipAddressRange": "192.0.2.0/24" })).send().await.ok();
        };
        new_token(&app, &app.owner).from("198.51.100.1").send_with_delayed_body(meanwhile).await.refused(403);
    }

    async fn errors_in_a_body_are_not_reported_to_a_caller_that_lost_its_rights(app) {
        let leaver = app.member_as("leaver", OrganizationRole::Owner).await;
        let meanwhile = set_roles(&app, &app.owner, &leaver, json!({ "organizationRole": null }));
        let call = app.call("POST", &app.path("/workspaces")).by(&leaver).json(&json!({ "name": "" }));
        call.send_with_delayed_body(meanwhile).await.refused(404);
    }

    async fn others_may_join_and_leave_concurrently(app) {
        let workspace = app.workspace("Data").await;
        let operator = app.user_with("operator", vec![
            role(On::Organization, "ORGANIZATION_MEMBER"),
            role(On::Workspace(workspace), "WORKSPACE_OPERATOR"),
        ]).await;
        let body = json!({ "name": "mine", "scope": "WORKSPACE", "entityId": workspace, "role": "WORKSPACE_MEMBER" });
        let call = app.call("POST", &app.path("/tokens")).by(&operator).json(&body);
        let meanwhile = async {
            for name in ["a", "b", "c"] {
                let other = app.member_as(name, OrganizationRole::Owner).await;
                set_roles(&app, &app.owner, &other, json!({ "organizationRole": null })).await;
            }
            app.advance(Duration::from_secs(20));
        };
        call.send_with_delayed_body(meanwhile).await.ok();
    }
}
