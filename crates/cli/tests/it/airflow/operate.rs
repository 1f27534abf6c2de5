//! Operating real environments: backup, restore elsewhere, and loss of a machine.

use std::fs;

use podium_testkit::Engine;
use serde_json::json;

use super::dag;
use super::world::{Environment, World};
use crate::program::Installation;

/// An installation that was restored and not started yet, and how many runs its environment had.
pub(super) struct Saved {
    world: World,
    runs: serde_json::Value,
}

fn runs(world: &World, environment: &Environment) -> serde_json::Value {
    world.airflow(environment, "GET", "/dags/hello/dagRuns", None).json()["total_entries"].clone()
}

/// Saves an installation while it runs, and restores it beside itself, where it does not start.
pub(super) fn a_running_installation_is_saved(world: &World, environment: &Environment) -> Saved {
    world.say("a backup of the running installation, restored to another path");
    let file = world.directory().join("backup");
    let made = world.command(&["backup", file.to_str().expect("text")]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    let restored = World::new();
    let done = restored.command(&["restore", file.to_str().expect("text")]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let refused = restored.command(&["serve"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("still runs on this machine"), "{}", refused.stderr);
    Saved { world: restored, runs: runs(world, environment) }
}

/// The operator stops what runs on the machine without a server, and starts it again with one.
pub(super) fn what_is_stopped_stays_stopped(world: &mut World, environment: &Environment) {
    world.say("stopped without a server");
    world.stop();
    let stopped = world.command(&["stop"]);
    assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("To start again: podium start"), "{}", stopped.stderr);
    assert_eq!(world.processes(environment), json!({}));
    assert_eq!(world.descendants(environment), Vec::<i32>::new());
    assert!(!world.has_database_server());
    world.serve();
    let shown = world.wait_for_status(environment, "UNHEALTHY");
    let why = shown["statusReason"].as_str().expect("text");
    assert!(why.contains("stopped it with `podium stop`"), "{why}");
    assert_eq!(world.descendants(environment), Vec::<i32>::new());
    let started = world.command(&["start", &environment.namespace]);
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    world.wait_for_status(environment, "HEALTHY");
}

/// The restored installation runs, knows what was before, and goes on from there.
pub(super) fn what_was_saved_runs_elsewhere(saved: Saved, environment: &Environment) {
    let Saved { mut world, runs: before } = saved;
    world.say("what was restored runs, and knows the runs of before");
    world.serve();
    // Until the loop has looked, the status is that of the backup.
    world.wait_until("its web server answers", || {
        world.airflow(environment, "GET", "/dags/hello/dagRuns", None).status == 200
    });
    world.wait_for_status(environment, "HEALTHY");
    assert_eq!(runs(&world, environment), before);
    assert!(world.count_lines(environment, "\"farewell-two\"") > 0, "the logs of before");
    world.run_to_the_end(environment);
    assert_eq!(runs(&world, environment).as_u64(), before.as_u64().map(|count| count + 1));
    world.delete(environment);
    world.stop();
}

/// Two servers on one database, each with a machine of its own: an environment runs on one of them only.
pub(super) fn an_environment_runs_on_one_of_several_nodes() {
    let mut first = Installation::on(Engine::Postgres);
    let shared = first.data_dir().with_file_name("shared");
    first.set("PODIUM_OBJECTS_DIR", shared.to_str().expect("text"));
    let second = first.another_machine();
    let (mut alpha, mut beta) = (World::in_installation(first), World::in_installation(second));
    alpha.say("two nodes: an environment runs on one of them");
    alpha.serve_with(&["--node-name", "alpha"]);
    // The token of the owner is where the first start was.
    let token = alpha.installation.read("owner-token");
    fs::write(beta.installation.data_dir().join("owner-token"), &token).expect("it is ours");
    beta.serve_with(&["--node-name", "beta"]);
    let environment = beta.create("placed", &json!({}));
    alpha.wait_for_status(&environment, "HEALTHY");
    assert_eq!(alpha.places(), std::slice::from_ref(&environment.id), "the first by name");
    assert_eq!(beta.places(), Vec::<String>::new());
    alpha.deploy(&environment, &dag("one", &[]));
    alpha.run_to_the_end(&environment);
    let path = format!("/airflow/{}/api/v2/dags", environment.namespace);
    let elsewhere = beta.program().get(&path, &beta.token());
    assert_eq!(elsewhere.status, 503);
    assert!(String::from_utf8_lossy(&elsewhere.body).contains("runs on node alpha"), "{elsewhere:?}");

    alpha.say("a node is gone for good, and its environment is made from scratch on the other");
    alpha.lose_power();
    beta.installation.mark_node_unseen("alpha");
    let forgotten = beta.command(&["node", "forget", "alpha"]);
    assert_eq!(forgotten.code, Some(0), "{}", forgotten.stderr);
    beta.wait_until("it is made on the other node", || beta.places() == [environment.id.clone()]);
    beta.wait_for_status(&environment, "HEALTHY");
    beta.wait_until("its code came with it", || {
        beta.airflow(&environment, "GET", "/dags/hello", None).status == 200
    });
    assert_eq!(runs(&beta, &environment), 0, "runs of before are lost");

    alpha.say("the node comes back, and leaves alone what the other runs");
    alpha.serve_with(&["--node-name", "alpha"]);
    assert_eq!(alpha.places(), Vec::<String>::new());
    let aside = alpha.installation.data_dir().join("local/set-aside").join(format!("{}.1", environment.id));
    assert!(aside.join("database").exists(), "nothing is deleted");
    assert_ne!(beta.descendants(&environment), Vec::<i32>::new());
    beta.delete(&environment);
    alpha.stop();
    beta.stop();
}
