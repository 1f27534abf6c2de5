//! Who may see and change objects: a gate for members, then the right on what the object belongs to.

use podium_api::EntityId;
use podium_domain::On;
use podium_testkit::{Actor, TestApp, on_both_engines, role};
use serde_json::json;

use super::{create, keys, made, path, to, variable, variable_of};

async fn member(app: &TestApp, on: On, held: &str) -> Actor {
    app.user_with(held, vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(on, held)]).await
}

on_both_engines! {
    async fn rights_are_those_on_what_the_object_belongs_to(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let on_deployment = On::Deployment { id: deployment, workspace_id: workspace };
        let of_workspace = made(&app, variable("KEY", workspace, "v")).await;
        let of_deployment = made(&app, variable_of(deployment, "KEY", "v")).await;
        // get, update, create, exclude, delete; an object of a deployment has nothing to exclude.
        let none = [404, 404, 404, 404, 404];
        let seen = [404, 404, 403, 404, 404];
        for (on, held, in_workspace, on_it) in [
            (On::Workspace(workspace), "WORKSPACE_OWNER", [200, 200, 200, 200, 204], [200, 200, 200, 405, 204]),
            (On::Workspace(workspace), "WORKSPACE_OPERATOR", [200, 200, 200, 200, 204], [200, 200, 200, 405, 204]),
            (On::Workspace(workspace), "WORKSPACE_AUTHOR", [200, 403, 403, 403, 403], [200, 403, 403, 403, 403]),
            (On::Workspace(workspace), "WORKSPACE_MEMBER", seen, seen),
            (On::Workspace(workspace), "WORKSPACE_ACCESSOR", seen, none),
            (on_deployment.clone(), "DEPLOYMENT_ADMIN", seen, [200, 200, 200, 405, 204]),
            (on_deployment.clone(), "DEPLOYMENT_ACCESSOR", seen, seen),
            (On::Organization, "ORGANIZATION_BILLING_ADMIN", none, none),
        ] {
            let actor = member(&app, on, held).await;
            for (at, expected) in [(&of_workspace, in_workspace), (&of_deployment, on_it)] {
                let body = if at == &of_workspace {
                    variable(held, workspace, "v")
                } else {
                    variable_of(deployment, held, "v")
                };
                let made = create(&app, &actor, body.clone()).await;
                let own = if made.code() == 200 { path(&app, &made.id()) } else { at.clone() };
                let answers = [
                    app.get(&actor, at).await,
                    app.post(&actor, at, json!({ "description": held })).await,
                    made,
                    app.post(&actor, &format!("{at}/exclude-linking"), to(deployment)).await,
                    app.delete(&actor, &own).await,
                ];
                assert_eq!(answers.map(|answer| answer.code()), expected, "{held} {body}");
            }
        }
    }

    async fn rights_on_objects_are_checked_one_by_one(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let at = made(&app, variable_of(deployment, "KEY", "v")).await;
        for (verb, expected) in [
            ("get", [200, 403, 403, 403]),
            ("update", [200, 200, 403, 403]),
            ("create", [200, 403, 200, 403]),
            ("delete", [200, 403, 403, 204]),
        ] {
            let wanted = format!("deployment.envObjects.{verb}");
            app.custom_role(verb, "DEPLOYMENT", &["deployment.get", "deployment.envObjects.get", &wanted]).await;
            let holder = app.member(&format!("who may {verb}")).await;
            let roles = json!({ "deploymentRoles": [{ "deploymentId": deployment, "role": verb }] });
            app.post(&app.owner, &app.path(&format!("/users/{}/roles", holder.id)), roles).await.ok();
            let answers = [
                app.get(&holder, &at).await,
                app.post(&holder, &at, json!({ "description": verb })).await,
                create(&app, &holder, variable_of(deployment, verb, "v")).await,
                app.delete(&holder, &at).await,
            ];
            assert_eq!(answers.map(|answer| answer.code()), expected, "{verb}");
        }
    }

    async fn lists_show_what_the_caller_may_read(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let (one, two) = (app.deployment(here).await, app.deployment(there).await);
        for request in [
            variable("HERE", here, "v"),
            variable("THERE", there, "v"),
            variable_of(one, "ONE", "v"),
            variable_of(two, "TWO", "v"),
        ] {
            made(&app, request).await;
        }
        let sorted = "sorts=objectKey:asc";
        let on_two = On::Deployment { id: two, workspace_id: there };
        for (on, held, expected) in [
            (On::Organization, "ORGANIZATION_OWNER", &["HERE", "ONE", "THERE", "TWO"][..]),
            (On::Workspace(here), "WORKSPACE_AUTHOR", &["HERE", "ONE"]),
            (On::Workspace(here), "WORKSPACE_MEMBER", &[]),
            (on_two, "DEPLOYMENT_ADMIN", &["TWO"]),
        ] {
            let actor = app.user_with(held, vec![role(on, held), role(On::Organization, "ORGANIZATION_MEMBER")]).await;
            if held != "ORGANIZATION_OWNER" {
                assert_eq!(keys(&app, &actor, sorted).await, expected, "{held}");
            }
            let total = app.get(&actor, &app.path("/environment-objects?limit=0")).await.ok();
            assert_eq!(total["totalCount"], expected.len(), "{held}");
        }
        assert_eq!(keys(&app, &app.owner, sorted).await, ["HERE", "ONE", "THERE", "TWO"]);
    }

    async fn the_owner_of_a_new_object_must_be_visible(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let plain = app.member("plain").await;
        let unknown: EntityId = app.world.id();
        for (by, body, thing) in [
            (&app.owner, variable("KEY", unknown, "v"), "workspace"),
            (&app.owner, variable_of(unknown, "KEY", "v"), "deployment"),
            (&app.owner, variable_of(workspace, "KEY", "v"), "deployment"),
            (&app.owner, variable("KEY", deployment, "v"), "workspace"),
            (&plain, variable("KEY", workspace, "v"), "workspace"),
            (&plain, variable_of(deployment, "KEY", "v"), "deployment"),
        ] {
            let message = create(&app, by, body).await.refused(404);
            assert_eq!(message, format!("There is no such {thing}, or you may not see it."));
        }
        let token = app.token("ci", "WORKSPACE", workspace, "WORKSPACE_OPERATOR").await;
        create(&app, &token, variable_of(deployment, "KEY", "v")).await.ok();
    }
}
