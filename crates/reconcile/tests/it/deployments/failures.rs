//! The plane is unreachable, its components fail, it loses state, it is ahead of the database: the status shows it.

use std::time::Duration;

use podium_api::enums::DeploymentStatus::{Creating, Deploying, Healthy, Unhealthy, Unknown};
use podium_api::enums::LogSource;
use podium_api::{DeploymentId, Timestamp};
use podium_dataplane::simulated::{Call, InjectedFault};
use podium_dataplane::{DataPlane, Fault, Health, Location};
use podium_domain::Reason;
use podium_logs::{Page, Query, Search};
use podium_testkit::{TestApp, on_both_engines};

use super::{come_to_rest, image, running_image, well};

pub(super) async fn healthy(app: &TestApp) -> DeploymentId {
    let id = app.new_deployment(app.workspace("Data").await).await;
    app.settle().await;
    assert_eq!(app.status(id).await, well(Healthy));
    id
}

/// How many lines the log store has of a deployment.
async fn lines(app: &TestApp, id: DeploymentId) -> usize {
    let now = app.app.world.now();
    let search = Search {
        deployment_id: id,
        window: Timestamp::from_millis(0)..now + Duration::from_hours(1),
        sources: LogSource::ALL.to_vec(),
        query: Query::default(),
        max_results: 1000,
    };
    let logs = app.app.log_store(&app.system);
    let snapshot = logs.snapshot(app.world.id(), app.owner.id, search, now);
    let found = logs.page(snapshot, Page { offset: 0, limit: 1000 }).await;
    found.expect("logs can be searched").len()
}

on_both_engines! {
    async fn a_component_that_fails_makes_it_unhealthy_until_it_is_back(app) {
        let id = healthy(&app).await;
        let script = app.plane.script();
        script.set_health(id, "scheduler", Health::Down("it ran out of memory".into()));
        app.settle().await;
        let reason = "Not working: scheduler (it ran out of memory).".to_owned();
        assert_eq!(app.status(id).await, (Unhealthy, reason.clone()));
        assert_eq!(app.pending_work().await[0].reason, reason, "it is looked at again even if nobody says so");
        script.set_health(id, "scheduler", Health::Up);
        app.settle().await;
        assert_eq!(app.status(id).await, well(Healthy));
        assert_eq!(app.pending_work().await, []);
    }

    async fn statements_and_paths_are_shown_to_operators_but_not_to_users(app) {
        let id = app.new_deployment(app.workspace("Data").await).await;
        let detail = "(psycopg2.Error) [SQL: CREATE DATABASE x] could not open /srv/podium/local/x";
        let why = Reason::new("the metadata database cannot be created", detail);
        let script = app.plane.script();
        let is_told = async |status, told: &str| {
            app.settle().await;
            assert_eq!(app.status(id).await, (status, told.to_owned()));
            let found = app.pending_work().await.remove(0).reason;
            assert!(found.contains(told.trim_end_matches('.')) && found.contains(detail), "{found}");
            app.world.set(app.pending_work().await[0].due_at);
        };
        script.fail(Call::Apply, why.clone(), 1);
        let told = "Creating the environment failed and will be retried: the metadata database cannot be created.";
        is_told(Creating, told).await;
        script.inject(Call::Observe, InjectedFault::Fail(Fault::Unreachable(why.clone())), 1);
        is_told(Creating, "The data plane does not respond: the metadata database cannot be created.").await;
        script.set_health(id, "scheduler", Health::Down(why));
        is_told(Unhealthy, "Not working: scheduler (the metadata database cannot be created).").await;
        script.set_health(id, "scheduler", Health::Up);
        app.settle().await;
        assert_eq!(app.status(id).await, well(Healthy));
    }

    async fn the_error_of_a_broken_secret_is_for_operators_only(app) {
        let id = healthy(&app).await;
        let spec = app.column("deployments", id, "spec").await;
        let mut spec: serde_json::Value = serde_json::from_str(&spec).expect("it is JSON");
        spec["environmentVariables"] =
            serde_json::json!([{ "key": "TOKEN", "isSecret": true, "secret": "AAAA", "updatedAt": "2026-11-01T10:00:00.000Z" }]);
        app.set_column("deployments", id, "spec", &format!("'{spec}'")).await;
        app.set_column("deployments", id, "generation", "generation + 1").await;
        app.plane.script().lose_contact();
        app.plane.script().regain_contact();
        app.settle().await;
        let told = "Rolling out the change failed and will be retried: its environment variables cannot be read.";
        assert_eq!(app.status(id).await, (Deploying, told.to_owned()));
        let found = app.pending_work().await.remove(0).reason;
        assert!(found.len() > told.len() && found.contains("cannot be read. ["), "{found}");
    }

    async fn a_component_that_flaps_is_followed(app) {
        let id = healthy(&app).await;
        app.plane.script().flap(id, "worker", 6);
        let mut seen = Vec::new();
        for _ in 0..20 {
            app.settle().await;
            seen.push(app.status(id).await.0);
            match app.pending_work().await.first() {
                Some(next) => app.world.set(next.due_at),
                None => app.plane.script().set_health(id, "triggerer", Health::Up),
            }
        }
        assert_eq!(seen[..6], [Unhealthy, Healthy, Unhealthy, Healthy, Unhealthy, Healthy]);
        assert!(seen[6..].iter().all(|status| *status == Healthy), "{seen:?}");
        assert_eq!(app.pending_work().await, []);
    }

    async fn a_deployment_on_an_unreachable_plane_is_unknown_until_it_responds(app) {
        let (id, other) = (healthy(&app).await, app.new_deployment(app.workspace("More").await).await);
        app.plane.script().lose_contact();
        app.settle().await;
        let reason = "The data plane does not respond: the connection was refused.".to_owned();
        assert_eq!(app.status(id).await, (Unknown, reason.clone()));
        assert_eq!(app.status(other).await, (Creating, reason), "what never came up is still being made");
        app.change_deployment(id, image("deploy-1")).await;
        assert_eq!(app.status(id).await.0, Deploying);
        app.settle().await;
        assert_eq!(app.status(id).await.0, Unknown);
        for _ in 0..8 {
            app.advance(Duration::from_secs(300));
            app.settle().await;
        }
        assert_eq!(app.pending_work().await.len(), 2, "nothing is forgotten, however long it takes");
        app.plane.script().regain_contact();
        app.settle().await;
        assert_eq!(app.status(id).await, well(Healthy));
        assert_eq!(app.status(other).await, well(Healthy));
        assert_eq!(running_image(&app, id).await.as_deref(), Some("deploy-1"));
        assert_eq!(app.pending_work().await, []);
    }

    async fn silence_about_one_is_not_silence_about_all(app) {
        let (one, two) = (healthy(&app).await, app.new_deployment(app.workspace("More").await).await);
        app.settle().await;
        app.plane.script().lose_contact_with(one);
        app.settle().await;
        assert_eq!((app.status(one).await.0, app.status(two).await.0), (Unknown, Healthy));
        app.plane.script().regain_contact();
        app.settle().await;
        assert_eq!(app.status(one).await, well(Healthy));
    }

    async fn a_plane_that_becomes_reachable_without_notice_is_found_by_retrying(app) {
        let id = healthy(&app).await;
        app.plane.script().fail(Call::Observe, "the certificate has expired", 3);
        app.plane.script().set_health(id, "worker", Health::Up);
        app.settle().await;
        assert_eq!(app.status(id).await.0, Unknown);
        come_to_rest(&app, &app.loops).await;
        assert_eq!(app.status(id).await, well(Healthy));
    }

    async fn a_failed_apply_is_reported_and_retried(app) {
        let id = app.new_deployment(app.workspace("Data").await).await;
        app.plane.script().fail(Call::Apply, "the image cannot be pulled", 2);
        app.settle().await;
        let reason = "Creating the environment failed and will be retried: the image cannot be pulled.";
        assert_eq!(app.status(id).await, (Creating, reason.into()));
        assert_eq!(app.pending_work().await[0].reason, reason);
        come_to_rest(&app, &app.loops).await;
        assert_eq!(app.status(id).await, well(Healthy));
    }

    async fn a_vanished_environment_is_created_again(app) {
        let id = healthy(&app).await;
        app.plane.remove(&Location::unknown(id)).await.expect("it is removed");
        app.plane.script().set_health(id, "worker", Health::Up);
        app.settle().await;
        assert_eq!(app.status(id).await, well(Healthy));
        assert_eq!(app.plane.environments(), [id]);
    }

    async fn a_database_that_was_restored_catches_up_with_the_plane(app) {
        let id = healthy(&app).await;
        for tag in ["deploy-1", "deploy-2", "deploy-3"] {
            app.change_deployment(id, image(tag)).await;
            app.settle().await;
        }
        // The database is back at the second of four generations; the plane is not.
        app.set_column("deployments", id, "generation", "2").await;
        app.set_column("deployments", id, "observed_generation", "2").await;
        app.change_deployment(id, image("deploy-4")).await;
        app.settle().await;
        let row = app.stored_deployment(id).await.expect("there is one");
        assert_eq!((row.generation, row.observed_generation, row.status), (5, 5, Healthy));
        assert_eq!(running_image(&app, id).await.as_deref(), Some("deploy-4"));
    }

    async fn all_other_data_of_a_deployment_is_deleted_with_it(app) {
        let id = healthy(&app).await;
        assert!(lines(&app, id).await > 0, "its components have written something");
        app.delete_deployment(id).await;
        app.settle().await;
        assert_eq!(app.plane.environments(), []);
        assert_eq!(lines(&app, id).await, 0);
        assert_eq!(app.pending_work().await, []);
    }

    async fn lines_that_come_late_do_not_outlive_their_deployment(app) {
        let workspace = app.workspace("Data").await;
        let (gone, stays) = (app.new_deployment(workspace).await, app.new_deployment(workspace).await);
        app.loops.step_until_idle().await.expect("the loops come to rest");
        assert_eq!(lines(&app, gone).await + lines(&app, stays).await, 0, "what they have said is still on its way");
        app.delete_deployment(gone).await;
        app.loops.step_until_idle().await.expect("the loops come to rest");
        assert_eq!((app.plane.environments(), app.pending_work().await), (vec![stays], vec![]));
        app.settle().await;
        assert_eq!(lines(&app, gone).await, 0);
        assert!(lines(&app, stays).await > 0);
    }
}
