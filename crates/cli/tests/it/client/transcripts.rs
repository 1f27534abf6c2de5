//! What every command prints, where, and how it ends: transcripts that are committed, and typed again by these tests.
//!
//! A transcript holds lines that are typed (`$ `), what they print on standard output (`| `) and on standard error (`! `), and
//! their exit code where it is not 0 (`= `). On a terminal both come on the same screen. `UPDATE_TRANSCRIPTS=1` writes them
//! anew: read the difference.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::Desk;
use crate::program::{Ended, finish};
use crate::terminals::on_terminal;

/// Commands that other tests type: they open an installation, need Airflow, or have no end.
const ELSEWHERE: &[&str] = &[
    "backup",
    "dag get",
    "dag list",
    "dag pause",
    "dag trigger",
    "dag unpause",
    "dev",
    "event follow",
    "ip-range reset",
    "login",
    "node forget",
    "node list",
    "owner-password",
    "owner-token new",
    "restore",
    "run get",
    "run list",
    "run logs",
    "run wait",
    "serve",
    "signing-key rotate",
    "work",
];

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/client/transcripts").join(name)
}

/// The lines of a transcript that are typed.
fn typed(transcript: &str) -> impl Iterator<Item = &str> {
    transcript.lines().filter_map(|line| line.strip_prefix("$ "))
}

/// Types every line of a transcript, and compares what comes.
fn check(name: &str, desk: &Desk, run: impl Fn(&str) -> Ended) {
    let expected = std::fs::read_to_string(file(name)).unwrap();
    let mut seen = String::new();
    for line in expected.lines() {
        let Some(command) = line.strip_prefix("$ ") else {
            // Headings and empty lines are kept.
            if line.starts_with('#') || line.is_empty() {
                seen.push_str(&format!("{line}\n"));
            }
            continue;
        };
        let done = run(command);
        seen.push_str(&format!("$ {command}\n"));
        for (mark, text) in [("|", &done.stdout), ("!", &done.stderr)] {
            for line in desk.plain(text).lines().map(masked).filter(|line| !is_passing(line)) {
                seen.push_str(format!("{mark} {line}").trim_end());
                seen.push('\n');
            }
        }
        if done.code != Some(0) {
            seen.push_str(&format!("= {}\n", done.code.unwrap_or(-1)));
        }
    }
    if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
        std::fs::write(file(name), &seen).unwrap();
    }
    let differs = expected.lines().zip(seen.lines()).position(|(one, other)| one != other);
    if let Some(at) = differs.or((expected != seen).then_some(usize::MAX)) {
        let around =
            |text: &str| text.lines().skip(at.saturating_sub(3)).take(10).collect::<Vec<_>>().join("\n");
        panic!("{name}:\n{}\n--- but now:\n{}", around(&expected), around(&seen));
    }
}

/// A line in which what differs from run to run is replaced.
fn masked(line: &str) -> String {
    let is_id = |word: &str| {
        word.len() == 25 && word.starts_with('c') && word.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let is_time = |word: &str| word.len() == 24 && word.ends_with('Z') && word.as_bytes()[10] == b'T';
    let (mut masked, mut word) = (String::new(), String::new());
    for c in line.chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.' | '_') {
            word.push(c);
            continue;
        }
        let bare = word.trim_end_matches(['.', ':']);
        let rest = &word[bare.len()..];
        match bare {
            bare if is_id(bare) => masked.push_str(&format!("ID{rest}")),
            bare if is_time(bare) => masked.push_str(&format!("TIME{rest}")),
            bare if bare.len() > 60 => masked.push_str("SECRET"),
            bare if bare.starts_with("whsec_") => masked.push_str("SECRET"),
            _ => masked.push_str(&word),
        }
        word.clear();
        masked.extend(Some(c).filter(|c| *c != '\n'));
    }
    masked
}

/// Whether a line is about something that is going on: how much of that is seen depends on the machine.
fn is_passing(line: &str) -> bool {
    let is_of_operation =
        line.contains(" of ") && (line.ends_with(": PENDING") || line.contains(": RUNNING"));
    line.contains(" is CREATING") || line.contains(" is DEPLOYING") || is_of_operation
}

/// A shell that finds the program, with the settings of the desk.
fn shell(desk: &Desk, mut command: Command) -> Command {
    let bin = Path::new(env!("CARGO_BIN_EXE_podium")).parent().unwrap();
    let search = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PODIUM_")) {
        command.env_remove(name);
    }
    command.current_dir(desk.folder()).env("PATH", search).env("PODIUM_CONFIG_DIR", desk.settings());
    command.env("GIT_CEILING_DIRECTORIES", std::env::temp_dir()).env("URL", &desk.url);
    command
}

fn desk() -> Desk {
    let desk = Desk::with(&["--webhook-allow", "127.0.0.0/8"]);
    let done = desk.run_with(&["login", &desk.url, "--name", "here"], &desk.token);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    desk
}

#[test]
fn what_commands_print_into_a_pipe() {
    let desk = desk();
    check("piped.txt", &desk, |line| {
        let mut command = Command::new("bash");
        command.args(["-c", line]);
        finish(shell(&desk, command), "")
    });
}

#[test]
fn what_commands_print_on_a_terminal() {
    let desk = desk();
    check("terminal.txt", &desk, |line| {
        let done = finish(shell(&desk, on_terminal(line, desk.folder())), "");
        // Escape sequences are made visible.
        let stdout = done.stdout.replace('\r', "").replace('\u{1b}', "␛");
        Ended { stdout, ..done }
    });
}

#[test]
fn every_command_has_a_transcript() {
    let desk = Desk::new();
    desk.shown(&["manual", "man"]);
    let pages = std::fs::read_dir(desk.folder().join("man")).unwrap().flatten();
    let pages: Vec<String> = pages.map(|page| page.file_name().to_str().unwrap().replace(".1", "")).collect();
    // Of the nouns with verbs, only `deploy` does something on its own.
    let has_verbs = |page: &str| pages.iter().any(|other| other.starts_with(&format!("{page}-")));
    let is_leaf = |page: &&String| *page == "podium-deploy" || !has_verbs(page);
    let piped = std::fs::read_to_string(file("piped.txt")).unwrap();
    let all = format!(" {} ", typed(&piped).collect::<Vec<_>>().join("  "));
    let elsewhere: Vec<String> = ELSEWHERE.iter().map(|name| name.replace(' ', "-")).collect();
    let missing: Vec<&String> = pages
        .iter()
        .filter(is_leaf)
        .filter(|page| {
            let name = page.trim_start_matches("podium-");
            let words = format!("podium {}", spoken(name));
            !elsewhere.iter().any(|known| known == name) && !all.contains(&format!(" {words} "))
        })
        .collect();
    assert_eq!(missing, Vec::<&String>::new(), "add them to transcripts/piped.txt, or to ELSEWHERE");
}

/// The words of a command whose page has this name; some words have hyphens themselves.
fn spoken(name: &str) -> String {
    const HYPHENED: &[&str] =
        &["ip-range", "end-override", "rotate-secret", "owner-password", "owner-token", "signing-key"];
    let held =
        HYPHENED.iter().fold(name.to_owned(), |name, word| name.replace(word, &word.replace('-', "_")));
    held.replace('-', " ").replace('_', "-")
}
