//! Backups of a running server, restored elsewhere; and what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::json;

use crate::loops::{environments, wait_until};
use crate::program::{Installation, exchange};

fn bytes_of(path: &Path) -> Vec<u8> {
    fs::read(path).expect("it is there")
}

fn backed_up(installation: &Installation, name: &str) -> String {
    let file = installation.data_dir().with_file_name(name).to_str().expect("text").to_owned();
    let made = installation.run(&["backup", &file]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    assert!(made.stderr.contains("keys"), "{}", made.stderr);
    file
}

#[test]
fn a_backup_of_a_running_server_is_restored_to_another_path_with_everything_in_it() {
    let installation = Installation::new();
    let program = installation.serve(&[]);
    let token = installation.read("owner-token");
    let organization = program.organization(&token);
    let workspaces = program.get(&format!("{organization}/workspaces"), &token).json();
    let body = json!({
        "name": "Reports", "workspaceId": workspaces["workspaces"][0]["id"],
        "environmentVariables": [{ "key": "PASSWORD", "value": "hunter2", "isSecret": true }],
    });
    let made = program.call("POST", &format!("{organization}/deployments"), &token, Some(&body)).json();
    let path = format!("{organization}/deployments/{}", made["id"].as_str().unwrap());
    let healthy = || program.get(&path, &token).json();
    wait_until("healthy", healthy, |shown| shown["status"] == "HEALTHY");
    let logs = format!("{path}/logs?sources=scheduler");
    let deploy =
        program.call("POST", &format!("{path}/deploys"), &token, Some(&json!({ "type": "DAG_ONLY" }))).json();
    let archive = podium_testkit::archive(&[("hello.py", b"print('hello')")]);
    let target = deploy["dagsUploadUrl"].as_str().unwrap().split_once("/v1/").unwrap().1;
    let head = format!(
        "PUT /v1/{target} HTTP/1.1\r\nHost: podium\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        archive.len()
    );
    let uploaded = exchange(program.connect(), &[head.as_bytes(), &archive].concat());
    let version = uploaded.header("x-ms-version-id").expect("it is kept").to_owned();
    let finalize = format!("{path}/deploys/{}/finalize", deploy["id"].as_str().unwrap());
    let finalized = program.call("POST", &finalize, &token, Some(&json!({ "dagTarballVersion": version })));
    assert_eq!(finalized.json()["status"], "DEPLOYED");
    wait_until("healthy", healthy, |shown| {
        shown["status"] == "HEALTHY" && shown["dagTarballVersion"] == version
    });
    let before = healthy();
    let starts = |page: &serde_json::Value| page.to_string().matches("Starting the scheduler").count() == 2;
    let lines = wait_until("it has started twice", || program.get(&logs, &token).json(), starts);

    let file = backed_up(&installation, "one.backup");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!bytes_of(Path::new(&file)).windows(7).any(|window| window == b"hunter2"));
    let refused = installation.run(&["backup", &file]);
    assert!(refused.stderr.contains("exists"), "{}", refused.stderr);
    let left: Vec<_> = fs::read_dir(installation.data_dir().parent().unwrap()).unwrap().flatten().collect();
    assert_eq!(left.len(), 2, "the data directory and the file: {left:?}");
    // What happens afterwards is not in it.
    let later = json!({ "name": "Later", "workspaceId": body["workspaceId"] });
    program.call("POST", &format!("{organization}/deployments"), &token, Some(&later)).json();
    program.stop();

    let other = Installation::new();
    let restored = other.run(&["restore", &file]);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    for name in ["secret-key", "owner-token"] {
        assert_eq!(other.read(name), installation.read(name));
        let mode = fs::metadata(other.data_dir().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let program = other.serve(&[]);
    assert_eq!(environments(&other).len(), 1);
    let after = program.get(&path, &token).json();
    for field in ["id", "name", "status", "dagTarballVersion", "environmentVariables", "namespace"] {
        assert_eq!(after[field], before[field], "{field}");
    }
    let found = program.get(&logs, &token).json();
    assert_eq!(found["results"], lines["results"], "the log store");
    let list = program.get(&format!("{organization}/deployments"), &token).json();
    assert_eq!(list["totalCount"], 1, "what was made later is not there");
    let objects = |of: &Installation| {
        let listed = std::process::Command::new("find")
            .arg(of.data_dir().join("objects"))
            .args(["-type", "f", "-printf", "%P %s\n"])
            .output();
        let mut lines: Vec<String> =
            String::from_utf8(listed.unwrap().stdout).unwrap().lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert!(!objects(&other).is_empty());
    assert_eq!(objects(&other), objects(&installation));
    program.stop();
    let again = other.run(&["restore", &file]);
    assert!(again.stderr.contains("not empty"), "{}", again.stderr);
}

#[test]
fn a_damaged_or_partial_file_is_refused_and_leaves_nothing() {
    let installation = Installation::new();
    installation.serve(&[]).stop();
    let file = backed_up(&installation, "whole");
    let whole = bytes_of(Path::new(&file));
    let mut changed = whole.clone();
    let middle = changed.len() / 2;
    changed[middle] ^= 1;
    let unpacked = zstd::decode_all(whole.as_slice()).unwrap();
    let at = unpacked.windows(14).position(|window| window == b"checksums.json").unwrap();
    let without_end = compressed(&unpacked[..at]);
    let position = unpacked.windows(6).position(|window| window == b"SQLite").unwrap();
    let mut other_byte = unpacked;
    other_byte[position + 30_000] ^= 1;
    let other_byte = compressed(&other_byte);
    for (what, bytes, expected) in [
        ("cut", &whole[..whole.len() - 100], "damaged or incomplete"),
        ("half", &whole[..whole.len() / 2], "damaged or incomplete"),
        ("changed", &changed, "it is damaged"),
        ("without-end", &without_end, "incomplete"),
        ("other-byte", &other_byte, "podium.db does not match its checksum"),
        ("nonsense", b"this is something else altogether".as_slice(), "not a Podium backup"),
        ("nothing", b"", "not a Podium backup"),
    ] {
        let damaged = installation.data_dir().with_file_name(what);
        fs::write(&damaged, bytes).unwrap();
        let other = Installation::new();
        let refused = other.run(&["restore", damaged.to_str().unwrap()]);
        assert_eq!(refused.code, Some(1), "{what}");
        assert!(refused.stderr.contains("nothing was restored"), "{what}: {}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{what}: {}", refused.stderr);
        assert!(!other.data_dir().exists(), "{what}");
    }
    let other = Installation::new();
    assert_eq!(other.run(&["restore", "missing"]).code, Some(1));
    assert!(!other.data_dir().exists());
}

#[test]
fn an_interrupted_restore_is_not_mistaken_for_an_installation() {
    let installation = Installation::new();
    fs::create_dir_all(installation.data_dir().join(".restoring")).unwrap();
    fs::write(installation.data_dir().join("secret-key"), "half").unwrap();
    let refused = installation.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(refused.stderr.contains("was interrupted"), "{}", refused.stderr);
    assert!(!installation.data_dir().join("podium.db").exists());
}

#[test]
fn an_installation_with_a_lost_database_is_not_created_again() {
    let installation = Installation::new();
    installation.serve(&[]).stop();
    let database = installation.data_dir().join("podium.db");
    for loss in ["missing", "empty", "forgotten"] {
        match loss {
            "missing" => fs::remove_file(&database).unwrap(),
            "empty" => fs::write(&database, "").unwrap(),
            // The file is there and holds nothing, as where its journal was lost.
            _ => assert!(
                std::process::Command::new("python3")
                    .args([
                        "-c",
                        "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA journal_mode=WAL')"
                    ])
                    .arg(&database)
                    .status()
                    .unwrap()
                    .success()
            ),
        }
        let token = installation.read("owner-token");
        for command in [["serve", "--listen", "127.0.0.1:0"].as_slice(), &["owner-token", "new"]] {
            let refused = installation.run(command);
            assert_eq!(refused.code, Some(1), "{loss} {command:?}");
            let expected = if command[0] == "serve" || loss != "missing" {
                "podium restore FILE"
            } else {
                "no installation"
            };
            assert!(refused.stderr.contains(expected), "{loss} {command:?}: {}", refused.stderr);
        }
        assert_eq!(installation.read("owner-token"), token, "{loss}");
    }
}

#[test]
fn an_interrupted_first_start_is_repeated() {
    let installation = Installation::new();
    fs::create_dir_all(installation.data_dir()).unwrap();
    fs::write(installation.data_dir().join("secret-key"), "the key of these tests, which is long enough")
        .unwrap();
    fs::write(installation.data_dir().join("podium.db"), "").unwrap();
    installation.serve(&[]).stop();
}

#[test]
fn files_of_an_author_do_not_prevent_a_backup_or_its_restore() {
    let installation = Installation::new();
    installation.serve(&[]).stop();
    let environment = installation.data_dir().join("local/environments/cm00000000000000000000001");
    let own = environment.join("user");
    fs::create_dir_all(own.join("ordinary")).unwrap();
    fs::write(environment.join("state.json"), "{\"slot\":1}").unwrap();
    fs::write(own.join("ordinary/file"), "kept").unwrap();
    fs::File::create(own.join("holes")).unwrap().set_len(1 << 40).unwrap();
    fs::write(own.join("closed"), "closed").unwrap();
    fs::set_permissions(own.join("closed"), fs::Permissions::from_mode(0o0)).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(own.join("pipe")).status().unwrap().success());
    std::os::unix::fs::symlink("/etc/passwd", own.join("link")).unwrap();
    // Deeper than anybody can name, by levels and by length.
    for (name, levels) in [("n".to_owned(), 300), ("l".repeat(250), 60)] {
        let made = std::process::Command::new("sh")
            .args([
                "-c",
                "i=0; while [ $i -lt $1 ]; do mkdir $0 && cd -P $0 || exit 1; i=$((i+1)); done; echo >file",
            ])
            .args([&name, &levels.to_string()])
            .current_dir(&own)
            .status();
        assert!(made.unwrap().success());
    }
    let file = installation.data_dir().with_file_name("hostile.backup").to_str().unwrap().to_owned();
    let made = installation.run(&["backup", &file]);
    assert_eq!(made.code, Some(0), "{}", made.stderr);
    for said in ["nested too deeply", "path is too long", "mostly empty"] {
        assert!(made.stderr.contains(said), "{said}: {}", made.stderr);
    }
    assert!(made.stderr.len() < 10_000, "what is left out is said once");
    let is_root = rustix::process::geteuid().is_root();
    assert_eq!(made.stderr.contains("it cannot be read"), !is_root, "{}", made.stderr);
    let other = Installation::new();
    let restored = other.run(&["restore", &file]);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    let own = other.data_dir().join("local/environments/cm00000000000000000000001/user");
    assert_eq!(fs::read_to_string(own.join("ordinary/file")).unwrap(), "kept");
    assert_eq!(fs::read_link(own.join("link")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!((own.join("closed").exists(), own.join("holes").exists()), (is_root, false));
    assert!(own.join("n/n/n/n").is_dir() && !own.join("pipe").exists());
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}
