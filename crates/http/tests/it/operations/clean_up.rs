//! Clean-ups: the history of an environment is removed on a schedule, as an operation that gives way to changes.

use std::time::Duration;

use podium_api::{DeploymentId, Timestamp};
use podium_dataplane::simulated::{Call, InjectedFault};
use podium_dataplane::{CleanUpState, Fault};
use podium_domain::UserText;
use podium_domain::deployments::plan::Health;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{cancel, change, made, override_hibernation, read};
use crate::deployments::{path as deployment_path, read as read_deployment, update};

const HOUR: Duration = Duration::from_hours(1);

/// The clean-ups of the organization, the newest first.
async fn clean_ups(app: &TestApp) -> Vec<Value> {
    let page = app.get(&app.owner, &app.path("/operations?kinds=CLEAN_UP")).await.ok();
    page["operations"].as_array().expect("operations").clone()
}

async fn states(app: &TestApp) -> Vec<String> {
    let state = |operation: Value| operation["state"].as_str().expect("a state").to_owned();
    clean_ups(app).await.into_iter().map(state).collect()
}

/// A deployment that keeps 30 days, and cleans up every night.
async fn kept(app: &TestApp, others: Value) -> DeploymentId {
    let others = crate::deployments::with(json!({ "historyRetentionDays": 30 }), others);
    made(app, app.workspace("Data").await, others).await
}

/// Lets hours pass, and the loops see each.
async fn pass(app: &TestApp, hours: u32) {
    for _ in 0..hours {
        app.advance(HOUR);
        app.settle().await;
    }
}

on_both_engines! {
    async fn history_is_removed_every_night_where_that_is_set(app) {
        let id = kept(&app, json!({})).await;
        let other = made(&app, app.workspace("Other").await, json!({})).await;
        assert_eq!(clean_ups(&app).await, [] as [Value; 0]);
        let summary = UserText::new("12 DAG runs were removed.");
        app.plane.script().clean_ups_are(Some(CleanUpState::Done(summary)));
        pass(&app, 48).await;
        let all = clean_ups(&app).await;
        let brief = |one: &Value| (one["state"].clone(), one["cause"].clone(), one["target"]["id"].clone(), one["summary"].clone());
        let expected = (json!("SUCCEEDED"), json!("SCHEDULE"), json!(id), json!("12 DAG runs were removed."));
        assert_eq!(all.iter().map(brief).collect::<Vec<_>>(), [expected.clone(), expected], "and none of {other}");
        assert_eq!((all[0].get("subject"), &all[0]["isCancellable"]), (None, &json!(false)));
        let times = app.plane.script().lock().cleaned_up.clone();
        for (of, clean_up) in &times {
            let begun = all.iter().find(|one| one["id"] == json!(clean_up.id)).expect("it is an operation");
            let begun = Timestamp::parse(begun["createdAt"].as_str().unwrap()).unwrap();
            assert_eq!((*of, clean_up.before), (id, begun - 30 * 24 * HOUR));
        }
        assert_eq!(times.len(), 2, "each is asked for once");
        assert_eq!(read_deployment(&app, id).await["status"], "HEALTHY");
    }

    async fn a_clean_up_is_shown_while_it_is_under_way_and_gives_way_to_a_change(app) {
        let id = kept(&app, json!({})).await;
        app.plane.script().clean_ups_are(Some(CleanUpState::Underway));
        pass(&app, 20).await;
        let operation = clean_ups(&app).await.remove(0);
        assert_eq!((&operation["state"], &operation["steps"][0]["name"]), (&json!("RUNNING"), &json!("CLEAN_UP")));
        assert_eq!(read_deployment(&app, id).await["status"], "HEALTHY", "the deployment is not affected");
        let told = cancel(&app, &app.owner, operation["id"].as_str().unwrap()).await.refused(409);
        assert_eq!(told, "The operation follows the deployment's `cleanUpCron`: it cannot be cancelled.");
        let newer = change(&app, id, json!({ "description": "New" })).await;
        app.settle().await;
        assert_eq!(states(&app).await, ["SUPERSEDED"]);
        assert_eq!(read(&app, &newer).await["state"], "SUCCEEDED");
        pass(&app, 2).await;
        assert_eq!(states(&app).await, ["SUPERSEDED"], "it is due again the next night");
    }

    async fn a_clean_up_goes_on_after_a_restart_and_when_the_data_plane_was_away(app) {
        kept(&app, json!({})).await;
        app.plane.script().clean_ups_are(Some(CleanUpState::Underway));
        pass(&app, 20).await;
        let before = clean_ups(&app).await.remove(0);
        app.plane.script().inject(Call::CleanUp, InjectedFault::Fail(Fault::Failed("away".into())), 2);
        app.plane.script().clean_ups_are(None);
        pass(&app, 4).await;
        let after = clean_ups(&app).await;
        assert_eq!((after.len(), &after[0]["id"], &after[0]["state"]), (1, &before["id"], &json!("SUCCEEDED")));
        assert_eq!(after[0].get("summary"), None, "there was nothing to say");
    }

    async fn a_clean_up_that_fails_says_why_and_leaves_the_deployment_alone(app) {
        let id = kept(&app, json!({})).await;
        app.plane.script().clean_ups_are(Some(CleanUpState::Failed("the disk is full".into())));
        pass(&app, 24).await;
        let failed = clean_ups(&app).await.remove(0);
        assert_eq!((&failed["state"], &failed["failure"]["reason"]), (&json!("FAILED"), &json!("the disk is full")));
        let hint = failed["failure"]["hint"].as_str().unwrap();
        assert!(hint.contains("`cleanUpCron`"), "{hint}");
        let deployment = read_deployment(&app, id).await;
        assert_eq!((&deployment["status"], deployment.get("statusReason")), (&json!("HEALTHY"), None));
        app.plane.script().clean_ups_are(None);
        pass(&app, 24).await;
        assert_eq!(states(&app).await, ["SUCCEEDED", "FAILED"]);
    }

    async fn a_clean_up_of_an_environment_that_stays_unhealthy_ends(app) {
        let id = kept(&app, json!({})).await;
        app.plane.script().clean_ups_are(Some(CleanUpState::Underway));
        pass(&app, 20).await;
        assert_eq!(states(&app).await, ["RUNNING"]);
        app.plane.script().set_health(id, "scheduler", Health::Down("it hangs".into()));
        app.settle().await;
        assert_eq!(states(&app).await, ["RUNNING"]);
        assert_eq!(read_deployment(&app, id).await["status"], "UNHEALTHY");
        pass(&app, 7).await;
        let failed = clean_ups(&app).await.remove(0);
        assert_eq!(failed["failure"]["reason"], "the history could not be cleaned up in time");
        assert_eq!(read_deployment(&app, id).await["status"], "UNHEALTHY", "which is another matter");
    }

    async fn what_a_deployment_missed_in_its_sleep_is_done_once_it_is_awake(app) {
        let id = kept(&app, json!({ "isDevelopmentMode": true })).await;
        override_hibernation(&app, id, true).await;
        app.settle().await;
        pass(&app, 72).await;
        assert_eq!(states(&app).await, [""; 0]);
        override_hibernation(&app, id, false).await;
        app.settle().await;
        pass(&app, 1).await;
        assert_eq!(states(&app).await, ["SUCCEEDED"]);
    }

    async fn the_settings_of_clean_ups_are_kept_and_checked(app) {
        let id = kept(&app, json!({ "cleanUpCron": "30 4 * * 0" })).await;
        let stored = read_deployment(&app, id).await;
        assert_eq!((&stored["historyRetentionDays"], &stored["cleanUpCron"]), (&json!(30), &json!("30 4 * * 0")));
        change(&app, id, json!({ "description": "Kept" })).await;
        let after = read_deployment(&app, id).await;
        assert_eq!((&after["historyRetentionDays"], &after["cleanUpCron"]), (&json!(30), &json!("30 4 * * 0")));
        let body = update(&after, json!({ "historyRetentionDays": 3651, "cleanUpCron": "hourly" }));
        let wrong = app.post(&app.owner, &deployment_path(&app, id), body).await;
        assert_eq!(wrong.code(), 400, "{}", wrong.text());
        let body = update(&after, json!({ "cleanUpCron": "0 0 31 2 *" }));
        let never = app.post(&app.owner, &deployment_path(&app, id), body).await;
        assert_eq!(never.code(), 400);
        assert!(never.text().contains("must be a five-field cron expression in UTC"), "{}", never.text());
        change(&app, id, json!({ "historyRetentionDays": 0, "cleanUpCron": "0 * * * *" })).await;
        app.settle().await;
        pass(&app, 30).await;
        assert_eq!(states(&app).await, [""; 0], "everything is kept again");
    }
}
