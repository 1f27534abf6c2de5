//! Releases that cannot go live: the deploy fails, and what serves is wanted again.

use podium_api::enums::DeploymentStatus::{Creating, Healthy};
use podium_testkit::on_both_engines;

use super::failures::healthy;
use super::{come_to_rest, well};
use crate::gated::Gated;

on_both_engines! {
    async fn a_refused_release_is_reverted_to_what_serves(app) {
        let id = healthy(&app).await;
        let served = app.stored_deployment(id).await.unwrap();
        app.plane.script().refuse_dags("bad", "its packages do not resolve");
        app.change_deployment(id, |spec| spec.release.dag_version = Some("bad".into())).await;
        app.settle().await;
        assert_eq!(app.status(id).await, well(Healthy));
        let now = app.stored_deployment(id).await.unwrap();
        assert_eq!(now.spec.release, served.spec.release);
        assert_eq!(now.observed, served.observed);
        assert!(now.generation > served.generation + 1, "the change and its reversal were both applied");
        assert_eq!(app.pending_work().await, []);
    }

    async fn before_anything_serves_a_refused_release_leaves_nothing_deployed(app) {
        let id = app.new_deployment(app.workspace("Analytics").await).await;
        app.plane.script().refuse_dags("bad", "its packages do not resolve");
        app.change_deployment(id, |spec| spec.release.dag_version = Some("bad".into())).await;
        assert_eq!(app.status(id).await.0, Creating);
        let gated = Gated::new(&app);
        come_to_rest(&app, &gated.loops(&app)).await;
        assert_eq!(app.status(id).await, well(Healthy));
        assert_eq!(app.stored_deployment(id).await.unwrap().spec.release.dag_version, None);
    }
}
