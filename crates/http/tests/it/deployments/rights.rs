//! Who may do what with deployments.

use podium_api::Id;
use podium_domain::On;
use podium_testkit::on_both_engines;
use serde_json::json;

use super::{create_by, made, member_with, path, read, update};

on_both_engines! {
    async fn operators_make_and_change_members_read_and_accessors_see_nothing(app) {
        let (workspace, other) = (app.workspace("Analytics").await, app.workspace("Other").await);
        let here = || On::Workspace(workspace);
        for (name, create, get, change) in [
            ("WORKSPACE_OWNER", 200, 200, 200),
            ("WORKSPACE_OPERATOR", 200, 200, 200),
            ("WORKSPACE_AUTHOR", 403, 200, 403),
            ("WORKSPACE_MEMBER", 403, 200, 403),
            ("WORKSPACE_ACCESSOR", 403, 404, 404),
        ] {
            let actor = member_with(&app, here(), name).await;
            assert_eq!(create_by(&app, &actor, workspace, json!({})).await.code(), create, "{name}");
            assert_eq!(create_by(&app, &actor, other, json!({})).await.code(), 404, "{name}");
            let id = made(&app, workspace, json!({})).await;
            let at = path(&app, id);
            let body = update(&read(&app, id).await, json!({}));
            assert_eq!(app.get(&actor, &at).await.code(), get, "{name}");
            assert_eq!(app.post(&actor, &at, body).await.code(), change, "{name}");
            let delete = app.delete(&actor, &at).await.code();
            assert_eq!(delete, if change == 200 { 204 } else { change }, "{name}");
        }
    }

    async fn deployment_roles_reach_one_deployment(app) {
        let workspace = app.workspace("Analytics").await;
        let (mine, other) = (made(&app, workspace, json!({})).await, made(&app, workspace, json!({})).await);
        let on = || On::Deployment { id: mine, workspace_id: workspace };
        let admin = member_with(&app, on(), "DEPLOYMENT_ADMIN").await;
        let accessor = member_with(&app, on(), "DEPLOYMENT_ACCESSOR").await;
        let body = update(&read(&app, mine).await, json!({}));
        for (actor, get, change, delete) in [(&accessor, 200, 403, 403), (&admin, 200, 200, 204)] {
            assert_eq!(app.get(actor, &path(&app, other)).await.code(), 404);
            assert_eq!(app.post(actor, &path(&app, other), body.clone()).await.code(), 404);
            assert_eq!(app.delete(actor, &path(&app, other)).await.code(), 404);
            assert_eq!(create_by(&app, actor, workspace, json!({})).await.code(), 403);
            assert_eq!(app.get(actor, &path(&app, mine)).await.code(), get);
            assert_eq!(app.post(actor, &path(&app, mine), body.clone()).await.code(), change);
            assert_eq!(app.delete(actor, &path(&app, mine)).await.code(), delete);
        }
    }

    async fn a_custom_role_grants_the_permissions_that_it_lists(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({})).await;
        let on = On::Deployment { id, workspace_id: workspace };
        let permission = podium_domain::Permission::known("deployment.delete");
        let remover = app.holder_of("remover", permission, on).await;
        let refused = app.get(&remover, &path(&app, id)).await;
        assert_eq!(
            refused.refused(403),
            "You need the permission `deployment.get` on this deployment. An admin of the deployment, or an owner of \
             its workspace or of the organization, can give you a role that has it."
        );
        assert_eq!(app.delete(&remover, &path(&app, id)).await.code(), 204);
    }

    async fn tokens_work_within_their_scope(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let id = made(&app, here, json!({})).await;
        let elsewhere = made(&app, there, json!({})).await;
        let ci = app.token("ci", "WORKSPACE", here, "WORKSPACE_OPERATOR").await;
        let own = app.token("own", "DEPLOYMENT", id, "DEPLOYMENT_ADMIN").await;
        let made_by = create_by(&app, &ci, here, json!({ "name": "By ci" })).await.ok();
        assert_eq!(made_by["createdBy"]["subjectType"], "SERVICEKEY");
        assert_eq!(made_by["createdBy"]["id"], json!(ci.id));
        assert_eq!(create_by(&app, &ci, there, json!({})).await.code(), 404);
        assert_eq!(create_by(&app, &own, here, json!({})).await.code(), 403);
        for token in [&ci, &own] {
            assert_eq!(app.get(token, &path(&app, id)).await.code(), 200);
            assert_eq!(app.get(token, &path(&app, elsewhere)).await.code(), 404);
            let body = update(&read(&app, id).await, json!({}));
            assert_eq!(app.post(token, &path(&app, id), body).await.code(), 200);
        }
    }

    async fn an_unseen_deployment_reads_as_an_absent_one(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({})).await;
        let body = update(&read(&app, id).await, json!({}));
        let nobody = app.member("plain").await;
        for method in ["GET", "POST", "DELETE"] {
            let call = |id: &str| {
                app.call(method, &path(&app, id)).by(&nobody).header("x-request-id", "same").json(&body)
            };
            let (unseen, absent) = (call(id.as_str()).send().await, call(app.world.id::<Id>().as_str()).send().await);
            assert_eq!((unseen.code(), unseen.json()), (404, absent.json()), "{method}");
            assert_eq!(unseen.headers, absent.headers);
        }
        let owner = app.get(&app.owner, &path(&app, app.world.id::<Id>())).await;
        assert_eq!(owner.refused(404), "There is no such deployment, or you may not see it.");
    }
}
