//! Measures how long one process takes to create deployments through its API and to bring them to HEALTHY on the
//! simulated plane: `cargo run --release -p podium-reconcile --example ten_thousand -- [number] [sqlite|postgres]`.
//! For PostgreSQL set `PODIUM_TEST_POSTGRES`.

#![expect(clippy::print_stdout, reason = "a command line program talks to a person")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use podium_testkit::{Engine, TestApp, block_on};
use serde_json::json;

const CALLERS: usize = 64;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let number: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let engine =
        if arguments.next().as_deref() == Some("postgres") { Engine::Postgres } else { Engine::Sqlite };
    block_on(measure(number, engine));
}

async fn measure(number: usize, engine: Engine) {
    let app = Arc::new(TestApp::start(engine).await);
    let workspace = app.workspace("Data").await;
    let running = app.loops.start();
    let (started, next) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let callers = (0..CALLERS).map(|_| {
        let (app, next) = (Arc::clone(&app), Arc::clone(&next));
        tokio::spawn(async move {
            loop {
                let turn = next.fetch_add(1, Ordering::Relaxed);
                if turn >= number {
                    return;
                }
                let body = json!({ "name": format!("Deployment {turn}"), "workspaceId": workspace });
                app.post(&app.owner, &app.path("/deployments"), body).await.ok();
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("no panic");
    }
    println!("{engine:?}: {number} deployments created after {:.1?}", started.elapsed());
    while !app.pending_work().await.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("{engine:?}: all of them HEALTHY after {:.1?}", started.elapsed());
    assert_eq!(app.plane.environments().len(), number);
    running.drain(Duration::from_secs(10)).await;
}
