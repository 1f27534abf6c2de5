//! Before the loops stop, the plane of this machine is told what was deleted, and removes nothing else.

use std::time::Duration;

use podium_api::DeploymentId;
use podium_reconcile::{Loops, Options};
use podium_testkit::{Engine, TestApp, block_on, on_both_engines};

/// Long enough that only a hang exceeds it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts loops that get round to nothing, and stops them.
async fn stop_before_anything_is_done(app: &TestApp) {
    let options = Options { concurrency: 0, ..Options::default() };
    Loops::new(&app.app, app.system.steward(), &app.planes(), options).start().drain(PATIENCE).await;
}

async fn is_pending(app: &TestApp, id: DeploymentId) -> bool {
    app.pending_work().await.iter().any(|row| row.id == id.id() && row.holder.is_empty())
}

on_both_engines! {
    async fn what_was_deleted_just_before_a_stop_is_handed_to_the_plane(app) {
        let app = app.on_node("alpha").await;
        let workspace = app.workspace("Data").await;
        let (gone, kept) = (app.new_deployment(workspace).await, app.new_deployment(workspace).await);
        app.settle().await;
        let new = app.new_deployment(workspace).await;
        app.delete_deployment(gone).await;
        stop_before_anything_is_done(&app).await;
        assert_eq!(app.plane.environments(), [kept], "and what was just created is left alone");
        assert!(is_pending(&app, gone).await && is_pending(&app, new).await, "the next start does the rest");
        app.settle().await;
        assert_eq!(app.plane.environments(), [kept, new]);
        assert!(!is_pending(&app, gone).await);
    }

    async fn what_nobody_deleted_stays_though_nothing_is_known_of_it(app) {
        let app = app.on_node("alpha").await;
        let id = app.new_deployment(app.workspace("Data").await).await;
        app.settle().await;
        // As after an older backup of the database was restored.
        app.delete_deployment(id).await;
        app.forget_work().await;
        stop_before_anything_is_done(&app).await;
        assert_eq!(app.plane.environments(), [id]);
        // Nor when the plane tells of it, for instance that it was stopped.
        app.plane.script().set_progress(id, None);
        app.settle().await;
        assert_eq!(app.plane.environments(), [id]);
        assert!(!is_pending(&app, id).await);
    }

    async fn nothing_is_removed_while_the_database_cannot_be_read(app) {
        let app = app.on_node("alpha").await;
        let id = app.new_deployment(app.workspace("Data").await).await;
        app.settle().await;
        app.delete_deployment(id).await;
        app.app.db(&app.system).close().await;
        stop_before_anything_is_done(&app).await;
        assert_eq!(app.plane.environments(), [id]);
    }
}

#[test]
fn what_another_node_is_to_remove_stays() {
    block_on(async {
        let alpha = TestApp::start(Engine::Postgres).await.on_node("alpha").await;
        let beta = alpha.replica().await.on_node("beta").await;
        let id = alpha.new_deployment(alpha.workspace("Data").await).await;
        alpha.settle().await;
        assert_eq!(alpha.plane.environments(), [id]);
        let node = beta.app.node().expect("it is one").id;
        alpha.execute(&format!("UPDATE placements SET node_id = '{node}'")).await;
        alpha.delete_deployment(id).await;
        stop_before_anything_is_done(&alpha).await;
        assert_eq!(alpha.plane.environments(), [id], "the next start sets it aside");
    });
}
