//! `/users/self`

use std::time::Duration;

use podium_domain::On;
use podium_testkit::{on_both_engines, role};
use serde_json::json;

use super::{in_workspace, on_deployment, set};

const SELF: &str = "/v1/users/self";

on_both_engines! {
    async fn a_user_reads_itself_with_every_role_and_its_scope(app) {
        let (workspace, other) = (app.workspace("Data").await, app.workspace("Other").await);
        let deployment = app.deployment(workspace).await;
        let dag = On::Dag { deployment_id: deployment, workspace_id: workspace, dag_id: "etl".into() };
        let tag = On::DagTag { deployment_id: deployment, workspace_id: workspace, tag: "daily".into() };
        let eve = app
            .user_with(
                "eve",
                vec![
                    role(On::Organization, "ORGANIZATION_MEMBER"),
                    role(On::Workspace(other), "WORKSPACE_AUTHOR"),
                    role(On::Deployment { id: deployment, workspace_id: workspace }, "DEPLOYMENT_ADMIN"),
                    role(dag, "DAG_VIEWER"),
                    role(tag, "DAG_AUTHOR"),
                ],
            )
            .await;
        let answer = app.get(&eve, SELF).await;
        insta::assert_json_snapshot!(answer.ok(), @r#"
        {
          "id": "cmywpiww00009000000000000",
          "username": "eve@podium.test",
          "fullName": "eve",
          "avatarUrl": "https://podium.test/pictures/E.svg",
          "status": "ACTIVE",
          "organizationId": "cmywpiww00000000000000000",
          "roles": [
            {
              "role": "ORGANIZATION_MEMBER",
              "scope": {
                "type": "ORGANIZATION",
                "entityId": "cmywpiww00000000000000000"
              }
            },
            {
              "role": "WORKSPACE_ACCESSOR",
              "scope": {
                "type": "WORKSPACE",
                "entityId": "cmywpiww00004000000000000"
              }
            },
            {
              "role": "WORKSPACE_AUTHOR",
              "scope": {
                "type": "WORKSPACE",
                "entityId": "cmywpiww00006000000000000"
              }
            },
            {
              "role": "DEPLOYMENT_ADMIN",
              "scope": {
                "type": "DEPLOYMENT",
                "entityId": "cmywpiww00008000000000000"
              }
            },
            {
              "role": "DAG_VIEWER",
              "scope": {
                "type": "DAG",
                "entityId": "etl",
                "deploymentId": "cmywpiww00008000000000000"
              }
            },
            {
              "role": "DAG_AUTHOR",
              "scope": {
                "type": "DAG",
                "entityId": "daily",
                "deploymentId": "cmywpiww00008000000000000",
                "dagTag": "daily"
              }
            }
          ],
          "invites": [],
          "featureFlags": [],
          "isIdpManaged": false,
          "createdAt": "2027-01-15T08:00:00.000Z",
          "updatedAt": "2027-01-15T08:00:00.000Z"
        }
        "#);
        assert!(answer.header("etag").starts_with("\"1-"));
        assert_eq!(app.get(&eve, "/users/self").await.ok(), answer.ok());
        assert_eq!(app.get(&eve, &format!("{SELF}?createIfNotExist=true")).await.ok(), answer.ok());
    }

    async fn roles_through_teams_are_part_of_it(app) {
        let (eve, workspace) = (app.member("eve").await, app.workspace("Data").await);
        let team = app.team("Crew", &[&eve]).await;
        let roles = json!({
            "organizationRole": "ORGANIZATION_MEMBER",
            "workspaceRoles": [in_workspace(workspace, "WORKSPACE_MEMBER")],
        });
        app.post(&app.owner, &app.path(&format!("/teams/{team}/roles")), roles).await.ok();
        let organization = json!({ "type": "ORGANIZATION", "entityId": app.organization_id });
        assert_eq!(
            app.get(&eve, SELF).await.ok()["roles"],
            json!([
                { "role": "ORGANIZATION_MEMBER", "scope": organization },
                { "role": "WORKSPACE_MEMBER", "scope": { "type": "WORKSPACE", "entityId": workspace } },
            ])
        );
    }

    async fn a_change_of_roles_shows_at_once(app) {
        let (eve, workspace) = (app.member("eve").await, app.workspace("Data").await);
        let deployment = app.deployment(workspace).await;
        let count = async || app.get(&eve, SELF).await.ok()["roles"].as_array().unwrap().len();
        assert_eq!(count().await, 1);
        set(&app, eve.id, json!({ "deploymentRoles": [on_deployment(deployment, "DEPLOYMENT_ADMIN")] }))
            .await
            .ok();
        assert_eq!(count().await, 3, "with the ACCESSOR of the workspace");
        set(&app, eve.id, json!({ "deploymentRoles": [] })).await.ok();
        assert_eq!(count().await, 1);
    }

    async fn open_invites_are_shown_until_they_lapse(app) {
        let stranger = app.stranger().await;
        let home = app.get(&stranger, SELF).await.ok()["organizationId"].clone();
        let body = json!({ "inviteeEmail": "stranger@podium.test", "role": "ORGANIZATION_OWNER" });
        let invite = app.post(&app.owner, &app.path("/invites"), body).await.ok();
        let own = app.get(&stranger, SELF).await.ok();
        assert_eq!(
            own["invites"],
            json!([{
                "inviteId": invite["inviteId"],
                "organizationId": app.organization_id,
                "expiresAt": "2027-01-22T08:00:00.000Z",
            }])
        );
        assert_eq!(
            (&own["status"], &own["organizationId"]),
            (&json!("ACTIVE"), &home),
            "the best of its memberships"
        );
        assert_eq!(own["roles"].as_array().unwrap().len(), 1);
        app.advance(Duration::from_secs(7 * 24 * 3600));
        assert_eq!(app.get(&stranger, SELF).await.ok()["invites"], json!([]));
    }

    async fn one_who_belongs_nowhere_is_inactive(app) {
        let eve = app.member("eve").await;
        set(&app, eve.id, json!({ "organizationRole": null })).await.ok();
        let own = app.get(&eve, SELF).await.ok();
        assert_eq!(
            (&own["status"], &own["roles"], own.get("organizationId")),
            (&json!("INACTIVE"), &json!([]), None)
        );
    }

    async fn an_api_token_is_not_a_user(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
        let message = app.get(&token, SELF).await.refused(403);
        assert_eq!(message, "An API token is not a user: sign in as a user to read your own account.");
    }

    async fn a_picture_shows_initials_to_anybody_and_names_nobody(app) {
        let ada = app.member("ada lovelace").await;
        let own = app.get(&ada, SELF).await.ok();
        assert_eq!(own["avatarUrl"], "https://podium.test/pictures/AL.svg");
        let id = own["id"].as_str().unwrap();
        let listed = app.get(&app.owner, &app.path(&format!("/users/{id}"))).await.ok();
        assert_eq!(listed["avatarUrl"], own["avatarUrl"]);
        let picture = app.call("GET", "/pictures/AL.svg").send().await;
        assert_eq!((picture.code(), picture.header("content-type")), (200, "image/svg+xml"));
        assert_eq!(picture.header("x-content-type-options"), "nosniff");
        assert_eq!(picture.header("content-security-policy"), "default-src 'none'; sandbox");
        assert_eq!(picture.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(picture.header("set-cookie"), "");
        assert!(picture.text().contains(">AL</text>") && !picture.text().contains(id), "{}", picture.text());
        assert!(app.call("GET", "/pictures/%D0%98.svg").send().await.text().contains(">И</text>"));
        for wrong in ["/pictures/al.svg", "/pictures/ALL.svg", "/pictures/%3Cb.svg", "/pictures/A%22.svg", "/pictures/A", "/pictures/"] {
            assert_eq!(app.call("GET", wrong).send().await.code(), 404, "{wrong}");
        }
        assert_eq!(app.call("POST", "/pictures/AL.svg").send().await.code(), 405);
    }
}
