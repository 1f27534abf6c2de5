//! What a deleted workspace takes with it, and what it does not.

use podium_domain::On;
use podium_testkit::{on_both_engines, role};
use serde_json::json;

use super::{path, update};

on_both_engines! {
    async fn a_workspace_with_deployments_stays(app) {
        let id = app.workspace("Data").await;
        let at = path(&app, id);
        let mut left = Vec::new();
        for count in 1..=2 {
            left.push(app.deployment(id).await);
            let message = app.delete(&app.owner, &at).await.refused(400);
            let what = if count == 1 { "1 deployment" } else { "2 deployments" };
            assert_eq!(
                message,
                format!("The workspace has {what}: delete its deployments, or move them to another workspace.")
            );
        }
        assert_eq!(app.get(&app.owner, &at).await.code(), 200);
        for deployment in left {
            app.set_column("deployments", deployment, "workspace_id", "'elsewhere'").await;
        }
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
    }

    async fn tokens_of_a_deleted_workspace_are_revoked(app) {
        let (gone, stays) = (app.workspace("Gone").await, app.workspace("Stays").await);
        let dead = app.token("ci", "WORKSPACE", gone, "WORKSPACE_OWNER").await;
        let alive = app.token("ci", "WORKSPACE", stays, "WORKSPACE_OWNER").await;
        assert_eq!(app.get(&dead, &path(&app, gone)).await.code(), 200);
        assert_eq!(app.delete(&app.owner, &path(&app, gone)).await.code(), 204);
        assert_eq!(
            app.get(&dead, &path(&app, stays)).await.refused(401),
            "The token is revoked: it was deleted, rotated or signed out."
        );
        assert_eq!(app.get(&alive, &path(&app, stays)).await.code(), 200);
        let tokens = app.get(&app.owner, &app.path("/tokens")).await.ok();
        assert_eq!((&tokens["totalCount"], &tokens["tokens"][0]["id"]), (&json!(1), &json!(alive.id)));
    }

    async fn a_token_can_delete_its_own_workspace_and_itself_with_it(app) {
        let id = app.workspace("Gone").await;
        let token = app.token("ci", "WORKSPACE", id, "WORKSPACE_OWNER").await;
        assert_eq!(app.delete(&token, &path(&app, id)).await.code(), 204);
        assert_eq!(app.delete(&token, &path(&app, id)).await.code(), 401);
        let record = app.audit().await.pop().unwrap();
        assert_eq!((&record["subjectName"], &record["statusCode"]), (&json!("ci"), &json!(204)));
    }

    async fn roles_in_a_deleted_workspace_are_removed_and_others_stay(app) {
        let (gone, stays) = (app.workspace("Gone").await, app.workspace("Stays").await);
        let eve = app
            .user_with(
                "eve",
                vec![
                    role(On::Organization, "ORGANIZATION_MEMBER"),
                    role(On::Workspace(gone), "WORKSPACE_AUTHOR"),
                    role(On::Workspace(stays), "WORKSPACE_MEMBER"),
                ],
            )
            .await;
        let team = app.team("Crew", &[]).await;
        let roles = json!({
            "organizationRole": "ORGANIZATION_MEMBER",
            "workspaceRoles": [{ "workspaceId": gone, "role": "WORKSPACE_OWNER" }],
        });
        app.post(&app.owner, &app.path(&format!("/teams/{team}/roles")), roles).await.ok();
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        let roles = json!({ "roles": [
            { "entityType": "ORGANIZATION", "entityId": app.organization_id, "role": "ORGANIZATION_MEMBER" },
            { "entityType": "WORKSPACE", "entityId": gone, "role": "WORKSPACE_MEMBER" },
        ] });
        app.post(&app.owner, &app.path(&format!("/tokens/{}/roles", token.id)), roles).await.ok();
        assert_eq!(app.get(&token, &path(&app, gone)).await.code(), 200);

        assert_eq!(app.delete(&app.owner, &path(&app, gone)).await.code(), 204);

        let user = app.get(&app.owner, &app.path(&format!("/users/{}", eve.id))).await.ok();
        assert_eq!(user["workspaceRoles"], json!([{ "role": "WORKSPACE_MEMBER", "workspaceId": stays }]));
        let team = app.get(&app.owner, &app.path(&format!("/teams/{team}"))).await.ok();
        assert_eq!((team.get("workspaceRoles"), &team["rolesCount"]), (None, &json!(1)));
        let token = app.get(&app.owner, &app.path(&format!("/tokens/{}", token.id))).await.ok();
        assert_eq!(token["roles"].as_array().unwrap().len(), 1);
        assert_eq!(app.get(&eve, &path(&app, gone)).await.code(), 404);
        assert_eq!(app.get(&eve, &path(&app, stays)).await.code(), 200);
    }

    async fn a_deleted_workspace_leaves_the_lists_of_custom_roles_and_clusters(app) {
        let (gone, stays) = (app.workspace("Gone").await, app.workspace("Stays").await);
        let cluster = app.cluster(&[gone, stays]).await;
        let body = json!({
            "name": "Watcher",
            "scopeType": "DEPLOYMENT",
            "permissions": ["deployment.get"],
            "restrictedWorkspaceIds": [gone, stays],
        });
        let created = app.post(&app.owner, &app.path("/roles"), body).await;
        assert_eq!(app.delete(&app.owner, &path(&app, gone)).await.code(), 204);
        let read = app.get(&app.owner, &app.path(&format!("/roles/{}", created.id()))).await.ok();
        assert_eq!(read["restrictedWorkspaceIds"], json!([stays]));
        let other = app.workspace("Other").await;
        let to_cluster = |name: &str| update(name, json!({ "defaultClusterId": cluster }));
        assert_eq!(app.post(&app.owner, &path(&app, stays), to_cluster("Stays")).await.code(), 200);
        assert_eq!(app.post(&app.owner, &path(&app, other), to_cluster("Other")).await.code(), 400);
    }
}
