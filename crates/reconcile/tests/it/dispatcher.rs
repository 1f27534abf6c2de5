//! Running loops: immediate, bounded, fair, and with a graceful shutdown.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use podium_api::enums::DeploymentStatus::{Creating, Healthy};
use podium_api::{DeploymentId, Id};
use podium_dataplane::Health;
use podium_dataplane::simulated::{Call, InjectedFault};
use podium_reconcile::{Failure, Loops, Options, Reconciler, StepFuture, StepResult};
use podium_store::work;
use podium_testkit::{Engine, TestApp, block_on, on_both_engines};
use tokio::sync::Semaphore;

use crate::gated::Gated;

/// Long enough that only a hang exceeds it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something is so.
pub(crate) async fn eventually(what: &str, is_so: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < PATIENCE, "it never came true: {what}");
        tokio::task::yield_now().await;
    }
}

async fn is_healthy(app: &TestApp, id: DeploymentId) -> bool {
    app.status(id).await.0 == Healthy
}

async fn is_idle(app: &TestApp) -> bool {
    app.pending_work().await.is_empty()
}

/// Looks after made-up things as a test says.
struct Made<F> {
    kind: &'static str,
    step: F,
}

impl<F> Reconciler for Made<F>
where
    F: Fn(Id) -> StepFuture<'static> + Send + Sync,
{
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn step(&self, id: Id) -> StepFuture<'_> {
        (self.step)(id)
    }
}

fn made<F>(kind: &'static str, step: F) -> Box<dyn Reconciler>
where
    F: Fn(Id) -> StepFuture<'static> + Send + Sync + 'static,
{
    Box::new(Made { kind, step })
}

fn loops_of(app: &TestApp, options: Options, reconcilers: Vec<Box<dyn Reconciler>>) -> Loops {
    Loops::of(&app.app, app.system.steward(), &app.planes(), options, reconcilers)
}

async fn ask(app: &TestApp, kind: &'static str, things: usize) {
    let system = app.system;
    let (ids, now): (Vec<Id>, _) = ((0..things).map(|_| app.world.id()).collect(), app.world.now());
    let asked = app
        .app
        .db(&app.system)
        .write(None, move |tx| ids.iter().try_for_each(|id| work::enqueue(tx, &system, kind, *id, now, now)));
    asked.await.expect("it is asked for");
}

on_both_engines! {
    async fn work_begins_when_it_is_committed(app) {
        let running = app.loops.start();
        let workspace = app.workspace("Data").await;
        let mut ids = Vec::new();
        for _ in 0..100 {
            ids.push(app.new_deployment(workspace).await);
        }
        eventually("all is done", async || is_idle(&app).await).await;
        for id in &ids {
            assert!(is_healthy(&app, *id).await);
        }
        app.plane.script().set_health(ids[0], "worker", Health::Down("it hangs".into()));
        eventually("what the plane says is heard", async || !is_healthy(&app, ids[0]).await).await;
        app.plane.script().set_health(ids[0], "worker", Health::Up);
        eventually("also when it is good", async || is_healthy(&app, ids[0]).await).await;
        for id in &ids {
            app.delete_deployment(*id).await;
        }
        eventually("all is gone", async || app.plane.environments().is_empty() && is_idle(&app).await).await;
        running.drain(PATIENCE).await;
    }

    async fn failed_work_is_retried_when_it_is_due(app) {
        let running = app.loops.start();
        app.plane.script().fail(Call::Apply, "no room", 2);
        let id = app.new_deployment(app.workspace("Data").await).await;
        for tries in 1..=2 {
            eventually("it was tried", async || {
                app.pending_work().await.first().is_some_and(|row| row.attempts == tries && row.holder.is_empty())
            })
            .await;
            assert_eq!(app.status(id).await.0, Creating);
            app.advance(Duration::from_secs(2));
            app.app.work_notifier.notify();
        }
        eventually("it works", async || is_healthy(&app, id).await).await;
        running.drain(PATIENCE).await;
    }

    async fn a_drain_lets_steps_finish_and_begins_none(app) {
        let plane = Gated::new(&app);
        let running = plane.loops(&app).start();
        let workspace = app.workspace("Data").await;
        let gate = plane.stop_next_apply();
        let first = app.new_deployment(workspace).await;
        gate.reached.await.expect("it is applied");
        let drain = tokio::spawn(running.drain(PATIENCE));
        // The drain has begun once nobody takes what is due any more.
        eventually("the drain has begun", async || {
            let id = app.new_deployment(workspace).await;
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            let pending = app.pending_work().await;
            pending.iter().any(|row| row.id == id.id() && row.holder.is_empty() && row.attempts == 0)
        })
        .await;
        assert!(!drain.is_finished());
        gate.open.send(()).expect("somebody waits");
        drain.await.expect("no panic");
        assert!(is_healthy(&app, first).await, "what had begun was finished");
        let pending = app.pending_work().await;
        assert!(!pending.is_empty() && pending.iter().all(|row| row.holder.is_empty()), "{pending:?}");
        app.settle().await;
        assert!(is_idle(&app).await, "and the rest is done by the next process");
    }

    async fn a_drain_that_takes_too_long_leaves_the_rest_to_others(app) {
        let running = app.loops.start();
        app.plane.script().inject(Call::Apply, InjectedFault::Hang, 1);
        let id = app.new_deployment(app.workspace("Data").await).await;
        eventually("it hangs", async || app.plane.script().lock().hung == 1).await;
        running.drain(Duration::ZERO).await;
        let pending = app.pending_work().await;
        assert_eq!((pending.len(), pending[0].holder.as_str(), pending[0].due_at), (1, "", app.world.now()));
        assert_eq!(app.settle().await, 1);
        assert!(is_healthy(&app, id).await);
    }

    async fn steps_at_once_are_bounded_and_kinds_do_not_share(app) {
        let most = Arc::new(AtomicUsize::new(0));
        let (now, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let gate = Arc::new(Semaphore::new(0));
        let (count, peak, ended, door) =
            (Arc::clone(&now), Arc::clone(&most), Arc::clone(&done), Arc::clone(&gate));
        let slow = made("slow", move |_| {
            let (count, peak, ended, door) =
                (Arc::clone(&count), Arc::clone(&peak), Arc::clone(&ended), Arc::clone(&door));
            Box::pin(async move {
                peak.fetch_max(count.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                drop(door.acquire().await.map_err(|error| Failure(error.to_string()))?);
                count.fetch_sub(1, Ordering::SeqCst);
                ended.fetch_add(1, Ordering::SeqCst);
                Ok(StepResult::settled())
            })
        });
        let quick = made("quick", |_| Box::pin(async { Ok(StepResult::settled()) }));
        let options = Options { concurrency: 3, ..Options::default() };
        let running = loops_of(&app, options, vec![slow, quick]).start();
        ask(&app, "slow", 20).await;
        eventually("the slow ones fill their room", async || now.load(Ordering::SeqCst) == 3).await;
        ask(&app, "quick", 50).await;
        eventually("the quick ones are done nevertheless", async || {
            app.pending_work().await.iter().all(|row| row.kind == "slow")
        })
        .await;
        assert_eq!((app.pending_work().await.len(), done.load(Ordering::SeqCst)), (20, 0));
        gate.add_permits(1);
        eventually("all is done", async || is_idle(&app).await).await;
        assert_eq!((most.load(Ordering::SeqCst), done.load(Ordering::SeqCst)), (3, 20));
        running.drain(PATIENCE).await;
    }

    async fn a_step_that_panics_or_hangs_does_not_affect_others(app) {
        let system = app.system;
        let seen: Arc<Mutex<BTreeMap<Id, u32>>> = Arc::default();
        let tries = Arc::clone(&seen);
        let (bad, worse, good) = (app.world.id(), app.world.id(), app.world.id());
        let things = made("things", move |id| {
            let tries = {
                let mut tries = tries.lock().unwrap();
                *tries.entry(id).and_modify(|count| *count += 1).or_insert(1)
            };
            Box::pin(async move {
                assert!(tries > 1 || id != bad, "a defect of this step");
                if tries == 1 && id == worse {
                    std::future::pending::<()>().await;
                }
                Ok(StepResult::settled())
            })
        });
        let options = Options { step_time: Duration::from_millis(20), ..Options::default() };
        let loops = loops_of(&app, options, vec![things]);
        let now = app.world.now();
        let asked = app.app.db(&app.system).write(None, move |tx| {
            [bad, worse, good].iter().try_for_each(|id| work::enqueue(tx, &system, "things", *id, now, now))
        });
        asked.await.expect("it is asked for");
        loops.step_until_idle().await.expect("it comes to rest");
        let pending = app.pending_work().await;
        let mut reasons: Vec<(Id, &str)> = pending.iter().map(|row| (row.id, row.reason.as_str())).collect();
        reasons.sort_unstable();
        assert_eq!(
            reasons,
            [(bad, "a defect: the step panicked"), (worse, "the step timed out after 20ms")]
        );
        app.advance(Duration::from_secs(1));
        loops.step_until_idle().await.expect("it comes to rest");
        assert!(is_idle(&app).await);
    }

    async fn an_effect_that_cannot_be_written_is_tried_again(app) {
        let things = made("things", |_| {
            Box::pin(async {
                let effect: podium_reconcile::Effect =
                    Box::new(|_| Err(podium_db::Error::Other("no such column".into())));
                Ok(StepResult { effect: Some(effect), ..StepResult::settled() })
            })
        });
        let loops = loops_of(&app, Options::default(), vec![things]);
        ask(&app, "things", 1).await;
        loops.step_until_idle().await.expect("it comes to rest");
        let pending = app.pending_work().await;
        assert_eq!((pending[0].reason.as_str(), pending[0].holder.as_str()), ("database error: no such column", ""));
        assert!(pending[0].due_at > app.world.now());
    }

    async fn metrics_show_pending_and_finished_work(app) {
        let workspace = app.workspace("Data").await;
        app.new_deployment(workspace).await;
        app.new_deployment(workspace).await;
        app.plane.script().fail(Call::Apply, "no room", 1);
        app.settle().await;
        app.advance(Duration::from_secs(3));
        let page = app.call("GET", "/metrics").send().await.text();
        let waited = 3.0 - (app.pending_work().await[0].due_at.millis() - podium_testkit::START) as f64 / 1000.0;
        for line in [
            "podium_work_pending{kind=\"deployments\"} 1",
            "podium_work_due{kind=\"deployments\"} 1",
            "podium_work_held{kind=\"deployments\"} 0",
            "podium_work_retried{kind=\"deployments\"} 0",
            &format!("podium_work_oldest_due_seconds{{kind=\"deployments\"}} {waited}"),
            "podium_steps_total{kind=\"deployments\",outcome=\"settled\"} 1",
            "podium_steps_total{kind=\"deployments\",outcome=\"retried\"} 1",
            "podium_steps_running{kind=\"deployments\"} 0",
            "# TYPE podium_step_seconds_total counter",
        ] {
            assert!(page.contains(&format!("{line}\n")), "{line} is missing in\n{page}");
        }
    }
}

#[test]
fn the_only_process_immediately_takes_over_the_work_of_the_last_one() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let id = app.new_deployment(app.workspace("Data").await).await;
        app.plane.script().inject(Call::Apply, InjectedFault::Hang, 1);
        let first = Gated::new(&app).loops(&app).start();
        eventually("it hangs", async || app.plane.script().lock().hung == 1).await;
        drop(first);
        assert!(!app.pending_work().await[0].holder.is_empty());
        let second = app.loops.start();
        eventually("it is done although the clock stands still", async || is_healthy(&app, id).await).await;
        second.drain(PATIENCE).await;
    });
}
