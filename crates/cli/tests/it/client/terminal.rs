//! On a terminal: questions, and colours.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use super::Desk;
use super::signing_in::decide;
use crate::program::finish;
use crate::terminals::Terminal;

fn on_terminal(desk: &Desk, command: &str) -> Command {
    let line = format!("stty rows 24 cols 120; exec {} {command}", env!("CARGO_BIN_EXE_podium"));
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(desk.folder());
    script.env("PODIUM_CONFIG_DIR", desk.settings()).env("TERM", "xterm");
    for name in ["BROWSER", "DISPLAY", "WAYLAND_DISPLAY"] {
        script.env_remove(name);
    }
    script
}

/// Runs a command on a terminal, where this is typed.
fn typed(desk: &Desk, command: &str, typed: &str) -> (Option<i32>, String) {
    let done = finish(on_terminal(desk, command), typed);
    (done.code, done.stdout)
}

#[test]
fn a_deletion_is_asked_about() {
    let desk = Desk::signed_in();
    desk.shown(&["workspace", "create", "Old"]);
    let (code, said) = typed(&desk, "workspace delete Old", "no\n");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Delete workspace Old? [y/N] podium: nothing was changed"), "{said}");
    assert_eq!(desk.run(&["workspace", "get", "Old"]).code, Some(0));
    let (code, said) = typed(&desk, "workspace delete Old", "y\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("Deleted workspace Old."), "{said}");
    assert_eq!(desk.run(&["workspace", "get", "Old"]).code, Some(3));
}

#[test]
fn ctrl_c_ends_the_program_also_after_it_has_waited() {
    let desk = Desk::signed_in();
    let file = "\
workspaces:
  - { name: Big, defaultCluster: main }
clusters:
  - { name: main, type: DEDICATED, cloudProvider: AWS, region: us-east-1, vpcSubnetRange: 172.20.0.0/20 }
deployments:
  - { name: nightly, workspace: Big }
";
    std::fs::write(desk.folder().join("file.yaml"), file).unwrap();
    let mut applying = Terminal::start(on_terminal(&desk, "apply -f file.yaml --in-parts"));
    applying.sees("Apply this plan? [y/N] ");
    applying.types("y\n");
    // It has waited for the cluster before it asks again.
    applying.sees("Applied: 2 created");
    applying.sees("Apply this plan? [y/N] ");
    applying.types("\u{3}");
    assert_eq!(applying.ends(), Some(130), "{}", applying.all);
    assert_eq!(desk.run(&["deployment", "get", "nightly"]).code, Some(3));
}

#[test]
fn colours_are_for_terminals() {
    let desk = Desk::signed_in();
    let (_, shown) = typed(&desk, "workspace list", "");
    assert!(shown.contains("\u{1b}[1mNAME"), "{shown:?}");
    let (_, plain) = typed(&desk, "workspace list --output json", "");
    assert!(!plain.contains('\u{1b}'), "{plain:?}");
    assert!(!desk.shown(&["workspace", "list"]).contains('\u{1b}'));
}

#[test]
fn a_token_that_is_typed_is_not_shown() {
    let desk = Desk::new();
    let mut command = on_terminal(&desk, &format!("login {}", desk.url));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = Vec::new();
    let mut screen = child.stdout.take().unwrap();
    // What is typed before the question is thrown away.
    while !said.ends_with(b"Token (empty to use a password): ") {
        let mut byte = [0];
        screen.read_exact(&mut byte).unwrap();
        said.push(byte[0]);
    }
    let mut keyboard = child.stdin.take().unwrap();
    keyboard.write_all(format!("{}\n", desk.token).as_bytes()).unwrap();
    screen.read_to_end(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(!String::from_utf8(said).unwrap().contains(&desk.token));
    assert_eq!(desk.shown(&["whoami", "--output", "name"]), "owner@localhost\n");
}

#[test]
fn a_browser_is_opened_where_there_is_one() {
    let desk = Desk::new();
    let browser = desk.folder().join("browser");
    std::fs::write(&browser, "#!/bin/sh\necho \"$1\" > opened\n").unwrap();
    std::fs::set_permissions(&browser, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let mut command = on_terminal(&desk, &format!("login {}", desk.url));
    command.env("BROWSER", &browser).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut screen = child.stdout.take().unwrap();
    let mut said = Vec::new();
    while !said.ends_with(b"if the page shows the code ") {
        let mut byte = [0];
        screen.read_exact(&mut byte).unwrap();
        said.push(byte[0]);
    }
    let opened = std::fs::read_to_string(desk.folder().join("opened")).unwrap();
    let (page, code) = opened.trim().split_once("?code=").unwrap();
    assert_eq!(page, format!("{}/sign-in/device", desk.url));
    decide(&desk, code, "APPROVE");
    screen.read_to_end(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{}", String::from_utf8_lossy(&said));
    assert_eq!(desk.shown(&["whoami", "--output", "name"]), "owner@localhost\n");
}

#[test]
fn the_whole_screen_shows_deployments_as_they_change() {
    let desk = Desk::signed_in();
    desk.shown(&["deployment", "create", "nightly", "--workspace", "Default", "--wait"]);
    let mut command = on_terminal(&desk, "top");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut keyboard, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut said = Vec::new();
    let mut read_to = |text: &str| {
        while !String::from_utf8_lossy(&said).contains(text) {
            let mut byte = [0];
            screen.read_exact(&mut byte).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&said)));
            said.push(byte[0]);
        }
    };
    read_to("nightly");
    desk.shown(&["deployment", "create", "hourly", "--workspace", "Default"]);
    read_to("hourly");
    keyboard.write_all(b"q").unwrap();
    screen.read_to_end(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(String::from_utf8_lossy(&said).contains("\u{1b}[?1049l"), "what was on the terminal comes back");
}

#[test]
fn the_whole_screen_is_left_while_the_server_does_not_answer() {
    let desk = Desk::signed_in();
    desk.shown(&["deployment", "create", "nightly", "--workspace", "Default", "--wait"]);
    for key in [b"q", b"\x03"] {
        let mut command = on_terminal(&desk, "top");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut keyboard, mut screen) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut said = Vec::new();
        while !String::from_utf8_lossy(&said).contains("nightly") {
            let mut byte = [0];
            screen.read_exact(&mut byte).unwrap();
            said.push(byte[0]);
        }
        desk.program.tell_to_stop("STOP");
        keyboard.write_all(key).unwrap();
        screen.read_to_end(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{}", String::from_utf8_lossy(&said));
        desk.program.tell_to_stop("CONT");
    }
}

#[test]
fn without_a_terminal_the_view_is_a_table() {
    let desk = Desk::signed_in();
    desk.shown(&["deployment", "create", "nightly", "--workspace", "Default", "--wait"]);
    let shown = desk.shown(&["top"]);
    let lines: Vec<Vec<&str>> = shown.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0], ["NAME", "WORKSPACE", "STATUS", "RUNTIME", "MEMORY", "RUNS", "OPERATION", "REASON"]);
    assert_eq!((lines.len(), &lines[1][..3]), (2, &["nightly", "Default", "HEALTHY"][..]), "{shown}");
    assert_eq!(desk.json(&["top"])[0]["name"], "nightly");
    assert_eq!(desk.shown(&["top", "--workspace", "Default", "--output", "name"]), "nightly\n");
}
