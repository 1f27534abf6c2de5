//! Commands that call a server: what they print, where, and how they end.

mod airflow;
mod alerts;
mod changes;
mod comparing;
#[cfg(target_os = "linux")]
mod completing;
mod declaring;
mod deploying;
#[cfg(target_os = "linux")]
mod developing;
mod events;
mod exporting;
#[cfg(target_os = "linux")]
mod following;
mod guides;
mod mistakes;
mod newer_server;
mod operator;
mod planning;
mod project;
mod recorded_airflow;
#[cfg(target_os = "linux")]
mod scripted;
mod signing_in;
#[cfg(target_os = "linux")]
mod strictness;
#[cfg(target_os = "linux")]
mod terminal;
#[cfg(target_os = "linux")]
mod transcripts;
#[cfg(target_os = "linux")]
mod under_way;

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::program::{Ended, Installation, Program, finish};

/// A server, and somebody at a keyboard with settings and a folder of their own.
pub(crate) struct Desk {
    program: Program,
    installation: Installation,
    home: TempDir,
    url: String,
    token: String,
}

impl Desk {
    /// Starts a server; nobody has signed in yet.
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    /// Starts a server with options; nobody has signed in yet.
    fn with(options: &[&str]) -> Self {
        let installation = Installation::new();
        let program = installation.serve(options);
        let token = installation.read("owner-token").trim().to_owned();
        let url = format!("http://{}", program.address);
        let home = tempfile::tempdir().unwrap();
        Self { program, installation, home, url, token }
    }

    /// Starts a server and signs in as its owner.
    pub(crate) fn signed_in() -> Self {
        Self::signed_in_with(&[])
    }

    /// Starts a server with options and signs in as its owner.
    fn signed_in_with(options: &[&str]) -> Self {
        let desk = Self::with(options);
        let done = desk.run_with(&["login", &desk.url], &desk.token);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        desk
    }

    /// Kills the server and starts it again at the same address.
    pub(crate) fn restart(&mut self) {
        self.program.crash();
        let address = self.program.address.to_string();
        self.installation.set("PODIUM_LISTEN", &address);
        self.program = self.installation.serve(&[]);
    }

    pub(crate) fn folder(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn settings(&self) -> PathBuf {
        self.home.path().join("settings")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podium"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PODIUM_")) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.home.path()).env("PODIUM_CONFIG_DIR", self.settings());
        command.env("NO_COLOR", "1").env("GIT_CEILING_DIRECTORIES", std::env::temp_dir());
        command
    }

    /// A line for a shell that finds the program.
    fn shell(&self, line: &str) -> Command {
        self.furnish(on_pipes(line))
    }

    /// Gives a shell what the person at the desk has: the program, settings and a folder.
    fn furnish(&self, mut command: Command) -> Command {
        command.current_dir(self.folder()).env("PATH", search_path());
        command.env("PODIUM_CONFIG_DIR", self.settings());
        command.env("GIT_CEILING_DIRECTORIES", std::env::temp_dir());
        command.env("URL", &self.url).env("TOKEN", &self.token);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        self.run_with(arguments, "")
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &str) -> Ended {
        finish(self.command(arguments), input)
    }

    /// Runs a command with variables.
    pub(crate) fn run_as(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ended {
        let mut command = self.command(arguments);
        command.envs(variables.iter().copied());
        finish(command, "")
    }

    /// Standard output of a command that must succeed.
    pub(crate) fn shown(&self, arguments: &[&str]) -> String {
        let done = self.run(arguments);
        assert_eq!(done.code, Some(0), "{arguments:?}: {}", done.stderr);
        done.stdout
    }

    /// The same as JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let all = [arguments, &["--output", "json"]].concat();
        serde_json::from_str(&self.shown(&all)).expect("JSON")
    }

    /// Checks that a command ends so, and says this.
    #[track_caller]
    pub(crate) fn refuses(&self, arguments: &[&str], code: i32, expected: &str) {
        let done = self.run(arguments);
        let said = self.plain(&done.stderr);
        assert_eq!((done.code, done.stdout.as_str()), (Some(code), ""), "{arguments:?}: {said}");
        assert_eq!(said, expected, "{arguments:?}");
    }

    /// A text in which what differs from run to run is replaced.
    pub(crate) fn plain(&self, text: &str) -> String {
        let text = text.replace(&self.url, "URL").replace(&self.home.path().display().to_string(), "HOME");
        requests_masked(&text)
    }
}

/// A text in which the ids of requests are replaced.
fn requests_masked(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(", request ") {
        Some((start, _)) => format!("{start}, request ID\n"),
        None => format!("{line}\n"),
    });
    lines.collect()
}

/// A line for a shell whose output is piped; it fails if any part of it does.
fn on_pipes(line: &str) -> Command {
    let mut command = Command::new("bash");
    command.args(["-o", "pipefail", "-c", line]);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PODIUM_")) {
        command.env_remove(name);
    }
    command
}

/// Where a shell looks for programs: first where the one under test is.
fn search_path() -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_podium")).parent().unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default())
}
