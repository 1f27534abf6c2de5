//! Custom roles that somebody holds.

use podium_testkit::on_both_engines;
use serde_json::json;

use super::path;

on_both_engines! {
    async fn a_new_name_follows_the_holders(app) {
        let (eve, workspace) = (app.member("eve").await, app.workspace("Data").await);
        let deployment = app.deployment(workspace).await;
        let role = app.custom_role("Tuner", "DEPLOYMENT", &["deployment.update"]).await;
        let held = |name: &str| json!([{ "deploymentId": deployment, "role": name }]);
        let roles = app.path(&format!("/users/{}/roles", eve.id));
        app.post(&app.owner, &roles, json!({ "deploymentRoles": held("Tuner") })).await.ok();
        let body = json!({ "name": "Mechanic", "permissions": ["deployment.update"] });
        app.post(&app.owner, &path(&app, role), body).await.ok();
        let user = app.get(&app.owner, &app.path(&format!("/users/{}", eve.id))).await.ok();
        assert_eq!(user["deploymentRoles"], held("Mechanic"));
        let own = app.get(&eve, "/v1/users/self").await.ok();
        assert_eq!(own["roles"][2]["role"], "Mechanic");
        let again = app.post(&app.owner, &roles, json!({ "deploymentRoles": held("Mechanic") })).await.ok();
        assert_eq!(again["deploymentRoles"], held("Mechanic"));
        let gone =
            app.post(&app.owner, &roles, json!({ "deploymentRoles": held("Tuner") })).await.wrong_fields();
        assert_eq!(gone, ["deploymentRoles[0].role: unknown"]);
    }

    async fn new_permissions_reach_the_holders_at_once(app) {
        let (eve, bob, workspace) =
            (app.member("eve").await, app.member("bob").await, app.workspace("Data").await);
        let deployment = app.deployment(workspace).await;
        let role = app.custom_role("Manager", "DEPLOYMENT", &["deployment.get"]).await;
        let held = json!({ "deploymentRoles": [{ "deploymentId": deployment, "role": "Manager" }] });
        app.post(&app.owner, &app.path(&format!("/users/{}/roles", eve.id)), held).await.ok();
        let give = async || {
            let body =
                json!({ "deploymentRoles": [{ "deploymentId": deployment, "role": "DEPLOYMENT_ACCESSOR" }] });
            app.post(&eve, &app.path(&format!("/users/{}/roles", bob.id)), body).await.code()
        };
        let allow = async |permissions: &[&str]| {
            let body = json!({ "name": "Manager", "permissions": permissions });
            app.post(&app.owner, &path(&app, role), body).await.ok();
        };
        assert_eq!(give().await, 403);
        allow(&["deployment.get", "deployment.users.update"]).await;
        assert_eq!(give().await, 200);
        let take = json!({ "deploymentRoles": [] });
        app.post(&app.owner, &app.path(&format!("/users/{}/roles", bob.id)), take).await.ok();
        allow(&["deployment.get"]).await;
        assert_eq!(give().await, 403);
    }

    async fn a_role_in_use_is_not_deleted_and_its_holders_are_named(app) {
        let (eve, workspace) = (app.member("eve").await, app.workspace("Data").await);
        let deployment = app.deployment(workspace).await;
        let role = app.custom_role("Tuner", "DEPLOYMENT", &["deployment.update"]).await;
        let held = json!([{ "deploymentId": deployment, "role": "Tuner" }]);
        let of_user = app.path(&format!("/users/{}/roles", eve.id));
        app.post(&app.owner, &of_user, json!({ "deploymentRoles": held })).await.ok();
        let of_team = app.path(&format!("/teams/{}/roles", app.team("Crew", &[]).await));
        let mut team_roles = json!({ "organizationRole": "ORGANIZATION_MEMBER", "deploymentRoles": held });
        app.post(&app.owner, &of_team, team_roles.clone()).await.ok();
        let token = app.token("ci", "DEPLOYMENT", deployment, "Tuner").await;
        let at = path(&app, role);
        assert_eq!(
            app.delete(&app.owner, &at).await.refused(409),
            "The role is still assigned to team `Crew`, API token `ci`, user `eve@podium.test`. Give them another role first."
        );
        app.post(&app.owner, &of_user, json!({ "deploymentRoles": [] })).await.ok();
        team_roles["deploymentRoles"] = json!([]);
        app.post(&app.owner, &of_team, team_roles).await.ok();
        assert_eq!(
            app.delete(&app.owner, &at).await.refused(409),
            "The role is still assigned to API token `ci`. Give them another role first."
        );
        assert_eq!(app.delete(&app.owner, &app.path(&format!("/tokens/{}", token.id))).await.code(), 204);
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
    }

    async fn a_workspace_stays_on_the_list_while_the_role_is_held_there(app) {
        let (eve, held_in, free) =
            (app.member("eve").await, app.workspace("Held").await, app.workspace("Free").await);
        let deployment = app.deployment(held_in).await;
        let role = app.custom_role("Tuner", "DEPLOYMENT", &["deployment.update"]).await;
        let roles = app.path(&format!("/users/{}/roles", eve.id));
        let held = json!({ "deploymentRoles": [{ "deploymentId": deployment, "role": "Tuner" }] });
        app.post(&app.owner, &roles, held).await.ok();
        let restrict = async |ids: serde_json::Value| {
            let body = json!({ "name": "Tuner", "permissions": ["deployment.update"], "restrictedWorkspaceIds": ids });
            app.post(&app.owner, &path(&app, role), body).await
        };
        assert_eq!(
            restrict(json!([free])).await.refused(409),
            format!(
                "The role is still assigned in workspaces that `restrictedWorkspaceIds` omits: {held_in}. \
             Take it from its holders there first, or list these workspaces."
            )
        );
        assert_eq!(restrict(json!([held_in, free])).await.code(), 200);
        assert_eq!(restrict(json!([held_in])).await.ok()["restrictedWorkspaceIds"], json!([held_in]));
        assert_eq!(restrict(json!([free])).await.code(), 409);
        assert_eq!(restrict(json!([])).await.code(), 200, "everywhere includes there");
        app.post(&app.owner, &roles, json!({ "deploymentRoles": [] })).await.ok();
        assert_eq!(restrict(json!([free])).await.code(), 200);
    }
}
