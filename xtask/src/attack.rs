//! `cargo xtask attack`: the attacks that the other tests run with few repetitions, at full strength.

use crate::airflow;
use crate::outcome::Outcome;
use crate::postgres::must_with_postgres;
use crate::workspace::cargo;

const TESTS: &str = "attacks::";

/// Runs every attack, one at a time: each wants the machine to itself.
pub(crate) fn run() -> Outcome {
    // Some attack what the program starts, below what can be reached through it. All of the workspace is named, as for the
    // other tests: what is compiled is then what they have compiled.
    let mut command = cargo(&["test", "--workspace", "--test", "it", "--lib", TESTS, "--"]);
    command.args(["--nocapture", "--test-threads", "1"]).env("PODIUM_ATTACK", "full");
    airflow::network();
    must_with_postgres(&mut command)
}
