//! Events as they happen.

use podium_api::enums::OrganizationRole;
use podium_domain::On;
use podium_testkit::{Actor, Call, Engine, StreamingResponse, TestApp, block_on, on_both_engines, role};
use serde_json::{Value, json};

use super::{line, settled};

const MANY: usize = 1000;
const MOST_OF_ONE_READER: usize = 100;

fn follow<'a>(app: &'a TestApp, by: &Actor, query: &str) -> Call<'a> {
    app.call("GET", &app.path(&format!("/events/follow?{query}"))).by(by)
}

/// The ids and the data of events; none for a keep-alive.
pub(super) fn events(text: &str) -> Vec<(String, Value)> {
    let event = |event: &str| {
        let (id, data) = event.strip_prefix("id: ")?.split_once("\ndata: ")?;
        Some((id.to_owned(), serde_json::from_str(data).ok()?))
    };
    let parts = text.split("\n\n").filter(|part| !part.is_empty() && !part.starts_with(": nothing new"));
    parts.map(|part| event(part).expect("an event")).collect()
}

/// So many further events of a stream.
async fn next(stream: &mut StreamingResponse, count: usize) -> Vec<String> {
    let mut seen = Vec::new();
    while seen.len() < count {
        let chunk = stream.next().await.expect("the stream goes on");
        seen.extend(events(&chunk).iter().map(|(_, event)| line(event)));
    }
    seen
}

async fn set_roles(app: &TestApp, actor: &Actor, body: Value) {
    app.post(&app.owner, &app.path(&format!("/users/{}/roles", actor.id)), body).await.ok();
}

on_both_engines! {
    async fn events_arrive_as_they_happen(app) {
        app.team("before", &[]).await;
        settled(&app).await;
        let mut stream = follow(&app, &app.owner, "").open().await;
        let header = |name: &str| stream.headers[name].to_str().expect("text").to_owned();
        assert_eq!((stream.status.as_u16(), header("content-type").as_str()), (200, "text/event-stream"));
        assert_eq!(header("cache-control"), "no-store");
        app.team("one", &[]).await;
        assert_eq!(next(&mut stream, 1).await, ["team.created one"]);
        app.team("two", &[]).await;
        app.workspace("three").await;
        assert_eq!(next(&mut stream, 2).await, ["team.created two", "workspace.created three"]);
        let mut narrow = follow(&app, &app.owner, "types=podium.workspace.created").open().await;
        app.team("four", &[]).await;
        app.workspace("five").await;
        assert_eq!(next(&mut narrow, 1).await, ["workspace.created five"]);
    }

    async fn a_stream_continues_after_the_last_event(app) {
        for name in ["a", "b", "c"] {
            app.team(name, &[]).await;
        }
        let all = settled(&app).await;
        let first = all[0]["id"].as_str().expect("an id");
        let rest = async |call: Call<'_>| -> Vec<String> {
            events(&call.send().await.text()).iter().map(|(_, event)| line(event)).collect()
        };
        let wait = "waitSeconds=0";
        let resumed = rest(follow(&app, &app.owner, wait).header("last-event-id", first)).await;
        assert_eq!(resumed, ["team.created b", "team.created c"]);
        assert_eq!(rest(follow(&app, &app.owner, &format!("{wait}&cursor={first}"))).await, resumed);
        // A browser that reconnects sends its URL again, and the id that it has come to.
        let second = all[1]["id"].as_str().expect("an id");
        let again = follow(&app, &app.owner, &format!("{wait}&cursor={first}")).header("last-event-id", second);
        assert_eq!(rest(again).await, ["team.created c"]);
        assert_eq!(rest(follow(&app, &app.owner, &format!("{wait}&since=2020-01-01T00:00:00Z"))).await.len(), 3);
        assert_eq!(rest(follow(&app, &app.owner, wait)).await, Vec::<String>::new());
        let ids: Vec<String> = events(&follow(&app, &app.owner, &format!("{wait}&cursor=0-0")).send().await.text())
            .into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, all.iter().map(|event| event["id"].as_str().expect("an id")).collect::<Vec<_>>());
    }

    async fn a_stream_ends_when_its_reader_is_removed(app) {
        let auditor = app.member_as("auditor", OrganizationRole::Owner).await;
        let mut stream = follow(&app, &auditor, "").open().await;
        app.team("seen", &[]).await;
        assert_eq!(next(&mut stream, 1).await, ["team.created seen"]);
        // Nothing that it may read happens after this.
        let (ended, ()) =
            tokio::join!(stream.is_aborted(), set_roles(&app, &auditor, json!({ "organizationRole": null })));
        assert!(!ended, "it ends in an orderly way");
        assert_eq!(follow(&app, &auditor, "").send().await.code(), 404);
    }

    async fn a_stream_ends_with_its_token(app) {
        let robot = app.token("robot", "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
        let stream = follow(&app, &robot, "").open().await;
        let delete = async { app.delete(&app.owner, &app.path(&format!("/tokens/{}", robot.id))).await.ok() };
        let (ended, _) = tokio::join!(stream.is_aborted(), delete);
        assert!(!ended, "it ends in an orderly way");
    }

    async fn a_stream_shows_less_when_its_reader_may_read_less_and_more_when_more(app) {
        let data = app.workspace("Data").await;
        let here = On::Workspace(data);
        let grace = app.user_with("grace", vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(here, "WORKSPACE_MEMBER")]).await;
        settled(&app).await;
        let mut stream = follow(&app, &grace, "").open().await;
        let rename = async |name: &str| {
            let body = json!({ "name": name, "description": "", "cicdEnforcedDefault": false });
            app.post(&app.owner, &app.path(&format!("/workspaces/{data}")), body).await.ok();
        };
        rename("Seen").await;
        assert_eq!(next(&mut stream, 1).await, ["workspace.updated Seen"]);
        // What changes for others is no reason to end.
        app.member("heidi").await;
        set_roles(&app, &grace, json!({ "organizationRole": "ORGANIZATION_MEMBER", "workspaceRoles": [] })).await;
        rename("Unseen").await;
        app.team("Crew", &[]).await;
        assert_eq!(next(&mut stream, 2).await, ["user.roles_updated grace@podium.test", "team.created Crew"]);
        let again = json!({
            "organizationRole": "ORGANIZATION_MEMBER",
            "workspaceRoles": [{ "workspaceId": data, "role": "WORKSPACE_MEMBER" }],
        });
        set_roles(&app, &grace, again).await;
        rename("Seen again").await;
        assert_eq!(next(&mut stream, 2).await, ["user.roles_updated grace@podium.test", "workspace.updated Seen again"]);
    }

    async fn a_thousand_followers_hear_of_an_event_and_one_reader_has_not_all_places(app) {
        let (mut open, mut readers) = (Vec::new(), Vec::new());
        for number in 0..MANY / MOST_OF_ONE_READER {
            readers.push(app.member_as(&format!("reader{number}"), OrganizationRole::Owner).await);
        }
        settled(&app).await;
        for reader in &readers {
            for _ in 0..MOST_OF_ONE_READER {
                open.push(follow(&app, reader, "").open().await);
            }
        }
        app.team("Crew", &[]).await;
        for stream in &mut open {
            assert_eq!(next(stream, 1).await, ["team.created Crew"]);
        }
        let refused = follow(&app, &readers[0], "").send().await;
        assert_eq!(refused.header("retry-after"), "5");
        let why = refused.refused(429);
        assert!(why.contains("You have too many streams open: close one"), "{why}");
        // There is room for others.
        let other = app.member("other").await;
        assert_eq!(follow(&app, &other, "waitSeconds=0").send().await.code(), 200);
        drop(open);
        assert_eq!(follow(&app, &readers[0], "waitSeconds=0").send().await.code(), 200);
    }
}

#[test]
fn a_follower_hears_of_events_and_revocations_on_another_replica() {
    block_on(async {
        let a = TestApp::start(Engine::Postgres).await;
        let b = a.replica().await;
        let following = tokio::spawn(podium_app::follow::run(b.app.clone()));
        let robot = a.token("robot", "ORGANIZATION", a.organization_id, "ORGANIZATION_OWNER").await;
        settled(&a).await;
        let mut stream = follow(&b, &robot, "").open().await;
        for name in ["one", "two"] {
            a.team(name, &[]).await;
            assert_eq!(next(&mut stream, 1).await, [format!("team.created {name}")]);
        }
        let delete = async { a.delete(&a.owner, &a.path(&format!("/tokens/{}", robot.id))).await.ok() };
        let (ended, _) = tokio::join!(stream.is_aborted(), delete);
        assert!(!ended, "it ends in an orderly way");
        following.abort();
    });
}
