//! The guide "from nothing to a running DAG": a person's commands, typed by this test.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use super::world::World;
use crate::documents::commands;

/// Runs every command of the guide, in its order, in an empty directory.
pub(super) fn the_guide_works_as_it_is_written(world: &World) {
    world.say("the commands of the guide, as they are written");
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/first-dag.md");
    let guide = std::fs::read_to_string(guide).expect("the guide is there");
    let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
    let commands = commands(&guide).replace("127.0.0.1:8080", &address.to_string());
    assert!(commands.contains("podium serve &\n"), "the guide serves");
    // The server is this test's to stop, whatever becomes of the rest.
    let script = format!(
        "set -eu\n{}",
        commands.replace(
            "podium serve &\n",
            "podium serve &\nserver=$!\ntrap 'kill $server; wait $server' EXIT\n"
        )
    );
    let ended = Command::new("bash")
        .args(["-c", &script])
        .current_dir(world.directory())
        .env("PATH", world.search_path())
        .env("PODIUM_LISTEN", address.to_string())
        .env("PODIUM_LOG", "warn")
        .status()
        .expect("bash runs");
    assert!(ended.success(), "the guide failed: {ended}");
}
