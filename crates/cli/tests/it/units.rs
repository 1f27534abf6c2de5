//! The systemd units in `contrib/`: they start this program with flags that it has.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::Installation;

/// Where the units expect the program.
const INSTALLED: &str = "/usr/local/bin/podium";

fn units() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd")
}

#[test]
fn a_unit_starts_the_program_with_flags_that_it_has() {
    let unit = std::fs::read_to_string(units().join("podium.service")).unwrap();
    let started: Vec<Vec<&str>> = unit
        .lines()
        .filter_map(|line| line.strip_prefix("ExecStart=")?.strip_prefix(INSTALLED))
        .map(|arguments| arguments.split_whitespace().collect())
        .collect();
    let [arguments] = started.as_slice() else { panic!("it starts one program: {started:?}") };
    assert_eq!(arguments[0], "serve");
    let help = Installation::new().run(&["serve", "--help"]);
    assert_eq!(help.code, Some(0), "{}", help.stderr);
    let known: Vec<&str> = help.stdout.split(|c: char| c.is_whitespace() || c == ',').collect();
    let flags = arguments.iter().filter(|argument| argument.starts_with('-'));
    let flags: Vec<&str> = flags.map(|flag| flag.split('=').next().unwrap_or_default()).collect();
    assert!(flags.contains(&"--data-dir"), "{flags:?}");
    for flag in flags {
        assert!(known.contains(&flag), "podium serve has no {flag}");
    }
}

/// Without systemd there is nobody to ask.
#[cfg(target_os = "linux")]
#[test]
fn systemd_accepts_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!("systemd-analyze is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["podium.service", "podium.socket"] {
        let unit = std::fs::read_to_string(units().join(name)).unwrap();
        let unit = unit.replace(INSTALLED, env!("CARGO_BIN_EXE_podium"));
        std::fs::write(folder.path().join(name), unit).unwrap();
    }
    let checked =
        Command::new("systemd-analyze").arg("verify").arg(folder.path().join("podium.service")).output();
    let said = String::from_utf8(checked.unwrap().stderr).unwrap();
    // Other units of this machine are not ours to judge.
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("podium")).collect();
    assert_eq!(ours, Vec::<&str>::new());
}
