//! `cargo xtask airflow`: the test that runs Apache Airflow for real, from an empty data directory until nothing is left.
//!
//! It needs the machine for itself, so it runs after the other tests; and Python, which is installed by its package name
//! where that is possible. Without any it is skipped, and counted as skipped.

use std::process::Command;

use crate::outcome::Outcome;
use crate::postgres::{Postgres, VARIABLE};
use crate::system;
use crate::workspace::{cargo, must, scratch, works};

const TEST: &str = "airflow::";

/// What became of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    /// It passed.
    Passed,
    /// There is nothing to run it with.
    Skipped,
}

/// Runs the test, or says why it cannot be run.
pub(crate) fn run() -> Outcome<Ran> {
    if !cfg!(target_os = "linux") {
        println!("SKIPPED: deployments run on this machine only where that is Linux");
        return Ok(Ran::Skipped);
    }
    if let Err(failure) = python() {
        println!("SKIPPED: no Python can be had to run Apache Airflow with: {failure}");
        return Ok(Ran::Skipped);
    }
    for program in ["curl", "jq", "tar"] {
        if !works(Command::new(program).arg("--version")) {
            system::install(program, &[program])?;
        }
    }
    // All of the workspace, as for the other tests: what is compiled is then what they have compiled.
    let mut command = if works(&mut cargo(&["nextest", "--version"])) {
        cargo(&["nextest", "run", "--workspace", "--run-ignored", "only", "--no-capture", TEST])
    } else {
        cargo(&["test", "--workspace", "--test", "it", TEST, "--", "--ignored", "--nocapture"])
    };
    // Several nodes share a database.
    let _postgres = match std::env::var_os(VARIABLE) {
        Some(_) => None,
        None => {
            let postgres = Postgres::start(&scratch()?)?;
            command.env(VARIABLE, &postgres.url);
            Some(postgres)
        }
    };
    must(&mut command)?;
    Ok(Ran::Passed)
}

/// Python with pip; installs it if it is not there.
pub(crate) fn python() -> Outcome {
    if works(Command::new("python3").args(["-m", "pip", "--version"])) {
        return Ok(());
    }
    system::install("Python 3 with pip", &["python3", "python3-pip", "python3-venv"])
}
