//! Changes reach the affected components, and interrupt nothing that runs.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use podium_api::enums::Executor;
use podium_domain::deployments::plan::{Observed, Rollout};
use podium_domain::deployments::rollout::RolloutStep;

use super::fixture::{Fixture, detail, eventually, trouble};
use crate::local::tasks::tests::queue;
use crate::local::{Broker, Local};
use crate::{DataPlane as _, Environment, Secret, Setting};

pub(super) fn with_variable(fixture: &Fixture, generation: i64, key: &str, value: &str) -> Environment {
    let mut environment = fixture.environment(generation);
    environment.variables =
        vec![Setting { key: key.into(), value: Secret::new(value.into()), is_secret: false }];
    environment
}

/// Waits until a change waits for running tasks.
async fn until_it_drains(fixture: &Fixture, plane: &Local) -> String {
    let waits = |why: String| why.starts_with("waiting for running tasks to finish before");
    let seen = fixture.until(plane, |seen| trouble(seen, "scheduler").is_some_and(waits)).await;
    assert_eq!(seen.rollout, Rollout::Underway);
    trouble(&seen, "scheduler").unwrap()
}

#[tokio::test]
async fn a_scheduler_restarts_once_its_tasks_have_ended() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    fs::write(fixture.path("told").join("busy"), "").unwrap();
    plane.apply(&with_variable(&fixture, 2, "CITY", "Oslo")).await.unwrap();
    until_it_drains(&fixture, &plane).await;
    eventually(|| fixture.starts("triggerer").len() == 2).await;
    assert!(before["scheduler"].is_alive(), "its tasks run");
    assert!(before["apiserver"].is_alive(), "it does not concern that one");
    assert!(fixture.place().drain().exists(), "no further task is taken");
    fixture.clear_script("busy");
    fixture.bring_up(&plane, &with_variable(&fixture, 2, "CITY", "Oslo")).await;
    assert!(!before["scheduler"].is_alive());
    assert_eq!(fixture.starts("scheduler").len(), 2);
    assert!(!fixture.place().drain().exists(), "tasks are taken again");
}

#[tokio::test]
async fn a_scheduler_that_has_not_begun_has_nothing_to_drain() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    // It has so much to do that it answers nobody yet.
    fixture.set_script("scheduler", "while :; do sleep 0.02; done");
    fs::write(fixture.path("told").join("no-heartbeat"), "").unwrap();
    let plane = fixture.open_with(|_, timing| timing.drain *= 10);
    plane.apply(&fixture.environment(1)).await.unwrap();
    eventually(|| fixture.starts("scheduler").len() == 1).await;
    plane.apply(&with_variable(&fixture, 2, "CITY", "Oslo")).await.unwrap();
    eventually(|| fixture.starts("scheduler").len() == 2).await;
    let asleep = Environment { is_hibernating: true, ..fixture.environment(3) };
    plane.apply(&asleep).await.unwrap();
    fixture.until(&plane, |seen| seen.is_hibernating && seen.rollout == Rollout::Done).await;
    assert!(!fixture.place().drain().exists(), "nobody was asked");
}

#[tokio::test]
async fn a_drain_names_the_tasks_that_it_waits_for() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    fs::write(fixture.path("told").join("busy"), "").unwrap();
    plane.apply(&with_variable(&fixture, 2, "CITY", "Oslo")).await.unwrap();
    until_it_drains(&fixture, &plane).await;
    let request = fs::read_to_string(fixture.place().drain()).unwrap();
    fs::write(fixture.place().status().join("waiting"), format!("{request}\ndaily/scheduled/load")).unwrap();
    let names = |seen: &Observed| {
        let progress = seen.progress.as_ref();
        progress.is_some_and(|it| it.step == RolloutStep::Drain && it.waits_for == ["daily/scheduled/load"])
    };
    fixture.until(&plane, names).await;
    fixture.clear_script("busy");
    let seen = fixture.bring_up(&plane, &with_variable(&fixture, 2, "CITY", "Oslo")).await;
    assert_eq!(seen.progress, None);
}

#[tokio::test]
async fn tasks_that_outlast_the_grace_are_not_waited_for() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    fs::write(fixture.path("told").join("busy"), "").unwrap();
    let mut changed = with_variable(&fixture, 2, "CITY", "Oslo");
    changed.spec.drain_grace_seconds = Some(1);
    fixture.bring_up(&plane, &changed).await;
    assert_eq!(fixture.starts("scheduler").len(), 2);
}

#[tokio::test]
async fn a_reverted_change_ends_the_drain_and_restarts_nothing() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    fs::write(fixture.path("told").join("busy"), "").unwrap();
    plane.apply(&with_variable(&fixture, 2, "CITY", "Oslo")).await.unwrap();
    until_it_drains(&fixture, &plane).await;
    fixture.bring_up(&plane, &fixture.environment(3)).await;
    assert!(!fixture.place().drain().exists());
    assert_eq!(fixture.processes()["scheduler"], before["scheduler"]);
}

#[tokio::test]
async fn a_drain_continues_after_a_restart_of_the_control_plane() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    fs::write(fixture.path("told").join("busy"), "").unwrap();
    plane.apply(&with_variable(&fixture, 2, "CITY", "Oslo")).await.unwrap();
    until_it_drains(&fixture, &plane).await;
    drop(plane);
    assert!(fixture.place().drain().exists());
    let plane = fixture.open();
    plane.apply(&with_variable(&fixture, 2, "CITY", "Oslo")).await.unwrap();
    until_it_drains(&fixture, &plane).await;
    assert!(before["scheduler"].is_alive());
    fixture.clear_script("busy");
    fixture.bring_up(&plane, &with_variable(&fixture, 2, "CITY", "Oslo")).await;
    assert_eq!(fixture.starts("scheduler").len(), 2);
}

#[tokio::test]
async fn tasks_are_accepted_again_while_the_next_state_cannot_be_prepared() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    fs::write(fixture.path("told").join("busy"), "").unwrap();
    plane.apply(&with_variable(&fixture, 2, "CITY", "Oslo")).await.unwrap();
    until_it_drains(&fixture, &plane).await;
    let mut unknown = with_variable(&fixture, 3, "CITY", "Oslo");
    unknown.spec.runtime_version = "9.9.9".into();
    plane.apply(&unknown).await.unwrap();
    fixture.until(&plane, |seen| trouble(seen, "runtime").is_some()).await;
    eventually(|| !fixture.place().drain().exists()).await;
}

#[tokio::test]
async fn discarded_workers_finish_before_another_executor_runs_their_tasks() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open_with(|options, _| {
        options.broker = Broker::Given(Secret::new("redis://127.0.0.1:1/0".into()));
    });
    let mut environment = fixture.environment(1);
    environment.spec.worker_queues = vec![queue("default", 1), queue("heavy", 1)];
    fs::write(fixture.path("told").join("working"), "").unwrap();
    fixture.set_script(
        "celery",
        "touch \"$PODIUM_STATUS/$PODIUM_COMPONENT.progress\"; trap '' TERM; \
         while [ -e \"$told/working\" ]; do sleep 0.02; done; exit 0",
    );
    fixture.bring_up(&plane, &environment).await;
    let before = fixture.processes();
    assert!(before.contains_key("worker-heavy"), "{before:?}");
    let mut changed = fixture.environment(2);
    changed.spec.executor = Executor::Kubernetes;
    plane.apply(&changed).await.unwrap();
    fixture
        .until(&plane, |seen| trouble(seen, "scheduler").is_some_and(|why| why.contains("workers to finish")))
        .await;
    assert!(before["scheduler"].is_alive() && before["worker-heavy"].is_alive());
    fixture.clear_script("working");
    fixture.bring_up(&plane, &changed).await;
    assert!(!before["scheduler"].is_alive() && !before["worker-heavy"].is_alive());
    assert_eq!(fixture.starts("scheduler").len(), 2);
}

#[tokio::test]
async fn a_broker_is_replaced_once_all_its_workers_have_ended() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let open = |name: &str| {
        let broker = fixture.broker(name, "");
        fixture.open_with(|options, _| options.broker = Broker::Own(broker))
    };
    let wanted = |generation, city| {
        let mut environment = with_variable(&fixture, generation, "CITY", city);
        environment.spec.worker_queues = vec![queue("default", 1), queue("heavy", 1)];
        environment
    };
    for worker in ["worker-default", "worker-heavy"] {
        fs::write(fixture.path("told").join(worker), "").unwrap();
    }
    fixture.set_script(
        "celery",
        "touch \"$PODIUM_STATUS/$PODIUM_COMPONENT.progress\"; trap '' TERM; \
         while [ -e \"$told/$PODIUM_COMPONENT\" ]; do sleep 0.02; done; exit 0",
    );
    let plane = open("older-broker");
    fixture.bring_up(&plane, &wanted(1, "Oslo")).await;
    let before = fixture.processes();
    drop(plane);
    let plane = open("newer-broker");
    plane.apply(&wanted(2, "Rome")).await.unwrap();
    fixture
        .until(&plane, |seen| trouble(seen, "worker-heavy").is_some_and(|why| why.contains("exiting")))
        .await;
    fixture.clear_script("worker-default");
    fixture
        .until(&plane, |seen| trouble(seen, "worker-default").is_some_and(|why| why.contains("broker")))
        .await;
    assert!(!before["worker-default"].is_alive());
    for name in ["broker", "scheduler", "worker-heavy"] {
        assert!(before[name].is_alive(), "{name}");
    }
    assert_eq!(fixture.starts("celery").len(), 2, "a newer one has nobody to listen to yet");
    // Those that come next work as usual.
    fixture.clear_script("celery");
    fixture.clear_script("worker-heavy");
    fixture.bring_up(&plane, &wanted(2, "Rome")).await;
    let now = fixture.processes();
    assert_eq!(now.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    for name in ["broker", "scheduler", "worker-default", "worker-heavy"] {
        assert!(now[name] != before[name] && !before[name].is_alive(), "{name}");
    }
    assert_eq!((fixture.starts("celery").len(), fixture.starts("scheduler").len()), (4, 2));
}

#[tokio::test]
async fn hibernating_and_changing_the_runtime_wait_for_tasks_too() {
    let fixture = Fixture::new().with_runtime("3.3.1").with_runtime("3.3.2");
    let plane = fixture.open();
    let wanted = |generation, version: &str, is_hibernating| {
        let mut environment = fixture.environment(generation);
        environment.spec.runtime_version = version.into();
        environment.is_hibernating = is_hibernating;
        environment
    };
    fixture.bring_up(&plane, &wanted(1, "3.3.1", false)).await;
    let before = fixture.processes();
    fs::write(fixture.path("told").join("busy"), "").unwrap();
    plane.apply(&wanted(2, "3.3.2", false)).await.unwrap();
    assert!(until_it_drains(&fixture, &plane).await.contains("before changing the runtime"));
    plane.apply(&wanted(3, "3.3.1", true)).await.unwrap();
    fixture
        .until(&plane, |seen| trouble(seen, "scheduler").is_some_and(|why| why.contains("hibernating")))
        .await;
    assert!(before.values().all(crate::local::identity::Identity::is_alive));
    fixture.clear_script("busy");
    let seen = fixture.until(&plane, |seen| seen.rollout == Rollout::Done).await;
    assert!(seen.is_hibernating);
    fixture.bring_up(&plane, &wanted(4, "3.3.1", false)).await;
    assert!(!fixture.place().drain().exists());
}

#[tokio::test]
async fn a_new_web_server_takes_over_without_a_refused_request() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    let address = plane.web_server(&fixture.at()).await.unwrap().unwrap().upstream.to_string();
    let is_over = Arc::new(AtomicBool::new(false));
    let asking = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let mut answered = 0;
            while !is_over.load(Ordering::Relaxed) {
                let mut stream = TcpStream::connect(&address).unwrap();
                stream
                    .write_all(b"GET /airflow/calm-river-1234/api/v2/monitor/health HTTP/1.0\r\n\r\n")
                    .unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
                answered += 1;
            }
            answered
        }
    });
    fixture.set_script("api-server", "while [ ! -e \"$told/go\" ]; do sleep 0.01; done");
    let key = "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG";
    plane.apply(&with_variable(&fixture, 2, key, "7")).await.unwrap();
    fixture
        .until(&plane, |seen| trouble(seen, "apiserver").is_some_and(|why| why.contains("replacement")))
        .await;
    eventually(|| fixture.starts("api-server").len() == 2).await;
    assert!(before["apiserver"].is_alive(), "it serves until the newer one does");
    assert!(plane.web_server(&fixture.at()).await.unwrap().is_some());
    fs::write(fixture.path("told").join("go"), "").unwrap();
    fixture.bring_up(&plane, &with_variable(&fixture, 2, key, "7")).await;
    assert!(!before["apiserver"].is_alive());
    is_over.store(true, Ordering::Relaxed);
    assert!(asking.join().unwrap() > 0);
}

#[tokio::test]
async fn a_web_server_that_cannot_be_replaced_keeps_serving() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    fixture.set_script("api-server", "echo ValueError: no such setting; exit 1");
    let key = "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG";
    plane.apply(&with_variable(&fixture, 2, key, "x")).await.unwrap();
    let seen = fixture
        .until(&plane, |seen| detail(seen, "apiserver").is_some_and(|why| why.contains("no such setting")))
        .await;
    assert_eq!(seen.rollout, Rollout::Underway);
    assert!(before["apiserver"].is_alive() && plane.web_server(&fixture.at()).await.unwrap().is_some());
    fixture.clear_script("api-server");
    fixture.bring_up(&plane, &fixture.environment(3)).await;
    assert!(!before["apiserver"].is_alive(), "somebody else took its place");
}
