//! `podium dev`: from an empty folder to a deployment that follows what is saved, and back to nothing that runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::under_way::UnderWay;

/// A folder, and a `podium dev` that works in it.
struct Workbench {
    folder: TempDir,
}

impl Workbench {
    fn new() -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap() };
        let mut init = bench.command(&["init", "hello"]);
        assert!(init.stderr(Stdio::null()).status().unwrap().success());
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podium"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PODIUM_")) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.folder.path()).env("PODIUM_DATA_PLANE", "simulated");
        command.env("PODIUM_CONFIG_DIR", self.path("settings")).env("PODIUM_DEV_DIR", self.path("dev"));
        command
    }

    fn develop(&self, more: &[&str]) -> UnderWay {
        UnderWay::start(self.command(&[&["dev", "hello"], more].concat()))
    }

    /// The process of the server, as it is recorded.
    fn server(&self) -> u32 {
        let known = fs::read(self.path("dev/server.json")).unwrap();
        let known: serde_json::Value = serde_json::from_slice(&known).unwrap();
        u32::try_from(known["pid"].as_u64().unwrap()).unwrap()
    }
}

/// Stops it as Ctrl-C does; what it says until its end.
#[track_caller]
fn interrupted(developing: UnderWay) -> String {
    let (code, said) = developing.interrupt();
    assert_eq!(code, Some(0), "{said}");
    said
}

fn runs(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn what_is_saved_is_deployed_and_nothing_is_left_at_the_end() {
    let bench = Workbench::new();
    let mut developing = bench.develop(&[]);
    developing.says("Podium is running at http://127.0.0.1:");
    developing.says("Created deployment hello.");
    developing.says("Live after ");
    fs::write(bench.path("hello/dags/more.py"), "").unwrap();
    assert_eq!(developing.says("Saved: "), "Saved: dags/more.py\n");
    developing.says("Live after ");
    fs::write(bench.path("hello/notes.md"), "Ignored.").unwrap();
    fs::remove_file(bench.path("hello/dags/more.py")).unwrap();
    assert_eq!(developing.says("Saved: "), "Saved: dags/more.py (deleted)\n");
    developing.says("Live after ");
    let server = bench.server();
    let said = interrupted(developing);
    assert!(said.ends_with("Stopped.\n"), "{said}");
    assert!(!runs(server), "the server has stopped");
    // The next time everything is there already.
    let mut again = bench.develop(&[]);
    again.says("Podium is running at http://127.0.0.1:");
    assert_eq!(again.says("Packed "), "Packed 4 files, 712 bytes.\n");
    again.says("Live after ");
    interrupted(again);
}

#[test]
fn what_podium_yaml_says_is_applied_at_the_start_and_when_it_is_saved() {
    let bench = Workbench::new();
    let project = |text: &str| {
        fs::write(bench.path("hello/podium.yaml"), format!("deployment: hello\nworkspace: New\n{text}"))
            .unwrap();
    };
    project("variables: [OF_FILE]\nlinks: [warehouse]\n");
    let refused = bench.command(&["dev", "hello"]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("OF_FILE has no value"), "{said}");
    assert!(!said.contains("Created"), "{said}");

    fs::write(bench.path("hello/.env"), "export OF_FILE=hidden # kept here\n").unwrap();
    project("runtime: 3.2.2\nvariables: [OF_FILE]\nlinks: [warehouse]\n");
    let mut developing = bench.develop(&["--verbose"]);
    developing.says("Created workspace New.");
    developing.says("Created deployment hello.");
    developing.says("Not yet: links: no environment object that you may see has the key warehouse");
    developing.says("Live after ");
    project("runtime: 3.3.2\nvariables: [OF_FILE, MORE]\n");
    developing.says("podium: nothing was done: podium.yaml cannot be applied");
    assert!(developing.says("  variables: MORE").contains("/hello/.env"));
    fs::write(bench.path("hello/.env"), "MORE=\"hidden\"\n").unwrap();
    project("runtime: 3.3.2\nvariables: [OF_FILE, MORE] # now it is there\n");
    let changed = "Changed hello as podium.yaml says: variable MORE.\n";
    assert_eq!(developing.says("Changed "), changed);
    assert!(developing.says("This deploy moves hello to runtime 3.3.2 (from 3.2.2)").ends_with("says.\n"));
    developing.says("Live after ");
    let said = interrupted(developing);
    assert!(!said.contains("hidden"), "{said}");
}

#[test]
fn a_kill_leaves_nothing_that_the_next_one_does_not_find() {
    let bench = Workbench::new();
    let mut killed = bench.develop(&[]);
    killed.says("Live after ");
    killed.kill();
    let server = bench.server();
    assert!(runs(server), "the server does not notice");
    let mut next = bench.develop(&["--keep"]);
    next.says("Podium is still running at http://127.0.0.1:");
    next.says("Live after ");
    let said = interrupted(next);
    assert!(said.contains("The server keeps running at http://127.0.0.1:"), "{said}");
    assert!(runs(server), "it is kept");
    let mut last = bench.develop(&[]);
    last.says("Podium is still running at http://127.0.0.1:");
    last.says("Live after ");
    interrupted(last);
    assert!(!runs(server));
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let bench = Workbench::new();
    let done = bench.command(&["dev", "nowhere"]).output().unwrap();
    let said = String::from_utf8(done.stderr).unwrap();
    assert_eq!(
        (done.status.code(), said.as_str()),
        (Some(2), "podium: nowhere is not a folder\nWrite a first project: podium init hello\n")
    );
}
