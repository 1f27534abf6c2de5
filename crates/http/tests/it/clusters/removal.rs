//! When a cluster can be deleted, and what goes with it.

use podium_api::ClusterId;
use podium_testkit::on_both_engines;
use serde_json::json;

use super::{made, path};

on_both_engines! {
    async fn a_cluster_with_deployments_stays(app) {
        let id = made(&app, "Main", json!({})).await;
        let workspace = app.workspace("Data").await;
        let mut left = Vec::new();
        for message in [
            "1 deployment runs on the cluster: delete its deployments first.",
            "2 deployments run on the cluster: delete its deployments first.",
        ] {
            let deployment = app.deployment(workspace).await;
            app.set_column("deployments", deployment, "cluster_id", &format!("'{id}'")).await;
            left.push(deployment);
            assert_eq!(app.delete(&app.owner, &path(&app, id)).await.refused(409), message);
        }
        assert_eq!(app.get(&app.owner, &path(&app, id)).await.code(), 200);
        for deployment in left {
            app.set_column("deployments", deployment, "cluster_id", "NULL").await;
        }
        assert_eq!(app.delete(&app.owner, &path(&app, id)).await.code(), 204);
    }

    async fn a_deleted_cluster_is_gone_at_once_and_handed_to_its_loop(app) {
        let workspace = app.workspace("Data").await;
        let id = made(&app, "Main", json!({ "workspaceIds": [workspace] })).await;
        assert_eq!(app.rows("work").await, 0);
        assert_eq!(app.delete(&app.owner, &path(&app, id)).await.code(), 204);
        assert_eq!(app.get(&app.owner, &path(&app, id)).await.code(), 404);
        assert_eq!(app.get(&app.owner, &app.path("/clusters")).await.ok()["totalCount"], 0);
        assert_eq!(app.rows("work").await, 1);
        assert_eq!((app.rows("clusters").await, app.rows("cluster_workspaces").await), (0, 0));
        assert_eq!(made(&app, "Main", json!({})).await.to_string().len(), 25, "its name is free again");
    }

    async fn workspaces_lose_a_deleted_cluster_as_their_default(app) {
        let id: ClusterId = made(&app, "Main", json!({})).await;
        let workspace = app.workspace("Data").await;
        let at = app.path(&format!("/workspaces/{workspace}"));
        let body = json!({ "name": "Data", "description": "", "cicdEnforcedDefault": false, "defaultClusterId": id });
        assert_eq!(app.post(&app.owner, &at, body).await.ok()["defaultClusterId"], json!(id));
        assert_eq!(app.delete(&app.owner, &path(&app, id)).await.code(), 204);
        assert_eq!(app.get(&app.owner, &at).await.ok().get("defaultClusterId"), None);
        let body = json!({ "name": "Data", "description": "", "cicdEnforcedDefault": true });
        assert_eq!(app.post(&app.owner, &at, body).await.code(), 200);
    }

    async fn a_cluster_that_is_a_default_need_not_be_there_yet(app) {
        let id = app.new_cluster("Main", json!({})).await;
        let body = json!({ "name": "Data", "defaultClusterId": id });
        assert_eq!(app.post(&app.owner, &app.path("/workspaces"), body).await.ok()["defaultClusterId"], json!(id));
    }
}
