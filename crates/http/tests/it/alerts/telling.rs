//! How people are told: in groups, through webhooks, once by all replicas together.

use podium_testkit::{Engine, block_on};

use super::*;

/// The types of events that arrived, without the prefix.
fn types(receiver: &Receiver) -> Vec<String> {
    let short = |event: Value| event["type"].as_str().unwrap().trim_start_matches("podium.").to_owned();
    receiver.received().iter().map(|received| short(received.event())).collect()
}

on_both_engines! {
    async fn what_is_found_within_a_minute_is_told_together(app) {
        let world = World::new(&app).await;
        let mut ids = Vec::new();
        for name in ["A", "B", "C"] {
            ids.push(world.deployment(name).await);
        }
        let alert = world.alert("DEPLOYMENT_UNHEALTHY", json!({ "afterMinutes": 0 })).await;
        world.set_healthy(ids[0], false).await;
        app.advance(Duration::from_secs(59));
        world.set_healthy(ids[1], false).await;
        assert_eq!(notices(&app).await.len(), 0);
        app.advance(Duration::from_secs(1));
        work(&app).await;
        assert_eq!(notices(&app).await, ["firing: A", "firing: B"]);
        let told = |firings: Vec<Value>| firings.iter().filter_map(|one| one.get("lastNoticeAt").cloned()).collect();
        let times: Vec<Value> = told(world.firings(&alert, "").await);
        assert_eq!(times, ["2027-01-15T08:01:00.000Z", "2027-01-15T08:01:00.000Z"]);
        world.set_healthy(ids[2], false).await;
        // It recovers before anybody was told: both are told at once.
        world.set_healthy(ids[2], true).await;
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await[2..], ["firing: C", "resolved: C"]);
    }

    async fn something_that_begins_again_before_its_end_was_told_has_not_ended(app) {
        let world = World::new(&app).await;
        let id = world.deployment("Nightly").await;
        let alert = world.alert("DEPLOYMENT_UNHEALTHY", json!({ "afterMinutes": 0 })).await;
        world.set_healthy(id, false).await;
        wait_for_notice(&app).await;
        world.set_healthy(id, true).await;
        world.set_healthy(id, false).await;
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await, ["firing: Nightly"]);
        let [firing] = &world.firings(&alert, "").await[..] else { panic!("one") };
        assert_eq!((&firing["state"], &firing["count"]), (&json!("FIRING"), &json!(2)));
    }

    async fn named_webhooks_get_it_and_no_others(app) {
        let world = World::new(&app).await;
        let id = world.deployment("Nightly").await;
        let (asking, both) = (Receiver::start().await, Receiver::start().await);
        let body = json!({ "name": "Asking", "url": asking.url(), "eventTypes": ["podium.alert.*"] });
        app.post(&app.owner, &app.path("/webhooks"), body).await.ok();
        let elsewhere = app.workspace("Elsewhere").await;
        let body = json!({ "name": "Both", "url": both.url(), "eventTypes": ["podium.alert.*"], "workspaceIds": [elsewhere] });
        let both_id = app.post(&app.owner, &app.path("/webhooks"), body).await.id();
        let receivers = json!({ "afterMinutes": 0, "webhookIds": [world.webhook, both_id] });
        world.alert("DEPLOYMENT_UNHEALTHY", receivers).await;
        world.set_healthy(id, false).await;
        wait_for_notice(&app).await;
        world.set_healthy(id, true).await;
        wait_for_notice(&app).await;
        assert_eq!(types(&world.receiver), ["alert.firing", "alert.resolved"], "it asks for teams only");
        assert_eq!(types(&both), ["alert.firing", "alert.resolved"], "although it asks for another workspace");
        assert_eq!(types(&asking), ["alert.created"]);
        let event = world.receiver.received()[0].event();
        assert_eq!(event["data"]["alert"]["firings"][0]["subject"]["name"], "Nightly");
        assert_eq!((&event["data"]["status"], &event["data"]["alert"].get("webhookIds")), (&json!("FIRING"), &None));
    }

    async fn a_deleted_alert_leaves_nothing(app) {
        let world = World::new(&app).await;
        let id = world.deployment("Nightly").await;
        let alert = world.alert("DEPLOYMENT_UNHEALTHY", json!({ "afterMinutes": 0 })).await;
        world.alert("DEPLOYMENT_UNHEALTHY", json!({ "name": "later", "afterMinutes": 60 })).await;
        world.set_healthy(id, false).await;
        assert_eq!((app.rows("alert_firings").await, app.rows("alert_watches").await), (1, 1));
        for alert in app.get(&app.owner, &app.path("/alerts")).await.ok()["alerts"].as_array().unwrap() {
            app.delete(&app.owner, &of(&app, alert)).await.ok();
        }
        wait_for_notice(&app).await;
        assert_eq!((app.rows("alert_firings").await, app.rows("alert_watches").await), (0, 0));
        assert_eq!(notices(&app).await, Vec::<String>::new(), "{alert}");
    }

    async fn what_is_over_is_kept_for_a_month(app) {
        let world = World::new(&app).await;
        let id = world.deployment("Nightly").await;
        let alert = world.alert("DEPLOYMENT_UNHEALTHY", json!({ "afterMinutes": 0 })).await;
        world.set_healthy(id, false).await;
        world.set_healthy(id, true).await;
        wait_for_notice(&app).await;
        app.advance(Duration::from_hours(24 * 29));
        podium_app::maintenance::once(&app.app).await.expect("housekeeping");
        assert_eq!(world.states(&alert).await, ["Nightly RESOLVED"]);
        app.advance(Duration::from_hours(24));
        podium_app::maintenance::once(&app.app).await.expect("housekeeping");
        assert_eq!(world.states(&alert).await, Vec::<String>::new());
    }
}

/// Lets nobody hold work, as if every lease had ended.
async fn release_work(app: &TestApp) {
    let (system, now) = (app.system, app.world.now());
    let release = move |tx: &podium_db::Tx| podium_store::work::release_all(tx, &system, now);
    let released: podium_db::Result<u64> = app.app.db(&app.system).write(None, release).await;
    released.expect("it is written");
}

#[test]
fn what_one_process_has_found_another_one_tells() {
    block_on(async {
        let app = TestApp::start(Engine::Postgres).await;
        let world = World::new(&app).await;
        let id = world.deployment("Nightly").await;
        world.alert("DEPLOYMENT_UNHEALTHY", json!({ "afterMinutes": 0 })).await;
        world.set_healthy(id, false).await;
        assert_eq!((app.rows("alert_firings").await, notices(&app).await.len()), (1, 0));
        // The process ends here, and another one begins later.
        let other = app.replica().await;
        other.advance(WINDOW);
        work(&other).await;
        assert_eq!(notices(&app).await, ["firing: Nightly"]);
        assert_eq!(types(&world.receiver), ["alert.firing"]);
        app.advance(WINDOW);
        work(&app).await;
        assert_eq!(notices(&app).await.len(), 1);
    });
}

#[test]
fn two_replicas_tell_it_once() {
    block_on(async {
        let app = TestApp::start(Engine::Postgres).await;
        let other = app.replica().await;
        let world = World::new(&app).await;
        let mut ids = Vec::new();
        for number in 0..5 {
            ids.push(world.deployment(&format!("{number}")).await);
        }
        let alert = world.alert("DEPLOYMENT_UNHEALTHY", json!({ "afterMinutes": 1 })).await;
        for (round, is_healthy) in [false, true].into_iter().enumerate() {
            let health = if is_healthy { Health::Up } else { Health::Down("it hangs".into()) };
            for id in &ids {
                app.plane.script().set_health(*id, "scheduler", health.clone());
            }
            for _ in 0..6 {
                crate::events::settled(&app).await;
                // The work of one is taken from it while it is at it, as if its lease had ended.
                tokio::join!(app.settle(), other.settle(), release_work(&app));
                app.advance(Duration::from_secs(30));
                other.world.set(app.world.now());
            }
            wait_for_notice(&app).await;
            assert_eq!(notices(&app).await.len(), 5 * (round + 1));
        }
        let mut told = notices(&app).await;
        told.sort();
        told.dedup();
        assert_eq!(told.len(), 10, "{told:?}");
        assert!(world.firings(&alert, "").await.iter().all(|one| one["count"] == 1));
        assert_eq!(world.firings(&alert, "").await.len(), 5);
    });
}
