//! Nothing that starts or runs tasks runs before what its tasks need answers, whenever and why ever it is started: each
//! task would lose an attempt.

use std::fs;

use podium_domain::deployments::plan::Rollout;

use super::fixture::{Fixture, eventually, kill, trouble};
use super::replacing::with_variable;
use crate::local::identity::Identity;
use crate::local::tasks::tests::queue;
use crate::local::{AirflowDatabase, Broker, Local};
use crate::{DataPlane as _, Environment, Secret};

const WAITS_FOR_API: &str = "waiting for the web server to answer requests of tasks";
const WAITS_FOR_BROKER: &str = "waiting for the broker to answer";

/// Lets web servers serve only once there is a file.
fn hold_web_server(fixture: &Fixture) {
    let _ = fs::remove_file(fixture.path("told").join("go"));
    fixture.set_script("api-server", "while [ ! -e \"$told/go\" ]; do sleep 0.01; done");
}

fn let_web_server_go(fixture: &Fixture) {
    fs::write(fixture.path("told").join("go"), "").unwrap();
}

/// Waits until everything else was started so often, and sees that the scheduler was not.
async fn until_only_it_waits(fixture: &Fixture, plane: &Local, others: usize, schedulers: usize) {
    // It is started after the scheduler.
    eventually(|| fixture.starts("triggerer").len() == others).await;
    assert_eq!(fixture.starts("scheduler").len(), schedulers);
    fixture.until(plane, |seen| trouble(seen, "scheduler").as_deref() == Some(WAITS_FOR_API)).await;
    assert_eq!((fixture.starts("scheduler").len(), fixture.leaders("scheduler")), (schedulers, 0));
}

#[tokio::test]
async fn a_first_start_waits_for_the_web_server_and_then_for_its_task_api() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    hold_web_server(&fixture);
    fs::write(fixture.path("told").join("no-task-api"), "").unwrap();
    let plane = fixture.open();
    plane.apply(&fixture.environment(1)).await.unwrap();
    until_only_it_waits(&fixture, &plane, 1, 0).await;
    let_web_server_go(&fixture);
    let is_said = |why: String| why == "its task API returned status 503";
    let seen = fixture.until(&plane, |seen| trouble(seen, "apiserver").is_some_and(is_said)).await;
    assert_eq!(trouble(&seen, "scheduler").as_deref(), Some(WAITS_FOR_API));
    assert_eq!(fixture.starts("scheduler").len(), 0);
    fixture.clear_script("no-task-api");
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert_eq!(fixture.starts("scheduler").len(), 1);
}

#[tokio::test]
async fn so_does_the_start_after_a_reboot() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    drop(plane);
    before.values().for_each(kill);
    eventually(|| !before.values().any(Identity::is_alive)).await;
    hold_web_server(&fixture);
    let plane = fixture.open();
    plane.apply(&fixture.environment(1)).await.unwrap();
    until_only_it_waits(&fixture, &plane, 2, 1).await;
    let_web_server_go(&fixture);
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert_eq!(fixture.starts("scheduler").len(), 2);
}

#[tokio::test]
async fn so_does_waking_up() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    plane.apply(&Environment { is_hibernating: true, ..fixture.environment(2) }).await.unwrap();
    fixture.until(&plane, |seen| seen.is_hibernating && seen.rollout == Rollout::Done).await;
    hold_web_server(&fixture);
    plane.apply(&fixture.environment(3)).await.unwrap();
    until_only_it_waits(&fixture, &plane, 2, 1).await;
    let_web_server_go(&fixture);
    fixture.bring_up(&plane, &fixture.environment(3)).await;
    assert_eq!(fixture.starts("scheduler").len(), 2);
}

#[tokio::test]
async fn so_does_another_runtime() {
    let fixture = Fixture::new().with_runtime("3.3.1").with_runtime("3.3.2");
    let plane = fixture.open();
    let with_runtime = |generation, version: &str| {
        let mut environment = fixture.environment(generation);
        environment.spec.runtime_version = version.into();
        environment
    };
    fixture.bring_up(&plane, &with_runtime(1, "3.3.1")).await;
    hold_web_server(&fixture);
    plane.apply(&with_runtime(2, "3.3.2")).await.unwrap();
    until_only_it_waits(&fixture, &plane, 2, 1).await;
    let_web_server_go(&fixture);
    fixture.bring_up(&plane, &with_runtime(2, "3.3.2")).await;
}

#[tokio::test]
async fn so_does_a_scheduler_that_dies_together_with_the_web_server() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    hold_web_server(&fixture);
    kill(&before["apiserver"]);
    fixture.until(&plane, |seen| trouble(seen, "apiserver").is_some()).await;
    kill(&before["scheduler"]);
    let waits = |why: String| why.starts_with("it exited");
    fixture.until(&plane, |seen| trouble(seen, "scheduler").is_some_and(waits)).await;
    // This one is started after it.
    kill(&before["triggerer"]);
    eventually(|| fixture.starts("triggerer").len() == 2).await;
    assert_eq!(fixture.starts("scheduler").len(), 1);
    let_web_server_go(&fixture);
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert_eq!(fixture.starts("scheduler").len(), 2);
}

#[tokio::test]
async fn a_scheduler_keeps_running_while_the_web_server_is_away() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    hold_web_server(&fixture);
    kill(&before["apiserver"]);
    eventually(|| fixture.starts("api-server").len() == 2).await;
    let_web_server_go(&fixture);
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert_eq!(fixture.processes()["scheduler"], before["scheduler"], "its tasks wait");
}

#[tokio::test]
async fn a_replaced_scheduler_does_not_wait_for_the_newer_web_server_while_the_older_one_serves() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    hold_web_server(&fixture);
    let changed = with_variable(&fixture, 2, "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG", "7");
    plane.apply(&changed).await.unwrap();
    eventually(|| fixture.starts("scheduler").len() == 2).await;
    assert!(!fixture.path("told").join("go").exists() && fixture.leaders("apiserver") == 2);
    let_web_server_go(&fixture);
    fixture.bring_up(&plane, &changed).await;
}

#[tokio::test]
async fn a_scheduler_waits_for_the_web_server_even_while_the_next_state_cannot_be_prepared() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let in_the_way = fixture.place().code().join("dags/current.draft");
    fs::create_dir(&in_the_way).unwrap();
    let mut environment = fixture.environment(2);
    environment.spec.release.dag_version = Some("second".into());
    plane.apply(&environment).await.unwrap();
    fixture.until(&plane, |seen| trouble(seen, "code").is_some()).await;
    hold_web_server(&fixture);
    let before = fixture.processes();
    kill(&before["apiserver"]);
    eventually(|| !before["apiserver"].is_alive()).await;
    for name in ["scheduler", "triggerer"] {
        kill(&before[name]);
    }
    eventually(|| fixture.starts("triggerer").len() == 2 && fixture.starts("api-server").len() == 2).await;
    assert_eq!(fixture.starts("scheduler").len(), 1);
    let_web_server_go(&fixture);
    eventually(|| fixture.starts("scheduler").len() == 2).await;
    fs::remove_dir(in_the_way).unwrap();
    fixture.bring_up(&plane, &environment).await;
}

fn with_queues(fixture: &Fixture, version: &str) -> Environment {
    let mut environment = fixture.environment(1);
    environment.spec.worker_queues = vec![queue("default", 1), queue("heavy", 1)];
    environment.spec.runtime_version = version.into();
    environment
}

#[tokio::test]
async fn workers_wait_for_the_web_server_too() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    hold_web_server(&fixture);
    let plane = fixture.open_with(|options, _| {
        options.broker = Broker::Given(Secret::new("redis://127.0.0.1:1/0".into()));
    });
    let environment = with_queues(&fixture, "3.3.2");
    plane.apply(&environment).await.unwrap();
    until_only_it_waits(&fixture, &plane, 1, 0).await;
    fixture.until(&plane, |seen| trouble(seen, "worker-heavy").as_deref() == Some(WAITS_FOR_API)).await;
    assert_eq!(fixture.starts("celery").len(), 0);
    let_web_server_go(&fixture);
    fixture.bring_up(&plane, &environment).await;
    assert_eq!((fixture.starts("scheduler").len(), fixture.starts("celery").len()), (1, 2));
}

#[tokio::test]
async fn both_wait_for_the_broker_in_either_line() {
    for version in ["3.3.2", "2.11.2"] {
        let fixture = Fixture::new().with_runtime(version);
        let broker = fixture.broker("redis", "while [ ! -e \"$told/broker\" ]; do sleep 0.01; done");
        let plane = fixture.open_with(|options, _| {
            options.broker = Broker::Own(broker);
            // Without a server the older line runs one task at a time.
            let server = Secret::new("postgres://admin@127.0.0.1:1/postgres".into());
            options.database = AirflowDatabase::Server(server);
        });
        let environment = with_queues(&fixture, version);
        plane.apply(&environment).await.unwrap();
        eventually(|| fixture.starts("triggerer").len() == 1).await;
        for name in ["scheduler", "worker-default", "worker-heavy"] {
            fixture.until(&plane, |seen| trouble(seen, name).as_deref() == Some(WAITS_FOR_BROKER)).await;
        }
        assert_eq!((fixture.starts("scheduler").len(), fixture.starts("celery").len()), (0, 0));
        fs::write(fixture.path("told").join("broker"), "").unwrap();
        fixture.bring_up(&plane, &environment).await;
        assert_eq!((fixture.starts("scheduler").len(), fixture.starts("celery").len()), (1, 2));
    }
}

#[tokio::test]
async fn a_new_scheduler_is_told_since_when_there_have_been_workers() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let broker = fixture.broker("redis", "");
    let open = || fixture.open_with(|options, _| options.broker = Broker::Own(broker.clone()));
    let told = || -> serde_json::Value {
        serde_json::from_slice(&fs::read(fixture.place().workers()).unwrap()).unwrap()
    };
    let plane = open();
    let environment = with_queues(&fixture, "3.3.2");
    fixture.bring_up(&plane, &environment).await;
    let before_there_were_any = told();
    let kept = fixture.processes();
    kill(&kept["scheduler"]);
    eventually(|| fixture.starts("scheduler").len() == 2).await;
    let since = |name: &str| serde_json::json!(kept[name].since_boot().as_secs_f64());
    let with_those_that_stayed = serde_json::json!({
        "workers": { "default": since("worker-default"), "heavy": since("worker-heavy") },
        "broker": since("broker"),
    });
    assert_eq!(told(), with_those_that_stayed);
    fixture.bring_up(&plane, &environment).await;
    drop(plane);
    // As after a reboot.
    fixture.processes().values().for_each(kill);
    let plane = open();
    fixture.bring_up(&plane, &environment).await;
    for told in [&before_there_were_any, &told()] {
        let whole = |value: &serde_json::Value| value.as_f64().is_some_and(|seconds| seconds.fract() == 0.0);
        let all = [&told["workers"]["default"], &told["workers"]["heavy"]];
        assert!(all.into_iter().all(whole), "there were none, so that it is the time of the start: {told}");
    }
}
