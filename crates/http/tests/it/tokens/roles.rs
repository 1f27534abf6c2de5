//! `/organizations/{organizationId}/tokens/{tokenId}/roles`

use podium_api::DeploymentId;
use podium_domain::On;
use podium_testkit::{Actor, Answer, TestApp, on_both_engines, role};
use serde_json::{Value, json};

use super::path;

async fn replace(app: &TestApp, by: &Actor, token: &Actor, roles: Value) -> Answer {
    app.post(by, &format!("{}/roles", path(app, token.id)), json!({ "roles": roles })).await
}

fn entry(kind: &str, entity: impl std::fmt::Display, role: &str) -> Value {
    json!({ "entityType": kind, "entityId": entity.to_string(), "role": role })
}

fn dag(kind: &str, name: &str, deployment: DeploymentId, role: &str) -> Value {
    json!({ "entityType": kind, "entityId": name, "deploymentId": deployment, "role": role })
}

async fn held(app: &TestApp, token: &Actor) -> Value {
    app.get(&app.owner, &path(app, token.id)).await.ok()["roles"].clone()
}

on_both_engines! {
    async fn an_organization_token_holds_roles_on_anything(app) {
        let (organization, workspace) = (app.organization_id, app.workspace("Data").await);
        let deployment = app.deployment(workspace).await;
        app.custom_role("Tuner", "DEPLOYMENT", &["deployment.update"]).await;
        let token = app.token("ci", "ORGANIZATION", organization, "ORGANIZATION_MEMBER").await;
        let roles = [
            entry("ORGANIZATION", organization, "ORGANIZATION_BILLING_ADMIN"),
            entry("WORKSPACE", workspace, "WORKSPACE_MEMBER"),
            entry("DEPLOYMENT", deployment, "Tuner"),
            dag("DAG", "etl", deployment, "DAG_VIEWER"),
            dag("DAG_TAG", "daily", deployment, "DAG_AUTHOR"),
        ];
        let answer = replace(&app, &app.owner, &token, json!(roles)).await;
        assert_eq!(answer.ok(), json!({
            "organizationRole": "ORGANIZATION_BILLING_ADMIN",
            "workspaceRoles": [{ "workspaceId": workspace, "role": "WORKSPACE_MEMBER" }],
            "deploymentRoles": [{ "deploymentId": deployment, "role": "Tuner" }],
            "dagRoles": [
                { "deploymentId": deployment, "dagId": "etl", "role": "DAG_VIEWER" },
                { "deploymentId": deployment, "dagTag": "daily", "role": "DAG_AUTHOR" },
            ],
        }));
        assert_eq!(held(&app, &token).await, json!(roles));
        assert_eq!(app.get(&token, &app.path(&format!("/workspaces/{workspace}"))).await.code(), 200);
    }

    async fn the_list_replaces_all_but_a_primary_role_that_is_left_out(app) {
        let (a, b) = (app.workspace("A").await, app.workspace("B").await);
        let organization = app.organization_id;
        let token = app.token("ci", "ORGANIZATION", organization, "ORGANIZATION_MEMBER").await;
        let primary = entry("ORGANIZATION", organization, "ORGANIZATION_MEMBER");
        let owner = entry("ORGANIZATION", organization, "ORGANIZATION_OWNER");
        let (in_a, in_b) = (entry("WORKSPACE", a, "WORKSPACE_MEMBER"), entry("WORKSPACE", b, "WORKSPACE_OWNER"));
        for (roles, after) in [
            (json!([in_a]), json!([primary, in_a])),
            (json!([in_b]), json!([primary, in_b])),
            (json!([in_b, in_a, primary]), json!([primary, in_a, in_b])),
            (json!([owner]), json!([owner])),
            (json!([in_a]), json!([owner, in_a])),
            (json!([primary]), json!([primary])),
        ] {
            replace(&app, &app.owner, &token, roles.clone()).await.ok();
            assert_eq!(held(&app, &token).await, after, "{roles}");
        }
        for roles in [json!([]), json!(null)] {
            assert_eq!(replace(&app, &app.owner, &token, roles).await.code(), 400);
        }
        assert_eq!(held(&app, &token).await, json!([primary]));
    }

    async fn entries_stay_where_the_token_belongs(app) {
        let (organization, a, b) = (app.organization_id, app.workspace("A").await, app.workspace("B").await);
        let (da, da2, db) = (app.deployment(a).await, app.deployment(a).await, app.deployment(b).await);
        let whole = app.token("o", "ORGANIZATION", organization, "ORGANIZATION_MEMBER").await;
        let of_a = app.token("w", "WORKSPACE", a, "WORKSPACE_MEMBER").await;
        let of_da = app.token("d", "DEPLOYMENT", da, "DEPLOYMENT_ADMIN").await;
        let absent = app.world.id();
        let in_a = entry("WORKSPACE", a, "WORKSPACE_MEMBER");
        let on_da = entry("DEPLOYMENT", da, "DEPLOYMENT_ADMIN");
        let table = [
            (&of_a, entry("ORGANIZATION", organization, "ORGANIZATION_MEMBER"), "roles[0].entityId: scope"),
            (&of_a, entry("WORKSPACE", b, "WORKSPACE_MEMBER"), "roles[0].entityId: scope"),
            (&of_a, entry("DEPLOYMENT", db, "DEPLOYMENT_ADMIN"), "roles[0].entityId: scope"),
            (&of_a, dag("DAG", "etl", da, "DAG_VIEWER"), "roles[0].entityId: scope"),
            (&of_a, on_da.clone(), ""),
            (&of_a, entry("DEPLOYMENT", da2, "DEPLOYMENT_ACCESSOR"), ""),
            (&of_da, entry("ORGANIZATION", organization, "ORGANIZATION_MEMBER"), "roles[0].entityId: scope"),
            (&of_da, in_a.clone(), "roles[0].entityId: scope"),
            (&of_da, entry("DEPLOYMENT", da2, "DEPLOYMENT_ADMIN"), "roles[0].entityId: scope"),
            (&of_da, dag("DAG", "etl", da2, "DAG_VIEWER"), "roles[0].entityId: scope"),
            (&of_da, dag("DAG", "etl", da, "DAG_VIEWER"), ""),
            (&of_da, dag("DAG_TAG", "daily", da, "DAG_AUTHOR"), ""),
            (&whole, entry("DAG", "etl", "DAG_VIEWER"), "roles[0].deploymentId: required"),
            (&whole, entry("DAG_TAG", "daily", "DAG_VIEWER"), "roles[0].deploymentId: required"),
            (&whole, dag("DAG", "etl", absent, "DAG_VIEWER"), "roles[0].deploymentId: unknown"),
            (&whole, dag("DAG", " ", da, "DAG_VIEWER"), "roles[0].entityId: required"),
            (&whole, dag("WORKSPACE", a.as_str(), da, "WORKSPACE_MEMBER"), "roles[0].deploymentId: conflict"),
            (&whole, entry("WORKSPACE", absent, "WORKSPACE_MEMBER"), "roles[0].entityId: unknown"),
            (&whole, entry("WORKSPACE", "nonsense", "WORKSPACE_MEMBER"), "roles[0].entityId: unknown"),
            (&whole, entry("ORGANIZATION", a, "ORGANIZATION_MEMBER"), "roles[0].entityId: unknown"),
            (&whole, entry("WORKSPACE", a, "DEPLOYMENT_ADMIN"), "roles[0].role: enum"),
            (&whole, entry("DEPLOYMENT", da, "No such role"), "roles[0].role: unknown"),
            (&whole, entry("PLANET", a, "WORKSPACE_MEMBER"), "roles[0].entityType: enum"),
        ];
        for (token, role, wrong) in table {
            let answer = replace(&app, &app.owner, token, json!([role])).await;
            if wrong.is_empty() {
                answer.ok();
            } else {
                assert_eq!(answer.wrong_fields(), [wrong], "{role}");
            }
        }
        for (roles, wrong) in [
            (json!([in_a, in_a]), "roles[1]: duplicate"),
            (json!([in_a, entry("WORKSPACE", a, "WORKSPACE_OWNER")]), "roles[1]: duplicate"),
            (json!([dag("DAG", "etl", da, "DAG_VIEWER"), dag("DAG", "etl", da, "DAG_VIEWER")]), "roles[1]: duplicate"),
        ] {
            assert_eq!(replace(&app, &app.owner, &whole, roles).await.wrong_fields(), [wrong]);
        }
        let both = json!([dag("DAG", "etl", da, "DAG_VIEWER"), dag("DAG", "etl", da, "DAG_AUTHOR")]);
        replace(&app, &app.owner, &whole, both).await.ok();
    }

    async fn nobody_can_give_a_token_more_than_they_hold(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let operator = app.user_with("operator", vec![
            role(On::Organization, "ORGANIZATION_MEMBER"),
            role(On::Workspace(workspace), "WORKSPACE_OPERATOR"),
        ]).await;
        let token = app.token("ci", "WORKSPACE", workspace, "WORKSPACE_OWNER").await;
        let author = entry("WORKSPACE", workspace, "WORKSPACE_AUTHOR");
        let owner = entry("WORKSPACE", workspace, "WORKSPACE_OWNER");
        let admin = entry("DEPLOYMENT", deployment, "DEPLOYMENT_ADMIN");
        let accessor = entry("DEPLOYMENT", deployment, "DEPLOYMENT_ACCESSOR");
        assert_eq!(replace(&app, &operator, &token, json!([admin])).await.code(), 403);
        assert_eq!(held(&app, &token).await, json!([owner]));
        // What is held already is kept, not given.
        replace(&app, &operator, &token, json!([owner, accessor])).await.ok();
        assert_eq!(held(&app, &token).await, json!([owner, accessor]));
        replace(&app, &operator, &token, json!([author])).await.ok();
        assert_eq!(held(&app, &token).await, json!([author]));
        assert_eq!(replace(&app, &operator, &token, json!([owner])).await.code(), 403);
        let whole = app.token("o", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        assert_eq!(replace(&app, &operator, &whole, json!([author])).await.code(), 404);
    }

    async fn new_roles_are_in_force_with_the_next_request(app) {
        let workspace = app.workspace("Data").await;
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        let at = app.path(&format!("/workspaces/{workspace}"));
        let primary = entry("ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER");
        for _ in 0..3 {
            assert_eq!(app.get(&token, &at).await.code(), 404);
            replace(&app, &app.owner, &token, json!([entry("WORKSPACE", workspace, "WORKSPACE_MEMBER")])).await.ok();
            assert_eq!(app.get(&token, &at).await.code(), 200);
            replace(&app, &app.owner, &token, json!([primary])).await.ok();
        }
    }
}
