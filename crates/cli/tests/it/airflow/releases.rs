//! Strict deploys, and waits for running tasks that are ended, on both lines of Apache Airflow.

use serde_json::{Value, json};

use super::dag;
use super::world::{Environment, World};

/// The same DAG with an import that fails in its fourth line.
fn broken() -> String {
    format!("\n\n\nimport nothing_of_this_name\n{}", dag("two", &[]))
}

pub(super) fn strict_deploys_and_forced_drains() {
    let mut world = World::new();
    world.serve();
    for version in ["3.3.2", "2.11.2"] {
        world.say(&format!("strict deploys on {version}"));
        let environment = world.create(version, &json!({ "platformRuntimeVersion": version }));
        world.wait_for_status(&environment, "HEALTHY");
        a_strict_first_deploy_must_be_imported(&world, &environment);
        let first = world.deploy(&environment, &dag("one", &[]));
        a_strict_deploy_that_breaks_a_dag_fails(&world, &environment);
        // The web server of Airflow 2 may answer 503 while its successor starts, and runs are not accepted then.
        if version.starts_with('3') {
            a_drain_names_its_tasks_and_can_be_ended(&world, &environment);
        }
        world.say("a rollback marks what it goes back from");
        let second = world.deploy(&environment, &dag("three", &[]));
        world.roll_back(&environment, &first);
        let shown = world.of(&environment, "GET", &format!("/deploys/{second}"), None).json();
        assert!(shown["rolledBackById"].is_string(), "{shown:#}");
        world.delete(&environment);
    }
    world.stop();
}

fn a_strict_deploy_that_breaks_a_dag_fails(world: &World, environment: &Environment) {
    let before = (world.processes(environment), world.of(environment, "GET", "", None).json());
    let strict = json!({ "strict": true });
    let (id, _) = world.finalize_with(environment, &[("dags/hello.py", &broken())], &strict);
    let report = world.report(environment, &id);
    assert_eq!(report["state"], "FAILED", "{report:#}");
    let reason = report["reason"].as_str().expect("a reason");
    let named =
        "hello.py, line 4: ModuleNotFoundError: No module named 'nothing_of_this_name' (breaks hello)";
    assert!(reason.starts_with("the deploy is strict") && reason.ends_with(named), "{reason}");
    let [error] = &report["importErrors"].as_array().expect("a list")[..] else { panic!("{report:#}") };
    assert_eq!((&error["file"], &error["line"]), (&json!("hello.py"), &json!(4)), "{error:#}");
    assert_eq!(error["dagIds"], json!(["hello"]), "{error:#}");
    let operation = world.operations(environment, "kinds=DEPLOY&states=FAILED")[0].clone();
    assert_eq!(operation["failure"]["reason"], report["reason"], "{operation:#}");
    let now = world.wait_for_status(environment, "HEALTHY");
    assert_eq!(now["dagTarballVersion"], before.1["dagTarballVersion"]);
    assert_eq!(world.processes(environment), before.0, "nothing was restarted");
    world.run_to_the_end(environment);

    world.say("a strict deploy with a new file that is broken fails, and goes live once the live version has it, too");
    let (one, new) = (dag("one", &[]), broken().replace("hello", "other"));
    let files = [("dags/hello.py", one.as_str()), ("dags/new.py", new.as_str())];
    for (more, state) in [(&strict, "FAILED"), (&json!({}), "LIVE"), (&strict, "LIVE")] {
        let (id, _) = world.finalize_with(environment, &files, more);
        let report = world.report(environment, &id);
        assert_eq!((&report["state"], &report["importErrorCount"]), (&json!(state), &json!(1)), "{report:#}");
        world.wait_for_status(environment, "HEALTHY");
    }
}

/// A first deploy has nothing to break, and yet must be imported if it is strict.
fn a_strict_first_deploy_must_be_imported(world: &World, environment: &Environment) {
    let strict = json!({ "strict": true });
    let (id, _) = world.finalize_with(environment, &[("dags/hello.py", &broken())], &strict);
    let report = world.report(environment, &id);
    assert_eq!(report["state"], "FAILED", "{report:#}");
    let now = world.wait_for_status(environment, "HEALTHY");
    assert_eq!(now.get("dagTarballVersion"), None, "{now:#}");
    let (id, _) = world.finalize_with(environment, &[("dags/hello.py", &dag("one", &[]))], &strict);
    let report = world.report(environment, &id);
    assert_eq!((&report["state"], &report["importErrorCount"]), (&json!("LIVE"), &json!(0)), "{report:#}");
    world.wait_for_status(environment, "HEALTHY");
}

fn a_drain_names_its_tasks_and_can_be_ended(world: &World, environment: &Environment) {
    world.say("a change waits for a running task, accepts runs meanwhile, and goes on when it is forced");
    let greetings = "\"greetings-one\"";
    let (so_far, before) = (world.count_lines(environment, greetings), world.processes(environment));
    let run = world.trigger(environment);
    world.wait_for_lines(environment, greetings, so_far + 1);
    what_runs_is_observed(world, environment, &format!("hello/{run}/greet"));
    world.set_variables(environment, &json!([{ "key": "COLOUR", "value": "blue", "isSecret": false }]));
    let running = || world.operations(environment, "kinds=UPDATE&states=RUNNING");
    let names = |operation: &Value| {
        let tasks = operation["progress"]["waitsFor"].as_array().into_iter().flatten();
        tasks.filter_map(Value::as_str).any(|task| task == format!("hello/{run}/greet"))
    };
    world.wait_until("the operation names the task", || running().first().is_some_and(names));
    let operation = running()[0].clone();
    assert_eq!(
        operation["steps"].as_array().and_then(|steps| steps.last()).expect("a step")["name"],
        "DRAIN"
    );
    let accepted = world.trigger(environment);
    assert_eq!(world.processes(environment)["scheduler"], before["scheduler"], "it waits");
    assert!(world.force(&operation)["forcedAt"].is_string());
    world.wait_for_status(environment, "HEALTHY");
    assert_ne!(world.processes(environment)["scheduler"], before["scheduler"]);
    world.let_go(environment);
    world.wait_for_run(environment, &accepted);
}

fn what_runs_is_observed(world: &World, environment: &Environment, task: &str) {
    let drain = world.planned_drain(environment);
    assert_eq!((&drain["names"], &drain["count"]), (&json!([task]), &json!(1)), "{drain:#}");
    let of = format!("/deployment-processes?deploymentIds={}", environment.id);
    let shown = world.call("GET", &of, None).json()["deploymentProcesses"][0].clone();
    let processes = shown["processes"].as_array().expect("a list");
    let scheduler = processes.iter().find(|it| it["name"] == "scheduler").expect("there is one");
    assert_eq!((&scheduler["isUp"], &scheduler["restarts"]), (&json!(true), &json!(0)), "{shown:#}");
    assert!(scheduler["memoryBytes"].as_u64() > Some(1 << 20) && scheduler["startedAt"].is_string());
}
