//! `/organizations/{organizationId}/teams/{teamId}/roles`

use podium_api::Id;
use podium_domain::On;
use podium_testkit::{Answer, TestApp, on_both_engines, role};
use serde_json::{Value, json};

use super::path;

async fn set(app: &TestApp, team: impl std::fmt::Display, organization_role: &str, lists: Value) -> Answer {
    let mut body = lists;
    body["organizationRole"] = organization_role.into();
    app.post(&app.owner, &path(app, format!("{team}/roles")), body).await
}

const NO_OWNER: &str = "This would leave the organization without an active owner. \
    Make somebody else an organization owner first.";

on_both_engines! {
    async fn roles_are_replaced_kept_and_cleared(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let team = app.team("Crew", &[]).await;
        let lists = json!({
            "deploymentRoles": [{ "deploymentId": deployment, "role": "DEPLOYMENT_ADMIN" }],
            "dagRoles": [
                { "deploymentId": deployment, "dagId": "etl", "role": "DAG_AUTHOR" },
                { "deploymentId": deployment, "dagTag": "daily", "role": "DAG_VIEWER" },
            ],
        });
        let answer = set(&app, team, "ORGANIZATION_MEMBER", lists.clone()).await;
        assert_eq!(answer.header("etag").split('-').next(), Some("\"2"));
        let mut expected = lists;
        expected["organizationRole"] = "ORGANIZATION_MEMBER".into();
        expected["workspaceRoles"] = json!([{ "role": "WORKSPACE_ACCESSOR", "workspaceId": workspace }]);
        assert_eq!(answer.ok(), expected);
        let read = app.get(&app.owner, &path(&app, team)).await.ok();
        for list in ["workspaceRoles", "deploymentRoles", "dagRoles", "organizationRole"] {
            assert_eq!(read[list], expected[list]);
        }
        assert_eq!(read["rolesCount"], 4, "the computed ACCESSOR is not held");

        let kept = set(&app, team, "ORGANIZATION_BILLING_ADMIN", json!({ "dagRoles": null })).await.ok();
        expected["organizationRole"] = "ORGANIZATION_BILLING_ADMIN".into();
        assert_eq!(kept, expected);
        let cleared =
            set(&app, team, "ORGANIZATION_BILLING_ADMIN", json!({ "dagRoles": [], "deploymentRoles": [] }))
                .await;
        assert_eq!(cleared.ok(), json!({ "organizationRole": "ORGANIZATION_BILLING_ADMIN" }));
    }

    async fn the_organization_role_is_required_and_known(app) {
        let team = app.team("Crew", &[]).await;
        let at = path(&app, format!("{team}/roles"));
        for body in [json!({}), json!({ "organizationRole": null })] {
            assert_eq!(app.post(&app.owner, &at, body).await.wrong_fields(), ["organizationRole: required"]);
        }
        for name in ["OWNER", "WORKSPACE_OWNER", ""] {
            let body = json!({ "organizationRole": name });
            assert_eq!(
                app.post(&app.owner, &at, body).await.wrong_fields(),
                ["organizationRole: enum"],
                "{name}"
            );
        }
        assert_eq!(set(&app, app.world.id::<Id>(), "ORGANIZATION_MEMBER", json!({})).await.code(), 404);
    }

    async fn owners_of_a_workspace_set_roles_of_teams_there_and_nowhere_else(app) {
        let (own, other) = (app.workspace("Own").await, app.workspace("Other").await);
        let team = app.team("Crew", &[]).await;
        let everywhere = json!({ "workspaceRoles": [{ "workspaceId": other, "role": "WORKSPACE_AUTHOR" }] });
        set(&app, team, "ORGANIZATION_MEMBER", everywhere).await.ok();
        let eve = app
            .user_with(
                "eve",
                vec![
                    role(On::Organization, "ORGANIZATION_MEMBER"),
                    role(On::Workspace(own), "WORKSPACE_OWNER"),
                    role(On::Workspace(other), "WORKSPACE_OPERATOR"),
                ],
            )
            .await;
        let at = path(&app, format!("{team}/roles"));
        let entry = |id, name: &str| json!({ "workspaceId": id, "role": name });
        let post = async |organization_role: &str, roles: Vec<Value>| {
            let body = json!({ "organizationRole": organization_role, "workspaceRoles": roles });
            app.post(&eve, &at, body).await
        };
        let shown = post("ORGANIZATION_MEMBER", vec![entry(own, "WORKSPACE_OWNER")]).await.ok();
        assert_eq!(shown["workspaceRoles"], json!([entry(own, "WORKSPACE_OWNER")]));
        let unchanged = vec![entry(own, "WORKSPACE_MEMBER"), entry(other, "WORKSPACE_AUTHOR")];
        assert_eq!(post("ORGANIZATION_MEMBER", unchanged).await.code(), 200);
        assert_eq!(post("ORGANIZATION_MEMBER", vec![entry(other, "WORKSPACE_MEMBER")]).await.code(), 403);
        let message = post("ORGANIZATION_OWNER", vec![]).await.refused(403);
        assert_eq!(message, "Only an organization owner may change organization roles.");
        let held = app.get(&app.owner, &path(&app, team)).await.ok()["workspaceRoles"].clone();
        assert_eq!(held, json!([entry(own, "WORKSPACE_MEMBER"), entry(other, "WORKSPACE_AUTHOR")]));
    }

    async fn owners_through_teams_count_as_owners(app) {
        let eve = app.member("eve").await;
        let team = app.team("Owners", &[&eve]).await;
        set(&app, team, "ORGANIZATION_OWNER", json!({})).await.ok();
        let demote = json!({ "organizationRole": "ORGANIZATION_MEMBER" });
        let own = app.path(&format!("/users/{}/roles", app.owner.id));
        assert_eq!(app.post(&app.owner, &own, demote.clone()).await.code(), 200);
        assert_eq!(app.get(&app.owner, &app.path("/audit-logs")).await.code(), 403);
        assert_eq!(app.get(&eve, &app.path("/audit-logs")).await.code(), 200);

        let at = path(&app, team);
        let member = path(&app, format!("{team}/members/{}", eve.id));
        let leave = json!({ "organizationRole": null });
        for refused in [
            app.delete(&eve, &at).await,
            app.delete(&eve, &member).await,
            app.post(&eve, &format!("{at}/roles"), demote).await,
            app.post(&eve, &app.path(&format!("/users/{}/roles", eve.id)), leave).await,
        ] {
            assert_eq!(refused.refused(400), NO_OWNER);
        }
        let promote = json!({ "organizationRole": "ORGANIZATION_OWNER" });
        app.post(&eve, &own, promote).await.ok();
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
    }

    async fn a_pending_member_of_an_owning_team_is_no_active_owner(app) {
        let invite = json!({ "inviteeEmail": "new@podium.test", "role": "ORGANIZATION_OWNER" });
        let invite = app.post(&app.owner, &app.path("/invites"), invite).await.ok();
        let body = json!({ "name": "Owners", "organizationRole": "ORGANIZATION_OWNER", "memberIds": [invite["userId"]] });
        app.post(&app.owner, &app.path("/teams"), body).await.ok();
        let own = app.path(&format!("/users/{}/roles", app.owner.id));
        let demote = json!({ "organizationRole": "ORGANIZATION_MEMBER" });
        assert_eq!(app.post(&app.owner, &own, demote).await.refused(400), NO_OWNER);
    }
}
