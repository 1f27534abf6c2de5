//! `cargo xtask mutate`: rules broken on purpose, one at a time; the tests that guard a rule must fail when it is broken.
//!
//! They are listed in `mutations.txt`. Each mutation is made in a copy of the workspace. It must compile, and the tests named beside it must fail. The quick
//! part, which `cargo xtask test` runs, breaks all rules of `podium-domain` at once, so that it compiles one crate once.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::outcome::{Outcome, While};
use crate::workspace::{cargo, root, scratch, target};

/// A rule broken on purpose.
struct Mutation {
    /// What goes wrong.
    what: &'static str,
    file: &'static str,
    from: &'static str,
    to: &'static str,
    /// The tests that must fail.
    guarded_by: Tests,
}

/// Tests of one crate, by the beginning of their paths.
#[derive(Clone, Copy)]
enum Tests {
    /// Unit tests of `podium-domain`.
    Domain(&'static str),
    /// Tests over HTTP, on SQLite.
    Http(&'static str),
}

impl Tests {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Domain(prefix) | Self::Http(prefix) => prefix,
        }
    }

    fn command(self) -> Command {
        let mut command = match self {
            Self::Domain(_) => cargo(&["test", "--package", "podium-domain", "--lib"]),
            Self::Http(_) => cargo(&["test", "--package", "podium-http", "--test", "it"]),
        };
        command.args(["--no-fail-fast", "--", self.prefix(), "--skip", "postgres"]);
        command
    }

    const fn is_quick(self) -> bool {
        matches!(self, Self::Domain(_))
    }
}

impl Mutation {
    /// All that are listed, which stand apart from each other and from the comment above them.
    fn all() -> Outcome<Vec<Self>> {
        let listed = include_str!("../mutations.txt").split("\n\n").skip(1);
        listed.map(|text| Self::read(text).ok_or_else(|| format!("this is no mutation:\n{text}"))).collect()
    }

    fn read(text: &'static str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let [what, place, from, to] = lines[..] else { return None };
        let place: Vec<&str> = place.split(' ').collect();
        let (guarded_by, file) = match place[..] {
            ["domain", tests, file] => (Tests::Domain(tests), file),
            ["http", tests, file] => (Tests::Http(tests), file),
            _ => return None,
        };
        let (from, to) =
            (from.strip_prefix("- ")?, to.strip_prefix('+')?.strip_prefix(' ').unwrap_or_default());
        Some(Self { what, file, from, to, guarded_by })
    }
}

/// Breaks each rule by itself, or only those in files whose paths contain one of these texts, and reports what no test
/// noticed.
pub(crate) fn run(only: &[&str]) -> Outcome {
    let copy = Copy::new()?;
    let is_chosen =
        |mutation: &&Mutation| only.is_empty() || only.iter().any(|text| mutation.file.contains(text));
    let all = Mutation::all()?;
    let chosen: Vec<&Mutation> = all.iter().filter(is_chosen).collect();
    for mutation in &chosen {
        if let Some(failed) = copy.test(mutation.guarded_by)?.first() {
            return Err(format!("{failed} fails before anything is broken"));
        }
    }
    let mut unnoticed = Vec::new();
    for mutation in &chosen {
        copy.break_rule(mutation)?;
        let failed =
            copy.test(mutation.guarded_by).map_err(|failure| format!("{}: {failure}", mutation.what))?;
        copy.restore(mutation)?;
        println!("{}: {}", if failed.is_empty() { "NOT NOTICED" } else { "noticed" }, mutation.what);
        if failed.is_empty() {
            unnoticed.push(mutation.what);
        }
    }
    report(chosen.len(), &unnoticed)
}

/// Breaks all rules of `podium-domain` at once; the tests of each broken rule must fail. The other mutations must still
/// fit the source, so that the full run does not rot.
pub(crate) fn quick() -> Outcome {
    let (copy, all) = (Copy::new()?, Mutation::all()?);
    for mutation in &all {
        copy.break_rule(mutation)?;
        if !mutation.guarded_by.is_quick() {
            copy.restore(mutation)?;
        }
    }
    let failed = copy.test(Tests::Domain(""))?;
    let broken: Vec<&Mutation> = all.iter().filter(|mutation| mutation.guarded_by.is_quick()).collect();
    let is_noticed =
        |mutation: &&&Mutation| failed.iter().any(|name| name.starts_with(mutation.guarded_by.prefix()));
    let unnoticed: Vec<&str> =
        broken.iter().filter(|mutation| !is_noticed(mutation)).map(|mutation| mutation.what).collect();
    report(broken.len(), &unnoticed)
}

fn report(count: usize, unnoticed: &[&str]) -> Outcome {
    if unnoticed.is_empty() {
        println!("all {count} mutations were noticed");
        return Ok(());
    }
    Err(format!("no test noticed: {}", unnoticed.join("; ")))
}

/// A copy of the sources to break. Compiled dependencies are shared with the workspace.
struct Copy {
    root: PathBuf,
    target: PathBuf,
}

impl Copy {
    fn new() -> Outcome<Self> {
        let copy = Self { root: scratch()?.join("mutated"), target: target()? };
        copy_sources(&root(), &copy.root)?;
        Ok(copy)
    }

    fn break_rule(&self, mutation: &Mutation) -> Outcome {
        let path = self.root.join(mutation.file);
        let text = fs::read_to_string(&path).doing(mutation.file)?;
        if text.matches(mutation.from).count() != 1 {
            return Err(format!("{}: `{}` must occur once", mutation.file, mutation.from));
        }
        fs::write(&path, text.replacen(mutation.from, mutation.to, 1)).doing(mutation.file)
    }

    fn restore(&self, mutation: &Mutation) -> Outcome {
        // Written, not copied with its times: Cargo builds again what is newer than the last build.
        let text = fs::read(root().join(mutation.file)).doing(mutation.file)?;
        fs::write(self.root.join(mutation.file), text).doing(mutation.file)
    }

    /// The tests that fail. They must compile, and there must be some.
    fn test(&self, tests: Tests) -> Outcome<Vec<String>> {
        let mut command = tests.command();
        command.current_dir(&self.root).env("CARGO_TARGET_DIR", &self.target).stderr(Stdio::piped());
        let output = command.output().doing("cargo test")?;
        let said = String::from_utf8_lossy(&output.stdout);
        let results: Vec<(&str, &str)> = said
            .lines()
            .filter_map(|line| line.strip_prefix("test ")?.rsplit_once(" ... "))
            .filter(|(name, _)| name.starts_with(tests.prefix()))
            .collect();
        if results.is_empty() {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("no test `{}` ran: {errors}", tests.prefix()));
        }
        Ok(results
            .iter()
            .filter(|(_, result)| *result == "FAILED")
            .map(|(name, _)| (*name).to_owned())
            .collect())
    }
}

/// Copies what git does not ignore, and leaves what is the same as it is.
fn copy_sources(from: &Path, to: &Path) -> Outcome {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(from)
        .output()
        .doing("git ls-files")?;
    for name in String::from_utf8_lossy(&listed.stdout).lines() {
        let (source, copy): (PathBuf, PathBuf) = (from.join(name), to.join(name));
        if let Some(parent) = copy.parent() {
            fs::create_dir_all(parent).doing(name)?;
        }
        let bytes = fs::read(&source).doing(name)?;
        if fs::read(&copy).ok().as_deref() != Some(bytes.as_slice()) {
            fs::write(&copy, bytes).doing(name)?;
        }
    }
    Ok(())
}
