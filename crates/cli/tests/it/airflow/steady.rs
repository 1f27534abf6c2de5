//! Runs that are due every ten seconds, through everything that starts an environment again: none fails, and none loses
//! an attempt.

use serde_json::{Value, json};

use super::dag;
use super::project::is_told;
use super::supervision::{pid, signal};
use super::world::{Environment, World};

/// Nothing of it is tried twice: what loses an attempt fails.
const TICKS: &str = r#"
from datetime import datetime, timedelta


@dag(
    schedule=timedelta(seconds=10),
    start_date=datetime(2024, 1, 1),
    catchup=False,
    is_paused_upon_creation=False,
    max_active_runs=16,
)
def ticks():
    @task(retries=0)
    def tick():
        print("tick")

    tick()


ticks()
"#;

pub(super) fn scheduled_runs_lose_no_attempt() {
    let mut world = World::new();
    world.serve();
    let environment = world.create("steady", &json!({ "isDevelopmentMode": true }));
    world.wait_for_status(&environment, "HEALTHY");
    world.deploy(&environment, &format!("{}{TICKS}", dag("one", &[])));
    goes_on(&world, &environment);

    for name in ["KILL", "STOP"] {
        world.say(&format!("the web server gets a {name} while a task runs"));
        let run = begin(&world, &environment);
        let before = world.processes(&environment);
        signal(name, pid(&before, "apiserver"));
        world.wait_until("another web server runs", || {
            let now = world.processes(&environment);
            now["apiserver"].is_object() && now["apiserver"] != before["apiserver"]
        });
        world.let_go(&environment);
        world.wait_for_status(&environment, "HEALTHY");
        world.wait_for_run(&environment, &run);
        is_told(&world, &environment, "hello", &run, &["dag_run.started", "dag_run.succeeded"]);
        assert_eq!(world.processes(&environment)["scheduler"], before["scheduler"]);
        goes_on(&world, &environment);
    }

    survives_a_reboot(&mut world, &environment);

    world.say("it hibernates and wakes up");
    world.hibernate(&environment, true);
    world.wait_for_status(&environment, "HIBERNATING");
    world.hibernate(&environment, false);
    world.wait_for_status(&environment, "HEALTHY");
    goes_on(&world, &environment);

    world.say("it is restored elsewhere from a backup that was made while it ran");
    let file = world.directory().join("backup");
    let made = world.command(&["backup", file.to_str().expect("text")]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    world.lose_power();
    let mut restored = World::new();
    let done = restored.command(&["restore", file.to_str().expect("text")]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    restored.serve();
    restored.wait_for_status(&environment, "HEALTHY");
    goes_on(&restored, &environment);
    restored.delete(&environment);
    restored.stop();
}

/// Celery's workers outlive a scheduler, but not the machine.
pub(super) fn tasks_of_workers_lose_no_attempt() {
    let mut world = World::new();
    world.serve();
    let queue = |name: &str| {
        json!({ "name": name, "isDefault": name == "default", "maxWorkerCount": 1, "minWorkerCount": 1,
                "workerConcurrency": 4, "platformMachine": "A5" })
    };
    let queues = json!([queue("default"), queue("heavy")]);
    let settings = json!({ "isDevelopmentMode": true, "executor": "CELERY", "workerQueues": queues });
    let environment = world.create("workers", &settings);
    world.wait_for_status(&environment, "HEALTHY");
    let processes = world.processes(&environment);
    assert!(processes["worker-default"].is_object(), "this test needs redis-server: {processes:#}");
    world.deploy(&environment, &format!("{}{TICKS}", dag("one", &[])));
    goes_on(&world, &environment);

    world.say("the scheduler is killed while a worker runs a task: that goes on");
    let run = begin(&world, &environment);
    let before = world.processes(&environment);
    signal("KILL", pid(&before, "scheduler"));
    world.wait_until("another scheduler runs", || {
        let now = world.processes(&environment);
        now["scheduler"].is_object() && now["scheduler"] != before["scheduler"]
    });
    goes_on(&world, &environment);
    world.let_go(&environment);
    world.wait_for_run(&environment, &run);
    is_told(&world, &environment, "hello", &run, &["dag_run.started", "dag_run.succeeded"]);
    assert_eq!(world.processes(&environment)["worker-default"], before["worker-default"]);

    survives_a_reboot(&mut world, &environment);

    world.say("the server is stopped right after the deployment was deleted: nothing of it runs on");
    assert_eq!(world.of(&environment, "DELETE", "", None).status, 204);
    world.stop();
    assert_eq!(world.kill_environments(), 0);
}

fn survives_a_reboot(world: &mut World, environment: &Environment) {
    world.say("the machine restarts while a task runs: it is interrupted, and done again");
    let run = begin(world, environment);
    world.lose_power();
    world.let_go(environment);
    world.serve();
    world.wait_for_status(environment, "HEALTHY");
    goes_on(world, environment);
    world.wait_for_run(environment, &run);
    let told = ["dag_run.started", "task.interrupted", "dag_run.succeeded"];
    is_told(world, environment, "hello", &run, &told);
}

/// Starts a run whose task waits, and waits until it does.
fn begin(world: &World, environment: &Environment) -> String {
    let so_far = world.count_lines(environment, "\"greetings-one\"");
    let run = world.trigger(environment);
    world.wait_for_lines(environment, "\"greetings-one\"", so_far + 1);
    run
}

/// Waits until further runs have ended well, and sees that none has ever failed or was tried without being interrupted.
fn goes_on(world: &World, environment: &Environment) {
    let ask = |path: &str| {
        let answer = world.airflow(environment, "GET", &format!("/dags/ticks/dagRuns{path}"), None);
        serde_json::from_slice::<Value>(&answer.body).unwrap_or_default()
    };
    let count = |state: &str| ask(&format!("?state={state}&limit=1"))["total_entries"].as_u64();
    world.wait_until("the web server counts runs", || count("success").is_some());
    let so_far = count("success").expect("it has counted");
    world.wait_until("runs go on", || count("success") >= Some(so_far + 3));
    assert_eq!(count("failed"), Some(0), "{:#}", ask("?state=failed"));
    let tasks = ask("/~/taskInstances?state=success&limit=100");
    for task in tasks["task_instances"].as_array().expect("a list") {
        let (tried, most) = (task["try_number"].as_u64(), task["max_tries"].as_u64());
        assert_eq!(
            tried,
            most.map(|most| most + 1),
            "each attempt beyond the first was given back: {task:#}"
        );
    }
}
