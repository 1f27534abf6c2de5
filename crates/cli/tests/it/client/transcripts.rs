//! What every command prints, where, and how it ends: transcripts that are committed, and typed again by these tests.
//!
//! A transcript holds lines that are typed (`$ `), what they print on standard output (`| `) and on standard error (`! `), and
//! their exit code where it is not 0 (`= `). On a terminal both come on the same screen. `UPDATE_TRANSCRIPTS=1` writes them
//! anew: read the difference.

use std::path::{Path, PathBuf};

use podium_testkit::Engine;

use super::scripted::Scripted;
use super::{Desk, on_pipes, requests_masked};
use crate::program::{Ended, finish};
use crate::terminals::on_terminal;

/// The transcripts of what is printed into a pipe.
const PIPED: &[&str] = &["piped.txt", "scripted.txt"];
/// The transcripts of what is printed on a terminal.
const ON_TERMINAL: &[&str] = &["terminal.txt", "piped-on-terminal.txt", "scripted-on-terminal.txt"];

/// Commands whose success no transcript shows, the file of the tests that show it, and why it is there.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("backup", "backups.rs", "it needs a server to copy"),
    ("dev", "client/developing.rs", "it has no end"),
    ("event follow", "client/events.rs", "it has no end"),
    ("ip-range reset", "commands.rs", "it opens an installation"),
    ("node forget", "nodes.rs", "it needs two machines"),
    ("node list", "nodes.rs", "it needs two machines"),
    ("owner-password", "commands.rs", "it opens an installation"),
    ("owner-token new", "commands.rs", "it opens an installation"),
    ("restore", "backups.rs", "it writes a new installation"),
    ("serve", "program.rs", "it has no end"),
    ("signing-key rotate", "commands.rs", "it opens an installation"),
    ("start", "operating.rs", "it opens an installation"),
    ("stop", "operating.rs", "it opens an installation"),
    ("work", "commands.rs", "it opens an installation"),
];

/// The command that takes the whole screen of a terminal, until a key ends it: see `terminal.rs`.
const WHOLE_SCREEN: &str = "top";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/client/transcripts").join(name)
}

/// The lines of a transcript that are typed, and whether they succeed.
fn typed(transcript: &str) -> Vec<(&str, bool)> {
    let mut all = Vec::new();
    for line in transcript.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            all.push((command, true));
        } else if let (true, Some(last)) = (line.starts_with("= "), all.last_mut()) {
            last.1 = false;
        }
    }
    all
}

/// Types every line of a transcript, and compares what comes.
fn check(name: &str, plain: impl Fn(&str) -> String, run: impl Fn(&str) -> Ended) {
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
            for line in plain(text).lines().map(masked).filter(|line| !is_passing(line)) {
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
    let (mut masked, mut word, mut is_style) = (String::new(), String::new(), false);
    for c in line.chars().chain(['\n']) {
        is_style |= c == '␛';
        if !is_style && (c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.' | '_')) {
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
        is_style &= c != 'm';
        masked.extend(Some(c).filter(|c| *c != '\n'));
    }
    masked
}

/// Whether a line is about something that is going on: how much of that is seen depends on the machine.
fn is_passing(line: &str) -> bool {
    let is_of_operation = line.contains(" of ")
        && ([": PENDING", ": RUNNING", ": SUCCEEDED"].iter().any(|state| line.contains(state)));
    let is_step = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase());
        is_name && words.next().is_some_and(|time| time.parse::<f64>().is_ok()) && words.eq(["s"])
    };
    line.contains(" is CREATING") || line.contains(" is DEPLOYING") || is_of_operation || is_step(line)
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
    check("piped.txt", |text| desk.plain(text), |line| finish(desk.shell(line), ""));
}

#[test]
fn what_commands_print_on_a_terminal() {
    let desk = desk();
    check(
        "terminal.txt",
        |text| desk.plain(text),
        |line| visible(finish(desk.furnish(on_terminal(line, desk.folder())), "")),
    );
}

/// What a terminal shows in the end, with its escape sequences made visible: a line that was cleared is gone.
fn visible(done: Ended) -> Ended {
    const CLEARED: &str = "\u{1b}[2K";
    let shown = |line: &str| line.rsplit(CLEARED).next().unwrap_or_default().to_owned();
    let stdout = done.stdout.split('\n').map(shown).collect::<Vec<_>>().join("\n");
    Ended { stdout: stdout.replace('\r', "").replace('\u{1b}', "␛"), ..done }
}

#[test]
fn what_the_same_commands_print_on_a_terminal() {
    let desk = desk();
    check(
        "piped-on-terminal.txt",
        |text| desk.plain(text),
        |line| visible(finish(desk.furnish(on_terminal(line, desk.folder())), "")),
    );
}

#[test]
fn what_commands_print_about_airflow_and_operations() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let scripted = Scripted::start(&app).await;
        check("scripted.txt", requests_masked, |line| finish(scripted.furnish(on_pipes(line)), ""));
    });
}

#[test]
fn what_the_same_commands_print_about_airflow_on_a_terminal() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let scripted = Scripted::start(&app).await;
        check("scripted-on-terminal.txt", requests_masked, |line| {
            visible(finish(scripted.furnish(on_terminal(line, scripted.folder())), ""))
        });
    });
}

#[test]
fn every_command_succeeds_in_a_transcript() {
    let desk = Desk::new();
    desk.shown(&["manual", "man"]);
    let pages = std::fs::read_dir(desk.folder().join("man")).unwrap().flatten();
    let pages: Vec<String> = pages.map(|page| page.file_name().to_str().unwrap().replace(".1", "")).collect();
    // Of the nouns with verbs, only `deploy` does something on its own.
    let has_verbs = |page: &str| pages.iter().any(|other| other.starts_with(&format!("{page}-")));
    let is_leaf = |page: &&String| *page == "podium-deploy" || !has_verbs(page);
    let names: Vec<String> = pages
        .iter()
        .filter(is_leaf)
        .map(|page| spoken(page.trim_start_matches("podium-")))
        .filter(|name| name != "podium")
        .collect();
    for files in [PIPED, ON_TERMINAL] {
        let read = |name: &&str| std::fs::read_to_string(file(name)).unwrap();
        let transcripts = files.iter().map(read).collect::<Vec<_>>().join("\n");
        let typed = typed(&transcripts);
        let succeeds = |name: &str| {
            let words = format!("podium {name} ");
            typed.iter().any(|(line, is_success)| *is_success && format!("{line} ").contains(&words))
        };
        let is_whole_screen = |name: &str| files == ON_TERMINAL && name == WHOLE_SCREEN;
        let is_elsewhere = |name: &str| ELSEWHERE.iter().any(|(known, ..)| *known == name);
        let is_missing =
            |name: &&String| !succeeds(name) && !is_elsewhere(name) && !is_whole_screen(name.as_str());
        let missing: Vec<&String> = names.iter().filter(is_missing).collect();
        assert_eq!(
            missing,
            Vec::<&String>::new(),
            "{files:?}: show their success in a transcript, or name the test in ELSEWHERE"
        );
        for (name, _, why) in ELSEWHERE {
            assert!(!succeeds(name), "{name}: a transcript shows it, so it is not elsewhere ({why})");
        }
    }
    for (name, tests, _) in ELSEWHERE {
        assert!(names.iter().any(|known| known == name), "{name}: there is no such command");
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(tests);
        let quoted = name.split(' ').map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", ");
        let text = std::fs::read_to_string(&tests).unwrap_or_default();
        assert!(text.contains(&quoted), "{name}: {} does not type it", tests.display());
    }
}

/// The words of a command whose page has this name; some words have hyphens themselves.
fn spoken(name: &str) -> String {
    const HYPHENED: &[&str] =
        &["ip-range", "end-override", "rotate-secret", "owner-password", "owner-token", "signing-key"];
    let held =
        HYPHENED.iter().fold(name.to_owned(), |name, word| name.replace(word, &word.replace('-', "_")));
    held.replace('-', " ").replace('_', "-")
}
