//! Names that are completed in shells: the scripts are run by the shells that they are for.

use std::os::unix::fs::symlink;
use std::process::Command;

use super::Desk;
use crate::terminals::{Terminal, on_terminal};

/// A desk with things that have names, and the scripts of the shells.
fn desk() -> Desk {
    let desk = Desk::signed_in();
    for name in ["My reports", "Marketing", "$(touch stolen)"] {
        desk.shown(&["workspace", "create", name]);
    }
    for name in ["nightly", "nightly-eu", "hourly"] {
        desk.shown(&["deployment", "create", name, "--workspace", "Default", "--wait"]);
    }
    desk.shown(&["team", "create", "Analysts"]);
    desk.shown(&["token", "create", "ci", "--role", "owner"]);
    std::fs::create_dir(desk.folder().join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_podium"), desk.folder().join("bin/podium")).unwrap();
    for shell in ["bash", "zsh", "fish"] {
        std::fs::write(desk.folder().join(shell), desk.shown(&["completion", shell])).unwrap();
    }
    desk
}

impl Desk {
    /// Where shells look for programs.
    fn search_path(&self) -> String {
        let others = std::env::var("PATH").unwrap_or_default();
        format!("{}:{others}", self.folder().join("bin").display())
    }

    /// What a shell writes when it runs a script.
    fn scripted(&self, shell: &str, options: &[&str], script: &str) -> String {
        let mut command = Command::new(shell);
        command.args(options).args(["-c", script]).current_dir(self.folder());
        command.env("PATH", self.search_path()).env("PODIUM_CONFIG_DIR", self.settings());
        command.env("HOME", self.folder()).env_remove("PODIUM_URL").env_remove("PODIUM_TOKEN");
        let done = command.output().unwrap_or_else(|error| panic!("{shell}: {error}"));
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(String::from_utf8_lossy(&done.stderr), "", "{shell} is told nothing else");
        String::from_utf8(done.stdout).unwrap()
    }

    /// What bash offers for the last of these words.
    fn offered(&self, words: &[&str]) -> Vec<String> {
        let typed = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let last = words.len() - 1;
        let script = format!(
            "source ./bash; COMP_WORDS=({typed}); COMP_CWORD={last}; COMP_TYPE=9; compopt() {{ :; }}
             _clap_complete_podium podium '{}' '{}'; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words[last],
            words[last - 1]
        );
        let said = self.scripted("bash", &["--norc", "--noprofile"], &script);
        said.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// Somebody at the prompt of a shell.
    fn at_prompt(&self, shell: &str) -> Terminal {
        let mut command = on_terminal(shell, self.folder());
        command.env("PATH", self.search_path()).env("PODIUM_CONFIG_DIR", self.settings());
        command.env("HOME", self.folder()).env("PS1", "ready> ").env("TERM", "dumb");
        Terminal::start(command)
    }
}

/// Whether a shell can be had here; xtask installs those that it can.
fn is_installed(shell: &str) -> bool {
    let is_there = Command::new(shell).arg("--version").output().is_ok_and(|done| done.status.success());
    if !is_there {
        eprintln!("SKIPPED: {shell} is not installed");
    }
    is_there
}

#[test]
fn bash_completes_names_that_there_are() {
    let desk = desk();
    assert_eq!(desk.offered(&["podium", "deployment", "get", "ni"]), ["nightly", "nightly-eu"]);
    assert_eq!(desk.offered(&["podium", "deployment", "delete", "nightly", "ho"]), ["hourly"]);
    assert_eq!(desk.offered(&["podium", "logs", "--deployment", "h"]), ["hourly"]);
    assert_eq!(desk.offered(&["podium", "team", "get", "a"]), ["Analysts"], "as names are found");
    assert_eq!(desk.offered(&["podium", "user", "get", "ow"]), ["owner@localhost"]);
    assert_eq!(desk.offered(&["podium", "token", "rotate", "c"]), ["ci"]);
    let context = desk.offered(&["podium", "context", "use", "1"]);
    assert_eq!(context.len(), 1, "{context:?}");
    assert_eq!(desk.offered(&["podium", "workspace", "list", "--context", "1"]), context);
    assert_eq!(desk.offered(&["podium", "workspace", "get", "My"]), ["My\\ reports"]);
    assert_eq!(desk.offered(&["podium", "workspace", "get", "$"]), ["\\$\\(touch\\ stolen\\)"]);
    assert_eq!(desk.offered(&["podium", "deployment", "hib"]), ["hibernate"], "and commands");
    assert_eq!(desk.offered(&["podium", "deployment", "create", "ni"]), [""; 0], "a new name is nobody's");
}

#[test]
fn nothing_is_said_where_there_are_no_names() {
    let mut desk = desk();
    assert_eq!(desk.offered(&["podium", "deployment", "get", "--context", "gone", "ni"]), [""; 0]);
    desk.program.crash();
    assert_eq!(desk.offered(&["podium", "deployment", "get", "ni"]), [""; 0]);
    std::fs::remove_dir_all(desk.settings()).unwrap();
    assert_eq!(desk.offered(&["podium", "deployment", "get", "ni"]), [""; 0]);
}

#[test]
fn a_server_that_hangs_is_not_waited_for() {
    let desk = desk();
    desk.program.tell_to_stop("STOP");
    assert_eq!(desk.offered(&["podium", "deployment", "get", "ni"]), [""; 0]);
    desk.program.tell_to_stop("CONT");
}

#[test]
fn a_name_is_one_word_at_the_prompt_of_bash() {
    let desk = desk();
    let mut bash = desk.at_prompt("bash --norc --noprofile -i");
    bash.types("source ./bash; echo sour\"\"ced\n");
    bash.sees("sourced");
    for (typed, name) in [("My", "My reports"), ("\\$", "$(touch stolen)"), ("Mar", "Marketing")] {
        bash.types(&format!("podium workspace get {typed}\t --output name\n"));
        bash.sees(&format!("\n{name}\n"));
    }
    bash.types("exit\n");
    bash.ends();
    assert!(!desk.folder().join("stolen").exists(), "a name is no command: {}", bash.all);
}

#[test]
fn zsh_completes_names_that_there_are() {
    if !is_installed("zsh") {
        return;
    }
    let desk = desk();
    let mut zsh = desk.at_prompt("zsh -f -i");
    zsh.types("autoload -U compinit; compinit -u -D; source ./zsh; echo sour\"\"ced\n");
    zsh.sees("sourced");
    for (typed, name) in [("My", "My reports"), ("\\$", "$(touch stolen)"), ("Mar", "Marketing")] {
        zsh.types(&format!("podium workspace get {typed}\t --output name\n"));
        zsh.sees(&format!("\n{name}\n"));
    }
    zsh.types("exit\n");
    zsh.ends();
    assert!(!desk.folder().join("stolen").exists(), "a name is no command: {}", zsh.all);
}

#[test]
fn fish_completes_names_that_there_are() {
    if !is_installed("fish") {
        return;
    }
    let desk = desk();
    let offered = |typed: &str| {
        let script = format!("source ./fish; complete --do-complete 'podium {typed}'");
        desk.scripted("fish", &["--no-config"], &script)
    };
    assert_eq!(offered("deployment get ni"), "nightly\nnightly-eu\n");
    assert_eq!(offered("workspace get My"), "My reports\n");
    assert_eq!(offered("logs --deployment ho"), "hourly\n");
}
