//! `cargo xtask test`: everything that must hold, cheapest first, stopping at the first failure.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::outcome::Outcome;
use crate::postgres::{Postgres, VARIABLE};
use crate::workspace::{cargo, must, scratch, works};
use crate::{airflow, console, contract, mutate, python, schemathesis, system, tidy, webhooks};

/// Runs all of it, or what the options leave.
pub(crate) fn run(options: &[&str]) -> Outcome {
    let quick = options.contains(&"--quick");
    let filter: Vec<&str> = options.iter().copied().filter(|option| *option != "--quick").collect();
    let mut steps = Steps::new();
    let result = if filter.is_empty() { everything(&mut steps, quick) } else { tests(&mut steps, &filter) };
    let total = seconds(steps.start.elapsed());
    match result {
        Ok(()) => {
            println!("\nall passed in {total}: {}", steps.summary());
            Ok(())
        }
        Err(failure) => Err(format!("FAILED at `{}` after {total}: {failure}", steps.current)),
    }
}

fn everything(steps: &mut Steps, quick: bool) -> Outcome {
    components(quick)?;
    steps.run("formatting", || must(&mut cargo(&["fmt", "--all", "--check"])))?;
    steps.run("tidy", tidy::run)?;
    if works(&mut cargo(&["deny", "--version"])) {
        steps.run("deny", || {
            must(&mut cargo(&["--offline", "deny", "check", "bans", "licenses", "sources"]))
        })?;
    }
    if !quick {
        let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        steps.run("clippy", || must(&mut cargo(&clippy)))?;
    }
    // All targets at once: the tests and the served program then share every compiled crate.
    steps.run("build", || must(&mut cargo(&["build", "--workspace", "--all-targets"])))?;
    steps.run("contract", contract::check)?;
    tests(steps, &[])?;
    if tidy::has_documentation_tests() {
        steps.run("documentation tests", || must(&mut cargo(&["test", "--workspace", "--doc"])))?;
    }
    if quick {
        return Ok(());
    }
    if !steps.run("console in a browser", console::run)? {
        steps.skipped.push("console in a browser");
    }
    steps.run("mutations", mutate::quick)?;
    let scratch = scratch()?;
    let tools = steps.run("python tools", || python::tools(&scratch))?;
    steps.run("openapi-spec-validator", || schemathesis::validate(&tools))?;
    steps.run("webhooks", || webhooks::run(&tools, &scratch))?;
    match steps.run("airflow, and schemathesis beside it", || airflow_and_schemathesis(&tools, &scratch))? {
        airflow::Ran::Passed => {}
        airflow::Ran::WithoutBrowser => steps.skipped.push("browser"),
        airflow::Ran::Skipped => steps.skipped.push("airflow"),
    }
    Ok(())
}

/// The one mostly waits and the other mostly works. What Schemathesis says is shown once both have ended.
fn airflow_and_schemathesis(tools: &Path, scratch: &Path) -> Outcome<airflow::Ran> {
    let said = scratch.join("schemathesis.log");
    let (ran, called) = std::thread::scope(|scope| {
        let calls = scope.spawn(|| schemathesis::run(tools, scratch, Some(&said)));
        (airflow::run(), calls.join().expect("it does not panic"))
    });
    print!("{}", fs::read_to_string(&said).unwrap_or_default());
    called?;
    ran
}

/// Adds the parts of the Rust toolchain that a minimal installation leaves out.
fn components(quick: bool) -> Outcome {
    let wanted: &[&str] = if quick { &["fmt"] } else { &["fmt", "clippy"] };
    if wanted.iter().all(|part| works(&mut cargo(&[part, "--version"]))) {
        return Ok(());
    }
    must(Command::new("rustup").args(["component", "add", "rustfmt", "clippy"]))
        .map_err(|failure| format!("rustfmt or clippy is missing: please install them; {failure}"))
}

/// Runs the tests that match the filter, with a PostgreSQL server.
fn tests(steps: &mut Steps, filter: &[&str]) -> Outcome {
    let mut command = if works(&mut cargo(&["nextest", "--version"])) {
        cargo(&["nextest", "run", "--workspace", "--no-fail-fast"])
    } else {
        cargo(&["test", "--workspace", "--all-targets", "--no-fail-fast"])
    };
    let mut server = None;
    if std::env::var_os(VARIABLE).is_none() {
        let postgres = steps.run("postgresql", || Postgres::start(&scratch()?))?;
        command.env(VARIABLE, &postgres.url);
        server = Some(postgres);
    }
    // Tests of the local data plane run a small server that is written in it. What needs it says so.
    if let Err(failure) = airflow::python() {
        println!("{failure}");
    }
    airflow::network();
    system::offer(&[("curl", "curl"), ("zsh", "zsh"), ("fish", "fish")]);
    let result = steps.run("tests", || must(command.args(filter)));
    drop(server);
    result
}

/// The steps so far: their names and durations.
struct Steps {
    start: Instant,
    current: &'static str,
    done: Vec<(&'static str, Duration)>,
    skipped: Vec<&'static str>,
}

impl Steps {
    fn new() -> Self {
        Self { start: Instant::now(), current: "start", done: Vec::new(), skipped: Vec::new() }
    }

    /// Announces a step, runs it and says how long it took.
    fn run<T>(&mut self, name: &'static str, step: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        println!("\n== {name}");
        self.current = name;
        let start = Instant::now();
        let result = step()?;
        println!("-- {name}: {}", seconds(start.elapsed()));
        self.done.push((name, start.elapsed()));
        Ok(result)
    }

    fn summary(&self) -> String {
        let mut line = String::new();
        for (name, duration) in &self.done {
            let comma = if line.is_empty() { "" } else { ", " };
            let _ = write!(line, "{comma}{name} {}", seconds(*duration));
        }
        if !self.skipped.is_empty() {
            let _ = write!(line, "; SKIPPED: {}", self.skipped.join(", "));
        }
        line
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}
