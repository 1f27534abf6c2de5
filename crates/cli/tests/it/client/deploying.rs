//! From an empty folder to a deploy that is live, and back.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use super::Desk;
use crate::program::{Installation, finish};

#[test]
fn a_project_is_written_once_and_deployed() {
    let desk = Desk::signed_in();
    let made = desk.run(&["init", "hello"]);
    let next = "Wrote a project to hello\nNext, run it on this machine while you write it:\n  podium dev hello\n\
                Or send it to a server:\n  podium deploy hello --create\n";
    assert_eq!(made.stderr, next);
    let again = desk.run(&["init", "hello"]);
    assert_eq!(again.code, Some(5), "{}", again.stderr);
    let files = desk.run(&["deploy", "hello", "--dry-run"]);
    assert_eq!(files.stdout, ".podiumignore\ndags/hello.py\npodium.yaml\nrequirements.txt\n");
    assert_eq!(files.stderr, "4 files would be packed; nothing was sent.\n");

    let missing = desk.run(&["deploy", "hello"]);
    assert_eq!(missing.code, Some(3), "{}", missing.stderr);
    assert!(missing.stderr.contains("podium deploy hello --create"), "{}", missing.stderr);
    let deployed = desk.run(&["deploy", "hello", "--create", "--description", "First", "--output", "json"]);
    assert_eq!(deployed.code, Some(0), "{}", deployed.stderr);
    assert!(
        deployed.stderr.contains("Without git metadata: the folder is not in a git work tree."),
        "{}",
        deployed.stderr
    );
    let first: serde_json::Value = serde_json::from_str(&deployed.stdout).unwrap();
    assert_eq!((&first["status"], &first["description"]), (&"DEPLOYED".into(), &"First".into()));
    let id = first["id"].as_str().unwrap();
    assert!(deployed.stderr.ends_with(&format!("Deploy {id} is live.\n")), "{}", deployed.stderr);
    let live = desk.json(&["deployment", "get", "hello"]);
    assert_eq!(live["dagTarballVersion"], first["dagTarballVersion"]);

    std::fs::write(desk.folder().join("hello/dags/more.py"), "").unwrap();
    let second = desk.json(&["deploy", "hello"]);
    assert_ne!(second["dagTarballVersion"], first["dagTarballVersion"]);
    desk.shown(&["deploy", "update", id, "--description", "The first", "--deployment", "hello"]);
    let listed = desk.shown(&["deploy", "list", "--deployment", "hello", "--columns", "status,description"]);
    assert_eq!(listed, "STATUS    DESCRIPTION\nDEPLOYED  -\nDEPLOYED  The first\n");
    let back = desk.json(&["deploy", "rollback", "--deployment", "hello", "--yes"]);
    assert_eq!(
        (&back["rollbackFromId"], &back["dagTarballVersion"]),
        (&first["id"], &first["dagTarballVersion"])
    );
    assert!(desk.shown(&["open", "hello", "--print"]).starts_with("http"));
}

#[test]
fn another_folder_replaces_nothing_of_the_only_deployment_unasked() {
    let desk = Desk::signed_in();
    desk.shown(&["init", "hello"]);
    desk.shown(&["deploy", "hello", "--create"]);
    let guessed = desk.run(&["deploy"]);
    assert_eq!(guessed.code, Some(2), "{}", guessed.stderr);
    for told in
        ["Files removed: .podiumignore, dags/hello.py", "Replace every file of the only deployment", "--yes"]
    {
        assert!(guessed.stderr.contains(told), "{told}: {}", guessed.stderr);
    }
    assert_eq!(
        desk.shown(&["deploy", "list", "--deployment", "hello", "--columns", "status"]),
        "STATUS\nDEPLOYED\n"
    );
    let named = desk.run(&["deploy", "--deployment", "hello"]);
    assert_eq!(named.code, Some(0), "{}", named.stderr);
}

#[test]
fn a_folder_without_code_is_not_deployed() {
    let desk = Desk::signed_in();
    std::fs::create_dir(desk.folder().join("empty")).unwrap();
    let done = desk.run(&["deploy", "empty"]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("there is no Python file in empty"), "{}", done.stderr);
    assert_eq!(desk.run(&["deploy", "nowhere"]).code, Some(2));
}

#[test]
fn logs_are_searched() {
    let desk = Desk::signed_in();
    desk.shown(&["deployment", "create", "nightly", "--wait"]);
    let found =
        desk.run(&["logs", "-d", "nightly", "--source", "scheduler", "--since", "2h", "nothing-like-this"]);
    assert_eq!((found.code, found.stdout.as_str()), (Some(0), ""), "{}", found.stderr);
    let unknown = desk.run(&["logs", "--deployment", "nightly", "--source", "kitchen"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.stderr);
}

impl Desk {
    /// A deploy that waits for the server, and the lines that it says; the first one says so.
    fn deploys_early(&self, variables: &[(&str, &str)]) -> (Child, impl Iterator<Item = String> + use<>) {
        let mut command = self.command(&["deploy", "hello", "--create"]);
        command.envs(variables.iter().copied()).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        (child, said.lines().map_while(Result::ok))
    }
}

#[test]
fn a_server_that_is_starting_is_waited_for() {
    let mut desk = Desk::new();
    desk.shown(&["init", "hello"]);
    desk.program.tell_to_stop("TERM");
    desk.program.end();
    let data = desk.installation.data_dir().display().to_string();
    let (mut child, mut said) = desk.deploys_early(&[("PODIUM_DATA_DIR", &data)]);
    let waiting = format!("Waiting up to 30 s for the server: no server runs with its data in {data}");
    assert_eq!(said.next(), Some(waiting));
    desk.program = desk.installation.serve(&[]);
    let said = said.collect::<Vec<_>>().join("\n");
    assert!(child.wait().unwrap().success(), "{said}");
    assert!(
        said.contains("Acting as the operator of the server in ") && said.ends_with(" is live."),
        "{said}"
    );
}

#[test]
fn a_server_that_has_no_data_directory_yet_is_waited_for() {
    let mut desk = Desk::new();
    desk.shown(&["init", "hello"]);
    desk.installation = Installation::new();
    let data = desk.installation.data_dir().display().to_string();
    let (mut child, mut said) = desk.deploys_early(&[("PODIUM_DATA_DIR", &data)]);
    let waiting = format!("Waiting up to 10 s for the server: no server runs with its data in {data}");
    assert_eq!(said.next(), Some(waiting));
    desk.program = desk.installation.serve(&[]);
    let said = said.collect::<Vec<_>>().join("\n");
    assert!(child.wait().unwrap().success(), "{said}");
    assert!(said.ends_with(" is live."), "{said}");
}

#[test]
fn a_deploy_right_after_the_first_start_of_a_server_works() {
    let desk = Desk::new();
    desk.shown(&["init", "hello"]);
    let mut shell = desk.shell(
        "podium serve --listen 127.0.0.1:0 --data-plane simulated 2> served.txt & \
         podium deploy hello --create; code=$?; kill $!; wait; exit $code",
    );
    shell.env("PODIUM_CONFIG_DIR", desk.settings().join("unused"));
    let done = finish(shell, "");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stderr.ends_with(" is live.\n"), "{}", done.stderr);
    assert!(desk.folder().join("podium-data").is_dir());
}

#[test]
fn a_deploy_without_any_server_ends_and_says_what_to_do() {
    let desk = Desk::new();
    desk.shown(&["init", "hello"]);
    let waiting = "Waiting up to 10 s for the server: no server runs with its data in";
    let nowhere = "you are not signed in to a server\nSign in: podium login URL. In CI, set PODIUM_URL and PODIUM_TOKEN. \
                   To start a server on this machine: podium serve\n";
    desk.refuses(&["deploy", "hello"], 4, &format!("{waiting} ./podium-data\npodium: {nowhere}"));
    assert!(!desk.folder().join("podium-data").exists());
}

#[test]
fn a_server_that_restarts_is_waited_for() {
    let mut desk = Desk::signed_in();
    desk.shown(&["init", "hello"]);
    desk.program.crash();
    let (mut child, mut said) = desk.deploys_early(&[]);
    let waiting = said.next().unwrap_or_default();
    let expected = format!("Waiting up to 30 s for the server: {} cannot be reached: ", desk.url);
    assert!(waiting.starts_with(&expected), "{waiting}");
    desk.restart();
    let said = said.collect::<Vec<_>>().join("\n");
    assert!(child.wait().unwrap().success(), "{said}");
    assert!(said.ends_with(" is live."), "{said}");
}

#[test]
fn what_the_servers_machine_cannot_install_is_said_before_the_upload() {
    let desk = Desk::signed_in();
    desk.shown(&["init", "hello"]);
    let quiet = desk.run(&["deploy", "hello", "--create"]);
    assert!(!quiet.stderr.contains("refuse the deploy"), "{}", quiet.stderr);
    std::fs::write(desk.folder().join("hello/packages.txt"), "# for the driver\nlibpq-dev\n").unwrap();
    std::fs::write(desk.folder().join("hello/requirements.txt"), "pandas\n./vendor/own-1.0.tar.gz\n")
        .unwrap();
    let told = desk.run(&["deploy", "hello"]);
    let said = "Environments on the server's own machine cannot install these, and refuse the deploy:\n  \
                packages.txt, line 2: libpq-dev is a package of the operating system\n  \
                requirements.txt, line 2: ./vendor/own-1.0.tar.gz would be built from source: only packages that have a \
                wheel are installed\n\
                An image deploy on a cluster can install them. See docs/guide/deploys.md#what-this-machine-cannot-install\n";
    let (before, after) = told.stderr.split_once(said).unwrap_or_else(|| panic!("{}", told.stderr));
    assert!(!before.contains("Packed") && after.contains("Packed"), "{}", told.stderr);
}
