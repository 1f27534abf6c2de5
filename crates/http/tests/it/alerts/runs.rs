//! DAG runs, of which only environments know: what they say is believed within bounds.

use std::sync::atomic::{AtomicU64, Ordering};

use podium_domain::events::{Claim, SpoolBatch, SpoolPosition};
use podium_store::event_spools;

use super::*;

const NONE: [&str; 0] = [];

/// What an environment says, in order.
struct Environment<'a> {
    app: &'a TestApp,
    id: DeploymentId,
    said: AtomicU64,
}

impl<'a> Environment<'a> {
    async fn new(world: &World<'a>, name: &str) -> Self {
        Self { app: world.app, id: world.deployment(name).await, said: AtomicU64::new(0) }
    }

    /// Says that runs have begun or ended.
    async fn say(&self, lines: Vec<Value>) {
        self.write(lines).await;
        work(self.app).await;
    }

    /// The same, before anybody reads it.
    async fn write(&self, lines: Vec<Value>) {
        let at = |read_bytes| SpoolPosition { segment: u64::from(read_bytes > 0), read_bytes, dropped: 0 };
        let from = self.said.fetch_add(1, Ordering::Relaxed);
        let parse = |line: &Value| Claim::parse(line.to_string().as_bytes()).expect("a claim");
        let claims = lines.iter().map(parse).collect();
        let batch = SpoolBatch { from: at(from), to: at(from + 1), claims, dropped: 0 };
        let (system, id, now) = (self.app.system, self.id, self.app.world.now());
        let write = move |tx: &podium_db::Tx| event_spools::record(tx, &system, id, batch.clone(), now);
        self.app
            .app
            .db(&self.app.system)
            .write(None, write)
            .await
            .expect("it is written")
            .expect("it is new");
    }

    async fn run(&self, event: &str, dag: &str, run: &str) {
        self.say(vec![claim(event, dag, run)]).await;
    }
}

fn claim(event: &str, dag: &str, run: &str) -> Value {
    json!({ "event": format!("dag_run.{event}"), "dag_id": dag, "run_id": run })
}

on_both_engines! {
    async fn what_was_found_about_a_dag_that_never_runs_again_ends_after_three_months(app) {
        let world = World::new(&app).await;
        let nightly = Environment::new(&world, "Nightly").await;
        let alert = world.alert("DAG_RUN_FAILED", json!({})).await;
        nightly.run("failed", "sales", "1").await;
        wait_for_notice(&app).await;
        app.advance(Duration::from_hours(24 * 60));
        nightly.run("failed", "sales", "2").await;
        app.advance(Duration::from_hours(24 * 89));
        podium_app::maintenance::once(&app.app).await.expect("housekeeping");
        assert_eq!(world.states(&alert).await, ["Nightly/sales FIRING"], "since it last failed");
        app.advance(Duration::from_hours(25));
        podium_app::maintenance::once(&app.app).await.expect("housekeeping");
        assert_eq!(world.states(&alert).await, ["Nightly/sales RESOLVED"]);
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await, NONE, "nobody is told, because nothing is known");
        nightly.run("failed", "sales", "3").await;
        assert_eq!(world.states(&alert).await, ["Nightly/sales FIRING", "Nightly/sales RESOLVED"], "it still fails");
    }

    async fn a_failed_run_is_told_until_one_of_the_dag_succeeds(app) {
        let world = World::new(&app).await;
        let alert = world.alert("DAG_RUN_FAILED", json!({})).await;
        let only = world.alert("DAG_RUN_FAILED", json!({ "name": "only", "dagId": "other" })).await;
        let environment = Environment::new(&world, "Nightly").await;
        environment.run("failed", "load", "one").await;
        environment.run("failed", "load", "two").await;
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await, ["firing: Nightly/load"]);
        let [firing] = &world.firings(&alert, "").await[..] else { panic!("one") };
        assert_eq!((&firing["count"], &firing["runId"]), (&json!(2), &json!("two")));
        assert_eq!((&firing["subject"]["type"], &firing["subject"]["dagId"]), (&json!("DAG"), &json!("load")));
        assert_eq!(world.states(&only).await, NONE);
        environment.run("succeeded", "other", "three").await;
        wait_for_notice(&app).await;
        assert_eq!(world.states(&alert).await, ["Nightly/load FIRING"], "another DAG");
        environment.run("succeeded", "load", "four").await;
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await, ["firing: Nightly/load", "resolved: Nightly/load"]);
        let events = crate::events::settled(&app).await;
        let told = events.iter().find(|event| event["type"] == "podium.alert.firing").expect("it was told");
        assert_eq!((&told["data"]["claimed"], &told["data"]["alert"]["kind"]), (&json!(true), &json!("DAG_RUN_FAILED")));
    }

    async fn a_run_that_takes_too_long_is_told_while_it_runs(app) {
        let world = World::new(&app).await;
        let alert = world.alert("DAG_RUN_TOO_SLOW", json!({ "afterMinutes": 30 })).await;
        let environment = Environment::new(&world, "Nightly").await;
        environment.run("started", "load", "one").await;
        environment.run("started", "quick", "one").await;
        app.advance(Duration::from_mins(29));
        environment.run("succeeded", "quick", "one").await;
        assert_eq!(world.states(&alert).await, NONE);
        app.advance(Duration::from_mins(1));
        work(&app).await;
        assert_eq!(world.states(&alert).await, ["Nightly/load FIRING"]);
        // Its late end is no recovery, and does not count it twice.
        environment.run("succeeded", "load", "one").await;
        wait_for_notice(&app).await;
        let [firing] = &world.firings(&alert, "").await[..] else { panic!("one") };
        assert_eq!((&firing["count"], &firing["state"]), (&json!(1), &json!("FIRING")));
        environment.run("started", "load", "two").await;
        app.advance(Duration::from_mins(1));
        environment.run("succeeded", "load", "two").await;
        wait_for_notice(&app).await;
        assert_eq!(notices(&app).await, ["firing: Nightly/load", "resolved: Nightly/load"]);
        assert_eq!(app.rows("alert_watches").await, 0);
    }

    async fn a_run_that_ended_while_nobody_looked_is_judged_by_what_its_environment_says(app) {
        let world = World::new(&app).await;
        let alert = world.alert("DAG_RUN_TOO_SLOW", json!({ "afterMinutes": 30 })).await;
        let environment = Environment::new(&world, "Nightly").await;
        let mut end = claim("succeeded", "load", "one");
        end["started_at"] = json!("2027-01-15T07:00:00Z");
        end["ended_at"] = json!("2027-01-15T07:31:00Z");
        environment.say(vec![claim("started", "load", "one"), end.clone()]).await;
        assert_eq!(world.states(&alert).await, ["Nightly/load FIRING"]);
        end["run_id"] = json!("two");
        end["ended_at"] = json!("2027-01-15T07:29:00Z");
        environment.say(vec![end]).await;
        assert_eq!(world.states(&alert).await, ["Nightly/load RESOLVED"]);
    }

    async fn an_environment_cannot_hide_what_others_have(app) {
        let world = World::new(&app).await;
        let failed = world.alert("DAG_RUN_FAILED", json!({})).await;
        let slow = world.alert("DAG_RUN_TOO_SLOW", json!({ "afterMinutes": 5 })).await;
        let (noisy, other) = (Environment::new(&world, "Noisy").await, Environment::new(&world, "Other").await);
        let many = |event: &str| (0..150).map(|number| claim(event, &format!("dag{number}"), "one")).collect();
        noisy.say(many("started")).await;
        noisy.say(many("failed")).await;
        noisy.say(many("started")).await;
        other.say(vec![claim("failed", "load", "one"), claim("started", "load", "two")]).await;
        let open = |alert| {
            let path = format!("{}/firings?state=FIRING&limit=1", of(&app, alert));
            let app = &app;
            async move { app.get(&app.owner, &path).await.ok()["totalCount"].clone() }
        };
        assert_eq!(open(&failed).await, 101);
        app.advance(Duration::from_mins(5));
        work(&app).await;
        assert_eq!(open(&slow).await, 101);
        wait_for_notice(&app).await;
        let told = notices(&app).await;
        assert_eq!(told.iter().filter(|line| line.as_str() == "firing: Other/load").count(), 2, "{told:?}");
        let events = crate::events::settled(&app).await;
        let noisy = events.iter().find(|event| event["type"] == "podium.alert.firing").expect("it was told");
        assert_eq!(noisy["data"]["alert"]["total"], 100);
        assert_eq!(noisy["data"]["alert"]["firings"].as_array().unwrap().len(), 20);
    }

    async fn runs_that_fail_and_succeed_before_anybody_was_told_are_bounded_too(app) {
        let world = World::new(&app).await;
        let alert = world.alert("DAG_RUN_FAILED", json!({})).await;
        let environment = Environment::new(&world, "Noisy").await;
        let both = |dag: String| [claim("failed", &dag, "one"), claim("succeeded", &dag, "one")];
        environment.say((0..150).flat_map(|number| both(format!("dag{number}"))).collect()).await;
        assert_eq!(app.rows("alert_firings").await, 100);
        wait_for_notice(&app).await;
        environment.run("failed", "load", "one").await;
        let open = world.firings(&alert, "?state=FIRING").await;
        assert_eq!(open.len(), 1, "what was told makes room");
    }

    async fn runs_that_were_found_and_never_end_leave_room_for_others(app) {
        let world = World::new(&app).await;
        let alert = world.alert("DAG_RUN_TOO_SLOW", json!({ "afterMinutes": 5 })).await;
        let environment = Environment::new(&world, "Nightly").await;
        for round in 0..3 {
            let begin = |number| claim("started", "stuck", &format!("{round}.{number}"));
            environment.say((0..100).map(begin).collect()).await;
            app.advance(Duration::from_mins(5));
            work(&app).await;
            assert_eq!(app.rows("alert_watches").await, 100, "those of the last round");
        }
        environment.run("started", "load", "one").await;
        app.advance(Duration::from_mins(5));
        work(&app).await;
        assert!(world.states(&alert).await.contains(&"Nightly/load FIRING".to_owned()));
    }

    async fn an_alert_narrowed_to_a_dag_watches_no_others(app) {
        let world = World::new(&app).await;
        let alert = world.alert("DAG_RUN_TOO_SLOW", json!({ "afterMinutes": 30 })).await;
        let environment = Environment::new(&world, "Nightly").await;
        environment.say(vec![claim("started", "load", "one"), claim("started", "other", "one")]).await;
        app.post(&app.owner, &of(&app, &alert), json!({ "dagId": "load" })).await.ok();
        app.advance(Duration::from_mins(30));
        work(&app).await;
        assert_eq!(world.states(&alert).await, ["Nightly/load FIRING"]);
    }

    async fn what_is_said_of_a_deployment_that_is_gone_is_not_noted(app) {
        let world = World::new(&app).await;
        let failed = world.alert("DAG_RUN_FAILED", json!({})).await;
        world.alert("DAG_RUN_TOO_SLOW", json!({ "afterMinutes": 5 })).await;
        let environment = Environment::new(&world, "Nightly").await;
        let events = ["started", "failed", "started"];
        environment.write(events.iter().map(|event| claim(event, "load", "one")).collect()).await;
        // The event of its end was read before: it was written by an older transaction that took longer.
        app.execute(&format!("DELETE FROM deployments WHERE id = '{}'", environment.id)).await;
        work(&app).await;
        assert_eq!(world.states(&failed).await, NONE);
        assert_eq!(app.rows("alert_watches").await, 0);
    }

    async fn a_dag_that_fails_and_succeeds_all_the_time_is_told_ever_more_rarely(app) {
        let world = World::new(&app).await;
        let alert = world.alert("DAG_RUN_FAILED", json!({})).await;
        let environment = Environment::new(&world, "Nightly").await;
        for _ in 0..40 {
            environment.say(vec![claim("failed", "load", "a"), claim("succeeded", "load", "a")]).await;
            app.advance(Duration::from_secs(61));
            work(&app).await;
        }
        let told = notices(&app).await.iter().filter(|line| line.starts_with("firing")).count();
        assert!((15..=19).contains(&told), "ten at once, and one in five minutes: {told}");
        let counts: u64 = world.firings(&alert, "").await.iter().map(|one| one["count"].as_u64().unwrap()).sum();
        assert_eq!(counts, 40, "nothing is lost");
    }
}
