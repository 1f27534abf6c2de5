//! Lines as they are written.

use podium_api::DeploymentId;
use podium_api::enums::LogSource;
use podium_domain::On;
use podium_testkit::{Actor, Call, START, TestApp, on_both_engines, role};
use serde_json::{Value, json};

use super::{line, write};

const MOST_OF_ONE_SUBJECT: usize = 10;

fn follow<'a>(app: &'a TestApp, by: &Actor, id: DeploymentId, query: &str) -> Call<'a> {
    app.call("GET", &app.path(&format!("/deployments/{id}/logs/follow?{query}"))).by(by)
}

/// The ids and the data of events.
fn events(text: &str) -> Vec<(u64, Value)> {
    let event = |event: &str| {
        let (id, data) = event.strip_prefix("id: ")?.split_once("\ndata: ")?;
        Some((id.parse().ok()?, serde_json::from_str(data).ok()?))
    };
    text.split("\n\n").filter(|part| !part.is_empty()).map(|part| event(part).expect("an event")).collect()
}

fn raw(text: &str) -> Vec<String> {
    events(text).iter().map(|(_, data)| data["raw"].as_str().expect("a text").to_owned()).collect()
}

async fn say(app: &TestApp, id: DeploymentId, text: &str) {
    write(app, vec![line(id, START, LogSource::Worker, text)]).await;
}

on_both_engines! {
    async fn lines_arrive_as_they_are_written(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        say(&app, id, "before").await;
        let mut stream = follow(&app, &app.owner, id, "sources=worker&searchText=task*").open().await;
        let header = |name: &str| stream.headers[name].to_str().unwrap().to_owned();
        assert_eq!((stream.status.as_u16(), header("content-type").as_str()), (200, "text/event-stream"));
        assert_eq!(header("cache-control"), "no-store");
        write(&app, vec![
            line(id, START, LogSource::Worker, "task one\nand more"),
            line(id, START, LogSource::Scheduler, "task of another component"),
            line(id, START, LogSource::Worker, "something else"),
            line(id, START - 1000, LogSource::Worker, "task two"),
        ]).await;
        let shown = events(&stream.next().await.unwrap());
        assert_eq!(shown[0].1, json!({ "raw": "task one\nand more", "source": "worker", "timestamp": START }));
        assert_eq!(shown[1].1["raw"], "task two");
        assert!(shown.len() == 2 && shown[0].0 < shown[1].0);
        say(&app, id, "task three").await;
        assert_eq!(raw(&stream.next().await.unwrap()), ["task three"]);
    }

    async fn a_stream_continues_after_the_last_event(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        let mut stream = follow(&app, &app.owner, id, "sources=worker").open().await;
        for number in 0..3 {
            say(&app, id, &number.to_string()).await;
        }
        let first = events(&stream.next().await.unwrap())[0].clone();
        assert_eq!(first.1["raw"], "0");
        drop(stream);
        let again = |last: String| {
            follow(&app, &app.owner, id, "sources=worker&waitSeconds=0").header("last-event-id", &last).send()
        };
        assert_eq!(raw(&again(first.0.to_string()).await.text()), ["1", "2"]);
        app.app.log_store(&app.system).flush().await.unwrap();
        let rest = again(first.0.to_string()).await.text();
        assert_eq!(raw(&rest), ["1", "2"]);
        let last = events(&rest)[1].0;
        assert_eq!(again(last.to_string()).await.text(), "");
        assert_eq!(again(u64::MAX.to_string()).await.text(), "");
        assert_eq!(again("yesterday".into()).await.wrong_fields(), ["Last-Event-ID: format"]);
        let wrong = app.get(&app.owner, &app.path(&format!("/deployments/{id}/logs/follow?waitSeconds=-1"))).await;
        assert_eq!(wrong.wrong_fields(), ["sources: required", "waitSeconds: minimum"]);
    }

    async fn a_stream_ends_with_the_right_to_read(app) {
        let workspace = app.workspace("Data").await;
        let id = app.deployment(workspace).await;
        let held = vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(On::Workspace(workspace), "WORKSPACE_MEMBER")];
        let grace = app.user_with("grace", held).await;
        let mut stream = follow(&app, &grace, id, "sources=worker").open().await;
        say(&app, id, "seen").await;
        assert_eq!(raw(&stream.next().await.unwrap()), ["seen"]);
        // Changes of others' rights are no reason to end.
        app.team("Others", &[]).await;
        app.member("heidi").await;
        say(&app, id, "seen too").await;
        assert_eq!(raw(&stream.next().await.unwrap()), ["seen too"]);
        let nothing = json!({ "organizationRole": "ORGANIZATION_MEMBER", "workspaceRoles": [] });
        app.post(&app.owner, &app.path(&format!("/users/{}/roles", grace.id)), nothing).await.ok();
        say(&app, id, "unseen").await;
        assert_eq!(stream.next().await, None);
        assert_eq!(follow(&app, &grace, id, "sources=worker").send().await.code(), 404);
    }

    async fn a_stream_ends_with_its_deployment(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        let mut stream = follow(&app, &app.owner, id, "sources=worker").open().await;
        say(&app, id, "seen").await;
        assert_eq!(raw(&stream.next().await.unwrap()), ["seen"]);
        app.app.log_store(&app.system).remove(id).await.unwrap();
        assert_eq!(stream.next().await, None);
    }

    async fn a_subject_has_a_few_streams_open(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        let mut open = Vec::new();
        for _ in 0..MOST_OF_ONE_SUBJECT {
            open.push(follow(&app, &app.owner, id, "sources=worker").open().await);
        }
        let one_more = follow(&app, &app.owner, id, "sources=worker").send().await;
        one_more.refused(429);
        assert_eq!(one_more.header("retry-after"), "5");
        open.pop();
        assert_eq!(follow(&app, &app.owner, id, "sources=worker&waitSeconds=0").send().await.code(), 200);
    }
}
