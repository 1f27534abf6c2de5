//! One key, many requests at once, one effect.

use std::sync::Arc;

use podium_testkit::{Answer, Engine, TestApp, block_on};
use serde_json::json;

use super::two_replicas;

async fn one_effect(apps: [Arc<TestApp>; 2]) {
    for round in 0..10 {
        let requests: Vec<_> = (0..16)
            .map(|n| {
                let app = Arc::clone(&apps[n % 2]);
                tokio::spawn(async move {
                    let call = app.call("POST", &app.path("/workspaces")).by(&app.owner);
                    let key = format!("round {round}");
                    let body = json!({ "name": format!("W{round}") });
                    call.header("idempotency-key", &key).json(&body).send().await
                })
            })
            .collect();
        let mut answers: Vec<Answer> = Vec::new();
        for request in requests {
            answers.push(request.await.unwrap());
        }
        let made: Vec<&Answer> = answers.iter().filter(|answer| answer.code() == 200).collect();
        assert!(!made.is_empty());
        assert!(made.iter().all(|answer| answer.bytes == made[0].bytes), "one answer");
        assert!(made.iter().all(|answer| answer.header("etag") == made[0].header("etag")));
        for early in answers.iter().filter(|answer| answer.code() != 200) {
            assert_eq!(
                early.refused(409),
                "The first request with this Idempotency-Key is still running: try again in a second."
            );
            assert_eq!(early.header("retry-after"), "1");
        }
        for app in &apps {
            let call = app.call("POST", &app.path("/workspaces")).by(&app.owner);
            let call = call.header("idempotency-key", &format!("round {round}"));
            let again = call.json(&json!({ "name": format!("W{round}") })).send().await;
            assert_eq!((again.code(), &again.bytes), (200, &made[0].bytes));
        }
    }
    let list = apps[0].get(&apps[0].owner, &apps[0].path("/workspaces")).await.ok();
    assert_eq!(list["totalCount"], 11);
    let records = apps[1].audit().await;
    assert_eq!(
        records.iter().filter(|record| record["statusCode"] == 200).count(),
        10,
        "one record for each effect"
    );
}

#[test]
fn a_key_that_is_used_on_both_replicas_at_once_has_one_effect() {
    block_on(async { one_effect(two_replicas().await).await });
}

#[test]
fn a_key_that_is_used_many_times_at_once_has_one_effect_on_sqlite() {
    block_on(async {
        let app = Arc::new(TestApp::start(Engine::Sqlite).await);
        one_effect([Arc::clone(&app), app]).await;
    });
}
