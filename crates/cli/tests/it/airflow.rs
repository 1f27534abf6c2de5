//! Deployments that really run: Apache Airflow on this machine, from an empty data directory until nothing is left.
//!
//! Minutes of a whole machine, so plain `cargo test` leaves it out; `cargo xtask test` runs it after everything else,
//! and `cargo xtask airflow` alone. It prints what it waits for.

mod browser;
mod console;
mod developing;
mod guide;
mod neighbours;
mod operate;
mod project;
mod releases;
mod rounds;
mod runtimes;
mod steady;
mod supervision;
mod world;

use serde_json::json;

use self::world::{Environment, World};

/// Runs until it is told to go on, tells which version it is, and looks for what is not its own.
fn dag(version: &str, elsewhere: &[String]) -> String {
    let targets = elsewhere.iter().map(|path| format!("{path:?}")).collect::<Vec<_>>().join(", ");
    format!(
        r#"
import os, time

from airflow.decorators import dag, task


@dag(schedule=None)
def hello():
    @task
    def greet():
        print("greetings-{version} from", os.environ.get("CITY"))
        print("beside", os.environ.get("FJORD"))
        for path in [{targets}]:
            try:
                found = os.listdir(path) if os.path.isdir(path) else open(path).read(8)
                print("hunt-found", path, found)
            except OSError as error:
                print("hunt-refused", path, type(error).__name__)
        while not os.path.exists(os.path.join(os.environ["TMPDIR"], "go")):
            time.sleep(0.2)
        print("farewell-{version}")

    greet()


hello()
"#
    )
}

#[test]
#[ignore = "installs and runs Apache Airflow for minutes: cargo xtask airflow"]
fn deployments_really_run() {
    let mut world = World::new();
    guide::the_documents_work_as_they_are_written(&world);
    let installed = world.installed("3.");

    world.say("a second environment starts without installing anything");
    world.serve();
    world.wait_until("nothing is left of the documents' deployments", || world.places().is_empty());
    let lisbon = json!([{ "key": "CITY", "value": "Lisbon", "isSecret": true }]);
    let mut second =
        world.create("second", &json!({ "isDevelopmentMode": true, "environmentVariables": lisbon }));
    world.wait_for_status(&second, "HEALTHY");
    assert_eq!(world.installed("3."), installed, "the runtime is the one that the documents installed");
    assert!(world.has_database_server(), "PostgreSQL is installed wherever these tests run");
    if !world.has_networks(&second) {
        // What the machine lacks is in that line.
        let said = world.program().said();
        eprintln!(
            "SKIPPED: networks of environments' own: {:?}",
            said.lines().find(|line| line.contains(" isolated"))
        );
    }

    world.say("the control plane is killed in the middle of a run, and the run does not notice");
    let first_deploy = world.deploy(&second, &dag("one", &world.secrets()));
    let processes = world.processes(&second);
    let run = world.trigger(&second);
    // It is secret: the task knows it, and its log does not show it.
    world.wait_for_lines(&second, "\"greetings-one from ***\"", 1);
    assert_eq!(world.count_lines(&second, "Lisbon"), 0);
    world.crash();
    world.let_go(&second);
    world.serve();
    world.wait_for_run(&second, &run);
    project::is_told(&world, &second, "hello", &run, &["dag_run.started", "dag_run.succeeded"]);
    world.wait_for_lines(&second, "\"farewell-one\"", 1);
    world.wait_for_lines(&second, "\"greetings-one\"", 1);
    world.wait_for_status(&second, "HEALTHY");
    assert_eq!(world.processes(&second), processes, "no process was interrupted");
    assert_eq!(world.count_lines(&second, "\"hunt-found\""), 0, "nothing is found that is not its own");
    assert_eq!(world.count_lines(&second, "\"hunt-refused\""), world.secrets().len());

    world.say("a deploy, and a rollback");
    world.deploy(&second, &dag("two", &[]));
    world.run_to_the_end(&second);
    world.wait_for_lines(&second, "\"farewell-two\"", 1);
    world.roll_back(&second, &first_deploy);
    world.run_to_the_end(&second);
    world.wait_for_lines(&second, "\"farewell-one\"", 2);
    assert_eq!(world.processes(&second), processes, "code changes without a restart");

    supervision::changes_do_not_hurt_what_runs(&world, &second, "one");
    supervision::components_are_supervised_after_a_restart(&mut world, &second);
    supervision::what_hangs_is_started_again(&world, &second);
    supervision::environments_come_back_after_a_reboot(&mut world, &second);
    browser::a_person_works_in_a_browser(&world, &second, &dag("one", &[]));

    neighbours::an_environment_keeps_to_itself(&world, &second);
    another_runtime_is_another_world(&world, &second);

    world.say("hibernation stops everything and loses nothing");
    world.hibernate(&second, true);
    world.wait_for_status(&second, "HIBERNATING");
    assert_eq!(world.processes(&second), json!({}));
    assert_eq!(world.descendants(&second), Vec::<i32>::new());
    world.hibernate(&second, false);
    world.wait_for_status(&second, "HEALTHY");
    assert_eq!(world.airflow(&second, "GET", "/dags/hello/dagRuns", None).json()["total_entries"], 4);

    let saved = operate::a_running_installation_is_saved(&world, &second);
    operate::what_is_stopped_stays_stopped(&mut world, &second);
    world.say("nothing is left of a deleted deployment");
    world.remember_traces(&mut second);
    world.delete(&second);
    world.wait_until("the database server has stopped", || !world.has_database_server());
    world.stop();
    operate::what_was_saved_runs_elsewhere(saved, &second);
}

#[test]
#[ignore = "installs and runs Apache Airflow for minutes: cargo xtask airflow"]
fn an_environment_runs_on_one_of_several_nodes() {
    operate::an_environment_runs_on_one_of_several_nodes();
}

#[test]
#[ignore = "installs and runs Apache Airflow for minutes: cargo xtask airflow"]
fn scheduled_runs_lose_no_attempt() {
    steady::scheduled_runs_lose_no_attempt();
}

#[test]
#[ignore = "installs and runs Apache Airflow for minutes: cargo xtask airflow"]
fn tasks_of_workers_lose_no_attempt() {
    steady::tasks_of_workers_lose_no_attempt();
}

#[test]
#[ignore = "installs and runs Apache Airflow for minutes: cargo xtask airflow"]
fn a_project_with_packages() {
    project::a_project_with_packages();
}

#[test]
#[ignore = "installs and runs Apache Airflow for minutes: cargo xtask airflow"]
fn strict_deploys_and_forced_drains() {
    releases::strict_deploys_and_forced_drains();
}

#[test]
#[ignore = "installs and runs Apache Airflow for minutes: cargo xtask airflow"]
fn from_an_empty_machine_to_a_running_dag() {
    developing::from_an_empty_machine_to_a_running_dag();
}

#[test]
#[ignore = "installs and runs Apache Airflow for minutes: cargo xtask airflow"]
fn a_person_works_at_the_console() {
    console::a_person_works_at_the_console();
}

/// Two deployments with different runtimes and a DAG of the same name have nothing to do with each other.
fn another_runtime_is_another_world(world: &World, neighbour: &Environment) {
    world.say("an environment of the 2.x line has nothing to do with its neighbour");
    let oslo = json!([
        { "key": "CITY", "value": "Oslo", "isSecret": false },
        { "key": "FJORD", "value": "Oslofjorden", "isSecret": true },
    ]);
    let settings = json!({ "platformRuntimeVersion": "2.11.2", "environmentVariables": oslo });
    let mut other = world.create("other", &settings);
    let reason = world.wait_for_status(&other, "HEALTHY")["statusReason"].clone();
    // PostgreSQL is installed wherever these tests run, so this line runs several tasks at once, too.
    assert!(reason.as_str().unwrap().contains("LocalExecutor"), "{reason}");
    let theirs = vec![world.place(neighbour), format!("{}/database/airflow.db", world.place(neighbour))];
    world.deploy(&other, &dag("three", &theirs));
    world.run_to_the_end(&other);
    world.wait_for_lines(&other, "\"greetings-three from Oslo\"", 1);
    world.wait_for_lines(&other, "\"beside ***\"", 1);
    assert_eq!(world.count_lines(&other, "Oslofjorden"), 0);
    assert_eq!(world.count_lines(&other, "\"hunt-found\""), 0);
    assert_eq!(world.count_lines(&other, "\"hunt-refused\""), theirs.len());
    assert_eq!(world.count_lines(&other, "Lisbon"), 0);
    assert_eq!(world.count_lines(neighbour, "Oslo"), 0);
    assert_eq!(world.count_lines(neighbour, "\"greetings-three\""), 0);
    assert_ne!(world.ports(&other), world.ports(neighbour));
    world.remember_traces(&mut other);
    world.delete(&other);
}
