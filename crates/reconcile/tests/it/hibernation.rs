//! Deployments hibernate and wake on schedule, and cost nothing in between.

use std::time::Duration;

use podium_api::deployments::DeploymentHibernationSchedule;
use podium_api::enums::DeploymentStatus::{Deploying, Healthy, Hibernating};
use podium_domain::deployments::{HibernationOverride, Spec};
use podium_testkit::{Engine, TestApp, block_on, on_both_engines};

/// Asleep from 20:00 to 06:00. Tests begin at 08:00.
fn nightly(spec: &mut Spec) {
    spec.is_development_mode = true;
    spec.hibernation.schedules = vec![DeploymentHibernationSchedule {
        description: None,
        hibernate_at_cron: "0 20 * * *".into(),
        wake_at_cron: "0 6 * * *".into(),
        is_enabled: true,
    }];
}

const HOUR: Duration = Duration::from_hours(1);

/// When the only pending work is due, and why.
async fn next(app: &TestApp) -> (String, String) {
    let pending = app.pending_work().await;
    assert_eq!(pending.len(), 1, "{pending:?}");
    assert_eq!((pending[0].attempts, pending[0].since), (0, pending[0].due_at), "nothing is late");
    (pending[0].due_at.to_string(), pending[0].reason.clone())
}

on_both_engines! {
    async fn schedules_are_kept_to_the_minute(app) {
        let id = app.new_deployment_with(app.workspace("Data").await, nightly).await;
        app.settle().await;
        assert_eq!(app.status(id).await.0, Healthy);
        let event = "The next hibernation event.".to_owned();
        assert_eq!(next(&app).await, ("2027-01-15T20:00:00.000Z".into(), event.clone()));
        app.advance(12 * HOUR - Duration::from_millis(1));
        assert_eq!(app.settle().await, 0);
        app.advance(Duration::from_millis(1));
        assert_eq!(app.settle().await, 1);
        assert_eq!(app.status(id).await, (Hibernating, String::new()));
        assert_eq!(next(&app).await, ("2027-01-16T06:00:00.000Z".into(), event));
        app.plane.script().lock().rollout = Duration::from_secs(60);
        app.advance(10 * HOUR);
        app.settle().await;
        assert_eq!(app.status(id).await.0, Deploying, "it is waking up");
        app.advance(Duration::from_secs(60));
        app.settle().await;
        assert_eq!(app.status(id).await, (Healthy, String::new()));
        assert_eq!(next(&app).await.0, "2027-01-16T20:00:00.000Z");
    }

    async fn a_process_that_was_down_catches_up(app) {
        let id = app.new_deployment_with(app.workspace("Data").await, nightly).await;
        app.settle().await;
        app.advance(24 * 4 * HOUR);
        app.settle().await;
        assert_eq!(app.status(id).await.0, Healthy, "four nights later it is morning again");
        app.advance(13 * HOUR);
        app.settle().await;
        assert_eq!(app.status(id).await.0, Hibernating);
    }

    async fn an_override_outranks_the_schedule_until_it_expires(app) {
        let id = app.new_deployment_with(app.workspace("Data").await, nightly).await;
        app.settle().await;
        let until = app.world.now() + HOUR;
        app.change_deployment(id, move |spec| {
            spec.hibernation.override_ = Some(HibernationOverride { is_hibernating: true, until: Some(until.into()) });
        })
        .await;
        app.settle().await;
        assert_eq!(app.status(id).await.0, Hibernating);
        assert_eq!(next(&app).await.0, until.to_string());
        app.advance(HOUR);
        app.settle().await;
        assert_eq!(app.status(id).await.0, Healthy);
    }

    async fn a_hibernating_deployment_works_until_it_is_stopped(app) {
        let id = app.new_deployment_with(app.workspace("Data").await, nightly).await;
        app.settle().await;
        app.plane.script().lock().rollout = Duration::from_secs(30);
        app.advance(12 * HOUR);
        app.settle().await;
        assert_eq!(app.status(id).await.0, Healthy);
        app.advance(Duration::from_secs(30));
        app.settle().await;
        assert_eq!(app.status(id).await.0, Hibernating);
    }

    async fn one_that_is_created_asleep_is_never_up(app) {
        let id = app
            .new_deployment_with(app.workspace("Data").await, |spec| {
                nightly(spec);
                spec.hibernation.override_ = Some(HibernationOverride { is_hibernating: true, until: None });
            })
            .await;
        app.settle().await;
        assert_eq!(app.status(id).await.0, Hibernating);
        assert_eq!(app.pending_work().await, [], "an override without an end has no next event");
    }
}

#[test]
fn a_thousand_hibernating_deployments_cost_nothing_between_events() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let workspace = app.workspace("Data").await;
        for _ in 0..1000 {
            app.new_deployment_with(workspace, nightly).await;
        }
        app.settle().await;
        assert_eq!(app.pending_work().await.len(), 1000);
        app.plane.script().keep_journal();
        let commits = app.app.db(&app.system).generation();
        for _ in 0..100 {
            app.advance(Duration::from_secs(7 * 60));
            assert_eq!(app.settle().await, 0);
        }
        assert_eq!((app.app.db(&app.system).generation(), app.plane.script().journal()), (commits, vec![]));
        app.advance(20 * Duration::from_secs(60));
        assert_eq!(app.settle().await, 1000);
    });
}
