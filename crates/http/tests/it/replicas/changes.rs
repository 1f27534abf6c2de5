//! The change log: every change once, in an order that no follower has to correct.

use std::collections::HashMap;
use std::sync::Arc;

use podium_store::changes::{self, LoggedChange, Position};
use podium_testkit::{Engine, TestApp, block_on};
use serde_json::json;
use tokio::task::JoinHandle;

use super::two_replicas;

const WRITERS: usize = 16;
const ROUNDS: usize = 20;

async fn after(app: &TestApp, position: Position) -> Vec<LoggedChange> {
    let system = app.system;
    let read = app.app.db(&app.system).scan(None, move |conn| changes::after(conn, &system, position, 7));
    read.await.unwrap_or_else(|error: podium_db::Error| panic!("{error}"))
}

/// Makes, changes and deletes a workspace again and again.
async fn write(app: Arc<TestApp>, writer: usize) {
    for round in 0..ROUNDS {
        let body = json!({ "name": format!("{writer} {round}") });
        let made = app.post(&app.owner, &app.path("/workspaces"), body).await;
        let at = app.path(&format!("/workspaces/{}", made.id()));
        let body =
            json!({ "name": format!("{writer} {round}"), "description": "x", "cicdEnforcedDefault": false });
        app.post(&app.owner, &at, body).await.ok();
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
    }
}

async fn follow_while_writing(apps: [Arc<TestApp>; 2]) {
    let writers: Vec<_> =
        (0..WRITERS).map(|writer| tokio::spawn(write(Arc::clone(&apps[writer % 2]), writer))).collect();
    let (mut seen, mut position): (Vec<LoggedChange>, _) = (Vec::new(), Position::default());
    // Changes are shown once no older transaction of the whole server runs: the last one tells that all were.
    let mut last: Option<String> = None;
    while last.is_none() || !seen.iter().any(|change| Some(&change.id) == last.as_ref()) {
        if last.is_none() && writers.iter().all(JoinHandle::is_finished) {
            let app = &apps[0];
            let made = app.post(&app.owner, &app.path("/workspaces"), json!({ "name": "Last" })).await;
            last = Some(made.id().to_string());
        }
        let news = after(&apps[1], position).await;
        match news.last() {
            Some(newest) => position = newest.position,
            None => tokio::task::yield_now().await,
        }
        seen.extend(news);
    }
    for writer in writers {
        writer.await.unwrap();
    }
    seen.retain(|change| Some(&change.id) != last.as_ref());
    assert!(seen.is_sorted_by(|left, right| left.position < right.position));
    let mut versions: HashMap<String, Vec<i64>> = HashMap::new();
    for change in seen.iter().filter(|change| change.kind == podium_store::workspaces::KIND) {
        assert_eq!(change.organization_id.as_deref(), Some(apps[0].organization_id.as_str()));
        assert_eq!(change.workspace_id.as_ref(), Some(&change.id));
        versions.entry(change.id.clone()).or_default().push(change.version);
    }
    assert_eq!(versions.len(), WRITERS * ROUNDS, "nothing is missed");
    versions.retain(|_, versions| *versions != [1, 2, 3]);
    assert_eq!(versions, HashMap::new(), "nothing comes twice or out of order");
}

#[test]
fn a_follower_misses_nothing_while_both_replicas_write() {
    block_on(async { follow_while_writing(two_replicas().await).await });
}

#[test]
fn a_follower_misses_nothing_on_sqlite() {
    block_on(async {
        let app = Arc::new(TestApp::start(Engine::Sqlite).await);
        follow_while_writing([Arc::clone(&app), app]).await;
    });
}
