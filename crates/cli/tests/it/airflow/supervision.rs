//! Environments stay up: over restarts of the control plane and of the machine, when components die or hang, and while
//! their settings change.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::world::{Environment, World};

const COMPONENTS: [&str; 4] = ["apiserver", "scheduler", "dag-processor", "triggerer"];

/// After a restart of the control plane whatever dies is started again.
pub(super) fn components_are_supervised_after_a_restart(world: &mut World, environment: &Environment) {
    world.say("after a restart of the control plane every component that dies is started again");
    world.crash();
    world.serve();
    let before = world.processes(environment);
    for component in COMPONENTS {
        signal("KILL", pid(&before, component));
    }
    world.wait_until("every component runs again", || {
        let now = world.processes(environment);
        COMPONENTS.iter().all(|component| now[component].is_object() && now[component] != before[component])
    });
    world.wait_for_status(environment, "HEALTHY");
    assert_eq!(world.airflow(environment, "GET", "/dags", None).status, 200);
}

/// After a restart of the machine nothing runs, and what was a process is somebody else's number.
pub(super) fn environments_come_back_after_a_reboot(world: &mut World, environment: &Environment) {
    world.say("after a restart of the machine environments come back by themselves");
    world.stop();
    world.kill_environments();
    world.wait_until("nothing runs", || world.descendants(environment).is_empty());
    let path = format!("{}/state.json", world.place(environment));
    let mut state: Value = serde_json::from_slice(&fs::read(&path).expect("it is remembered")).expect("JSON");
    for process in state["processes"].as_object_mut().expect("processes").values_mut() {
        process["identity"]["boot"] = json!("another start of the machine");
        process["identity"]["pid"] = json!(1);
    }
    fs::write(&path, state.to_string()).expect("it is ours");
    world.serve();
    world.wait_until("its own web server answers", || {
        world.airflow(environment, "GET", "/dags", None).status == 200
    });
    world.wait_for_status(environment, "HEALTHY");
}

/// What runs and does nothing is not alive.
pub(super) fn what_hangs_is_started_again(world: &World, environment: &Environment) {
    world.say("components that hang are started again, and their logs say why");
    let before = world.processes(environment);
    for component in ["apiserver", "scheduler"] {
        signal("STOP", pid(&before, component));
    }
    world.wait_until("both run again", || {
        let now = world.processes(environment);
        ["apiserver", "scheduler"]
            .iter()
            .all(|component| now[component].is_object() && now[component] != before[component])
    });
    world.wait_for_status(environment, "HEALTHY");
    for source in ["apiserver", "scheduler"] {
        world.wait_until("the history is in the log", || {
            let path = format!("/logs?sources={source}&searchText=%22was%20killed%20after%22");
            world.of(environment, "GET", &path, None).json()["resultCount"] != 0
        });
    }
}

/// A change of settings waits for running tasks, refuses no request meanwhile, and repeats nothing.
pub(super) fn changes_do_not_hurt_what_runs(world: &World, environment: &Environment, version: &str) {
    world.say("a change of settings neither kills nor repeats a running task");
    let greetings = format!("\"greetings-{version}\"");
    let (so_far, before) = (world.count_lines(environment, &greetings), world.processes(environment));
    let run = world.trigger(environment);
    world.wait_for_lines(environment, &greetings, so_far + 1);
    world.set_variables(
        environment,
        &json!([
            { "key": "CITY", "isSecret": true },
            { "key": "COLOUR", "value": "blue", "isSecret": false },
            { "key": "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG", "value": "7", "isSecret": false },
        ]),
    );
    world.wait_until("a newer api-server serves, and the scheduler waits", || {
        let answer = world.airflow(environment, "GET", "/dags", None);
        assert_eq!(answer.status, 200, "no request is refused");
        let now = world.processes(environment);
        let reason = world.of(environment, "GET", "", None).json()["statusReason"].clone();
        let waits = reason
            .as_str()
            .is_some_and(|why| why.contains("waiting for running tasks to finish before restarting"));
        let is_replaced = now["apiserver"] != before["apiserver"] && now["apiserver-retiring"].is_null();
        waits && is_replaced && now["dag-processor"] != before["dag-processor"]
    });
    assert_eq!(world.processes(environment)["scheduler"], before["scheduler"], "its task runs");
    world.let_go(environment);
    world.wait_for_run(environment, &run);
    world.wait_for_status(environment, "HEALTHY");
    assert_ne!(world.processes(environment)["scheduler"], before["scheduler"]);
    world.wait_for_lines(environment, &greetings, so_far + 1);
}

pub(super) fn pid(processes: &Value, component: &str) -> u64 {
    processes[component]["identity"]["pid"].as_u64().unwrap_or_else(|| panic!("{component}: {processes}"))
}

pub(super) fn signal(name: &str, pid: u64) {
    assert!(
        Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().expect("kill").success()
    );
}
