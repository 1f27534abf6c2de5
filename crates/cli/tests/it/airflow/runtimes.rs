//! Every runtime that is offered: it starts, runs a DAG and is opened through the front door.

use std::process::Command;

use serde_json::json;

use super::dag;
use super::project::is_told;
use super::world::{Environment, World};

#[test]
#[ignore = "installs and runs every offered runtime, which takes about an hour: cargo xtask airflow --all-runtimes"]
fn all_runtimes_that_are_offered_run() {
    let mut world = World::new();
    world.serve();
    let only = std::env::var("PODIUM_TEST_RUNTIMES").unwrap_or_default();
    let only: Vec<&str> = only.split(',').filter(|version| !version.is_empty()).collect();
    let offered = world.runtimes();
    assert!(offered.len() > 10, "{offered:?}");
    let mut failed = Vec::new();
    for version in offered.iter().filter(|version| only.is_empty() || only.contains(&version.as_str())) {
        world.say(&format!("runtime {version}"));
        let proven = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| prove(&world, version)));
        match proven {
            Ok(()) => world.say(&format!("PROVEN {version}")),
            Err(_) => {
                world.say(&format!("FAILED {version}"));
                failed.push(version.clone());
            }
        }
    }
    assert_eq!(failed, Vec::<String>::new(), "these are offered and do not work");
    world.stop();
}

fn prove(world: &World, version: &str) {
    let oslo = json!([{ "key": "CITY", "value": "Oslo", "isSecret": false }]);
    let settings = json!({ "platformRuntimeVersion": version, "environmentVariables": oslo });
    let mut environment = world.create(&format!("runtime {version}"), &settings);
    world.remember_traces_once_it_runs(&mut environment);
    world.deploy(&environment, &dag("one", &[]));
    let run = world.trigger(&environment);
    world.let_go(&environment);
    world.wait_for_run(&environment, &run);
    world.wait_for_lines(&environment, "\"greetings-one from Oslo\"", 1);
    is_told(world, &environment, "hello", &run, &["dag_run.started", "dag_run.succeeded"]);
    open_in_a_browser(world, &environment);
    world.delete(&environment);
    world.forget_runtime(version);
}

/// Goes the way of a browser: by a one-time link to the environment's own origin, with the cookie that it gets there.
fn open_in_a_browser(world: &World, environment: &Environment) {
    let link = world.of(environment, "POST", "/open", Some(&json!({}))).json()["url"].clone();
    let page = Command::new("curl")
        .args(["-sS", "--fail-with-body", "-L", "-c", "/dev/null", "-b", "none", "-H", "Accept: text/html"])
        .arg(link.as_str().expect("a link"))
        .output()
        .expect("curl runs");
    let text = String::from_utf8_lossy(&page.stdout).to_lowercase();
    assert!(page.status.success(), "{text} {}", String::from_utf8_lossy(&page.stderr));
    assert!(text.contains("<html") && text.contains("airflow"), "{text}");
}
