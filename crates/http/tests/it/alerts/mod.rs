//! `/organizations/{organizationId}/alerts`

mod finding;
mod mailing;
mod runs;
mod telling;

use std::time::Duration;

use podium_api::DeploymentId;
use podium_dataplane::Health;
use podium_testkit::{Receiver, TestApp, on_both_engines};
use serde_json::{Value, json};

/// How long what was found is collected for one notice.
const WINDOW: Duration = Duration::from_secs(60);

/// Lets the loops work until every event has been read, also those that they make themselves.
async fn work(app: &TestApp) {
    for _ in 0..3 {
        crate::webhooks::send(app).await;
    }
}

/// Lets the time pass that is needed for a notice.
async fn wait_for_notice(app: &TestApp) {
    work(app).await;
    app.advance(WINDOW);
    work(app).await;
}

/// The notices so far: what began or ended, and where.
async fn notices(app: &TestApp) -> Vec<String> {
    let events = crate::events::settled(app).await;
    let told = events.iter().filter(|event| event["data"]["alert"].is_object());
    told.map(|event| {
        let what = event["type"].as_str().unwrap().trim_start_matches("podium.alert.");
        let firings = event["data"]["alert"]["firings"].as_array().unwrap();
        let names: Vec<String> = firings.iter().map(|firing| name(&firing["subject"])).collect();
        format!("{what}: {}", names.join(", "))
    })
    .collect()
}

fn name(subject: &Value) -> String {
    let name = subject["name"].as_str().unwrap();
    subject["dagId"].as_str().map_or_else(|| name.to_owned(), |dag| format!("{name}/{dag}"))
}

/// A workspace, and a webhook that alerts can tell.
struct World<'a> {
    app: &'a TestApp,
    workspace: podium_api::WorkspaceId,
    webhook: String,
    receiver: Receiver,
}

impl<'a> World<'a> {
    async fn new(app: &'a TestApp) -> Self {
        let receiver = Receiver::start().await;
        let body = json!({ "name": "Chat", "url": receiver.url(), "eventTypes": ["podium.team.created"] });
        let webhook = app.post(&app.owner, &app.path("/webhooks"), body).await.id();
        Self { app, workspace: app.workspace("Data").await, webhook, receiver }
    }

    async fn deployment(&self, name: &str) -> DeploymentId {
        let body = json!({ "name": name, "workspaceId": self.workspace });
        let id = self.app.post(&self.app.owner, &self.app.path("/deployments"), body).await.id();
        work(self.app).await;
        id.parse().expect("an id")
    }

    /// An alert that tells the webhook.
    async fn alert(&self, kind: &str, others: Value) -> Value {
        let mut body = json!({ "name": kind, "kind": kind, "webhookIds": [self.webhook] });
        for (field, value) in others.as_object().expect("fields") {
            body[field] = value.clone();
        }
        self.app.post(&self.app.owner, &self.app.path("/alerts"), body).await.ok()
    }

    async fn firings(&self, alert: &Value, query: &str) -> Vec<Value> {
        let path = format!("{}/firings{query}", of(self.app, alert));
        self.app.get(&self.app.owner, &path).await.ok()["firings"].as_array().expect("firings").clone()
    }

    /// What goes on and what is over, the newest first.
    async fn states(&self, alert: &Value) -> Vec<String> {
        let line =
            |firing: &Value| format!("{} {}", name(&firing["subject"]), firing["state"].as_str().unwrap());
        self.firings(alert, "").await.iter().map(line).collect()
    }

    /// A token of a deployment that expires in 20 days.
    async fn token_of(&self, id: DeploymentId, name: &str) {
        let body = json!({
            "name": name, "scope": "DEPLOYMENT", "entityId": id, "role": "DEPLOYMENT_ADMIN",
            "tokenExpiryPeriodInDays": 20,
        });
        self.app.post(&self.app.owner, &self.app.path("/tokens"), body).await.ok();
    }

    /// Makes the environment of a deployment healthy or not.
    async fn set_healthy(&self, id: DeploymentId, is_healthy: bool) {
        let health = if is_healthy { Health::Up } else { Health::Down("it hangs".into()) };
        self.app.plane.script().set_health(id, "scheduler", health);
        work(self.app).await;
    }
}

fn of(app: &TestApp, alert: &Value) -> String {
    app.path(&format!("/alerts/{}", alert["id"].as_str().expect("an id")))
}

on_both_engines! {
    async fn an_alert_is_created_changed_and_deleted(app) {
        let world = World::new(&app).await;
        let made = world.alert("DEPLOYMENT_UNHEALTHY", json!({ "name": "Broken", "description": "for us" })).await;
        let expected = json!({
            "id": made["id"], "name": "Broken", "description": "for us", "organizationId": app.organization_id,
            "kind": "DEPLOYMENT_UNHEALTHY", "afterMinutes": 5, "workspaceIds": [], "deploymentIds": [],
            "webhookIds": [world.webhook], "mailAddresses": [], "isEnabled": true, "createdAt": made["createdAt"],
            "createdBy": made["createdBy"], "updatedAt": made["updatedAt"], "updatedBy": made["updatedBy"],
        });
        assert_eq!(made, expected);
        let one = of(&app, &made);
        assert_eq!(app.get(&app.owner, &one).await.ok(), expected);
        assert_eq!(app.get(&app.owner, &app.path("/alerts")).await.ok()["alerts"], json!([expected]));
        let body = json!({ "afterMinutes": 0, "isEnabled": false, "workspaceIds": [world.workspace] });
        let changed = app.post(&app.owner, &one, body).await.ok();
        assert_eq!((&changed["afterMinutes"], &changed["isEnabled"]), (&json!(0), &json!(false)));
        assert_eq!((&changed["name"], &changed["workspaceIds"]), (&json!("Broken"), &json!([world.workspace])));
        app.delete(&app.owner, &one).await.ok();
        app.get(&app.owner, &one).await.refused(404);
        app.get(&app.owner, &format!("{one}/firings")).await.refused(404);
        assert_eq!(app.get(&app.owner, &app.path("/alerts")).await.ok()["totalCount"], 0);
    }

    async fn wrong_fields_are_named(app) {
        let world = World::new(&app).await;
        let path = app.path("/alerts");
        let body = json!({
            "name": " ", "kind": "DEPLOY_FAILED", "afterMinutes": 5, "daysBefore": 3, "dagId": "load",
        });
        let wrong = app.post(&app.owner, &path, body).await.wrong_fields();
        let expected = [
            "name: required", "afterMinutes: notAllowed", "daysBefore: notAllowed", "dagId: notAllowed",
            "webhookIds: required",
        ];
        assert_eq!(wrong, expected);
        let body = json!({ "name": "Slow", "kind": "DAG_RUN_TOO_SLOW", "mailAddresses": ["ops@example.com", "x"] });
        let wrong = app.post(&app.owner, &path, body).await.wrong_fields();
        let expected = ["mailAddresses: notAllowed", "mailAddresses[1]: format", "afterMinutes: required"];
        assert_eq!(wrong, expected, "there is no mail server");
        let id = app.world.id::<podium_api::Id>();
        let webhook = &world.webhook;
        let body = json!({ "name": "x", "kind": "DEPLOY_FAILED", "webhookIds": [id, webhook, webhook] });
        let wrong = app.post(&app.owner, &path, body).await.wrong_fields();
        assert_eq!(wrong, ["webhookIds[0]: notFound", "webhookIds[2]: duplicate"]);
        let body = json!({ "name": "x", "kind": "DEPLOY_FAILED", "webhookIds": [webhook], "deploymentIds": [id] });
        let wrong = app.post(&app.owner, &path, body).await.wrong_fields();
        assert_eq!(wrong, ["deploymentIds[0]: notFound"]);
        let many: Vec<&String> = vec![webhook; 11];
        let body = json!({ "name": "x", "kind": "SOMETHING", "webhookIds": many });
        let wrong = app.post(&app.owner, &path, body).await.wrong_fields();
        assert_eq!(wrong.len(), 2, "{wrong:?}");
        let made = world.alert("DEPLOY_FAILED", json!({ "name": "Broken" })).await;
        let body = json!({ "name": "broken", "kind": "DEPLOY_FAILED", "webhookIds": [webhook] });
        app.post(&app.owner, &path, body).await.refused(409);
        let wrong = app.post(&app.owner, &of(&app, &made), json!({ "webhookIds": [] })).await.wrong_fields();
        assert_eq!(wrong, ["webhookIds: required"]);
        let wrong = app.post(&app.owner, &of(&app, &made), json!({ "daysBefore": 3 })).await.wrong_fields();
        assert_eq!(wrong, ["daysBefore: notAllowed"]);
    }

    async fn only_owners_have_to_do_with_alerts(app) {
        let world = World::new(&app).await;
        let made = world.alert("DEPLOY_FAILED", json!({})).await;
        let billing = app.member_as("billing", podium_api::enums::OrganizationRole::BillingAdmin).await;
        for member in [app.member("plain").await, billing] {
            app.get(&member, &app.path("/alerts")).await.refused(403);
            app.get(&member, &of(&app, &made)).await.refused(403);
            app.get(&member, &format!("{}/firings", of(&app, &made))).await.refused(403);
            let body = json!({ "name": "Mine", "kind": "DEPLOY_FAILED", "webhookIds": [world.webhook] });
            app.post(&member, &app.path("/alerts"), body).await.refused(403);
            app.post(&member, &of(&app, &made), json!({ "isEnabled": false })).await.refused(403);
            app.delete(&member, &of(&app, &made)).await.refused(403);
        }
    }

    async fn an_organization_has_a_bounded_number_of_alerts(app) {
        let world = World::new(&app).await;
        for number in 0..100 {
            world.alert("DEPLOY_FAILED", json!({ "name": format!("{number}") })).await;
        }
        let body = json!({ "name": "one more", "kind": "DEPLOY_FAILED", "webhookIds": [world.webhook] });
        let message = app.post(&app.owner, &app.path("/alerts"), body).await.refused(409);
        assert_eq!(message, "The organization already has 100 alerts: delete one first.");
    }

    async fn a_webhook_that_an_alert_names_stays(app) {
        let world = World::new(&app).await;
        let made = world.alert("DEPLOY_FAILED", json!({ "name": "Broken" })).await;
        let webhook = app.path(&format!("/webhooks/{}", world.webhook));
        let message = app.delete(&app.owner, &webhook).await.refused(409);
        assert_eq!(message, "The alert `Broken` sends to this webhook: change the alert first.");
        app.delete(&app.owner, &of(&app, &made)).await.ok();
        app.delete(&app.owner, &webhook).await.ok();
    }

    async fn a_webhook_is_not_deleted_while_an_alert_begins_to_name_it(app) {
        let receiver = Receiver::start().await;
        for round in 0..20 {
            let name = format!("{round}");
            let body = json!({ "name": name, "url": receiver.url(), "eventTypes": ["podium.team.created"] });
            let id = app.post(&app.owner, &app.path("/webhooks"), body).await.id();
            let (alerts, webhook) = (app.path("/alerts"), app.path(&format!("/webhooks/{id}")));
            let alert = json!({ "name": name, "kind": "DEPLOY_FAILED", "webhookIds": [id] });
            let (created, deleted) =
                tokio::join!(app.post(&app.owner, &alerts, alert), app.delete(&app.owner, &webhook));
            assert_ne!(created.status.is_success(), deleted.status.is_success(), "one of both, in round {round}");
        }
    }
}
