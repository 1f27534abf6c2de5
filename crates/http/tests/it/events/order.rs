//! A reader by cursor misses nothing and sees nothing twice while others write.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use podium_testkit::{Engine, TestApp, block_on};
use serde_json::{Value, json};

use super::page;

const WRITERS: usize = 8;
const ROUNDS: usize = 15;

/// Makes and deletes workspaces.
async fn write(app: Arc<TestApp>, writer: usize) {
    for round in 0..ROUNDS {
        let body = json!({ "name": format!("{writer} {round}") });
        let made = app.post(&app.owner, &app.path("/workspaces"), body).await;
        let at = app.path(&format!("/workspaces/{}", made.id()));
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
    }
}

/// Reads with `next` until everything that is written was seen, and checks that it was seen once and in order.
async fn reads_everything(apps: [Arc<TestApp>; 2], mut next: impl AsyncFnMut() -> Vec<Value>) {
    let writers: Vec<_> =
        (0..WRITERS).map(|writer| tokio::spawn(write(Arc::clone(&apps[writer % 2]), writer))).collect();
    let mut seen: HashMap<String, Vec<String>> = HashMap::new();
    let mut ids = BTreeSet::new();
    let mut count = 0;
    while count < 2 * WRITERS * ROUNDS {
        for event in next().await {
            let text = |field: &str| event[field].as_str().expect("a text").to_owned();
            assert!(ids.insert(text("id")), "{} came twice", text("id"));
            seen.entry(text("subject")).or_default().push(text("type"));
            count += 1;
        }
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.expect("it writes");
    }
    assert_eq!(seen.len(), WRITERS * ROUNDS);
    seen.retain(|_, types| *types != ["podium.workspace.created", "podium.workspace.deleted"]);
    assert_eq!(seen, HashMap::new(), "each is created and then deleted");
}

async fn lists_everything(apps: [Arc<TestApp>; 2]) {
    let reader = Arc::clone(&apps[1]);
    let mut cursor = String::new();
    reads_everything(apps, async || {
        let page = page(&reader, &reader.owner, &format!("limit=7&cursor={cursor}")).await;
        cursor = page["nextCursor"].as_str().expect("a cursor").to_owned();
        page["events"].as_array().expect("events").clone()
    })
    .await;
}

/// Follows, and reconnects after every chunk with the id of the last event in it.
async fn follows_everything(apps: [Arc<TestApp>; 2]) {
    let reader = Arc::clone(&apps[1]);
    let following = tokio::spawn(podium_app::follow::run(reader.app.clone()));
    let mut last = String::from("0-0");
    reads_everything(apps, async || {
        let call = reader.call("GET", &reader.path("/events/follow")).by(&reader.owner);
        let mut stream = call.header("last-event-id", &last).open().await;
        let events = super::following::events(&stream.next().await.expect("it goes on"));
        if let Some((id, _)) = events.last() {
            last.clone_from(id);
        }
        events.into_iter().map(|(_, event)| event).collect()
    })
    .await;
    following.abort();
}

async fn two_replicas() -> [Arc<TestApp>; 2] {
    let first = TestApp::start(Engine::Postgres).await;
    let second = first.replica().await;
    [Arc::new(first), Arc::new(second)]
}

async fn one_server() -> [Arc<TestApp>; 2] {
    let app = Arc::new(TestApp::start(Engine::Sqlite).await);
    [Arc::clone(&app), app]
}

#[test]
fn a_list_misses_nothing_while_both_replicas_write() {
    block_on(async { lists_everything(two_replicas().await).await });
}

#[test]
fn a_list_misses_nothing_on_sqlite() {
    block_on(async { lists_everything(one_server().await).await });
}

#[test]
fn a_follower_misses_nothing_while_both_replicas_write() {
    block_on(async { follows_everything(two_replicas().await).await });
}

#[test]
fn a_follower_misses_nothing_on_sqlite() {
    block_on(async { follows_everything(one_server().await).await });
}
