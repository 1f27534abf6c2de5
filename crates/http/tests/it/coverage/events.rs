//! Every operation that changes something makes the event that its declaration names, once, in the transaction of its effect.

use podium_api::{Access, ENDPOINTS, Method};
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

use super::calls::{NEW_PASSWORD, PASSWORD, VARIABLE, owner, prepare_change};
use crate::events::settled;

/// The events of the organization since an earlier count, once all of them can be read.
async fn since(app: &TestApp, before: usize) -> Vec<Value> {
    let mut all = settled(app).await;
    all.split_off(before)
}

on_both_engines! {
    async fn every_operation_that_changes_something_makes_its_event(app) {
        let mut walked = 0;
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.method != Method::Get) {
            let prepared = prepare_change(&app, endpoint).await;
            let caller = owner(&app).await;
            let caller = prepared.caller(&caller);
            let before = settled(&app).await.len();
            let call = prepared.call(&app);
            let call = if endpoint.access == Access::Public { call } else { call.by(caller) };
            let answer = prepared.send(call).await;
            assert!(answer.status.is_success(), "{}: {}", endpoint.id, answer.text());
            let made = since(&app, before).await;
            let Some(expected) = endpoint.event else {
                assert_eq!(made, Vec::<Value>::new(), "{}", endpoint.id);
                continue;
            };
            let own: Vec<&Value> = made.iter().filter(|event| event["type"] == expected.as_str()).collect();
            let count = if endpoint.id == "BulkCreateAllowedIpAddressRanges" { 2 } else { 1 };
            assert_eq!(own.len(), count, "{}: {made:?}", endpoint.id);
            for event in &own {
                assert_eq!(event["data"]["organizationId"], app.organization_id.as_str(), "{}", endpoint.id);
                if endpoint.access != Access::Public {
                    assert_eq!(event["data"]["actor"]["id"], caller.id.id().as_str(), "{}", endpoint.id);
                }
                let id = event["data"]["resource"]["id"].as_str().expect("an id");
                assert!(event["subject"].as_str().expect("a subject").ends_with(&format!("/{id}")));
                let is_nameless = event["data"]["resource"]["type"] == "deploy";
                assert_eq!(event["data"]["resource"]["name"].is_null(), is_nameless, "{}", endpoint.id);
            }
            walked += 1;
        }
        assert!(walked >= 55, "{walked}");
        let all = serde_json::to_string(&settled(&app).await).expect("JSON");
        for secret in [PASSWORD, NEW_PASSWORD, VARIABLE, "eyJ", "whsec_"] {
            assert!(!all.contains(secret), "{secret} is in an event");
        }
    }

    async fn a_call_that_is_refused_makes_no_event(app) {
        let member = app.member("plain").await;
        let before = settled(&app).await.len();
        app.post(&member, &app.path("/workspaces"), json!({ "name": "Mine" })).await.refused(403);
        app.post(&app.owner, &app.path("/workspaces"), json!({ "name": "" })).await.refused(400);
        app.post(&app.owner, &app.path("/workspaces"), json!({ "name": "default" })).await.refused(409);
        assert_eq!(since(&app, before).await, Vec::<Value>::new());
    }
}
