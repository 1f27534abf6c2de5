//! Events: what they say, how they are listed, and who may read them.

mod claims;
mod following;
mod loops;
mod order;
mod retention;
mod visibility;

use podium_testkit::{Actor, TestApp, on_both_engines};
use serde_json::{Value, json};

/// All events of the organization, once none of them has to wait for an earlier one.
pub(crate) async fn settled(app: &TestApp) -> Vec<Value> {
    let organization_id = app.organization_id;
    let written = app.rows(&format!("events WHERE organization_id = '{organization_id}'")).await;
    loop {
        let mut all = Vec::new();
        let mut query = String::from("limit=1000");
        loop {
            let page = page(app, &app.owner, &query).await;
            all.extend(page["events"].as_array().expect("events").iter().cloned());
            if page["hasMore"] == false {
                break;
            }
            query = format!("limit=1000&cursor={}", page["nextCursor"].as_str().expect("a cursor"));
        }
        if all.len() as i64 >= written {
            return all;
        }
        tokio::task::yield_now().await;
    }
}

async fn page(app: &TestApp, by: &Actor, query: &str) -> Value {
    app.get(by, &app.path(&format!("/events?{query}"))).await.ok()
}

/// The events that somebody is shown, once they can all be read: what happened, and to what.
async fn shown(app: &TestApp, by: &Actor, query: &str) -> Vec<String> {
    settled(app).await;
    let page = page(app, by, query).await;
    assert_eq!(page["hasMore"], false);
    page["events"].as_array().expect("events").iter().map(line).collect()
}

/// What happened, without the prefix, and the name of what it happened to.
fn line(event: &Value) -> String {
    let what = event["type"].as_str().and_then(|text| text.strip_prefix("podium.")).expect("a type");
    match event["data"]["resource"]["name"].as_str() {
        Some(name) => format!("{what} {name}"),
        None => what.to_owned(),
    }
}

on_both_engines! {
    async fn an_event_is_a_cloud_event(app) {
        app.workspace("Reports").await;
        let mut events = settled(&app).await;
        let id = events[0]["id"].as_str().expect("an id").to_owned();
        assert!(id.split('-').all(|number| number.parse::<u64>().is_ok()), "{id}");
        events[0]["id"] = json!("<position>");
        insta::assert_json_snapshot!(events, @r#"
        [
          {
            "specversion": "1.0",
            "id": "<position>",
            "source": "https://podium.test/v1/organizations/cmywpiww00000000000000000",
            "type": "podium.workspace.created",
            "subject": "workspace/cmywpiww00004000000000000",
            "time": "2027-01-15T08:00:00.000Z",
            "datacontenttype": "application/json",
            "data": {
              "organizationId": "cmywpiww00000000000000000",
              "workspaceId": "cmywpiww00004000000000000",
              "resource": {
                "type": "workspace",
                "id": "cmywpiww00004000000000000",
                "name": "Reports"
              },
              "actor": {
                "id": "cmywpiww00001000000000000",
                "type": "USER",
                "name": "owner@localhost"
              }
            }
          }
        ]
        "#);
    }

    async fn pages_follow_each_other_without_gap_or_repeat(app) {
        for name in ["a", "b", "c", "d", "e"] {
            app.team(name, &[]).await;
        }
        settled(&app).await;
        let (mut seen, mut query) = (Vec::new(), String::from("limit=2"));
        loop {
            let page = page(&app, &app.owner, &query).await;
            let events = page["events"].as_array().expect("events");
            assert!(events.len() <= 2);
            seen.extend(events.iter().map(line));
            query = format!("limit=2&cursor={}", page["nextCursor"].as_str().expect("a cursor"));
            if page["hasMore"] == false {
                break;
            }
        }
        assert_eq!(seen, ["team.created a", "team.created b", "team.created c", "team.created d", "team.created e"]);
        assert_eq!(shown(&app, &app.owner, &query).await, Vec::<String>::new());
        app.team("f", &[]).await;
        assert_eq!(shown(&app, &app.owner, &query).await, ["team.created f"]);
        // The id of an event is a cursor too.
        let third = settled(&app).await[2]["id"].as_str().expect("an id").to_owned();
        let rest = shown(&app, &app.owner, &format!("cursor={third}")).await;
        assert_eq!(rest, ["team.created d", "team.created e", "team.created f"]);
        // A position that the stream has not come to yet is its end.
        assert_eq!(shown(&app, &app.owner, "cursor=9223372036854775807-1").await, Vec::<String>::new());
    }

    async fn events_are_filtered(app) {
        let (data, other) = (app.workspace("Data").await, app.workspace("Other").await);
        let deployment = app.new_deployment(data).await;
        app.settle().await;
        app.team("Crew", &[]).await;
        app.advance(std::time::Duration::from_hours(1));
        let later = app.world.now();
        app.delete(&app.owner, &app.path(&format!("/workspaces/{other}"))).await.ok();
        let healthy = format!("deployment.healthy {deployment}");
        let of = async |query: String| shown(&app, &app.owner, &query).await;
        let all = ["workspace.created Data", "workspace.created Other", healthy.as_str(), "team.created Crew",
            "workspace.deleted Other"];
        assert_eq!(of(String::new()).await, all);
        assert_eq!(of(format!("workspaceId={data}")).await, ["workspace.created Data", healthy.as_str()]);
        assert_eq!(of(format!("deploymentId={deployment}")).await, [healthy.as_str()]);
        assert_eq!(of(format!("deploymentId={deployment}&workspaceId={other}")).await, Vec::<String>::new());
        assert_eq!(of(format!("workspaceId={deployment}")).await, Vec::<String>::new());
        let types = "types=podium.workspace.deleted&types=podium.team.created";
        assert_eq!(of(types.into()).await, ["team.created Crew", "workspace.deleted Other"]);
        assert_eq!(of(format!("since={later}")).await, ["workspace.deleted Other"]);
        assert_eq!(of("since=2020-01-01T00:00:00Z".into()).await, all);
        assert_eq!(of("since=2099-01-01T00:00:00Z".into()).await, Vec::<String>::new());
    }

    async fn wrong_parameters_are_named(app) {
        let path = app.path(
            "/events?cursor=yesterday&limit=0&types=podium.moon.landed&workspaceId=x&deploymentId=y&since=now",
        );
        let wrong = app.get(&app.owner, &path).await.wrong_fields();
        assert_eq!(wrong, ["limit: minimum", "types[0]: enum", "workspaceId: format", "deploymentId: format", "since: format"]);
        let wrong = |query: &str| app.path(&format!("/events{query}"));
        assert_eq!(app.get(&app.owner, &wrong("?cursor=yesterday")).await.wrong_fields(), ["cursor: format"]);
        assert_eq!(app.get(&app.owner, &wrong("?limit=1001")).await.wrong_fields(), ["limit: maximum"]);
        let follow = wrong("/follow?cursor=1-x&waitSeconds=0");
        assert_eq!(app.get(&app.owner, &follow).await.wrong_fields(), ["cursor: format"]);
        let call = app.call("GET", &wrong("/follow?waitSeconds=0")).by(&app.owner).header("last-event-id", "7");
        assert_eq!(call.send().await.wrong_fields(), ["Last-Event-ID: format"]);
    }
}
