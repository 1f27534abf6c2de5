//! Who may give what, and whose entries a list replaces.

use podium_api::SubjectId;
use podium_domain::On;
use podium_testkit::{Actor, TestApp, on_both_engines, role};
use serde_json::json;

use super::{in_workspace, on_deployment, path, set, set_by};

/// A member with one more role.
async fn member_with(app: &TestApp, name: &str, on: On, held: &str) -> Actor {
    app.user_with(name, vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(on, held)]).await
}

async fn held_in_workspaces(app: &TestApp, user: SubjectId) -> serde_json::Value {
    app.get(&app.owner, &path(app, user)).await.ok()["workspaceRoles"].clone()
}

on_both_engines! {
    async fn a_list_replaces_only_what_its_caller_manages(app) {
        let (own, other) = (app.workspace("Own").await, app.workspace("Other").await);
        let bob = app
            .user_with(
                "bob",
                vec![
                    role(On::Organization, "ORGANIZATION_MEMBER"),
                    role(On::Workspace(own), "WORKSPACE_MEMBER"),
                    role(On::Workspace(other), "WORKSPACE_AUTHOR"),
                ],
            )
            .await;
        let eve = member_with(&app, "eve", On::Workspace(own), "WORKSPACE_OWNER").await;
        let answer =
            set_by(&app, &eve, bob.id, json!({ "workspaceRoles": [in_workspace(own, "WORKSPACE_OWNER")] }))
                .await;
        assert_eq!(
            answer.ok(),
            json!({
                "organizationRole": "ORGANIZATION_MEMBER",
                "workspaceRoles": [in_workspace(own, "WORKSPACE_OWNER")],
            })
        );
        let both = json!([in_workspace(own, "WORKSPACE_OWNER"), in_workspace(other, "WORKSPACE_AUTHOR")]);
        assert_eq!(held_in_workspaces(&app, bob.id).await, both);
        set_by(&app, &eve, bob.id, json!({ "workspaceRoles": [] })).await.ok();
        assert_eq!(held_in_workspaces(&app, bob.id).await, json!([in_workspace(other, "WORKSPACE_AUTHOR")]));
    }

    async fn an_entry_elsewhere_is_unknown_or_forbidden(app) {
        let (own, seen, unseen) =
            (app.workspace("Own").await, app.workspace("Seen").await, app.workspace("Unseen").await);
        let bob = member_with(&app, "bob", On::Workspace(seen), "WORKSPACE_AUTHOR").await;
        let eve = app
            .user_with(
                "eve",
                vec![
                    role(On::Organization, "ORGANIZATION_MEMBER"),
                    role(On::Workspace(own), "WORKSPACE_OWNER"),
                    role(On::Workspace(seen), "WORKSPACE_OPERATOR"),
                ],
            )
            .await;
        let ask = async |workspace, name| {
            set_by(&app, &eve, bob.id, json!({ "workspaceRoles": [in_workspace(workspace, name)] })).await
        };
        assert_eq!(
            ask(unseen, "WORKSPACE_MEMBER").await.wrong_fields(),
            ["workspaceRoles[0].workspaceId: unknown"]
        );
        assert_eq!(
            ask(seen, "WORKSPACE_MEMBER").await.refused(403),
            format!(
                "You may not change roles in workspace {seen}: that takes the permission `workspace.users.update` there. \
             Leave the entry out, or send it as it is."
            )
        );
        assert_eq!(ask(seen, "WORKSPACE_AUTHOR").await.code(), 200, "as it is");
        assert_eq!(held_in_workspaces(&app, bob.id).await, json!([in_workspace(seen, "WORKSPACE_AUTHOR")]));
    }

    async fn nobody_can_grant_what_they_do_not_hold(app) {
        let workspace = app.workspace("Data").await;
        let id = app.deployment(workspace).await;
        let on = On::Deployment { id, workspace_id: workspace };
        app.custom_role(
            "Manager",
            "DEPLOYMENT",
            &["deployment.get", "deployment.users.get", "deployment.users.update"],
        )
        .await;
        app.custom_role("Destroyer", "DEPLOYMENT", &["deployment.get", "deployment.delete"]).await;
        let bob = app.member("bob").await;
        let manager = app.member("manager").await;
        set(&app, manager.id, json!({ "deploymentRoles": [on_deployment(id, "Manager")] })).await.ok();
        let admin = member_with(&app, "admin", on, "DEPLOYMENT_ADMIN").await;
        let operator = member_with(&app, "operator", On::Workspace(workspace), "WORKSPACE_OPERATOR").await;
        let keeper = member_with(&app, "keeper", On::Workspace(workspace), "WORKSPACE_OWNER").await;
        let table = [
            (&manager, "DEPLOYMENT_ACCESSOR", 200),
            (&manager, "Manager", 200),
            (&manager, "Destroyer", 403),
            (&manager, "DEPLOYMENT_ADMIN", 403),
            (&admin, "DEPLOYMENT_ADMIN", 200),
            (&admin, "Destroyer", 200),
            (&operator, "DEPLOYMENT_ACCESSOR", 403),
            (&keeper, "DEPLOYMENT_ADMIN", 200),
        ];
        for (giver, name, status) in table {
            set(&app, bob.id, json!({ "deploymentRoles": [] })).await.ok();
            let answer =
                set_by(&app, giver, bob.id, json!({ "deploymentRoles": [on_deployment(id, name)] })).await;
            assert_eq!(answer.code(), status, "{name}: {}", answer.text());
        }
        set(&app, bob.id, json!({ "deploymentRoles": [] })).await.ok();
        let message =
            set_by(&app, &manager, bob.id, json!({ "deploymentRoles": [on_deployment(id, "Destroyer")] }))
                .await;
        assert_eq!(
            message.refused(403),
            format!(
                "You may not give Destroyer on deployment {id}: it includes `deployment.delete`, which you do not hold there. \
             Nobody can give more than it holds."
            )
        );
        for (giver, name, status) in [
            (&admin, "WORKSPACE_ACCESSOR", 403),
            (&operator, "WORKSPACE_MEMBER", 403),
            (&keeper, "WORKSPACE_OWNER", 200),
        ] {
            let answer =
                set_by(&app, giver, bob.id, json!({ "workspaceRoles": [in_workspace(workspace, name)] }))
                    .await;
            assert_eq!(answer.code(), status, "{name}: {}", answer.text());
        }
    }

    async fn nobody_raises_itself(app) {
        let workspace = app.workspace("Data").await;
        let eve = member_with(&app, "eve", On::Workspace(workspace), "WORKSPACE_OPERATOR").await;
        let ask = async |body| set_by(&app, &eve, eve.id, body).await;
        assert_eq!(ask(json!({ "organizationRole": "ORGANIZATION_OWNER" })).await.code(), 403);
        assert_eq!(ask(json!({ "organizationRole": "ORGANIZATION_BILLING_ADMIN" })).await.code(), 403);
        assert_eq!(
            ask(json!({ "workspaceRoles": [in_workspace(workspace, "WORKSPACE_OWNER")] })).await.code(),
            403
        );
        let shown = ask(json!({ "organizationRole": "ORGANIZATION_MEMBER" })).await.ok();
        assert_eq!(
            shown["workspaceRoles"],
            json!([in_workspace(workspace, "WORKSPACE_OPERATOR")]),
            "it sees its own"
        );
    }

    async fn only_an_owner_changes_organization_roles(app) {
        let (bob, workspace) = (app.member("bob").await, app.workspace("Data").await);
        let billing = app.member_as("billing", podium_api::enums::OrganizationRole::BillingAdmin).await;
        let keeper = member_with(&app, "keeper", On::Workspace(workspace), "WORKSPACE_OWNER").await;
        for actor in [&billing, &keeper] {
            for name in ["ORGANIZATION_OWNER", "ORGANIZATION_OBSERVE_MEMBER"] {
                let message =
                    set_by(&app, actor, bob.id, json!({ "organizationRole": name })).await.refused(403);
                assert_eq!(message, "Only an organization owner may change organization roles.");
            }
        }
        let same = json!({
            "organizationRole": "ORGANIZATION_MEMBER",
            "workspaceRoles": [in_workspace(workspace, "WORKSPACE_MEMBER")],
        });
        assert_eq!(
            set_by(&app, &keeper, bob.id, same).await.code(),
            200,
            "the role that is held changes nothing"
        );
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
        let raised =
            set_by(&app, &token, bob.id, json!({ "organizationRole": "ORGANIZATION_OWNER" })).await.ok();
        assert_eq!(raised["organizationRole"], "ORGANIZATION_OWNER");
    }

    async fn wrong_fields_are_reported_before_missing_rights(app) {
        let (eve, bob) = (app.member("eve").await, app.member("bob").await);
        let body = json!({
            "organizationRole": "ORGANIZATION_OWNER",
            "workspaceRoles": [in_workspace(app.world.id(), "WORKSPACE_OWNER")],
        });
        assert_eq!(
            set_by(&app, &eve, bob.id, body).await.wrong_fields(),
            ["workspaceRoles[0].workspaceId: unknown"]
        );
    }
}
