//! From an empty machine to a running DAG: `podium init` and `podium dev`, typed at a terminal, and nothing else.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::world::kill_environments;
use crate::terminals::{Terminal, on_terminal};

/// A person's machine on the first day: an empty home directory, and the program.
struct Machine {
    home: TempDir,
}

impl Machine {
    fn new() -> Self {
        let home = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(home.path().join("bin")).expect("it is new");
        symlink(env!("CARGO_BIN_EXE_podium"), home.path().join("bin/podium")).expect("it is new");
        Self { home }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A shell command at the terminal.
    fn types(&self, command: &str) -> Terminal {
        let search = std::env::var("PATH").unwrap_or_default();
        let mut shell = on_terminal(command, self.home.path());
        shell.env("HOME", self.home.path()).env("PATH", format!("{}:{search}", self.path("bin").display()));
        for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"] {
            shell.env_remove(name);
        }
        Terminal::start(shell)
    }

    fn state(&self) -> PathBuf {
        self.path(".local/state/podium/dev")
    }

    /// The process of the server, if one is recorded.
    fn server(&self) -> Option<u64> {
        let known = fs::read(self.state().join("server.json")).ok()?;
        serde_json::from_slice::<serde_json::Value>(&known).ok()?["pid"].as_u64()
    }

    /// Changes a text of a file, as an editor does.
    fn replaces(&self, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.path(file)).expect("the file is there");
        assert!(text.contains(from), "{text}");
        fs::write(self.path(file), text.replace(from, to)).expect("it can be written");
    }
}

impl Drop for Machine {
    /// A test that fails leaves nothing that runs.
    fn drop(&mut self) {
        if let Some(pid) = self.server() {
            let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
        kill_environments(&self.state().join("data"));
    }
}

/// Goes from nothing to a DAG that runs, that runs as it was saved, and that is broken; and back to nothing that runs.
pub(super) fn from_an_empty_machine_to_a_running_dag() {
    let (began, machine) = (Instant::now(), Machine::new());
    let say = |what: &str| eprintln!("[{:4} s] developing: {what}", began.elapsed().as_secs());
    let mut terminal = machine.types("podium init hello && cd hello && podium dev");
    // It installs Airflow from the network.
    terminal.patience = Duration::from_mins(15);
    terminal.sees("Created deployment hello.");
    say("the project is written and the server runs");
    terminal.sees("DAGs added: hello\n");
    terminal.sees("Live after ");
    let server = machine.server().expect("it is recorded");

    say("a run of the first version");
    terminal.types("t hello\n");
    terminal.sees("Started ");
    terminal.sees("Hello from your first DAG");

    say("a saved file runs");
    machine.replaces("hello/dags/hello.py", "Hello from your first DAG", "Greetings from the second version");
    terminal.sees("Saved: dags/hello.py");
    terminal.sees("Live after ");
    terminal.types("t hello\n");
    terminal.sees("Greetings from the second version");

    say("a broken file is named with its line");
    machine.replaces("hello/dags/hello.py", "    greet()\n", "    greet(\n");
    terminal.sees("Saved: dags/hello.py");
    let text = fs::read_to_string(machine.path("hello/dags/hello.py")).expect("the file is there");
    let line = 1 + text.lines().position(|line| line == "    greet(").expect("the broken line");
    terminal.sees(&format!("Broken: hello.py:{line}: SyntaxError: '(' was never closed"));

    say("it is stopped");
    terminal.types("q\n");
    terminal.sees("Stopped.");
    assert_eq!(terminal.ends(), Some(0), "{}", terminal.all);
    assert!(!PathBuf::from(format!("/proc/{server}")).exists(), "the server has stopped");
    assert_eq!(machine.server(), None, "no server is recorded");
    assert_eq!(kill_environments(&machine.state().join("data")), 0, "nothing of the environment runs");
    say("done");
}
