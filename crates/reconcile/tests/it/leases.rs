//! Several replicas on one PostgreSQL: each does its share, and any of them can fail.

use std::collections::BTreeMap;
use std::time::Duration;

use podium_api::DeploymentId;
use podium_api::enums::DeploymentStatus::Healthy;
use podium_dataplane::simulated::{Call, InjectedFault};
use podium_testkit::{Engine, TestApp, block_on};

use crate::dispatcher::eventually;
use crate::gated::Gated;

const PATIENCE: Duration = Duration::from_secs(60);

async fn two_replicas() -> [TestApp; 2] {
    let first = TestApp::start(Engine::Postgres).await;
    let second = first.replica().await;
    [first, second]
}

#[test]
fn a_replica_that_dies_is_replaced_within_the_lease() {
    block_on(async {
        let [a, b] = two_replicas().await;
        let id = a.new_deployment(a.workspace("Data").await).await;
        a.plane.script().inject(Call::Apply, InjectedFault::Hang, 1);
        let dying = Gated::new(&a).loops(&a).start();
        eventually("it hangs", async || a.plane.script().lock().hung == 1).await;
        drop(dying);
        b.advance(Duration::from_millis(29_999));
        assert_eq!(b.settle().await, 0, "it may still be working");
        b.advance(Duration::from_millis(1));
        assert_eq!(b.settle().await, 1);
        assert_eq!((b.status(id).await.0, b.pending_work().await), (Healthy, vec![]));
    });
}

#[test]
fn replicas_share_the_work_and_do_nothing_twice() {
    block_on(async {
        let [a, b] = two_replicas().await;
        a.plane.script().keep_journal();
        let workspace = a.workspace("Data").await;
        let mut ids = Vec::new();
        for _ in 0..300 {
            ids.push(a.new_deployment(workspace).await);
        }
        let (first, second) = (a.loops.start(), b.loops.start());
        eventually("all is done", async || a.pending_work().await.is_empty()).await;
        let mut applied: BTreeMap<DeploymentId, usize> = BTreeMap::new();
        for entry in a.plane.script().journal().iter().filter(|entry| entry.call == Call::Apply) {
            *applied.entry(DeploymentId::from_raw(entry.id)).or_default() += 1;
        }
        assert_eq!(applied.keys().copied().collect::<Vec<_>>(), ids);
        assert!(applied.values().all(|count| *count == 1), "{applied:?}");
        for id in ids {
            assert_eq!(b.status(id).await.0, Healthy);
        }
        first.drain(PATIENCE).await;
        second.drain(PATIENCE).await;
    });
}

#[test]
fn work_added_by_one_replica_is_done_by_the_other() {
    block_on(async {
        let [a, b] = two_replicas().await;
        let following = tokio::spawn(podium_app::follow::run(b.app.clone()));
        let running = b.loops.start();
        let workspace = a.workspace("Data").await;
        for _ in 0..5 {
            let id = a.new_deployment(workspace).await;
            eventually("the other is woken", async || a.status(id).await.0 == Healthy).await;
        }
        running.drain(PATIENCE).await;
        following.abort();
    });
}

#[test]
fn a_replica_that_stops_hands_its_work_over_immediately() {
    block_on(async {
        let [a, b] = two_replicas().await;
        let id = a.new_deployment(a.workspace("Data").await).await;
        a.plane.script().inject(Call::Apply, InjectedFault::Hang, 1);
        let stopping = a.loops.start();
        eventually("it hangs", async || a.plane.script().lock().hung == 1).await;
        stopping.drain(Duration::ZERO).await;
        assert_eq!(b.settle().await, 1, "without waiting for the lease");
        assert_eq!(b.status(id).await.0, Healthy);
    });
}
