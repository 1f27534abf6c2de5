//! `cargo xtask crash`: the served program, killed again and again while many callers create, deploy to and delete
//! deployments, on both engines. The test that the other tests run with a few rounds, run with many.

use crate::outcome::Outcome;
use crate::postgres::must_with_postgres;
use crate::workspace::cargo;

const TEST: &str = "crashes::deployments";

/// Runs as many rounds as the options ask for.
pub(crate) fn run(options: &[&str]) -> Outcome {
    let (mut rounds, mut callers) = (50, 500);
    for pair in options.chunks(2) {
        let number = |text: &str| {
            let number = text.parse::<u32>().ok().filter(|number| *number > 0);
            number.ok_or_else(|| format!("`{text}` is no number above zero"))
        };
        match pair {
            ["--rounds", text] => rounds = number(text)?,
            ["--callers", text] => callers = number(text)?,
            other => return Err(format!("crash takes --rounds and --callers, not `{}`", other.join(" "))),
        }
    }
    // One engine after the other: a crash is only as random as the machine has time for it.
    let mut command = cargo(&["test", "--package", "podium-cli", "--test", "it", TEST, "--"]);
    command.args(["--nocapture", "--test-threads", "1"]);
    command.env("PODIUM_CRASH_ROUNDS", rounds.to_string()).env("PODIUM_CRASH_CALLERS", callers.to_string());
    must_with_postgres(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_options_are_refused() {
        assert_eq!(run(&["--rounds", "0"]), Err("`0` is no number above zero".into()));
        assert_eq!(run(&["--rounds"]), Err("crash takes --rounds and --callers, not `--rounds`".into()));
        assert_eq!(run(&["--turns", "3"]), Err("crash takes --rounds and --callers, not `--turns 3`".into()));
    }
}
