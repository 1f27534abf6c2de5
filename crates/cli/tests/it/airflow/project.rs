//! A project with modules, a plugin and packages, on both lines of Apache Airflow.

use serde_json::{Value, json};

use super::world::{Environment, World};

/// Uses a module of the project, a package and a provider.
const DAG: &str = r#"
import cowsay
from airflow.decorators import dag, task
from airflow.providers.ssh.hooks.ssh import SSHHook

from include.greetings import greeting


@dag(schedule=None)
def hello():
    @task
    def greet():
        print("project-says", greeting(), cowsay.__name__, SSHHook.__name__)

    greet()


hello()
"#;

/// Its task is tried twice, and fails both times.
const FAILS: &str = r#"
from datetime import timedelta

from airflow.decorators import dag, task


@dag(schedule=None)
def fails():
    @task(retries=1, retry_delay=timedelta(seconds=0))
    def stumble():
        raise ValueError("as it should")

    stumble()


fails()
"#;

/// The line of the broken import is the second one.
const BROKEN: &str = "from airflow import DAG\nimport nothing_of_this_name\n";

const PLUGIN: &str = r#"
from airflow.plugins_manager import AirflowPlugin

from include.greetings import greeting


class Greeter(AirflowPlugin):
    name = f"greeter_{greeting()}"
"#;

const REQUIREMENTS: &str = "apache-airflow-providers-ssh  # a provider\ncowsay>=6,<7\n";

fn files<'a>(requirements: &'a str, greeting: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![
        ("dags/fails.py", FAILS),
        ("dags/hello.py", DAG),
        ("include/__init__.py", ""),
        ("include/greetings.py", greeting),
        ("plugins/greeter.py", PLUGIN),
        ("requirements.txt", requirements),
    ]
}

const GREETING: &str = "def greeting():\n    return 'moo'\n";

pub(super) fn a_project_with_packages() {
    let mut world = World::new();
    world.serve();
    for version in ["3.3.2", "2.11.2"] {
        world.say(&format!("a project runs on {version}"));
        let environment = world.create(version, &json!({ "platformRuntimeVersion": version }));
        world.wait_for_status(&environment, "HEALTHY");
        works(&world, &environment);
        world.delete(&environment);
    }
    world.stop();
}

fn works(world: &World, environment: &Environment) {
    let (first, _) = world.finalize(environment, &files(REQUIREMENTS, GREETING));
    let report = world.report(environment, &first);
    assert_eq!((&report["state"], &report["isParsed"]), (&json!("LIVE"), &json!(true)), "{report:#}");
    assert_eq!(report["importErrors"], json!([]), "{report:#}");
    assert_eq!(report["files"]["addedCount"], 6, "{report:#}");
    assert_eq!(report["dags"]["added"], json!(["fails", "hello"]), "{report:#}");
    let steps: Vec<_> =
        report["steps"].as_array().expect("a list").iter().map(|step| step["step"].clone()).collect();
    assert!(steps.contains(&json!("PACKAGES")) && steps.contains(&json!("PARSE")), "{steps:?}");
    let before = world.processes(environment);

    world.say("a task imports the module, the package and the provider; the plugin is loaded");
    let failing = world.trigger_dag(environment, "fails");
    let run = world.trigger(environment);
    world.wait_for_run(environment, &run);
    world.wait_for_lines(environment, "\"project-says moo cowsay SSHHook\"", 1);
    let plugins = world.airflow(environment, "GET", "/plugins", None).json();
    let names: Vec<_> =
        plugins["plugins"].as_array().expect("a list").iter().map(|it| it["name"].clone()).collect();
    assert!(names.contains(&json!("greeter_moo")), "{names:?}");

    world.say("what the runs came to is an event");
    is_told(world, environment, "hello", &run, &["dag_run.started", "dag_run.succeeded"]);
    let failed = ["dag_run.started", "task.failed", "task.failed", "dag_run.failed"];
    is_told(world, environment, "fails", &failing, &failed);

    world.say("requirements that do not fit fail with the resolver's words, and the old version serves");
    let (conflict, _) = world.finalize(environment, &files("sqlalchemy==1.0.0\n", GREETING));
    let report = world.report(environment, &conflict);
    assert_eq!(report["state"], "FAILED", "{report:#}");
    let reason = report["reason"].as_str().expect("a reason");
    assert!(reason.contains("sqlalchemy==1.0.0") && reason.contains("unsatisfiable"), "{reason}");
    let shown = world.of(environment, "GET", &format!("/deploys/{conflict}"), None).json();
    assert_eq!(shown["status"], "FAILED");
    let now = world.wait_for_status(environment, "HEALTHY");
    assert_eq!(now["dagTarballVersion"], now["desiredDagTarballVersion"]);
    assert_eq!(world.processes(environment), before, "nothing was restarted");

    world.say("a broken DAG is named with its file and line, and restarts nothing");
    let mut broken = files(REQUIREMENTS, GREETING);
    broken.push(("dags/broken.py", BROKEN));
    let (broken, _) = world.finalize(environment, &broken);
    let report = world.report(environment, &broken);
    assert_eq!((&report["state"], &report["isParsed"]), (&json!("LIVE"), &json!(true)), "{report:#}");
    let [error] = &report["importErrors"].as_array().expect("a list")[..] else { panic!("{report:#}") };
    assert_eq!((&error["file"], &error["line"]), (&json!("broken.py"), &json!(2)), "{error:#}");
    assert!(error["message"].as_str().is_some_and(|it| it.contains("nothing_of_this_name")), "{error:#}");
    assert_eq!(report["files"]["added"], json!(["dags/broken.py"]), "{report:#}");
    assert_eq!(world.processes(environment), before, "DAGs change without a restart");
}

/// Waits until the events of a run are these.
pub(super) fn is_told(world: &World, environment: &Environment, dag: &str, run: &str, types: &[&str]) {
    let of_run = || {
        let page =
            world.call("GET", &format!("/events?limit=1000&deploymentId={}", environment.id), None).json();
        let events = page["events"].as_array().expect("a list").clone();
        let is_of_run = |event: &Value| event["data"]["dagRun"]["runId"] == run;
        events.into_iter().filter(is_of_run).collect::<Vec<_>>()
    };
    world.wait_until("the run is told to its end", || of_run().len() >= types.len());
    let events = of_run();
    let told: Vec<_> = events.iter().map(|event| event["type"].as_str().expect("a type")).collect();
    let expected: Vec<_> = types.iter().map(|name| format!("podium.{name}")).collect();
    assert_eq!(told, expected, "{events:#?}");
    for event in &events {
        assert_eq!(
            (&event["data"]["claimed"], &event["data"]["dagRun"]["dagId"]),
            (&json!(true), &json!(dag))
        );
    }
    let tries: Vec<_> = events.iter().map(|event| event["data"]["task"]["tryNumber"].clone()).collect();
    if types.contains(&"task.failed") {
        assert_eq!(tries, [json!(null), json!(1), json!(2), json!(null)], "{events:#?}");
    }
}
