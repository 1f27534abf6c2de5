//! Events arrive, signed, at those who ask for them.

use std::time::Duration;

use podium_testkit::{Engine, Receiver, TestApp, block_on, on_both_engines};
use serde_json::{Value, json};

use super::{deliveries, of, send, webhook};

/// The types of events that arrived, without the prefix.
fn types(receiver: &Receiver) -> Vec<String> {
    let short = |event: Value| event["type"].as_str().unwrap().trim_start_matches("podium.").to_owned();
    let mut types: Vec<String> = receiver.received().iter().map(|received| short(received.event())).collect();
    types.sort();
    types
}

on_both_engines! {
    async fn an_event_arrives_signed_as_a_cloud_event(app) {
        let receiver = Receiver::start().await;
        let body = json!({ "name": "Chat", "url": receiver.url(), "eventTypes": ["podium.workspace.*"] });
        let made = webhook(&app, body).await;
        let workspace = app.workspace("Reports").await;
        app.team("Not asked for", &[]).await;
        send(&app).await;
        let all = receiver.received();
        let [received] = all.as_slice() else { panic!("one event: {all:?}") };
        assert_eq!(received.first_line(), "POST /hook HTTP/1.1");
        assert_eq!(received.header("content-type"), "application/cloudevents+json; charset=utf-8");
        let now = app.world.now().millis() / 1000;
        assert_eq!(received.header("webhook-timestamp"), now.to_string());
        assert!(received.is_signed_with(made["secret"].as_str().unwrap()));
        let listed = app.get(&app.owner, &app.path("/events?types=podium.workspace.created")).await.ok();
        assert_eq!(received.event(), listed["events"][0]);
        assert_eq!(received.header("webhook-id"), listed["events"][0]["id"].as_str().unwrap());
        assert_eq!(received.event()["data"]["workspaceId"], workspace.as_str());
        let [delivery] = &deliveries(&app, &made).await[..] else { panic!("one delivery") };
        assert_eq!(delivery["state"], "SUCCEEDED");
        assert_eq!((&delivery["attempts"], &delivery["lastStatus"]), (&json!(1), &json!(204)));
        assert_eq!(delivery["eventId"], listed["events"][0]["id"]);
        // Nothing is left to do, and nothing is sent again.
        send(&app).await;
        assert_eq!(receiver.received().len(), 1);
    }

    async fn filters_choose_events_by_type_workspace_and_deployment(app) {
        let (here, there, elsewhere) = (Receiver::start().await, Receiver::start().await, Receiver::start().await);
        let one = app.workspace("One").await;
        let two = app.workspace("Two").await;
        let body = json!({ "name": "Nightly", "workspaceId": one });
        let deployment = app.post(&app.owner, &app.path("/deployments"), body).await.id();
        // A webhook begins after the events that can be read when it is created.
        crate::events::settled(&app).await;
        let filter = |name: &str, receiver: &Receiver, field: &str, id: &str| {
            json!({ "name": name, "url": receiver.url(), field: [id] })
        };
        webhook(&app, filter("one", &here, "workspaceIds", one.as_str())).await;
        webhook(&app, filter("two", &there, "workspaceIds", two.as_str())).await;
        webhook(&app, filter("deployment", &elsewhere, "deploymentIds", &deployment)).await;
        let rename = |name: &str| json!({ "name": name, "description": "", "cicdEnforcedDefault": false });
        app.post(&app.owner, &app.path(&format!("/workspaces/{one}")), rename("First")).await.ok();
        app.post(&app.owner, &app.path(&format!("/workspaces/{two}")), rename("Second")).await.ok();
        app.delete(&app.owner, &app.path(&format!("/deployments/{deployment}"))).await.ok();
        send(&app).await;
        let (here, there, elsewhere) = (types(&here), types(&there), types(&elsewhere));
        assert!(here.contains(&"deployment.deleted".into()) && here.contains(&"workspace.updated".into()), "{here:?}");
        assert_eq!(there, ["workspace.updated"]);
        assert!(elsewhere.contains(&"deployment.deleted".into()), "{elsewhere:?}");
        assert!(!elsewhere.contains(&"workspace.updated".into()), "{elsewhere:?}");
    }

    async fn a_test_event_arrives_whatever_is_asked_for(app) {
        let receiver = Receiver::start().await;
        let body = json!({ "name": "Chat", "url": receiver.url(), "eventTypes": ["podium.deploy.failed"] });
        let made = webhook(&app, body).await;
        let body = json!({ "name": "Other", "url": receiver.url(), "eventTypes": ["podium.deploy.failed"] });
        webhook(&app, body).await;
        app.post(&app.owner, &format!("{}/test", of(&app, &made)), Value::Null).await.ok();
        send(&app).await;
        assert_eq!(types(&receiver), ["webhook.tested"]);
        assert_eq!(receiver.received()[0].event()["data"]["resource"]["id"], made["id"]);
        app.post(&app.owner, &of(&app, &made), json!({ "isEnabled": false })).await.ok();
        let message = app.post(&app.owner, &format!("{}/test", of(&app, &made)), Value::Null).await.refused(409);
        assert_eq!(message, "The webhook is switched off: enable it first.");
    }

    async fn a_webhook_that_is_switched_on_again_goes_on_from_there(app) {
        let receiver = Receiver::start().await;
        let body = json!({ "name": "Chat", "url": receiver.url(), "eventTypes": ["podium.team.created"] });
        let made = webhook(&app, body).await;
        app.post(&app.owner, &of(&app, &made), json!({ "isEnabled": false })).await.ok();
        app.team("Missed", &[]).await;
        send(&app).await;
        assert_eq!(types(&receiver), Vec::<String>::new());
        app.post(&app.owner, &of(&app, &made), json!({ "isEnabled": true })).await.ok();
        app.team("Seen", &[]).await;
        send(&app).await;
        let received = receiver.received();
        assert_eq!(received.len(), 1);
        assert_eq!(received[0].event()["data"]["resource"]["name"], "Seen");
    }

    async fn a_delivery_can_be_made_again_under_the_same_id(app) {
        let receiver = Receiver::start().await;
        let body = json!({ "name": "Chat", "url": receiver.url(), "eventTypes": ["podium.team.created"] });
        let made = webhook(&app, body).await;
        app.team("Data", &[]).await;
        send(&app).await;
        let delivery = deliveries(&app, &made).await.remove(0);
        let path = format!("{}/deliveries/{}", of(&app, &made), delivery["id"].as_str().unwrap());
        let again = app.post(&app.owner, &format!("{path}/redeliver"), Value::Null).await.ok();
        assert_eq!(again["state"], "PENDING");
        send(&app).await;
        let done = app.get(&app.owner, &path).await.ok();
        assert_eq!((&done["state"], &done["attempts"]), (&json!("SUCCEEDED"), &json!(2)));
        let received = receiver.received();
        assert_eq!(received.len(), 2);
        assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
        assert_eq!(received[0].body, received[1].body);
    }

    async fn deliveries_are_paged_and_filtered_by_state(app) {
        let receiver = Receiver::start().await;
        let body = json!({ "name": "Chat", "url": receiver.url(), "eventTypes": ["podium.team.created"] });
        let made = webhook(&app, body).await;
        receiver.answer(500, "", "");
        for number in 0..5 {
            app.team(&format!("Team {number}"), &[]).await;
        }
        send(&app).await;
        let path = format!("{}/deliveries", of(&app, &made));
        let all = deliveries(&app, &made).await;
        assert_eq!(all.len(), 5);
        let first = app.get(&app.owner, &format!("{path}?limit=3")).await.ok();
        let cursor = first["nextCursor"].as_str().expect("there are more");
        let second = app.get(&app.owner, &format!("{path}?limit=3&cursor={cursor}")).await.ok();
        assert_eq!(second["nextCursor"], Value::Null);
        let both = [first["deliveries"].as_array().unwrap().clone(), second["deliveries"].as_array().unwrap().clone()];
        assert_eq!(both.concat(), all);
        let pending = app.get(&app.owner, &format!("{path}?state=PENDING")).await.ok();
        assert_eq!(pending["deliveries"].as_array().unwrap().len(), 1);
        let done = app.get(&app.owner, &format!("{path}?state=SUCCEEDED")).await.ok();
        assert_eq!(done["deliveries"].as_array().unwrap().len(), 4);
        let wrong = app.get(&app.owner, &format!("{path}?cursor=x")).await.wrong_fields();
        assert_eq!(wrong, ["cursor: format"]);
    }

    async fn deliveries_are_removed_with_their_webhook_and_after_a_month(app) {
        let receiver = Receiver::start().await;
        let body = json!({ "name": "Chat", "url": receiver.url(), "eventTypes": ["podium.team.created"] });
        let made = webhook(&app, body.clone()).await;
        app.team("Data", &[]).await;
        send(&app).await;
        assert_eq!(app.rows("webhook_deliveries").await, 1);
        app.delete(&app.owner, &of(&app, &made)).await.ok();
        send(&app).await;
        assert_eq!(app.rows("webhook_deliveries").await, 0);
        let made = webhook(&app, body).await;
        app.team("More", &[]).await;
        send(&app).await;
        app.advance(Duration::from_hours(30 * 24) + Duration::from_secs(1));
        podium_app::maintenance::once(&app.app).await.expect("housekeeping");
        assert_eq!(app.rows("webhook_deliveries").await, 0);
        assert_eq!(deliveries(&app, &made).await, Vec::<Value>::new());
        // One that was behind what is kept goes on with what is.
        app.team("Later", &[]).await;
        send(&app).await;
        assert_eq!(types(&receiver).len(), 3);
    }

    async fn the_running_loops_send_events_as_they_happen(app) {
        let receiver = Receiver::start().await;
        let _loops = app.loops.start();
        let watching = tokio::spawn(podium_app::webhooks::run(app.app.clone()));
        let body = json!({ "name": "Chat", "url": receiver.url(), "eventTypes": ["podium.team.created"] });
        webhook(&app, body).await;
        for number in 1..=3 {
            app.team(&format!("Team {number}"), &[]).await;
            receiver.wait_for(number).await;
        }
        watching.abort();
    }
}

#[test]
fn of_two_replicas_one_sends_each_attempt() {
    block_on(async {
        let app = TestApp::start(Engine::Postgres).await;
        let other = app.replica().await;
        let receiver = Receiver::start().await;
        let body = json!({ "name": "Chat", "url": receiver.url(), "eventTypes": ["podium.team.created"] });
        let made = webhook(&app, body).await;
        let running = [&app, &other]
            .map(|app| (app.loops.start(), tokio::spawn(podium_app::webhooks::run(app.app.clone()))));
        let count = 40;
        for number in 0..count {
            let app = if number % 2 == 0 { &app } else { &other };
            app.team(&format!("Team {number}"), &[]).await;
        }
        let received = receiver.wait_for(count).await;
        let ended = || async {
            let path = format!("{}/deliveries?limit=100&state=SUCCEEDED", of(&app, &made));
            app.get(&app.owner, &path).await.ok()["deliveries"].as_array().unwrap().len()
        };
        while ended().await < count {
            tokio::task::yield_now().await;
        }
        let mut ids: Vec<String> = received.iter().map(|one| one.header("webhook-id").to_owned()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count, "every event arrived");
        assert_eq!(receiver.received().len(), count, "and none arrived twice");
        running.into_iter().for_each(|(_, watching)| watching.abort());
    });
}
