//! Leaving an organization, and the last owner who cannot.

use podium_domain::On;
use podium_testkit::{on_both_engines, role};
use serde_json::json;

use super::{in_workspace, path, set, set_by};

const NO_OWNER: &str = "This would leave the organization without an active owner. \
    Make somebody else an organization owner first.";

on_both_engines! {
    async fn exactly_a_null_organization_role_means_leaving(app) {
        let workspace = app.workspace("Data").await;
        let eve = app
            .user_with(
                "eve",
                vec![
                    role(On::Organization, "ORGANIZATION_MEMBER"),
                    role(On::Workspace(workspace), "WORKSPACE_MEMBER"),
                ],
            )
            .await;
        let team = app.team("Crew", &[&eve]).await;
        for (body, left) in [
            (json!({ "organizationRole": null, "workspaceRoles": null }), 1),
            (json!({ "organizationRole": null, "deploymentRoles": [] }), 1),
            (json!({ "organizationRole": null, "dagRoles": [] }), 1),
            (json!({ "organizationRole": "" }), 1),
            (json!({}), 1),
            (json!({ "organizationRole": null, "workspaceRoles": [] }), 0),
        ] {
            let roles = set(&app, eve.id, body.clone()).await.ok();
            assert_eq!(roles["organizationRole"], "ORGANIZATION_MEMBER", "{body}");
            assert_eq!(roles["workspaceRoles"].as_array().map_or(0, Vec::len), left, "{body}");
        }
        let gone = set(&app, eve.id, json!({ "organizationRole": null })).await.ok();
        assert_eq!(gone, json!({}));
        assert_eq!(app.get(&app.owner, &path(&app, eve.id)).await.code(), 404);
        assert_eq!(app.get(&eve, &app.path("")).await.code(), 404);
        assert_eq!(app.get(&eve, &app.path(&format!("/workspaces/{workspace}"))).await.code(), 404);
        let members = app.get(&app.owner, &app.path(&format!("/teams/{team}/members"))).await.ok();
        assert_eq!(members["totalCount"], 0);
        assert_eq!(app.get(&app.owner, &app.path("/users")).await.ok()["totalCount"], 1);
    }

    async fn a_user_who_left_and_returns_starts_without_roles(app) {
        let workspace = app.workspace("Data").await;
        let eve = app
            .user_with(
                "eve",
                vec![
                    role(On::Organization, "ORGANIZATION_OWNER"),
                    role(On::Workspace(workspace), "WORKSPACE_MEMBER"),
                ],
            )
            .await;
        set(&app, eve.id, json!({ "organizationRole": null })).await.ok();
        let body = json!({ "inviteeEmail": "eve@podium.test", "role": "ORGANIZATION_MEMBER" });
        let invite = app.post(&app.owner, &app.path("/invites"), body).await.ok();
        assert_eq!(invite["userId"], json!(eve.id), "it is the same user");
        let link = app.path(&format!("/invites/{}/link", invite["inviteId"].as_str().unwrap()));
        let link = app.post(&app.owner, &link, json!(null)).await.ok();
        app.post(&eve, "/v1/auth/accept-invite", json!({ "token": link["token"] })).await.ok();
        let user = app.get(&app.owner, &path(&app, eve.id)).await.ok();
        assert_eq!(
            (&user["organizationRole"], &user["workspaceRoles"]),
            (&json!("ORGANIZATION_MEMBER"), &json!(null))
        );
    }

    async fn only_an_owner_removes_a_user(app) {
        let (eve, bob) = (app.member("eve").await, app.member("bob").await);
        for user in [bob.id, eve.id] {
            let message = set_by(&app, &eve, user, json!({ "organizationRole": null })).await.refused(403);
            assert_eq!(message, "Only an organization owner may remove somebody from the organization.");
        }
        assert_eq!(app.get(&eve, &path(&app, bob.id)).await.code(), 200);
    }

    async fn the_last_active_owner_stays(app) {
        let own = app.owner.id;
        let demote = json!({ "organizationRole": "ORGANIZATION_BILLING_ADMIN" });
        let leave = json!({ "organizationRole": null });
        assert_eq!(set(&app, own, demote.clone()).await.refused(400), NO_OWNER);
        assert_eq!(set(&app, own, leave.clone()).await.refused(400), NO_OWNER);
        let body = json!({ "inviteeEmail": "new@podium.test", "role": "ORGANIZATION_OWNER" });
        app.post(&app.owner, &app.path("/invites"), body).await.ok();
        assert_eq!(
            set(&app, own, leave.clone()).await.refused(400),
            NO_OWNER,
            "a pending owner is not active"
        );
        let eve = app.member("eve").await;
        set(&app, eve.id, json!({ "organizationRole": "ORGANIZATION_OWNER" })).await.ok();
        let roles = set(&app, own, demote).await.ok();
        assert_eq!(roles["organizationRole"], "ORGANIZATION_BILLING_ADMIN");
        assert_eq!(set_by(&app, &eve, eve.id, leave.clone()).await.refused(400), NO_OWNER);
        assert_eq!(set_by(&app, &eve, own, leave).await.code(), 200);
    }

    async fn an_owner_who_is_not_the_last_may_leave(app) {
        let eve = app.member_as("eve", podium_api::enums::OrganizationRole::Owner).await;
        let left = set_by(&app, &eve, eve.id, json!({ "organizationRole": null })).await;
        assert_eq!(left.ok(), json!({}));
        assert_eq!(app.get(&eve, &app.path("")).await.code(), 404);
        assert_eq!(app.audit().await.pop().unwrap()["subjectName"], "eve@podium.test");
    }

    async fn an_owning_token_is_no_owner_to_rely_on(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
        let leave = json!({ "organizationRole": null });
        assert_eq!(set_by(&app, &token, app.owner.id, leave).await.refused(400), NO_OWNER);
        assert_eq!(app.get(&app.owner, &app.path("/audit-logs")).await.code(), 200);
    }

    async fn a_pending_user_takes_roles_and_can_be_removed(app) {
        let workspace = app.workspace("Data").await;
        let body = json!({ "inviteeEmail": "new@podium.test", "role": "ORGANIZATION_MEMBER" });
        let invite = app.post(&app.owner, &app.path("/invites"), body).await.ok();
        let user: podium_api::SubjectId = invite["userId"].as_str().unwrap().parse().unwrap();
        let roles = json!({
            "organizationRole": "ORGANIZATION_BILLING_ADMIN",
            "workspaceRoles": [in_workspace(workspace, "WORKSPACE_AUTHOR")],
        });
        assert_eq!(set(&app, user, roles.clone()).await.ok(), roles);
        let read = app.get(&app.owner, &path(&app, user)).await.ok();
        assert_eq!(
            (&read["status"], &read["organizationRole"]),
            (&json!("PENDING"), &json!("ORGANIZATION_BILLING_ADMIN"))
        );
        assert_eq!(read["workspaceRoles"], roles["workspaceRoles"]);
        set(&app, user, json!({ "organizationRole": null })).await.ok();
        assert_eq!(app.get(&app.owner, &path(&app, user)).await.code(), 404);
        let withdrawn = app.path(&format!("/invites/{}", invite["inviteId"].as_str().unwrap()));
        assert_eq!(app.delete(&app.owner, &withdrawn).await.code(), 404, "the invite went too");
    }
}
