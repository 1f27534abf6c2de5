//! What a deploy changes, and why it failed: `podium deploy diff`, and what `podium deploy` says before and after.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::Desk;
use super::recorded_airflow::Recorded;
use crate::program::{Ended, finish};

const ORGANIZATION: &str = "c00000000000000000000000a";
const DEPLOYMENT: &str = "c00000000000000000000000d";
const DEPLOY: &str = "c00000000000000000000000e";
/// The SHA-256 of `1`, and of `2`.
const ONE: &str = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b";
const TWO: &str = "d4735e3a265e16eee03f59718b9b5d03019c07d8b6c51f90da3a666eec13ab35";

/// A server with one deployment and one deploy, as somebody plays it.
struct Played {
    recorded: Recorded,
    home: TempDir,
}

impl Played {
    /// Answers what a test says, and otherwise as a server with a deploy of three files.
    fn answering(own: impl Fn(&str) -> Option<(u16, Value)> + Send + 'static) -> Self {
        let of_deployment = format!("/v1/organizations/{ORGANIZATION}/deployments/{DEPLOYMENT}");
        let recorded = Recorded::start(move |path| {
            let below = path.strip_prefix(&of_deployment).unwrap_or(path);
            let (status, body) = own(below).unwrap_or_else(|| usual(below));
            (status, body.to_string())
        });
        let home = tempfile::tempdir().unwrap();
        for name in ["dags/same.py", "dags/changed.py", "dags/new.py"] {
            write(home.path(), name, "1");
        }
        Self { recorded, home }
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podium"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PODIUM_")) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.home.path()).env("NO_COLOR", "1");
        command.env("PODIUM_CONFIG_DIR", self.home.path().join("unused"));
        command.env("PODIUM_URL", self.recorded.url()).env("PODIUM_TOKEN", "t");
        command.env("PODIUM_ORGANIZATION", ORGANIZATION).env("PODIUM_DEPLOYMENT", DEPLOYMENT);
        finish(command, "")
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn usual(path: &str) -> (u16, Value) {
    let deploy = json!({ "id": DEPLOY, "status": "DEPLOYED", "dagTarballVersion": "v1" });
    let file = |path: &str, sha256: &str| json!({ "path": path, "size": 1, "sha256": sha256 });
    match path.strip_prefix(&format!("/deploys/{DEPLOY}")).unwrap_or(path) {
        "" if path.is_empty() => (200, deployment("3.1.0")),
        "/v1/organizations" => {
            (200, json!({ "organizations": [], "limit": 1, "offset": 0, "totalCount": 0 }))
        }
        "/deploys" => {
            let waiting = json!({ "id": ORGANIZATION, "status": "INITIALIZED" });
            (200, json!({ "deploys": [waiting, deploy], "limit": 20, "offset": 0, "totalCount": 2 }))
        }
        "/files" => {
            let files = [file("dags/changed.py", TWO), file("dags/old.py", ONE), file("dags/same.py", ONE)];
            (200, json!({ "deployId": DEPLOY, "files": files, "totalCount": 3 }))
        }
        _ => (404, json!({ "message": "There is none.", "requestId": "r", "statusCode": 404 })),
    }
}

fn deployment(version: &str) -> Value {
    json!({ "name": "nightly", "namespace": "calm-comet-1", "airflowVersion": version, "status": "HEALTHY" })
}

const FILES: &str = "Files added: dags/new.py\nFiles changed: dags/changed.py\nFiles removed: dags/old.py\n";

#[test]
fn files_that_differ_are_named_with_their_dags_in_either_airflow() {
    for (version, api, field, below) in [
        ("3.1.0", "v2", "relative_fileloc", ""),
        ("2.11.0", "v1", "fileloc", "/srv/code/dags/versions/v1/dags/"),
    ] {
        let played = Played::answering(move |path| {
            let dag = |id: &str, file: &str| json!({ "dag_id": id, field: format!("{below}{file}") });
            let dags = [
                dag("z", "changed.py"),
                dag("x\u{1b}[2J", "changed.py"),
                dag("o", "old.py"),
                dag("s", "same.py"),
            ];
            match path {
                "" => Some((200, deployment(version))),
                path if path == format!("/airflow/calm-comet-1/api/{api}/dags") => {
                    Some((200, json!({ "dags": dags, "total_entries": 4 })))
                }
                _ => None,
            }
        });
        let shown = played.run(&["deploy", "diff"]);
        let expected = format!("{FILES}DAGs in changed files: x\u{fffd}[2J, z\nDAGs in removed files: o\n");
        assert_eq!((shown.code, shown.stdout, shown.stderr), (Some(0), expected, String::new()), "{version}");
        let shown = played.run(&["deploy", "diff", ".", "--output", "json"]);
        let expected = json!({
            "deployId": DEPLOY,
            "files": { "added": ["dags/new.py"], "changed": ["dags/changed.py"], "removed": ["dags/old.py"] },
            "dags": { "changed": ["x\u{1b}[2J", "z"], "removed": ["o"] },
        });
        assert_eq!(serde_json::from_str::<Value>(&shown.stdout).unwrap(), expected);
    }
}

#[test]
fn without_airflow_the_files_are_named() {
    let refusing = |status: u16, message: &'static str| {
        Played::answering(move |path| {
            let body = json!({ "message": message, "requestId": "r", "statusCode": status });
            path.contains("/api/v2/").then_some((status, body))
        })
    };
    let asleep = refusing(503, "The deployment hibernates.");
    let shown = asleep.run(&["deploy", "diff"]);
    let why = "Cannot tell which DAGs are affected: The deployment hibernates.\n";
    assert_eq!((shown.code, shown.stdout.as_str(), shown.stderr.as_str()), (Some(0), FILES, why));
    let asked = asleep.recorded.asked().into_iter().filter(|request| request.contains("/api/v2/"));
    assert_eq!(asked.count(), 1, "it is not asked again, so that nobody waits");
    let shown = refusing(403, "No\nrights.").run(&["deploy", "diff", "--output", "jsonl"]);
    let why = "Cannot tell which DAGs are affected: No rights.\n";
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), why));
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!((&shown["dags"], &shown["files"]["removed"]), (&Value::Null, &json!(["dags/old.py"])));
}

#[test]
fn a_list_that_is_cut_off_is_compared_as_far_as_it_goes() {
    let played = Played::answering(|path| {
        let files = json!([{ "path": "dags/changed.py", "size": 1, "sha256": ONE }]);
        let list = json!({ "deployId": DEPLOY, "files": files, "totalCount": 20_000 });
        path.ends_with("/files").then_some((200, list))
    });
    let shown = played.run(&["deploy", "diff"]);
    let said = "Only the first 1 of 20000 deployed files are compared.\n\
                Nothing differs from the running version.\n";
    assert_eq!((shown.code, shown.stdout.as_str(), shown.stderr.as_str()), (Some(0), "", said));
}

#[test]
fn a_server_that_lists_no_files_takes_deploys_all_the_same() {
    let played = Played::answering(|path| path.ends_with("/files").then(|| usual("/nothing")));
    let shown = played.run(&["deploy", "diff"]);
    assert_eq!(shown.code, Some(3), "{}", shown.stderr);
    // It gets as far as creating the deploy, which this server does not do.
    let sent = played.run(&["deploy"]);
    let said = "Cannot compare with the running version: There is none.\nPacked 3 files, ";
    assert!(sent.stderr.contains(said), "{}", sent.stderr);
}

#[test]
fn a_deploy_that_fails_shows_tracebacks() {
    let played = Played::answering(|path| {
        let deploy = json!({ "id": DEPLOY, "status": "FAILED", "rollbackFromId": ORGANIZATION });
        let error = |number: u32| {
            json!({
                "file": format!("bad{number}.py"), "line": 2, "message": "NameError: x",
                "traceback": "Traceback (most recent call last):\n  File \"bad.py\", line 2\u{1b}\nNameError: x\n",
            })
        };
        let errors: Vec<Value> = (1..=6).map(error).collect();
        match path.strip_prefix(&format!("/deploys/{DEPLOY}"))? {
            "" | "/rollback" => Some((200, deploy)),
            "/report" => Some((
                200,
                json!({
                    "deployId": DEPLOY, "state": "FAILED", "reason": "a DAG is broken", "importErrors": errors,
                    "importErrorCount": 8, "steps": [],
                }),
            )),
            _ => None,
        }
    });
    let failed = played.run(&["deploy", "rollback", DEPLOY, "--yes"]);
    let first = format!(
        "podium: the deploy {DEPLOY} failed\n  a DAG is broken\n  \
         Broken: bad1.py:2: NameError: x\n    Traceback (most recent call last):\n      File \"bad.py\", line 2\u{fffd}\n    \
         NameError: x\n  Broken: bad2.py:2: NameError: x\n"
    );
    assert_eq!(failed.code, Some(7), "{}", failed.stderr);
    assert!(failed.stderr.contains(&first), "{}", failed.stderr);
    let last = format!(
        "  and 3 more: podium deploy report {DEPLOY}\n\
         The deploy did not go live: the previous version is still running.\n"
    );
    assert!(failed.stderr.ends_with(&last) && !failed.stderr.contains("bad6.py"), "{}", failed.stderr);
    let shown = played.run(&["deploy", "report", DEPLOY]);
    assert!(shown.stdout.contains("\nBroken: bad6.py:2: NameError: x\n  Traceback "), "{}", shown.stdout);
    assert!(shown.stdout.ends_with("  NameError: x\nand 2 more\n"), "{}", shown.stdout);
}

#[test]
fn a_deploy_says_first_what_it_changes() {
    let desk = Desk::signed_in();
    desk.shown(&["init", "hello"]);
    let first = desk.run(&["deploy", "hello", "--create"]);
    let said = "Nothing has been deployed yet: all 4 files are new.\nPacked 4 files, ";
    assert!(first.stderr.contains(said), "{}", first.stderr);
    let diff = || {
        let done = desk.run(&["deploy", "diff", "hello"]);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        (done.stdout, done.stderr)
    };
    assert_eq!(diff(), (String::new(), "Nothing differs from the running version.\n".to_owned()));
    let folder = desk.folder().join("hello");
    write(&folder, "dags/more.py", "");
    assert_eq!(diff(), ("Files added: dags/more.py\n".to_owned(), String::new()));
    let second = desk.run(&["deploy", "hello"]);
    assert!(second.stderr.contains("\nFiles added: dags/more.py\nPacked 5 files, "), "{}", second.stderr);
    let back = desk.run(&["deploy", "rollback", "--deployment", "hello", "--yes"]);
    assert_eq!(back.code, Some(0), "{}", back.stderr);
    assert_eq!(
        diff(),
        ("Files added: dags/more.py\n".to_owned(), String::new()),
        "what runs is the first one"
    );
    let nowhere = desk.run(&["deploy", "diff", "nowhere"]);
    let said = "podium: nowhere is not a folder\nWrite a first project: podium init hello\n";
    assert_eq!((nowhere.code, nowhere.stderr.as_str()), (Some(2), said));
}
