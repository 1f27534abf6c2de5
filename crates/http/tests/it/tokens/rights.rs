//! Who may make, change and rotate tokens: nobody gives what it does not hold.

use podium_api::EntityId;
use podium_domain::{Grant, On};
use podium_testkit::{Actor, TestApp, on_both_engines, role};
use serde_json::{Value, json};

use super::{bearer, create, path};

async fn member_with(app: &TestApp, held: Grant) -> Actor {
    let name = format!("the {}", held.held.name());
    app.user_with(&name, vec![role(On::Organization, "ORGANIZATION_MEMBER"), held]).await
}

fn of(scope: &str, entity: impl Into<EntityId>, role: &str) -> Value {
    let entity: EntityId = entity.into();
    json!({ "name": format!("{scope} {role}"), "scope": scope, "entityId": entity, "role": role })
}

on_both_engines! {
    async fn nobody_can_create_a_token_with_more_rights_than_their_own(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let on_deployment = On::Deployment { id: deployment, workspace_id: workspace };
        app.custom_role("Starter", "DEPLOYMENT", &["deployment.airflow.dagRun.create"]).await;
        let owner = app.member_as("another owner", podium_api::enums::OrganizationRole::Owner).await;
        let billing = app.member_as("billing", podium_api::enums::OrganizationRole::BillingAdmin).await;
        let keeper = member_with(&app, role(On::Workspace(workspace), "WORKSPACE_OWNER")).await;
        let operator = member_with(&app, role(On::Workspace(workspace), "WORKSPACE_OPERATOR")).await;
        let author = member_with(&app, role(On::Workspace(workspace), "WORKSPACE_AUTHOR")).await;
        let admin = member_with(&app, role(on_deployment, "DEPLOYMENT_ADMIN")).await;
        let member = app.member("member").await;
        let actors = [&owner, &billing, &keeper, &operator, &author, &admin, &member];
        // 400: who may not see the entity is told that there is none.
        for (scope, entity, role, expected) in [
            ("ORGANIZATION", EntityId::from(app.organization_id), "ORGANIZATION_OWNER", [200, 403, 403, 403, 403, 403, 403]),
            ("ORGANIZATION", app.organization_id.into(), "ORGANIZATION_MEMBER", [200, 403, 403, 403, 403, 403, 403]),
            ("WORKSPACE", workspace.into(), "WORKSPACE_OWNER", [200, 400, 200, 403, 403, 403, 400]),
            ("WORKSPACE", workspace.into(), "WORKSPACE_OPERATOR", [200, 400, 200, 200, 403, 403, 400]),
            ("WORKSPACE", workspace.into(), "WORKSPACE_ACCESSOR", [200, 400, 200, 200, 403, 403, 400]),
            ("DEPLOYMENT", deployment.into(), "DEPLOYMENT_ADMIN", [200, 400, 200, 403, 403, 200, 400]),
            ("DEPLOYMENT", deployment.into(), "DEPLOYMENT_ACCESSOR", [200, 400, 200, 200, 403, 200, 400]),
            ("DEPLOYMENT", deployment.into(), "Starter", [200, 400, 200, 200, 403, 200, 400]),
        ] {
            for (actor, expected) in actors.iter().zip(expected) {
                let answer = create(&app, actor, of(scope, entity, role)).await;
                assert_eq!(answer.code(), expected, "{} as {}: {}", role, actor.id, answer.text());
                if expected == 200 {
                    app.delete(&app.owner, &path(&app, answer.id())).await.ok();
                }
            }
        }
        assert_eq!(
            create(&app, &keeper, of("ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER")).await.refused(403),
            "Only an organization owner may create API tokens of the organization; \
             create one of a workspace or deployment instead."
        );
    }

    async fn rotating_a_token_requires_its_permissions(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let strong = app.token("strong", "WORKSPACE", workspace, "WORKSPACE_OWNER").await;
        let weak = app.token("weak", "WORKSPACE", workspace, "WORKSPACE_OPERATOR").await;
        let mixed = app.token("mixed", "WORKSPACE", workspace, "WORKSPACE_ACCESSOR").await;
        let roles = json!({ "roles": [
            { "entityType": "DEPLOYMENT", "entityId": deployment, "role": "DEPLOYMENT_ADMIN" },
        ] });
        app.post(&app.owner, &format!("{}/roles", path(&app, mixed.id)), roles).await.ok();
        let whole = app.token("whole", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        let operator = member_with(&app, role(On::Workspace(workspace), "WORKSPACE_OPERATOR")).await;
        let author = member_with(&app, role(On::Workspace(workspace), "WORKSPACE_AUTHOR")).await;
        for (actor, token, expected) in [
            (&operator, &strong, 403),
            (&operator, &mixed, 403),
            (&operator, &whole, 404),
            (&author, &weak, 404),
            (&operator, &weak, 200),
            (&app.owner, &strong, 200),
        ] {
            let answer = app.call("POST", &format!("{}/rotate", path(&app, token.id))).by(actor).send().await;
            assert_eq!(answer.code(), expected, "{}", answer.text());
            let alive = app.get(token, &app.path("")).await.code() == 200;
            assert_eq!(alive, expected != 200);
        }
    }

    async fn rights_on_tokens_are_checked_one_by_one(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let token = app.token("ci", "DEPLOYMENT", deployment, "DEPLOYMENT_ACCESSOR").await;
        let at = path(&app, token.id);
        for (verb, expected) in [
            ("get", [200, 403, 403, 403, 403]),
            ("update", [200, 200, 403, 403, 403]),
            ("create", [200, 403, 200, 403, 403]),
            ("rotate", [200, 403, 403, 200, 403]),
            ("delete", [200, 403, 403, 403, 204]),
        ] {
            let wanted = format!("deployment.apiTokens.{verb}");
            app.custom_role(verb, "DEPLOYMENT", &["deployment.get", "deployment.apiTokens.get", &wanted]).await;
            let holder = app.member(&format!("who may {verb}")).await;
            let roles = json!({ "deploymentRoles": [{ "deploymentId": deployment, "role": verb }] });
            app.post(&app.owner, &app.path(&format!("/users/{}/roles", holder.id)), roles).await.ok();
            let mut made = of("DEPLOYMENT", deployment, "DEPLOYMENT_ACCESSOR");
            made["name"] = format!("by {verb}").into();
            let answers = [
                app.get(&holder, &at).await,
                app.post(&holder, &at, json!({ "name": verb })).await,
                create(&app, &holder, made).await,
                app.call("POST", &format!("{at}/rotate")).by(&holder).send().await,
                app.delete(&holder, &at).await,
            ];
            let codes: Vec<u16> = answers.iter().map(podium_testkit::Answer::code).collect();
            assert_eq!(codes, expected, "{verb}");
        }
    }

    async fn a_token_may_make_tokens_but_not_better_ones(app) {
        let workspace = app.workspace("Data").await;
        let operator = app.token("op", "WORKSPACE", workspace, "WORKSPACE_OPERATOR").await;
        let made = bearer(&create(&app, &operator, of("WORKSPACE", workspace, "WORKSPACE_OPERATOR")).await);
        let shown = app.get(&operator, &path(&app, made.id)).await.ok();
        assert_eq!(shown["createdBy"], json!({
            "id": operator.id, "subjectType": "SERVICEKEY", "apiTokenName": "op",
        }));
        assert_eq!(create(&app, &operator, of("WORKSPACE", workspace, "WORKSPACE_OWNER")).await.code(), 403);
        let raise = json!({ "roles": [
            { "entityType": "WORKSPACE", "entityId": workspace, "role": "WORKSPACE_OWNER" },
        ] });
        for target in [&operator, &made] {
            let raised = app.post(&operator, &format!("{}/roles", path(&app, target.id)), raise.clone()).await;
            assert_eq!(raised.code(), 403);
        }
        let owner = app.token("o", "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
        create(&app, &owner, of("ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER")).await.ok();
        let member = app.token("m", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        let denied = create(&app, &member, of("ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER")).await;
        assert_eq!(denied.code(), 403);
    }
}
