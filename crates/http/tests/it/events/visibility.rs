//! Who may read which events: those who may read the resource, at the moment of reading.

use podium_domain::On;
use podium_testkit::{on_both_engines, role};
use serde_json::json;

use super::{settled, shown};

on_both_engines! {
    async fn events_are_shown_to_those_who_may_read_the_resource(app) {
        let member = role(On::Organization, "ORGANIZATION_MEMBER");
        let (data, other) = (app.workspace("Data").await, app.workspace("Other").await);
        let plain = app.member("plain").await;
        let worker = app.user_with("worker", vec![member.clone(), role(On::Workspace(data), "WORKSPACE_MEMBER")]).await;
        let operator = app.user_with("operator", vec![member.clone(), role(On::Workspace(data), "WORKSPACE_OPERATOR")]).await;
        let (inside, outside) = (app.deployment(data).await, app.deployment(other).await);
        let on = On::Deployment { id: inside, workspace_id: data };
        let accessor = app.user_with("accessor", vec![member, role(on, "DEPLOYMENT_ACCESSOR")]).await;
        app.team("Crew", &[]).await;
        app.token("org", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        app.token("ws", "WORKSPACE", data, "WORKSPACE_MEMBER").await;
        app.token("dep", "DEPLOYMENT", inside, "DEPLOYMENT_ADMIN").await;
        app.post(&app.owner, &app.path("/allowed-ip-address-ranges"), json!({ "ipAddressRange": "127.0.0.0/8" })).await.ok();
        for (scope, id) in [("WORKSPACE", data.id()), ("DEPLOYMENT", inside.id())] {
            let body = json!({
                "objectKey": format!("IN_{scope}"), "objectType": "ENVIRONMENT_VARIABLE", "scope": scope,
                "scopeEntityId": id, "environmentVariable": { "value": "v" },
            });
            app.post(&app.owner, &app.path("/environment-objects"), body).await.ok();
        }
        for id in [inside, outside] {
            let body = json!({ "type": "IMAGE_ONLY" });
            app.post(&app.owner, &app.path(&format!("/deployments/{id}/deploys")), body).await.ok();
        }
        let rollout = format!("deployment.deploying {inside}");
        assert_eq!(settled(&app).await.len(), 12);
        assert_eq!(shown(&app, &plain, "").await, ["team.created Crew"]);
        assert_eq!(shown(&app, &worker, "").await, [
            "workspace.created Data", "team.created Crew", &rollout, "deploy.created",
        ]);
        assert_eq!(shown(&app, &accessor, "").await, [
            "workspace.created Data", "team.created Crew", &rollout,
        ]);
        assert_eq!(shown(&app, &operator, "").await, [
            "workspace.created Data", "team.created Crew", "token.created ws", "token.created dep",
            "environment_object.created IN_WORKSPACE", &rollout, "environment_object.created IN_DEPLOYMENT", "deploy.created",
        ]);
        // Filters do not widen it.
        assert_eq!(shown(&app, &worker, &format!("deploymentId={outside}")).await, Vec::<String>::new());
        assert_eq!(shown(&app, &worker, &format!("workspaceId={other}")).await, Vec::<String>::new());
        assert_eq!(shown(&app, &plain, "types=podium.token.created").await, Vec::<String>::new());
        assert_eq!(app.get(&app.stranger().await, &app.path("/events")).await.code(), 404);
    }

    async fn a_role_that_is_lost_takes_its_events_along(app) {
        let data = app.workspace("Data").await;
        let held = vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(On::Workspace(data), "WORKSPACE_MEMBER")];
        let grace = app.user_with("grace", held).await;
        assert_eq!(shown(&app, &grace, "").await, ["workspace.created Data"]);
        let nothing = json!({ "organizationRole": "ORGANIZATION_MEMBER", "workspaceRoles": [] });
        app.post(&app.owner, &app.path(&format!("/users/{}/roles", grace.id)), nothing).await.ok();
        assert_eq!(shown(&app, &grace, "").await, ["user.roles_updated grace@podium.test"]);
    }

    async fn events_of_clusters_are_shown_to_those_who_may_see_the_cluster(app) {
        let (data, other) = (app.workspace("Data").await, app.workspace("Other").await);
        let held = vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(On::Workspace(data), "WORKSPACE_MEMBER")];
        let worker = app.user_with("worker", held).await;
        let open = app.new_cluster("open", json!({})).await;
        let ours = app.new_cluster("ours", json!({ "workspaceIds": [data] })).await;
        let theirs = app.new_cluster("theirs", json!({ "workspaceIds": [other] })).await;
        let of_clusters = "types=podium.cluster.created&types=podium.cluster.ready&types=podium.cluster.deleted";
        assert_eq!(shown(&app, &worker, of_clusters).await, ["cluster.created open", "cluster.created ours"]);
        app.settle().await;
        let ready = shown(&app, &app.owner, "types=podium.cluster.ready").await;
        assert_eq!(ready.len(), 3);
        for id in [open, ours, theirs] {
            app.delete(&app.owner, &app.path(&format!("/clusters/{id}"))).await.ok();
        }
        // Nobody can tell any more who could see a cluster that was not open to all.
        assert_eq!(shown(&app, &worker, of_clusters).await, ["cluster.deleted open"]);
        assert_eq!(shown(&app, &app.owner, "types=podium.cluster.deleted").await.len(), 3);
    }
}
