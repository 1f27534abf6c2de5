//! Attempts that fail are repeated; receivers that always fail are left alone.

use std::time::Duration;

use podium_testkit::{Receiver, TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{deliveries, of, send, webhook};

const TEAMS: &str = "podium.team.created";

async fn chat(app: &TestApp, receiver: &Receiver) -> Value {
    webhook(app, json!({ "name": "Chat", "url": receiver.url(), "eventTypes": [TEAMS] })).await
}

/// Moves the clock to the next attempt of a delivery.
fn advance_to_next_attempt(app: &TestApp, delivery: &Value) {
    let next: podium_api::Timestamp =
        serde_json::from_value(delivery["nextAttemptAt"].clone()).expect("another attempt");
    app.world.set(next.max(app.world.now()));
}

/// The names of webhooks that were switched off, and why.
async fn disabled(app: &TestApp) -> Vec<(Value, Value)> {
    let events = crate::events::settled(app).await;
    let off = events.iter().filter(|event| event["type"] == "podium.webhook.disabled");
    off.map(|event| (event["data"]["resource"]["name"].clone(), event["data"]["statusReason"].clone()))
        .collect()
}

on_both_engines! {
    async fn a_failed_attempt_is_repeated_until_it_succeeds(app) {
        let receiver = Receiver::start().await;
        let made = chat(&app, &receiver).await;
        receiver.answer(500, "", "not\u{1b}[31m today\r\n");
        app.team("Data", &[]).await;
        send(&app).await;
        let [delivery] = &deliveries(&app, &made).await[..] else { panic!("one delivery") };
        assert_eq!((&delivery["state"], &delivery["attempts"]), (&json!("PENDING"), &json!(1)));
        assert_eq!(delivery["lastStatus"], 500);
        assert_eq!(delivery["lastError"], "The answer was 500.");
        assert_eq!(delivery["lastResponse"], "not [31m today");
        let read = app.get(&app.owner, &of(&app, &made)).await.ok();
        assert_eq!(read["failingSince"], json!("2027-01-15T08:00:00.000Z"));
        // Not before its time.
        app.advance(Duration::from_secs(4));
        send(&app).await;
        assert_eq!(receiver.received().len(), 1);
        advance_to_next_attempt(&app, delivery);
        send(&app).await;
        let received = receiver.received();
        assert_eq!(received.len(), 2);
        assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
        assert_ne!(received[0].header("webhook-timestamp"), received[1].header("webhook-timestamp"));
        assert_eq!(received[0].body, received[1].body);
        assert!(received[1].is_signed_with(made["secret"].as_str().unwrap()));
        let [delivery] = &deliveries(&app, &made).await[..] else { panic!("one delivery") };
        assert_eq!((&delivery["state"], &delivery["lastError"]), (&json!("SUCCEEDED"), &Value::Null));
        assert_eq!(app.get(&app.owner, &of(&app, &made)).await.ok()["failingSince"], Value::Null);
    }

    async fn a_receiver_can_ask_for_more_time(app) {
        let receiver = Receiver::start().await;
        let made = chat(&app, &receiver).await;
        receiver.answer(429, "retry-after: 3600\r\n", "");
        app.team("Data", &[]).await;
        send(&app).await;
        let [delivery] = &deliveries(&app, &made).await[..] else { panic!("one delivery") };
        assert_eq!(delivery["nextAttemptAt"], "2027-01-15T09:00:00.000Z");
    }

    async fn an_event_that_always_fails_is_given_up_after_three_days(app) {
        let receiver = Receiver::start().await;
        let made = chat(&app, &receiver).await;
        receiver.answer(500, "", "");
        app.team("Refused", &[]).await;
        send(&app).await;
        let path = format!("{}/deliveries", of(&app, &made));
        let id = deliveries(&app, &made).await[0]["id"].as_str().unwrap().to_owned();
        let read = || async { app.get(&app.owner, &format!("{path}/{id}")).await.ok() };
        let started = app.world.now();
        let mut attempts = 1;
        while read().await["state"] == "PENDING" {
            // Others succeed meanwhile, so the webhook stays on.
            app.team(&format!("Welcome {attempts}"), &[]).await;
            send(&app).await;
            advance_to_next_attempt(&app, &read().await);
            receiver.answer(500, "", "");
            send(&app).await;
            attempts += 1;
            assert_eq!(read().await["attempts"], attempts);
        }
        assert_eq!((&read().await["state"], attempts), (&json!("FAILED"), 10));
        let hours = (app.world.now().millis() - started.millis()) / 3_600_000;
        assert!((71..=79).contains(&hours), "{hours}");
        assert_eq!(disabled(&app).await, []);
        let again = app.post(&app.owner, &format!("{path}/{id}/redeliver"), Value::Null).await.ok();
        assert_eq!(again["state"], "PENDING");
        send(&app).await;
        assert_eq!(read().await["state"], "SUCCEEDED");
    }

    async fn a_redirect_is_not_followed(app) {
        let (receiver, target) = (Receiver::start().await, Receiver::start().await);
        let made = chat(&app, &receiver).await;
        receiver.answer(307, &format!("location: {}\r\n", target.url()), "");
        app.team("Data", &[]).await;
        send(&app).await;
        let [delivery] = &deliveries(&app, &made).await[..] else { panic!("one delivery") };
        assert_eq!(delivery["lastError"], "The answer was a redirect (307), which is not followed.");
        assert_eq!(delivery["state"], "PENDING");
        assert_eq!(target.received().len(), 0);
    }

    async fn a_receiver_that_is_gone_is_switched_off(app) {
        let receiver = Receiver::start().await;
        let made = chat(&app, &receiver).await;
        receiver.answer(410, "", "");
        app.team("Data", &[]).await;
        send(&app).await;
        let read = app.get(&app.owner, &of(&app, &made)).await.ok();
        assert_eq!((&read["isEnabled"], &read["disabledReason"]), (&json!(false), &json!("Its receiver answered 410 Gone.")));
        assert_eq!(disabled(&app).await, [(json!("Chat"), json!("Its receiver answered 410 Gone."))]);
        assert_eq!(deliveries(&app, &made).await[0]["state"], "FAILED");
        app.team("More", &[]).await;
        send(&app).await;
        assert_eq!(receiver.received().len(), 1);
        let read = app.post(&app.owner, &of(&app, &made), json!({ "isEnabled": true })).await.ok();
        assert_eq!((&read["isEnabled"], &read["disabledReason"]), (&json!(true), &Value::Null));
    }

    async fn a_receiver_that_fails_for_a_day_is_switched_off(app) {
        let made = webhook(&app, json!({ "name": "Chat", "url": "http://127.0.0.1:1024/", "eventTypes": [TEAMS] })).await;
        app.team("Data", &[]).await;
        send(&app).await;
        let mut attempts = 1;
        while app.get(&app.owner, &of(&app, &made)).await.ok()["isEnabled"] == true {
            assert_eq!(disabled(&app).await, []);
            advance_to_next_attempt(&app, &deliveries(&app, &made).await[0]);
            send(&app).await;
            attempts += 1;
        }
        assert_eq!(attempts, 8, "after 31 hours");
        let reason = "No attempt to send an event has succeeded for a day.";
        assert_eq!(disabled(&app).await, [(json!("Chat"), json!(reason))]);
        let [delivery] = &deliveries(&app, &made).await[..] else { panic!("one delivery") };
        let error = "The receiver cannot be connected to, or its certificate is not trusted.";
        assert_eq!((&delivery["state"], &delivery["lastError"]), (&json!("PENDING"), &json!(error)));
    }

    async fn an_attempt_that_a_crash_cut_off_is_made_again(app) {
        let receiver = Receiver::start().await;
        let made = chat(&app, &receiver).await;
        receiver.hang();
        app.team("Data", &[]).await;
        crate::events::settled(&app).await;
        tokio::select! {
            _ = app.settle() => panic!("the receiver does not answer"),
            _ = receiver.wait_for(1) => {}
        }
        // Nothing of the attempt is known but that it was begun. Nobody makes it again while it may still be under way.
        send(&app).await;
        assert_eq!(receiver.received().len(), 1);
        assert_eq!(deliveries(&app, &made).await[0]["attempts"], 1);
        app.advance(Duration::from_secs(30));
        send(&app).await;
        assert_eq!(receiver.received().len(), 2);
        let [delivery] = &deliveries(&app, &made).await[..] else { panic!("one delivery") };
        assert_eq!((&delivery["state"], &delivery["attempts"]), (&json!("SUCCEEDED"), &json!(2)));
    }

    async fn a_receiver_that_hangs_does_not_hold_up_others(app) {
        let (slow, quick) = (Receiver::start().await, Receiver::start().await);
        for _ in 0..10 {
            slow.hang();
        }
        webhook(&app, json!({ "name": "Slow", "url": slow.url(), "eventTypes": [TEAMS] })).await;
        webhook(&app, json!({ "name": "Quick", "url": quick.url(), "eventTypes": [TEAMS] })).await;
        let _loops = app.loops.start();
        let watching = tokio::spawn(podium_app::webhooks::run(app.app.clone()));
        for number in 1..=10 {
            app.team(&format!("Team {number}"), &[]).await;
            quick.wait_for(number).await;
        }
        assert!(slow.received().len() <= 4, "a few at once");
        watching.abort();
    }
}
