//! Rates, where they are configured.

use std::num::NonZeroU32;

use podium_app::Rates;
use podium_testkit::{Actor, Answer, Engine, TestApp, block_on, on_both_engines};
use serde_json::{Value, json};

/// Runs a test on both engines, with one call of each kind a second for each subject, and ten at once.
fn slowly<F: Future<Output = ()>>(test: impl Fn(TestApp) -> F) {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        block_on(async {
            let one = NonZeroU32::MIN;
            let rates = Some(Rates { reads: one, writes: one, deletes: one });
            test(TestApp::start_with(engine, |config, _| config.rates = rates).await).await;
        });
    }
}

/// Calls until it is told to slow down. However slow the machine is, ten calls must pass.
async fn until_refused(app: &TestApp, method: &str, path: &str, actor: &Actor) -> Answer {
    for n in 0..10_000 {
        let answer = app.call(method, path).by(actor).json(&json!({})).send().await;
        if answer.code() == 429 {
            assert!(n >= 10, "{n} calls passed");
            return answer;
        }
    }
    panic!("nobody said stop");
}

#[test]
fn a_rate_limited_subject_gets_a_retry_after() {
    slowly(async |app| {
        let answer = until_refused(&app, "GET", "/v1/users/self", &app.owner).await;
        assert_eq!(answer.refused(429), "Too many requests: try again in 1 s.");
        assert_eq!(answer.header("retry-after"), "1");
        assert_eq!(answer.header("content-type"), "application/json");
    });
}

#[test]
fn reads_writes_and_deletes_are_counted_apart_and_so_are_subjects() {
    slowly(async |app| {
        let eve = app.member("eve").await;
        let nowhere = app.path("/workspaces/x");
        until_refused(&app, "DELETE", &nowhere, &eve).await;
        until_refused(&app, "POST", &nowhere, &eve).await;
        assert_eq!(app.get(&eve, &nowhere).await.code(), 404);
        assert_eq!(app.delete(&app.owner, &nowhere).await.code(), 404);
    });
}

#[test]
fn a_rate_limited_call_has_no_effect_and_leaves_no_audit_record() {
    slowly(async |app| {
        let path = app.path("/workspaces");
        let answer = until_refused(&app, "POST", &path, &app.owner).await;
        let second = app.member_as("second", podium_api::enums::OrganizationRole::Owner).await;
        let log = app.get(&second, &app.path("/audit-logs")).await.text();
        assert!(log.lines().count() >= 10);
        for line in log.lines() {
            let record: Value = serde_json::from_str(line).unwrap();
            assert_eq!(record["statusCode"], 400);
            assert_ne!(record["requestId"], answer.header("x-request-id"));
        }
    });
}

#[test]
fn browsers_that_sign_in_with_a_token_are_counted_too() {
    slowly(async |app| {
        for n in 0..10_000 {
            let form = app.call("POST", "/sign-in").header("origin", "https://podium.test");
            let answer = form.body(format!("token={}", app.owner.token)).send().await;
            if answer.code() == 429 {
                return assert!(n >= 10, "{n} sign-ins passed");
            }
            assert_eq!(answer.code(), 303);
        }
        panic!("nobody said stop");
    });
}

on_both_engines! {
    async fn without_rates_nobody_is_rate_limited(app) {
        for _ in 0..300 {
            assert_eq!(
                app.get(&app.owner, "/v1/authorization/permission-groups?scopeType=DAG").await.code(),
                200
            );
        }
    }
}
