//! Deployments are changed while a step is running.

use std::sync::Arc;
use std::time::Duration;

use podium_api::DeploymentId;
use podium_api::enums::DeploymentStatus::{Creating, Deploying, Healthy};
use podium_dataplane::DataPlane;
use podium_domain::deployments::HibernationOverride;
use podium_testkit::{TestApp, on_both_engines};

use super::{come_to_rest, generations, image, running_image, well};
use crate::gated::Gated;

/// A new deployment whose first `apply` is stopped while `meanwhile` happens.
async fn interrupted(
    app: &Arc<TestApp>,
    meanwhile: impl AsyncFnOnce(&TestApp, DeploymentId),
) -> (DeploymentId, Arc<Gated>) {
    app.plane.script().keep_journal();
    let plane = Gated::new(app);
    let loops = plane.loops(app);
    let id = app.new_deployment(app.workspace("Data").await).await;
    let gate = plane.stop_next_apply();
    let step = tokio::spawn(async move { loops.step_until_idle().await });
    gate.reached.await.expect("it is applied");
    meanwhile(app, id).await;
    gate.open.send(()).expect("somebody waits");
    step.await.expect("no panic").expect("it comes to rest");
    (id, plane)
}

on_both_engines! {
    async fn an_update_while_an_older_one_is_applied_wins(app) {
        let app = Arc::new(app);
        let (id, _) = interrupted(&app, async |app, id| {
            app.change_deployment(id, image("deploy-1")).await;
            assert_eq!(app.status(id).await.0, Creating);
        })
        .await;
        assert_eq!(app.status(id).await, well(Healthy));
        assert_eq!(running_image(&app, id).await.as_deref(), Some("deploy-1"));
        assert_eq!(generations(&app.plane.script().journal()), [1, 2]);
        assert_eq!(app.pending_work().await, []);
        assert_eq!(app.stored_deployment(id).await.expect("there is one").stamp.version, 2);
    }

    async fn an_observation_of_an_older_generation_is_not_recorded(app) {
        let app = Arc::new(app);
        let id = app.new_deployment(app.workspace("Data").await).await;
        app.settle().await;
        let plane = Gated::new(&app);
        let loops = plane.loops(&app);
        app.change_deployment(id, image("deploy-1")).await;
        let gates = [plane.stop_next_apply(), plane.stop_next_apply()];
        let step = tokio::spawn(async move { loops.step_until_idle().await });
        let [first, second] = gates;
        first.reached.await.expect("it is applied");
        app.change_deployment(id, image("deploy-2")).await;
        first.open.send(()).expect("somebody waits");
        second.reached.await.expect("the next one is applied");
        assert_eq!(app.status(id).await.0, Deploying, "not yet what is wanted");
        assert_ne!(running_image(&app, id).await.as_deref(), Some("deploy-2"));
        second.open.send(()).expect("somebody waits");
        step.await.expect("no panic").expect("it comes to rest");
        assert_eq!(app.status(id).await, well(Healthy));
        assert_eq!(running_image(&app, id).await.as_deref(), Some("deploy-2"));
    }

    async fn a_deletion_while_it_is_made_leaves_nothing(app) {
        let app = Arc::new(app);
        let (_, plane) = interrupted(&app, async |app, id| app.delete_deployment(id).await).await;
        assert_eq!(app.plane.environments(), []);
        assert_eq!(app.pending_work().await, []);
        assert_eq!(plane.applied().len(), 1);
    }

    async fn a_change_and_a_deletion_while_it_is_made_leave_nothing(app) {
        let app = Arc::new(app);
        interrupted(&app, async |app, id| {
            app.change_deployment(id, image("deploy-1")).await;
            app.delete_deployment(id).await;
        })
        .await;
        assert_eq!(app.plane.environments(), []);
        assert_eq!(app.pending_work().await, []);
    }

    async fn a_step_that_outlives_its_lease_does_no_harm(app) {
        let app = Arc::new(app);
        let plane = Gated::new(&app);
        let (slow, other) = (plane.loops(&app), plane.loops(&app));
        let id = app.new_deployment(app.workspace("Data").await).await;
        let gate = plane.stop_next_apply();
        let step = tokio::spawn(async move { slow.step_until_idle().await });
        gate.reached.await.expect("it is applied");
        app.advance(Duration::from_secs(31));
        app.change_deployment(id, |spec| {
            spec.is_development_mode = true;
            spec.hibernation.override_ = Some(HibernationOverride { is_hibernating: true, until: None });
        })
        .await;
        come_to_rest(&app, &other).await;
        let before = app.status(id).await;
        gate.open.send(()).expect("somebody waits");
        step.await.expect("no panic").expect("it comes to rest");
        assert_eq!(app.status(id).await, before, "it has nothing to say any more");
        come_to_rest(&app, &other).await;
        assert_eq!((app.status(id).await, app.pending_work().await), (before, vec![]));
    }

    async fn a_step_that_outlives_its_lease_leaves_no_orphan(app) {
        let app = Arc::new(app);
        let plane = Gated::new(&app);
        let (slow, other) = (plane.loops(&app), plane.loops(&app));
        let id = app.new_deployment(app.workspace("Data").await).await;
        let gate = plane.stop_next_apply();
        let step = tokio::spawn(async move { slow.step_until_idle().await });
        gate.reached.await.expect("it is applied");
        let applied = plane.applied().pop().expect("it was applied");
        app.advance(Duration::from_secs(31));
        app.delete_deployment(id).await;
        come_to_rest(&app, &other).await;
        assert_eq!(app.plane.environments(), []);
        // The call of the slow one arrives only now, when everything is over.
        app.plane.apply(&applied).await.expect("it is applied");
        gate.open.send(()).expect("somebody waits");
        step.await.expect("no panic").expect("it comes to rest");
        come_to_rest(&app, &other).await;
        assert_eq!((app.plane.environments(), app.pending_work().await), (vec![], vec![]));
    }
}
