//! What alerts find: each kind begins once, is counted while it goes on, and ends.

use podium_api::OperationId;
use podium_api::enums::{EventType, OrganizationRole};
use podium_domain::events::{NewEvent, Resource};
use podium_domain::{On, Target};
use podium_testkit::{Actor, role};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const NONE: [&str; 0] = [];

on_both_engines! {
    async fn a_deployment_that_stays_unhealthy_is_told_once_and_when_it_recovers(app) {
        let world = World::new(&app).await;
        let id = world.deployment("Nightly").await;
        let alert = world.alert("DEPLOYMENT_UNHEALTHY", json!({})).await;
        world.set_healthy(id, false).await;
        app.advance(5 * MINUTE - Duration::from_secs(1));
        work(&app).await;
        assert_eq!(world.states(&alert).await, NONE, "it has some time");
        app.advance(Duration::from_secs(1));
        work(&app).await;
        assert_eq!(world.states(&alert).await, ["Nightly FIRING"]);
        assert_eq!(notices(&app).await, NONE, "others may join it");
        app.advance(WINDOW);
        work(&app).await;
        assert_eq!(notices(&app).await, ["firing: Nightly"]);
        let [firing] = &world.firings(&alert, "?state=FIRING").await[..] else { panic!("one") };
        assert_eq!(firing["since"], "2027-01-15T08:00:00.000Z");
        assert_eq!(firing["lastNoticeAt"], "2027-01-15T08:06:00.000Z");
        assert_eq!(firing["subject"], json!({
            "type": "DEPLOYMENT", "id": id, "name": "Nightly", "workspaceId": world.workspace, "deploymentId": id,
        }));
        assert!(firing["reason"].as_str().unwrap().contains("scheduler"), "{firing}");
        app.advance(60 * MINUTE);
        work(&app).await;
        assert_eq!(notices(&app).await.len(), 1, "it is told once");
        world.set_healthy(id, true).await;
        assert_eq!(world.states(&alert).await, ["Nightly RESOLVED"]);
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await, ["firing: Nightly", "resolved: Nightly"]);
        let [firing] = &world.firings(&alert, "?state=RESOLVED").await[..] else { panic!("one") };
        assert_eq!(firing["until"], "2027-01-15T09:06:00.000Z");
        assert_eq!(world.firings(&alert, "?state=FIRING").await, Vec::<Value>::new());
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await.len(), 2, "nothing is left to tell");
    }

    async fn a_deployment_that_recovers_in_time_is_not_told(app) {
        let world = World::new(&app).await;
        let id = world.deployment("Nightly").await;
        let alert = world.alert("DEPLOYMENT_UNHEALTHY", json!({})).await;
        world.set_healthy(id, false).await;
        app.advance(4 * MINUTE);
        world.set_healthy(id, true).await;
        app.advance(60 * MINUTE);
        wait_for_notice(&app).await;
        assert_eq!(world.states(&alert).await, NONE);
        assert_eq!(notices(&app).await, NONE);
    }

    async fn a_deployment_that_is_unhealthy_already_is_found_when_an_alert_begins(app) {
        let world = World::new(&app).await;
        let id = world.deployment("Nightly").await;
        world.set_healthy(id, false).await;
        app.advance(60 * MINUTE);
        let alert = world.alert("DEPLOYMENT_UNHEALTHY", json!({})).await;
        app.advance(5 * MINUTE);
        work(&app).await;
        assert_eq!(world.states(&alert).await, ["Nightly FIRING"]);
        // Switched off it closes what it has found and tells nobody; switched on it begins anew.
        app.post(&app.owner, &of(&app, &alert), json!({ "isEnabled": false })).await.ok();
        wait_for_notice(&app).await;
        assert_eq!(world.states(&alert).await, ["Nightly RESOLVED"]);
        assert_eq!(notices(&app).await, NONE);
        app.post(&app.owner, &of(&app, &alert), json!({ "isEnabled": true, "afterMinutes": 0 })).await.ok();
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await, ["firing: Nightly"]);
    }

    async fn a_changed_threshold_holds_for_what_goes_on(app) {
        let world = World::new(&app).await;
        let id = world.deployment("Nightly").await;
        let alert = world.alert("DEPLOYMENT_UNHEALTHY", json!({ "afterMinutes": 60 })).await;
        world.set_healthy(id, false).await;
        app.advance(10 * MINUTE);
        work(&app).await;
        assert_eq!(world.states(&alert).await, NONE);
        app.post(&app.owner, &of(&app, &alert), json!({ "afterMinutes": 10 })).await.ok();
        work(&app).await;
        assert_eq!(world.states(&alert).await, ["Nightly FIRING"]);
    }

    async fn a_deleted_deployment_ends_what_was_found_there(app) {
        let world = World::new(&app).await;
        let id = world.deployment("Nightly").await;
        let alert = world.alert("DEPLOYMENT_UNHEALTHY", json!({ "afterMinutes": 0 })).await;
        world.set_healthy(id, false).await;
        wait_for_notice(&app).await;
        app.delete(&app.owner, &app.path(&format!("/deployments/{id}"))).await.ok();
        wait_for_notice(&app).await;
        assert_eq!(world.states(&alert).await, ["Nightly RESOLVED"]);
        assert_eq!(notices(&app).await, ["firing: Nightly", "resolved: Nightly"]);
    }

    async fn a_deploy_that_fails_is_told_until_one_succeeds(app) {
        let world = World::new(&app).await;
        let id = world.deployment("Nightly").await;
        let alert = world.alert("DEPLOY_FAILED", json!({})).await;
        let at = app.path(&format!("/deployments/{id}/deploys"));
        for expected in [1, 2] {
            app.post(&app.owner, &at, json!({ "type": "DAG_ONLY" })).await.ok();
            app.advance(Duration::from_hours(25));
            work(&app).await;
            wait_for_notice(&app).await;
            assert_eq!(notices(&app).await, ["firing: Nightly"], "a repeat is counted");
            let [firing] = &world.firings(&alert, "").await[..] else { panic!("one") };
            assert_eq!(firing["count"], expected);
        }
        let deploy = app.post(&app.owner, &at, json!({ "type": "IMAGE_ONLY" })).await.id();
        app.post(&app.owner, &format!("{at}/{deploy}/finalize"), json!({})).await.ok();
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await, ["firing: Nightly", "resolved: Nightly"]);
    }

    async fn an_operation_that_fails_is_told_until_one_succeeds(app) {
        let world = World::new(&app).await;
        let alert = world.alert("OPERATION_FAILED", json!({})).await;
        let body = json!({ "name": "Nightly", "workspaceId": world.workspace });
        let id: DeploymentId =
            app.post(&app.owner, &app.path("/deployments"), body).await.id().parse().expect("an id");
        world.set_healthy(id, false).await;
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await, ["firing: Nightly"]);
        world.set_healthy(id, true).await;
        let at = app.path(&format!("/deployments/{id}/deploys"));
        let deploy = app.post(&app.owner, &at, json!({ "type": "IMAGE_ONLY" })).await.id();
        app.post(&app.owner, &format!("{at}/{deploy}/finalize"), json!({})).await.ok();
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await, ["firing: Nightly", "resolved: Nightly"]);
        assert_eq!(world.states(&alert).await, ["Nightly RESOLVED"]);
    }

    async fn removing_history_does_not_mend_an_operation_that_failed(app) {
        let world = World::new(&app).await;
        let body = json!({ "name": "Nightly", "workspaceId": world.workspace });
        let id: DeploymentId =
            app.post(&app.owner, &app.path("/deployments"), body).await.id().parse().expect("an id");
        world.set_healthy(id, false).await;
        world.set_healthy(id, true).await;
        let at = app.path(&format!("/deployments/{id}/deploys"));
        let deploy = app.post(&app.owner, &at, json!({ "type": "IMAGE_ONLY" })).await.id();
        app.post(&app.owner, &format!("{at}/{deploy}/finalize"), json!({})).await.ok();
        work(&app).await;
        let operation = |kind: &'static str| {
            let (app, path) = (&app, app.path(&format!("/operations?kinds={kind}")));
            async move {
                let page = app.get(&app.owner, &path).await.ok();
                let [one] = &page["operations"].as_array().expect("operations")[..] else { panic!("{page}") };
                one["id"].as_str().expect("an id").parse::<OperationId>().expect("an id")
            }
        };
        let (failed, succeeded) = (operation("CREATE").await, operation("DEPLOY").await);
        let alert = world.alert("OPERATION_FAILED", json!({})).await;
        let place = Target::Deployment { id, workspace_id: world.workspace };
        let ends = |event: EventType, operation: OperationId| {
            let (app, organization_id, now) = (&app, app.organization_id, app.world.now());
            let scope = app.system.scope(organization_id);
            async move {
                let append = move |tx: &podium_db::Tx| {
                    let about = Resource::new(operation.id(), place).named("Nightly");
                    podium_store::events::append(tx, &scope, now, &NewEvent::new(event, organization_id, about, None))
                };
                app.app.db(&app.system).write(None, append).await.expect("it is written");
                work(app).await;
            }
        };
        ends(EventType::OperationFailed, failed).await;
        app.set_column("operations", succeeded, "kind", "'CLEAN_UP'").await;
        ends(EventType::OperationSucceeded, succeeded).await;
        assert_eq!(world.states(&alert).await, ["Nightly FIRING"]);
        app.set_column("operations", succeeded, "kind", "'DEPLOY'").await;
        ends(EventType::OperationSucceeded, succeeded).await;
        assert_eq!(world.states(&alert).await, ["Nightly RESOLVED"]);
    }

    async fn a_token_that_expires_soon_is_told_until_it_is_rotated(app) {
        let world = World::new(&app).await;
        let alert = world.alert("TOKEN_EXPIRING", json!({ "workspaceIds": [world.workspace] })).await;
        let token = |name: &str, days: u32| json!({
            "name": name, "scope": "WORKSPACE", "entityId": world.workspace, "role": "WORKSPACE_OPERATOR",
            "tokenExpiryPeriodInDays": days,
        });
        let rotated = app.post(&app.owner, &app.path("/tokens"), token("ci", 30)).await.id();
        let deleted = app.post(&app.owner, &app.path("/tokens"), token("old", 30)).await.id();
        app.post(&app.owner, &app.path("/tokens"), token("left alone", 31)).await.ok();
        let elsewhere = json!({
            "name": "elsewhere", "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER", "tokenExpiryPeriodInDays": 30,
        });
        app.post(&app.owner, &app.path("/tokens"), elsewhere).await.ok();
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await, NONE);
        app.advance(Duration::from_hours(24 * 23));
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await, ["firing: ci, old"]);
        let [firing, _] = &world.firings(&alert, "?sorts=since:asc").await[..] else { panic!("two") };
        assert_eq!(firing["subject"]["type"], "TOKEN");
        assert!(firing["reason"].as_str().unwrap().starts_with("It expires at 2027-02-14T"), "{firing}");
        app.post(&app.owner, &app.path(&format!("/tokens/{rotated}/rotate")), Value::Null).await.ok();
        app.delete(&app.owner, &app.path(&format!("/tokens/{deleted}"))).await.ok();
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await[1..], ["resolved: ci, old"]);
        app.advance(Duration::from_hours(24));
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await[2..], ["firing: left alone"]);
        app.advance(Duration::from_hours(24 * 7));
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await[3..], ["resolved: left alone"], "it has expired");
    }

    async fn a_token_of_a_deployment_goes_by_its_own_name(app) {
        let world = World::new(&app).await;
        let id = world.deployment("Nightly").await;
        let alert = world.alert("TOKEN_EXPIRING", json!({ "daysBefore": 30, "deploymentIds": [id] })).await;
        world.token_of(id, "ci").await;
        wait_for_notice(&app).await;
        assert_eq!(world.states(&alert).await, ["ci FIRING"]);
        assert_eq!(notices(&app).await, ["firing: ci"]);
    }

    async fn all_tokens_of_a_deployment_are_told_however_many(app) {
        let world = World::new(&app).await;
        let id = world.deployment("Nightly").await;
        let alert = world.alert("TOKEN_EXPIRING", json!({ "daysBefore": 30 })).await;
        for number in 0..101 {
            world.token_of(id, &format!("ci{number}")).await;
        }
        wait_for_notice(&app).await;
        let path = format!("{}/firings?state=FIRING&limit=1", of(&app, &alert));
        assert_eq!(app.get(&app.owner, &path).await.ok()["totalCount"], 101);
        let events = crate::events::settled(&app).await;
        let told = events.iter().find(|event| event["type"] == "podium.alert.firing").expect("it was told");
        assert_eq!(told["data"]["alert"]["total"], 101);
    }

    async fn a_narrowed_alert_finds_nothing_elsewhere(app) {
        let world = World::new(&app).await;
        let (one, two) = (world.deployment("One").await, world.deployment("Two").await);
        let alert = world.alert("DEPLOYMENT_UNHEALTHY", json!({})).await;
        world.set_healthy(one, false).await;
        world.set_healthy(two, false).await;
        assert_eq!(app.rows("alert_watches").await, 2);
        app.post(&app.owner, &of(&app, &alert), json!({ "workspaceIds": [world.workspace] })).await.ok();
        assert_eq!(app.rows("alert_watches").await, 2, "both are there");
        app.post(&app.owner, &of(&app, &alert), json!({ "workspaceIds": [], "deploymentIds": [one] })).await.ok();
        app.advance(5 * MINUTE);
        wait_for_notice(&app).await;
        assert_eq!(world.states(&alert).await, ["One FIRING"]);
    }

    async fn an_alert_looks_only_where_it_is_told_to(app) {
        let world = World::new(&app).await;
        let (one, two) = (world.deployment("One").await, world.deployment("Two").await);
        let here = json!({ "name": "here", "afterMinutes": 0, "deploymentIds": [one] });
        let here = world.alert("DEPLOYMENT_UNHEALTHY", here).await;
        let there = json!({ "name": "there", "afterMinutes": 0, "workspaceIds": [app.workspace("Other").await] });
        let there = world.alert("DEPLOYMENT_UNHEALTHY", there).await;
        world.set_healthy(one, false).await;
        world.set_healthy(two, false).await;
        assert_eq!(world.states(&here).await, ["One FIRING"]);
        assert_eq!(world.states(&there).await, NONE);
        let body = json!({ "deploymentIds": [], "workspaceIds": [world.workspace] });
        app.post(&app.owner, &of(&app, &there), body).await.ok();
        work(&app).await;
        assert_eq!(world.states(&there).await.len(), 2, "what is unhealthy there already");
    }

    async fn what_was_found_is_for_those_who_may_know_of_it(app) {
        let world = World::new(&app).await;
        let (one, two) = (world.deployment("One").await, world.deployment("Two").await);
        world.alert("DEPLOYMENT_UNHEALTHY", json!({ "afterMinutes": 0 })).await;
        world.set_healthy(one, false).await;
        world.set_healthy(two, false).await;
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await, ["firing: One", "firing: Two"], "one event for each place");
        let seen = |actor: Actor| {
            let path = app.path("/events?types=podium.alert.firing");
            let (app, webhook) = (&app, &world.webhook);
            async move {
                let page = app.get(&actor, &path).await.ok();
                assert!(!page.to_string().contains(webhook), "whom alerts tell is for owners");
                page["events"].as_array().expect("events").len()
            }
        };
        assert_eq!(seen(app.owner.clone()).await, 2);
        let on = On::Deployment { id: one, workspace_id: world.workspace };
        let held = vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(on, "DEPLOYMENT_ADMIN")];
        let reader = app.user_with("reader", held).await;
        let billing = app.member_as("billing", OrganizationRole::BillingAdmin).await;
        assert_eq!(seen(reader).await, 1);
        assert_eq!(seen(billing).await, 0);
    }
}
