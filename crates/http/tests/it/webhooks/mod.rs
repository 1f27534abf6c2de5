//! `/organizations/{organizationId}/webhooks`

mod delivering;
mod failing;

use std::time::Duration;

use podium_testkit::{Receiver, TestApp, on_both_engines};
use serde_json::{Value, json};

/// Makes a webhook, with its secret.
pub(crate) async fn webhook(app: &TestApp, body: Value) -> Value {
    app.post(&app.owner, &app.path("/webhooks"), body).await.ok()
}

pub(crate) fn of(app: &TestApp, webhook: &Value) -> String {
    app.path(&format!("/webhooks/{}", webhook["id"].as_str().expect("an id")))
}

/// Its deliveries, the newest first.
pub(crate) async fn deliveries(app: &TestApp, webhook: &Value) -> Vec<Value> {
    let page = app.get(&app.owner, &format!("{}/deliveries?limit=100", of(app, webhook))).await.ok();
    page["deliveries"].as_array().expect("deliveries").clone()
}

/// Lets the loops work until every event has been taken, which on PostgreSQL may wait for other transactions.
pub(crate) async fn send(app: &TestApp) {
    crate::events::settled(app).await;
    app.settle().await;
}

on_both_engines! {
    async fn a_webhook_is_created_changed_and_deleted(app) {
        let path = app.path("/webhooks");
        let body = json!({ "name": "Chat", "url": "https://hooks.example.com/podium", "description": "to the team" });
        let made = app.post(&app.owner, &path, body).await.ok();
        let secret = made["secret"].as_str().expect("a secret").to_owned();
        assert!(secret.starts_with("whsec_") && secret.len() == "whsec_".len() + 44, "{secret}");
        let expected = json!({
            "id": made["id"], "name": "Chat", "description": "to the team", "organizationId": app.organization_id,
            "url": "https://hooks.example.com/podium", "eventTypes": [], "workspaceIds": [], "deploymentIds": [],
            "isEnabled": true, "createdAt": made["createdAt"], "createdBy": made["createdBy"],
            "updatedAt": made["updatedAt"], "updatedBy": made["updatedBy"],
        });
        let one = of(&app, &made);
        assert_eq!(app.get(&app.owner, &one).await.ok(), expected);
        assert_eq!(app.get(&app.owner, &path).await.ok()["webhooks"], json!([expected]));
        let body = json!({ "name": "Team chat", "eventTypes": ["podium.deploy.*"], "isEnabled": false });
        let changed = app.post(&app.owner, &one, body).await.ok();
        assert_eq!(changed["secret"], Value::Null);
        assert_eq!((&changed["name"], &changed["eventTypes"]), (&json!("Team chat"), &json!(["podium.deploy.*"])));
        assert_eq!((&changed["isEnabled"], &changed["url"]), (&json!(false), &expected["url"]));
        app.delete(&app.owner, &one).await.ok();
        app.get(&app.owner, &one).await.refused(404);
        assert_eq!(app.get(&app.owner, &path).await.ok()["totalCount"], 0);
        let audit = serde_json::to_string(&app.audit().await).unwrap();
        assert!(audit.contains("CreateWebhook") && !audit.contains(&secret));
        assert!(!audit.contains("hooks.example.com"), "a URL may contain a secret");
    }

    async fn wrong_fields_are_named(app) {
        let path = app.path("/webhooks");
        let body = json!({
            "name": " ", "url": "https://169.254.169.254/latest/meta-data", "eventTypes": ["podium.deploy.*", "nothing"],
        });
        let wrong = app.post(&app.owner, &path, body).await.wrong_fields();
        assert_eq!(wrong, ["name: required", "url: notAllowed", "eventTypes[1]: format"]);
        let id = app.world.id::<podium_api::Id>();
        let body = json!({
            "name": "Chat", "url": "https://hooks.example.com/", "workspaceIds": [id], "deploymentIds": [id],
        });
        let wrong = app.post(&app.owner, &path, body).await.wrong_fields();
        assert_eq!(wrong, ["workspaceIds[0]: notFound", "deploymentIds[0]: notFound"]);
        for url in ["ftp://hooks.example.com", "https://ada:secret@hooks.example.com/", "http://10.0.0.1/", "x"] {
            let body = json!({ "name": "Chat", "url": url });
            let answer = app.post(&app.owner, &path, body).await;
            assert!(answer.wrong_fields()[0].starts_with("url: "), "{url}");
            assert!(!answer.text().contains("secret"), "{url}");
        }
        webhook(&app, json!({ "name": "Chat", "url": "https://hooks.example.com/" })).await;
        let body = json!({ "name": "chat", "url": "https://hooks.example.com/" });
        app.post(&app.owner, &path, body).await.refused(409);
    }

    async fn only_owners_have_to_do_with_webhooks(app) {
        let made = webhook(&app, json!({ "name": "Chat", "url": "https://hooks.example.com/" })).await;
        let billing = app.member_as("billing", podium_api::enums::OrganizationRole::BillingAdmin).await;
        for member in [app.member("plain").await, billing] {
            app.get(&member, &app.path("/webhooks")).await.refused(403);
            app.get(&member, &of(&app, &made)).await.refused(403);
            app.get(&member, &format!("{}/deliveries", of(&app, &made))).await.refused(403);
            let body = json!({ "name": "Mine", "url": "https://hooks.example.com/" });
            app.post(&member, &app.path("/webhooks"), body).await.refused(403);
            app.delete(&member, &of(&app, &made)).await.refused(403);
        }
    }

    async fn an_organization_has_a_bounded_number_of_webhooks(app) {
        for number in 0..100 {
            webhook(&app, json!({ "name": format!("{number}"), "url": "https://hooks.example.com/" })).await;
        }
        let body = json!({ "name": "one more", "url": "https://hooks.example.com/" });
        let message = app.post(&app.owner, &app.path("/webhooks"), body).await.refused(409);
        assert_eq!(message, "The organization already has 100 webhooks: delete one first.");
    }

    async fn both_secrets_sign_for_a_day_after_a_rotation(app) {
        let receiver = Receiver::start().await;
        let made = webhook(&app, json!({ "name": "Chat", "url": receiver.url() })).await;
        let old = made["secret"].as_str().unwrap();
        let rotated = app.post(&app.owner, &format!("{}/rotate-secret", of(&app, &made)), Value::Null).await.ok();
        let new = rotated["secret"].as_str().unwrap();
        assert_ne!(old, new);
        assert_eq!(rotated["previousSecretExpiresAt"], json!("2027-01-16T08:00:00.000Z"));
        let again = app.post(&app.owner, &format!("{}/rotate-secret", of(&app, &made)), Value::Null).await.refused(409);
        assert!(again.ends_with("rotate again after 2027-01-16T08:00:00.000Z."), "{again}");
        send(&app).await;
        for received in receiver.received() {
            assert!(received.is_signed_with(new) && received.is_signed_with(old));
            assert_eq!(received.header("webhook-signature").split(' ').count(), 2);
        }
        let before = receiver.received().len();
        assert_eq!(before, 2, "its creation, and the rotation");
        app.advance(Duration::from_hours(24));
        app.workspace("Later").await;
        send(&app).await;
        let received = receiver.received();
        assert_eq!(received.len(), before + 1);
        assert!(received[before].is_signed_with(new) && !received[before].is_signed_with(old));
        podium_app::maintenance::once(&app.app).await.expect("housekeeping");
        assert_eq!(app.rows("webhooks WHERE sealed_previous_secret IS NOT NULL").await, 0);
        assert_eq!(app.get(&app.owner, &of(&app, &made)).await.ok()["previousSecretExpiresAt"], Value::Null);
    }

    async fn the_url_of_a_webhook_is_sealed_at_rest(app) {
        const PLANTED: &str = "planted-in-the-path";
        let is_stored = async || {
            let stored = app.stored().await;
            stored.windows(PLANTED.len()).any(|window| window == PLANTED.as_bytes())
        };
        let receiver = Receiver::start().await;
        let url = format!("{}/{PLANTED}", receiver.url());
        let body = json!({ "name": "Chat", "url": url });
        let made = app.call("POST", &app.path("/webhooks")).by(&app.owner).header("idempotency-key", "a").json(&body);
        let made = made.send().await.ok();
        let one = of(&app, &made);
        let change = json!({ "url": url, "description": "other" });
        let changed = app.call("POST", &one).by(&app.owner).header("idempotency-key", "b").json(&change).send().await;
        assert_eq!(changed.ok()["url"], url);
        let again = app.call("POST", &one).by(&app.owner).header("idempotency-key", "b").json(&change).send().await;
        assert_eq!(again.ok(), changed.ok());
        app.workspace("Reports").await;
        send(&app).await;
        let received = receiver.wait_for(1).await;
        assert!(received[0].first_line().contains(PLANTED), "it is sent there");
        assert_eq!(app.get(&app.owner, &one).await.ok()["url"], url);
        assert!(!is_stored().await, "the address is a secret of its receiver");
    }

    async fn urls_that_were_stored_in_plain_text_work_and_are_sealed(app) {
        let made = webhook(&app, json!({ "name": "Chat", "url": "https://hooks.example.com/new" })).await;
        let id: podium_api::WebhookId = made["id"].as_str().unwrap().parse().unwrap();
        let planted = "url = 'https://hooks.example.com/planted', sealed_url = NULL";
        app.execute(&format!("UPDATE webhooks SET {planted} WHERE id = '{id}'")).await;
        let shown = app.get(&app.owner, &of(&app, &made)).await;
        assert_eq!(shown.ok()["url"], "https://hooks.example.com/planted");
        podium_app::maintenance::once(&app.app).await.expect("it tidies up");
        assert_eq!(app.column("webhooks", id, "url").await, "");
        let after = app.get(&app.owner, &of(&app, &made)).await;
        assert_eq!((after.ok(), after.header("etag")), (shown.ok(), shown.header("etag")), "nothing else has changed");
        let changed = app.post(&app.owner, &of(&app, &made), json!({ "name": "Other" })).await.ok();
        assert_eq!(changed["url"], "https://hooks.example.com/planted");
    }
}
