//! `cargo xtask attack`: the attacks that the other tests run with few repetitions, at full strength.

use crate::outcome::Outcome;
use crate::postgres::{Postgres, VARIABLE};
use crate::workspace::{cargo, must, scratch};

const TESTS: &str = "attacks::";

/// Runs every attack, one at a time: each wants the machine to itself.
pub(crate) fn run() -> Outcome {
    let mut command = cargo(&["test", "--package", "podium-cli", "--test", "it", TESTS, "--"]);
    command.args(["--nocapture", "--test-threads", "1"]).env("PODIUM_ATTACK", "full");
    let mut server = None;
    if std::env::var_os(VARIABLE).is_none() {
        let postgres = Postgres::start(&scratch()?)?;
        command.env(VARIABLE, &postgres.url);
        server = Some(postgres);
    }
    let result = must(&mut command);
    drop(server);
    result
}
