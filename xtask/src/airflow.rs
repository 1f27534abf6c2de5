//! `cargo xtask airflow`: the test that runs Apache Airflow for real, from an empty data directory until nothing is left.
//!
//! It needs a good part of the machine, so it runs after the other tests; and Python, which is installed by its package name
//! where that is possible. Without any it is skipped, and counted as skipped. So is the part of it that uses a browser.

use std::process::Command;

use crate::outcome::Outcome;
use crate::postgres::{Postgres, VARIABLE};
use crate::system;
use crate::workspace::{cargo, must, scratch, works};

/// Those of a row run one after the other, the rows side by side.
const TESTS: &[&[&str]] = &[
    &["airflow::deployments_really_run"],
    &[
        "airflow::an_environment_runs_on_one_of_several_nodes",
        "airflow::strict_deploys_and_forced_drains",
        "airflow::scheduled_runs_lose_no_attempt",
        "airflow::tasks_of_workers_lose_no_attempt",
    ],
    &[
        "airflow::a_project_with_packages",
        "airflow::from_an_empty_machine_to_a_running_dag",
        "airflow::a_person_works_at_the_console",
    ],
];
const ALL_RUNTIMES: &[&[&str]] = &[&["airflow::runtimes::"]];
const ROUNDS: &[&[&str]] = &[
    &["airflow::rounds::updates_do_not_hurt_tasks"],
    &["airflow::rounds::what_is_reported_as_live_is_what_runs"],
];

/// The outcome of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    Passed,
    /// It passed, but without the browser part.
    WithoutBrowser,
    /// What it needs is not available.
    Skipped,
}

/// Runs the test, or says why it cannot be run.
pub(crate) fn run() -> Outcome<Ran> {
    run_tests(TESTS, None)
}

/// Repeats what one round shows in the other tests: as often as they say, or this often.
pub(crate) fn rounds(options: &[&str]) -> Outcome<Ran> {
    let count = match options {
        [] => None,
        [text] if text.parse::<u32>().is_ok_and(|count| count > 0) => Some(*text),
        other => {
            return Err(format!("`airflow --rounds` takes a number above zero, not `{}`", other.join(" ")));
        }
    };
    run_tests(ROUNDS, count.map(|count| ("PODIUM_ROUNDS", count)))
}

/// Proves every runtime that is offered, or only these.
pub(crate) fn all_runtimes(only: &[&str]) -> Outcome<Ran> {
    run_tests(ALL_RUNTIMES, Some(("PODIUM_TEST_RUNTIMES", &only.join(","))))
}

fn run_tests(tests: &[&[&str]], variable: Option<(&str, &str)>) -> Outcome<Ran> {
    if !cfg!(target_os = "linux") {
        println!("SKIPPED: deployments run on this machine only where that is Linux");
        return Ok(Ran::Skipped);
    }
    if let Err(failure) = python() {
        println!("SKIPPED: no Python can be had to run Apache Airflow with: {failure}");
        return Ok(Ran::Skipped);
    }
    ["curl", "jq", "tar"].iter().try_for_each(|program| system::need(program, program, &[program]))?;
    network();
    system::need("redis-server", "a broker for workers", &["redis-server"])?;
    let browser = browser();
    if let Err(failure) = &browser {
        println!("SKIPPED: the part of the test that uses a browser: {failure}");
    }
    // Several nodes share a database.
    let postgres = match std::env::var_os(VARIABLE) {
        Some(_) => None,
        None => Some(Postgres::start(&scratch()?)?),
    };
    let run = |test: &str| {
        let mut command = one_test(test);
        if let Some(postgres) = &postgres {
            command.env(VARIABLE, &postgres.url);
        }
        must(command.envs(variable))
    };
    // They mostly wait, so they run in parallel.
    std::thread::scope(|scope| {
        let in_order = |row: &[&str]| row.iter().try_for_each(|test| run(test));
        let running: Vec<_> = tests.iter().map(|row| scope.spawn(move || in_order(row))).collect();
        running.into_iter().try_for_each(|test| test.join().expect("it does not panic"))
    })?;
    Ok(if browser.is_ok() { Ran::Passed } else { Ran::WithoutBrowser })
}

/// The command that runs one test and shows how far it is. It names all of the workspace, as for the other tests: what
/// is compiled is then what they have compiled.
fn one_test(test: &str) -> Command {
    if works(&mut cargo(&["nextest", "--version"])) {
        cargo(&["nextest", "run", "--workspace", "--run-ignored", "only", "--no-capture", test])
    } else {
        cargo(&["test", "--workspace", "--test", "it", test, "--", "--ignored", "--nocapture"])
    }
}

/// What networks of environments' own are made with, and what filters loopback without; installs what is not there. Tests
/// that need it say so.
pub(crate) fn network() {
    system::offer(&[("pasta", "passt"), ("nft", "nftables")]);
}

/// Chromium and its driver; installs them if they are not there.
pub(crate) fn browser() -> Outcome {
    let packages = ["chromium", "chromium-driver"];
    ["chromium", "chromedriver"]
        .iter()
        .try_for_each(|name| system::need(name, "Chromium with its driver", &packages))
}

/// Python with pip; installs it if it is not there.
pub(crate) fn python() -> Outcome {
    if works(Command::new("python3").args(["-m", "pip", "--version"])) {
        return Ok(());
    }
    system::install("Python 3 with pip", &["python3", "python3-pip", "python3-venv"])
}
