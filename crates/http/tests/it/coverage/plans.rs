//! Every change can be planned, and what a plan shows is what applying it does.

use podium_api::{Description, ENDPOINTS};
use podium_domain::plans::can_be_planned;
use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::calls::{owner, prepare_change};
use super::safe_writes::changes;

/// What depends on when a call is made, or is made up for it: ids, times, secrets and random names.
fn without_chance(value: &Value) -> Value {
    let is_chance = |name: &str| {
        let is_id = name == "id" || name.ends_with("Id");
        is_id
            || name.ends_with("At")
            || ["token", "shortToken", "secret", "url", "imageTag", "imageRepository", "namespace"]
                .contains(&name)
    };
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !is_chance(name))
            .map(|(name, value)| (name.clone(), without_chance(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_chance).collect(),
        Value::String(text) if text.starts_with("http") => json!("a URL"),
        other => other.clone(),
    }
}

on_both_engines! {
    async fn what_a_plan_shows_is_what_applying_it_does(app) {
        let planned: Vec<&Description> = ENDPOINTS.iter().filter(|endpoint| can_be_planned(endpoint)).collect();
        assert!(planned.len() > 40, "{} endpoints can be planned", planned.len());
        for endpoint in planned {
            let prepared = prepare_change(&app, endpoint).await;
            let caller = owner(&app).await;
            let call = json!({ "method": endpoint.method.as_str(), "path": prepared.path, "body": prepared.body });
            let before = changes(&app).await;
            let plan = app.post(&caller, &app.path("/plans"), json!({ "calls": [call] })).await.ok();
            assert_eq!(changes(&app).await, before, "planning {} changed something", endpoint.id);
            let [outcome] = &plan["calls"].as_array().unwrap()[..] else { panic!("one call: {plan}") };
            assert_eq!(outcome["error"], Value::Null, "{}", endpoint.id);
            assert_eq!(outcome["operationId"], endpoint.id);
            assert_eq!(outcome["statusCode"], endpoint.reply_kind.status(), "{}", endpoint.id);
            let path = app.path(&format!("/plans/{}/apply", plan["planId"].as_str().unwrap()));
            let applied = app.post(&caller, &path, json!(null)).await.ok();
            let made = &applied["calls"][0];
            assert_eq!(made["statusCode"], outcome["statusCode"], "{}", endpoint.id);
            assert_eq!(without_chance(&made["result"]), without_chance(&outcome["result"]), "{}", endpoint.id);
            assert_ne!(changes(&app).await, before, "applying {} changed nothing", endpoint.id);
        }
    }
}
