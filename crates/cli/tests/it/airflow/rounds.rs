//! The same again and again, because once may be luck: `cargo xtask airflow --rounds`.

use serde_json::json;

use super::world::{Environment, World};

const TASKS: usize = 4;

/// How often, unless the command says otherwise.
fn rounds(default: usize) -> usize {
    std::env::var("PODIUM_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// A DAG whose tasks say that they ran, and take a moment.
fn dag(word: &str) -> String {
    format!(
        r#"
import time

from airflow.decorators import dag, task


@dag(schedule=None, max_active_runs=16)
def hello():
    @task
    def note(number):
        print("noted-{word}")
        time.sleep(1)

    note.expand(number=list(range({TASKS})))


hello()
"#
    )
}

fn with_environment(check: impl Fn(&World, &Environment)) {
    let mut world = World::new();
    world.serve();
    for version in ["3.3.2", "2.11.2"] {
        world.say(&format!("rounds on {version}"));
        let environment = world.create(version, &json!({ "platformRuntimeVersion": version }));
        world.wait_for_status(&environment, "HEALTHY");
        check(&world, &environment);
        world.delete(&environment);
    }
    world.stop();
}

/// Updates restart what runs tasks while tasks run: none is killed, lost or run twice.
#[test]
#[ignore = "runs Apache Airflow for hours: cargo xtask airflow --rounds"]
fn updates_do_not_hurt_tasks() {
    with_environment(|world, environment| {
        world.deploy(environment, &dag("always"));
        let mut runs = Vec::new();
        for round in 0..rounds(100) {
            runs.push(world.trigger(environment));
            let so_far = world.count_lines(environment, "\"noted-always\"");
            world.wait_until("a task runs", || world.count_lines(environment, "\"noted-always\"") > so_far);
            let before = world.processes(environment);
            let value = round.to_string();
            world.set_variables(environment, &json!([{ "key": "ROUND", "value": value, "isSecret": false }]));
            world.wait_for_status(environment, "HEALTHY");
            assert_ne!(world.processes(environment)["scheduler"], before["scheduler"], "it was replaced");
            world.say(&format!("round {round}"));
        }
        for run in &runs {
            world.wait_for_run(environment, run);
        }
        // A task that was killed fails its run; one that was repeated says so twice.
        world.wait_for_lines(environment, "\"noted-always\"", runs.len() * TASKS);
    });
}

/// Once a deploy is reported as live, a run that is triggered runs the new version.
#[test]
#[ignore = "runs Apache Airflow for hours: cargo xtask airflow --rounds"]
fn what_is_reported_as_live_is_what_runs() {
    with_environment(|world, environment| {
        for round in 0..rounds(50) {
            let word = format!("version{round}");
            let (deploy, _) = world.finalize(environment, &[("hello.py", &dag(&word))]);
            let report = world.report(environment, &deploy);
            assert_eq!(report["state"], "LIVE", "{report:#}");
            let run = world.trigger(environment);
            world.wait_for_run(environment, &run);
            world.wait_for_lines(environment, &format!("\"noted-{word}\""), TASKS);
            world.say(&format!("round {round}"));
        }
    });
}
