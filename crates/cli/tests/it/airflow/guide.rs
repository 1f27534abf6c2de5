//! Documents that promise a running DAG: a person's commands, typed by this test as they are written.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::world::World;
use crate::documents::{commands, section};

/// Runs every command of the README's beginning and of the guides, in their order, each in an empty directory.
pub(super) fn the_documents_work_as_they_are_written(world: &World) {
    let read = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
        fs::read_to_string(path).expect("the document is there")
    };
    let six = commands(&section(&read("README.md"), "A running DAG in six commands"));
    assert_eq!(six.lines().count(), 6, "{six}");
    let said = run(world, "readme", &format!("{six}podium deployment delete hello --yes\n"));
    assert!(said.contains("Hello from your first DAG"), "{said}");
    let said = run(world, "first-dag", &commands(&read("docs/guide/first-dag.md")));
    assert!(said.contains("Hello from your first DAG"), "{said}");
    assert!(said.contains("Files changed: dags/hello.py\nDAGs in changed files: hello\n"), "{said}");
    assert!(said.contains("Files changed: dags/hello.py\nDAGs changed: hello\n"), "{said}");
    run(world, "api", &commands(&read("docs/guide/api.md")));
}

/// Runs commands next to the data directory of the installation; what they print.
fn run(world: &World, name: &str, commands: &str) -> String {
    world.say(&format!("the commands of a document, as they are written: {name}"));
    let folder = world.directory().join(name);
    fs::create_dir(&folder).expect("it is new");
    symlink(world.installation.data_dir(), folder.join("podium-data")).expect("it is new");
    let address = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
    let commands = commands.replace("127.0.0.1:8080", &address.to_string());
    assert!(commands.contains("podium serve &\n"), "{name} serves");
    // The server is this test's to stop, whatever becomes of the rest.
    let script = format!(
        "set -eu\n{}",
        commands.replace(
            "podium serve &\n",
            "podium serve 2> server.txt &\nserver=$!\ntrap 'kill $server; wait $server' EXIT\n"
        )
    );
    let said = File::create(folder.join("said.txt")).expect("it is new");
    let ended = Command::new("bash")
        .args(["-c", &script])
        .current_dir(&folder)
        .env("PATH", world.search_path())
        .env("PODIUM_LISTEN", address.to_string())
        .env("PODIUM_CONFIG_DIR", folder.join("settings"))
        .env("PODIUM_LOG", "warn")
        .stdout(said.try_clone().expect("a file has two ends"))
        .stderr(said)
        .status()
        .expect("bash runs");
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let said = read("said.txt");
    assert!(ended.success(), "{name} failed: {ended}\n{said}\n{}", read("server.txt"));
    said
}
