//! An operation as it proceeds.

use podium_domain::On;
use podium_domain::deployments::rollout::RolloutStep;
use podium_testkit::{Actor, Call, TestApp, on_both_engines, role};
use serde_json::{Value, json};

use super::{MINUTE, cancel, change, made, path, reports};
use crate::deployments::member_with;

fn follow<'a>(app: &'a TestApp, by: &Actor, id: &str, query: &str) -> Call<'a> {
    app.call("GET", &app.path(&format!("/operations/{id}/follow{query}"))).by(by)
}

/// The id and the data of an event.
fn event(text: &str) -> (u64, Value) {
    let (id, data) =
        text.trim_end().strip_prefix("id: ").and_then(|rest| rest.split_once("\ndata: ")).expect("an event");
    (id.parse().expect("a number"), serde_json::from_str(data).expect("JSON"))
}

on_both_engines! {
    async fn every_change_is_an_event_and_the_final_state_is_the_last(app) {
        let id = made(&app, app.workspace("Data").await, json!({})).await;
        app.plane.script().lock().rollout = MINUTE;
        let operation = change(&app, id, json!({ "description": "More" })).await;
        let mut stream = follow(&app, &app.owner, &operation, "").open().await;
        assert_eq!(stream.headers["content-type"], "text/event-stream");
        let first = event(&stream.next().await.unwrap());
        assert_eq!((first.0, &first.1["state"]), (1, &json!("PENDING")));
        app.settle().await;
        let second = event(&stream.next().await.unwrap());
        assert_eq!((second.0, &second.1["state"]), (2, &json!("RUNNING")));
        reports(&app, id, RolloutStep::Drain).await;
        assert_eq!(event(&stream.next().await.unwrap()).1["steps"][1]["name"], "DRAIN");
        app.advance(MINUTE);
        app.settle().await;
        let last = event(&stream.next().await.unwrap());
        assert_eq!((last.0, &last.1["state"]), (4, &json!("SUCCEEDED")));
        assert_eq!(stream.next().await, None);
        assert_eq!(app.get(&app.owner, &path(&app, &operation)).await.ok(), last.1);
    }

    async fn a_stream_continues_after_the_last_event(app) {
        let id = made(&app, app.workspace("Data").await, json!({})).await;
        let operation = change(&app, id, json!({ "description": "More" })).await;
        let again = async |last: &str| {
            follow(&app, &app.owner, &operation, "?waitSeconds=0").header("last-event-id", last).send().await
        };
        assert_eq!(again("1").await.text(), "", "there is nothing new");
        app.settle().await;
        let (version, shown) = event(&again("1").await.text());
        assert_eq!(shown["state"], "SUCCEEDED");
        assert_eq!(again(&version.to_string()).await.text(), "");
        let mut over = follow(&app, &app.owner, &operation, "").header("last-event-id", &version.to_string()).open().await;
        assert_eq!(over.next().await, None, "what has ended has no more to say");
        assert_eq!(again("yesterday").await.wrong_fields(), ["Last-Event-ID: format"]);
        let wrong = follow(&app, &app.owner, &operation, "?waitSeconds=-1").send().await;
        assert_eq!(wrong.wrong_fields(), ["waitSeconds: minimum"]);
    }

    async fn a_stream_ends_with_the_right_to_see_the_target(app) {
        let workspace = app.workspace("Data").await;
        let id = made(&app, workspace, json!({})).await;
        let operation = change(&app, id, json!({ "description": "More" })).await;
        let held = vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(On::Workspace(workspace), "WORKSPACE_MEMBER")];
        let grace = app.user_with("grace", held).await;
        let mut stream = follow(&app, &grace, &operation, "").open().await;
        assert_eq!(event(&stream.next().await.unwrap()).0, 1);
        let nothing = json!({ "organizationRole": "ORGANIZATION_MEMBER", "workspaceRoles": [] });
        app.post(&app.owner, &app.path(&format!("/users/{}/roles", grace.id)), nothing).await.ok();
        app.settle().await;
        assert_eq!(stream.next().await, None, "not even the final state is seen");
        assert_eq!(follow(&app, &grace, &operation, "").send().await.code(), 404);
    }

    async fn a_stream_ends_even_if_nothing_happens(app) {
        let workspace = app.workspace("Data").await;
        let id = made(&app, workspace, json!({})).await;
        let operation = change(&app, id, json!({ "description": "More" })).await;
        let reader = member_with(&app, On::Workspace(workspace), "WORKSPACE_MEMBER").await;
        let stream = follow(&app, &reader, &operation, "").open().await;
        let leave = async {
            let path = app.path(&format!("/users/{}/roles", reader.id));
            app.post(&app.owner, &path, json!({ "organizationRole": null })).await.ok();
        };
        let (aborted, ()) = tokio::join!(stream.is_aborted(), leave);
        assert!(!aborted, "it ends in an orderly way");
    }

    async fn a_cancelled_operation_is_the_last_event(app) {
        let id = made(&app, app.workspace("Data").await, json!({})).await;
        let operation = change(&app, id, json!({ "description": "More" })).await;
        let mut stream = follow(&app, &app.owner, &operation, "").open().await;
        stream.next().await.unwrap();
        cancel(&app, &app.owner, &operation).await.ok();
        assert_eq!(event(&stream.next().await.unwrap()).1["state"], "CANCELLED");
        assert_eq!(stream.next().await, None);
    }
}
