//! `/organizations/{organizationId}/users/{userId}/roles`: replacing lists, and what is wrong with one.

use podium_testkit::on_both_engines;
use serde_json::json;

use super::{in_workspace, on_deployment, path, set, set_by};

on_both_engines! {
    async fn a_list_replaces_an_absent_one_keeps_and_an_empty_one_clears(app) {
        let eve = app.member("eve").await;
        let (first, second) = (app.workspace("First").await, app.workspace("Second").await);
        let id = app.deployment(first).await;
        let answer = set(&app, eve.id, json!({
            "organizationRole": "ORGANIZATION_BILLING_ADMIN",
            "workspaceRoles": [in_workspace(second, "WORKSPACE_MEMBER"), in_workspace(first, "WORKSPACE_OWNER")],
            "deploymentRoles": [on_deployment(id, "DEPLOYMENT_ACCESSOR")],
            "dagRoles": [{ "dagId": "etl", "deploymentId": id, "role": "DAG_AUTHOR" }],
        })).await;
        assert_eq!(answer.header("etag").split('-').next(), Some("\"2"));
        let mut expected = json!({
            "organizationRole": "ORGANIZATION_BILLING_ADMIN",
            "workspaceRoles": [in_workspace(first, "WORKSPACE_OWNER"), in_workspace(second, "WORKSPACE_MEMBER")],
            "deploymentRoles": [on_deployment(id, "DEPLOYMENT_ACCESSOR")],
            "dagRoles": [{ "dagId": "etl", "deploymentId": id, "role": "DAG_AUTHOR" }],
        });
        assert_eq!(answer.ok(), expected);
        let nulls = json!({ "workspaceRoles": null, "deploymentRoles": null, "dagRoles": null });
        for nothing in [json!({}), nulls, json!({ "organizationRole": null, "dagRoles": null })] {
            assert_eq!(set(&app, eve.id, nothing).await.ok(), expected);
        }
        let less = json!({ "workspaceRoles": [in_workspace(first, "WORKSPACE_AUTHOR")], "dagRoles": [] });
        expected["workspaceRoles"] = json!([in_workspace(first, "WORKSPACE_AUTHOR")]);
        expected.as_object_mut().unwrap().remove("dagRoles");
        assert_eq!(set(&app, eve.id, less).await.ok(), expected);
        let user = app.get(&app.owner, &path(&app, eve.id)).await.ok();
        for list in ["organizationRole", "workspaceRoles", "deploymentRoles", "dagRoles"] {
            assert_eq!(user[list], expected[list], "{list}");
        }
    }

    async fn an_update_without_changes_keeps_the_version(app) {
        let (eve, bob) = (app.member("eve").await, app.member("bob").await);
        app.advance(std::time::Duration::from_secs(1));
        for body in [json!({}), json!({ "workspaceRoles": [], "deploymentRoles": [], "dagRoles": [] })] {
            assert_eq!(set_by(&app, &eve, bob.id, body).await.code(), 200, "the gate is open to members");
        }
        let read = app.get(&app.owner, &path(&app, bob.id)).await;
        assert_eq!(read.header("etag").split('-').next(), Some("\"1"));
        assert_eq!(read.ok()["updatedAt"], "2027-01-15T08:00:00.000Z");
    }

    async fn an_entry_is_listed_once(app) {
        let (eve, workspace) = (app.member("eve").await, app.workspace("Data").await);
        let id = app.deployment(workspace).await;
        let wrong = set(&app, eve.id, json!({
            "workspaceRoles": [in_workspace(workspace, "WORKSPACE_MEMBER"), in_workspace(workspace, "WORKSPACE_OWNER")],
            "deploymentRoles": [on_deployment(id, "DEPLOYMENT_ADMIN"), on_deployment(id, "DEPLOYMENT_ADMIN")],
        })).await.wrong_fields();
        assert_eq!(
            wrong,
            ["workspaceRoles[1].workspaceId: duplicate", "deploymentRoles[1].deploymentId: duplicate"]
        );
    }

    async fn everything_that_is_unknown_is_named_at_once(app) {
        let eve = app.member("eve").await;
        let workspace = app.workspace("Data").await;
        let (absent, no_deployment) = (app.world.id(), app.world.id());
        let id = app.deployment(workspace).await;
        let answer = set(&app, eve.id, json!({
            "organizationRole": "BOSS",
            "workspaceRoles": [in_workspace(workspace, "WORKSPACE_MEMBER"), in_workspace(absent, "WORKSPACE_MEMBER")],
            "deploymentRoles": [on_deployment(no_deployment, "DEPLOYMENT_ADMIN"), on_deployment(id, "Nobody")],
            "dagRoles": [{ "dagId": "etl", "deploymentId": absent, "role": "DAG_VIEWER" }],
        })).await;
        assert_eq!(
            answer.wrong_fields(),
            [
                "organizationRole: enum",
                "workspaceRoles[1].workspaceId: unknown",
                "deploymentRoles[0].deploymentId: unknown",
                "deploymentRoles[1].role: unknown",
                "dagRoles[0].deploymentId: unknown",
            ]
        );
        let shape = set(
            &app,
            eve.id,
            json!({
                "workspaceRoles": [{ "role": "OWNER" }, in_workspace(workspace, "")],
                "deploymentRoles": "none",
                "dagRoles": [7],
            }),
        )
        .await;
        assert_eq!(
            shape.wrong_fields(),
            [
                "workspaceRoles[0].role: enum",
                "workspaceRoles[0].workspaceId: required",
                "workspaceRoles[1].role: enum",
                "deploymentRoles: type",
                "dagRoles[0]: type",
            ]
        );
        let user = app.get(&app.owner, &path(&app, eve.id)).await.ok();
        assert_eq!(user.get("workspaceRoles"), None, "nothing was changed");
    }

    async fn lower_roles_need_a_role_in_the_organization(app) {
        let (nobody, workspace) = (app.user_with("nobody", vec![]).await, app.workspace("Data").await);
        let lists = json!({ "workspaceRoles": [in_workspace(workspace, "WORKSPACE_MEMBER")] });
        let wrong = set(&app, nobody.id, lists.clone()).await.wrong_fields();
        assert_eq!(wrong, ["organizationRole: required"]);
        let mut with = lists;
        with["organizationRole"] = "ORGANIZATION_MEMBER".into();
        assert_eq!(set(&app, nobody.id, with).await.ok()["organizationRole"], "ORGANIZATION_MEMBER");
    }

    async fn custom_roles_are_given_by_name_where_they_can_be_held(app) {
        let eve = app.member("eve").await;
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let (on_here, on_there) = (app.deployment(here).await, app.deployment(there).await);
        app.custom_role("Watcher", "DAG", &["dag.airflow.dag.get"]).await;
        let body = json!({
            "name": "Tuner",
            "scopeType": "DEPLOYMENT",
            "permissions": ["deployment.get", "deployment.update"],
            "restrictedWorkspaceIds": [here],
        });
        app.post(&app.owner, &app.path("/roles"), body).await.ok();
        let table = [
            (on_deployment(on_here, "Tuner"), None),
            (on_deployment(on_there, "Tuner"), Some("deploymentRoles[0].role: restricted")),
            (on_deployment(on_here, "tuner"), Some("deploymentRoles[0].role: unknown")),
            (on_deployment(on_here, "Watcher"), Some("deploymentRoles[0].role: scope")),
            (on_deployment(on_here, "Deployment_Viewer"), Some("deploymentRoles[0].role: unknown")),
            (on_deployment(on_here, "WORKSPACE_OWNER"), Some("deploymentRoles[0].role: unknown")),
        ];
        for (entry, wrong) in table {
            let answer = set(&app, eve.id, json!({ "deploymentRoles": [entry] })).await;
            match wrong {
                None => assert_eq!(answer.ok()["deploymentRoles"], json!([entry])),
                Some(wrong) => assert_eq!(answer.wrong_fields(), [wrong], "{entry}"),
            }
        }
        let tag = json!([{ "dagTag": "daily", "deploymentId": on_there, "role": "Watcher" }]);
        assert_eq!(set(&app, eve.id, json!({ "dagRoles": tag })).await.ok()["dagRoles"], tag);
    }

    async fn a_change_counts_from_the_next_call_on(app) {
        let (eve, workspace) = (app.member("eve").await, app.workspace("Data").await);
        let at = app.path(&format!("/workspaces/{workspace}"));
        let rename = json!({ "name": "Data", "description": "", "cicdEnforcedDefault": false });
        for (name, read, write) in [
            ("WORKSPACE_MEMBER", 200, 403),
            ("WORKSPACE_OWNER", 200, 200),
            ("WORKSPACE_ACCESSOR", 200, 403),
            ("", 404, 404),
        ] {
            let entries = if name.is_empty() { vec![] } else { vec![in_workspace(workspace, name)] };
            set(&app, eve.id, json!({ "workspaceRoles": entries })).await.ok();
            assert_eq!(app.get(&eve, &at).await.code(), read, "{name}");
            assert_eq!(app.post(&eve, &at, rename.clone()).await.code(), write, "{name}");
        }
    }
}
