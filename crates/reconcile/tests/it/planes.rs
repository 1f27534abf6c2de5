//! Several planes in one process: a cluster decides on which one its deployments run, and nothing moves by accident.

use std::sync::Arc;
use std::time::Duration;

use podium_api::enums::PlaneKind;
use podium_api::{ClusterId, DeploymentId, WorkspaceId};
use podium_dataplane::Planes;
use podium_dataplane::simulated::Simulated;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

/// A plane for clusters, in the place of one of Kubernetes.
fn for_clusters(app: &TestApp) -> Arc<Simulated> {
    let clock = Arc::clone(&app.world);
    Arc::new(Simulated::in_memory(Arc::new(move || clock.now())).in_place_of(PlaneKind::Kubernetes))
}

/// Starts the server again with its own plane, which makes no clusters, and these.
fn restart(app: &mut TestApp, further: &[&Arc<Simulated>]) {
    app.plane.script().lock().no_clusters = Some("There are no clusters here.".into());
    let own = Arc::<Simulated>::clone(&app.plane);
    let further = further.iter().map(|plane| Arc::<Simulated>::clone(plane) as _);
    app.restart_with(Planes::new(own, further));
}

async fn shown(app: &TestApp, path: &str) -> Value {
    app.get(&app.owner, &app.path(path)).await.ok()
}

async fn deploy(app: &TestApp, workspace: WorkspaceId, cluster: Option<ClusterId>) -> DeploymentId {
    let name = if cluster.is_some() { "On the cluster" } else { "Here" };
    let body = match cluster {
        Some(cluster) => json!({ "name": name, "workspaceId": workspace, "clusterId": cluster }),
        None => json!({
            "name": name, "workspaceId": workspace, "cloudProvider": "AWS", "region": "us-east-1",
        }),
    };
    app.post(&app.owner, &app.path("/deployments"), body).await.id().parse().expect("an id")
}

async fn status(app: &TestApp, id: DeploymentId) -> (String, String) {
    let shown = shown(app, &format!("/deployments/{id}")).await;
    let text = |field: &str| shown[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("statusReason"))
}

on_both_engines! {
    async fn a_cluster_decides_on_the_plane_of_its_deployments(mut app) {
        let clusters = for_clusters(&app);
        restart(&mut app, &[&clusters]);
        let cluster = app.new_cluster("East", json!({})).await;
        app.settle().await;
        let made = shown(&app, &format!("/clusters/{cluster}")).await;
        assert_eq!((&made["status"], &made["dataPlane"]), (&json!("CREATED"), &json!("KUBERNETES")));
        assert_eq!((clusters.clusters(), app.plane.clusters()), (vec![cluster], vec![]));
        let workspace = app.workspace("Data").await;
        let (there, here) = (deploy(&app, workspace, Some(cluster)).await, deploy(&app, workspace, None).await);
        app.settle().await;
        assert_eq!((clusters.environments(), app.plane.environments()), (vec![there], vec![here]));
        for id in [there, here] {
            assert_eq!(status(&app, id).await.0, "HEALTHY");
            app.call("DELETE", &app.path(&format!("/deployments/{id}"))).by(&app.owner).send().await;
        }
        app.settle().await;
        assert_eq!((clusters.environments(), app.plane.environments()), (vec![], vec![]));
        assert_eq!(app.delete(&app.owner, &app.path(&format!("/clusters/{cluster}"))).await.code(), 204);
        app.settle().await;
        assert_eq!((clusters.clusters(), app.pending_work().await), (vec![], vec![]));
    }

    async fn a_server_without_the_plane_moves_and_forgets_nothing(mut app) {
        let clusters = for_clusters(&app);
        restart(&mut app, &[&clusters]);
        let (cluster, workspace) = (app.new_cluster("East", json!({})).await, app.workspace("Data").await);
        app.settle().await;
        let kept = deploy(&app, workspace, Some(cluster)).await;
        app.settle().await;
        restart(&mut app, &[]);
        app.settle().await;
        let (now, why) = status(&app, kept).await;
        assert_eq!(now, "UNKNOWN");
        assert!(why.contains("kubernetes, which this server was started without"), "{why}");
        assert_eq!(app.plane.environments(), []);
        let gone = app.delete(&app.owner, &app.path(&format!("/deployments/{kept}"))).await;
        assert_eq!(gone.code(), 204);
        app.settle().await;
        assert_eq!(clusters.environments(), [kept], "nothing could be removed");
        assert!(!app.pending_work().await.is_empty(), "and that is not forgotten");
        restart(&mut app, &[&clusters]);
        app.advance(Duration::from_secs(3600));
        app.settle().await;
        assert_eq!((clusters.environments(), app.pending_work().await), (vec![], vec![]));
    }

    async fn a_cluster_that_no_plane_makes_fails_with_the_reason_and_can_be_deleted(mut app) {
        restart(&mut app, &[]);
        let cluster = app.new_cluster("East", json!({})).await;
        app.settle().await;
        let path = format!("/clusters/{cluster}");
        let failed = shown(&app, &path).await;
        assert_eq!(failed["status"], "CREATE_FAILED");
        assert_eq!(failed["healthStatus"]["details"][0]["description"], "There are no clusters here.");
        assert_eq!(failed.get("dataPlane"), None);
        app.advance(Duration::from_secs(3600));
        restart(&mut app, &[]);
        app.settle().await;
        assert_eq!(shown(&app, &path).await["status"], "CREATE_FAILED", "also after a restart");
        assert_eq!(app.delete(&app.owner, &app.path(&path)).await.code(), 204);
        app.settle().await;
        assert_eq!((app.plane.clusters(), app.pending_work().await), (vec![], vec![]));
    }

    async fn clusters_from_before_there_were_planes_keep_their_deployments(mut app) {
        let (cluster, workspace) = (app.cluster(&[]).await, app.workspace("Data").await);
        let clusters = for_clusters(&app);
        restart(&mut app, &[&clusters]);
        let id = deploy(&app, workspace, Some(cluster)).await;
        app.settle().await;
        assert_eq!(status(&app, id).await.0, "HEALTHY");
        assert_eq!((clusters.environments(), app.plane.environments()), (vec![], vec![id]));
        let shown = shown(&app, &format!("/clusters/{cluster}")).await;
        assert_eq!((&shown["status"], &shown["dataPlane"]), (&json!("CREATED"), &json!("SIMULATED")));
    }
}
