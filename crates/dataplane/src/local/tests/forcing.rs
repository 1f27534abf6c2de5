//! The wait for running tasks can be ended, and a removal can wait for them.

use std::fs;
use std::time::Duration;

use podium_domain::deployments::plan::{Observed, Rollout};
use podium_domain::deployments::rollout::RolloutStep;

use super::fixture::{Fixture, eventually, trouble};
use super::replacing::with_variable;
use crate::local::Local;
use crate::local::identity::Identity;
use crate::local::options::Broker;
use crate::local::tasks::tests::queue;
use crate::{DataPlane as _, Environment, Secret};

/// An environment whose tasks do not end.
async fn busy(fixture: &Fixture, plane: &Local) {
    fixture.bring_up(plane, &fixture.environment(1)).await;
    fs::write(fixture.path("told").join("busy"), "").unwrap();
}

fn drains(seen: &Observed) -> bool {
    seen.progress.as_ref().is_some_and(|progress| progress.step == RolloutStep::Drain)
}

fn is_done(seen: &Observed) -> bool {
    seen.rollout == Rollout::Done
}

/// A plane whose workers ignore every request to exit.
fn with_endless_workers(fixture: &Fixture) -> Local {
    fixture.set_script(
        "celery",
        "touch \"$PODIUM_STATUS/$PODIUM_COMPONENT.progress\"; trap '' TERM; while :; do sleep 0.02; done",
    );
    fixture.open_with(|options, timing| {
        options.broker = Broker::Given(Secret::new("redis://127.0.0.1:1/0".into()));
        timing.short_grace = Duration::from_millis(10);
    })
}

fn with_workers(fixture: &Fixture, generation: i64, city: &str) -> Environment {
    let mut environment = with_variable(fixture, generation, "CITY", city);
    environment.spec.worker_queues = vec![queue("default", 1), queue("heavy", 1)];
    environment
}

fn asleep(fixture: &Fixture, generation: i64) -> Environment {
    Environment { is_hibernating: true, ..fixture.environment(generation) }
}

#[tokio::test]
async fn an_update_goes_on_at_once_when_its_drain_is_ended() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    busy(&fixture, &plane).await;
    let changed = with_variable(&fixture, 2, "CITY", "Oslo");
    plane.end_drain(&fixture.at(), 1).await.unwrap();
    plane.apply(&changed).await.unwrap();
    fixture.until(&plane, drains).await;
    plane.end_drain(&fixture.at(), 1).await.unwrap();
    fixture.until(&plane, drains).await;
    assert_eq!(fixture.starts("scheduler").len(), 1, "that was another rollout");
    plane.end_drain(&fixture.at(), 2).await.unwrap();
    fixture.until(&plane, is_done).await;
    eventually(|| fixture.starts("scheduler").len() == 2).await;
    assert!(!fixture.place().drain().exists());

    plane.apply(&with_variable(&fixture, 3, "CITY", "Rome")).await.unwrap();
    fixture.until(&plane, drains).await;
    assert_eq!(fixture.starts("scheduler").len(), 2, "the next change waits again");
}

#[tokio::test]
async fn hibernation_waits_for_tasks_until_it_is_told_not_to() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    busy(&fixture, &plane).await;
    plane.apply(&asleep(&fixture, 2)).await.unwrap();
    fixture.until(&plane, drains).await;
    assert!(fixture.processes()["scheduler"].is_alive());
    plane.end_drain(&fixture.at(), 2).await.unwrap();
    fixture.until(&plane, is_done).await;
    assert!(fixture.processes().is_empty());
}

#[tokio::test]
async fn workers_that_finish_their_tasks_are_a_drain_that_can_be_ended() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = with_endless_workers(&fixture);
    let wanted = |generation, city| with_workers(&fixture, generation, city);
    fixture.bring_up(&plane, &wanted(1, "Oslo")).await;
    let before = fixture.processes();
    plane.apply(&wanted(2, "Rome")).await.unwrap();
    fixture.until(&plane, |seen| drains(seen) && trouble(seen, "worker-heavy").is_some()).await;
    assert!(before["worker-heavy"].is_alive());
    // Those that come next work as usual.
    fixture.clear_script("celery");
    plane.end_drain(&fixture.at(), 2).await.unwrap();
    fixture.until(&plane, is_done).await;
    assert!(!before["worker-heavy"].is_alive() && !before["worker-default"].is_alive());
}

#[tokio::test]
async fn hibernation_ends_workers_at_once_when_it_is_told_to() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = with_endless_workers(&fixture);
    let wanted = with_workers(&fixture, 1, "Oslo");
    fixture.bring_up(&plane, &wanted).await;
    let asleep = Environment { is_hibernating: true, generation: 2, ..wanted };
    plane.apply(&asleep).await.unwrap();
    fixture.until(&plane, drains).await;
    plane.end_drain(&fixture.at(), 2).await.unwrap();
    fixture.until(&plane, is_done).await;
    assert!(fixture.processes().is_empty());
}

#[tokio::test]
async fn a_removal_that_drains_waits_also_after_a_restart() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    busy(&fixture, &plane).await;
    let before = fixture.processes();
    plane.drain_and_remove(&fixture.at(), None).await.unwrap();
    fixture.until(&plane, drains).await;
    drop(plane);
    assert!(before.values().all(Identity::is_alive));
    let plane = fixture.open();
    fixture.until(&plane, drains).await;
    plane.drain_and_remove(&fixture.at(), None).await.unwrap();
    assert!(before.values().all(Identity::is_alive));
    fixture.clear_script("busy");
    fixture.until_gone(&plane).await;
    eventually(|| !before.values().any(Identity::is_alive)).await;
}

#[tokio::test]
async fn a_removal_that_drains_starts_no_tasks_though_the_server_stops_at_once() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    busy(&fixture, &plane).await;
    plane.drain_and_remove(&fixture.at(), None).await.unwrap();
    drop(plane);
    assert!(fixture.place().drain().exists());
}

#[tokio::test]
async fn the_drain_of_a_removal_can_be_ended() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    busy(&fixture, &plane).await;
    plane.drain_and_remove(&fixture.at(), None).await.unwrap();
    let seen = fixture.until(&plane, drains).await;
    plane.end_drain(&fixture.at(), seen.generation).await.unwrap();
    fixture.until_gone(&plane).await;
}
