//! Why packages cannot be had, in words for their author or for the operator.

use std::io;

use podium_domain::{Quoted, Reason, UserText};

use super::job::{self, JobError};
use crate::local::prepare_error::PrepareError;
use crate::local::runtimes::Runtime;

/// Words of the installer that say that an index could not be reached, rather than that requirements are wrong.
const UNREACHABLE: &[&str] = &[
    "Failed to fetch",
    "Could not connect",
    "error sending request",
    "dns error",
    "timed out",
    "Connection re",
    "No space left",
    "os error",
];

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped with it")]
pub(super) fn broken(error: io::Error) -> PrepareError {
    PrepareError::Wait("packages", Reason::of_io("the project's packages cannot be installed now", &error))
}

/// Whether a job failed because the index could not be reached.
fn is_unreachable(said: &str) -> bool {
    UNREACHABLE.iter().any(|words| said.contains(words))
}

/// Why requirements could not be resolved.
pub(super) fn unresolved(error: &JobError, runtime: &Runtime) -> PrepareError {
    let JobError::Failed { said, .. } = error else { return failed(error) };
    if is_unreachable(said) {
        return PrepareError::Wait(
            "packages",
            Reason::new("the package index cannot be reached", last_line(said)),
        );
    }
    // The resolver always says why requirements do not resolve; one that says nothing was killed.
    if said.trim().is_empty() {
        return failed(error);
    }
    let mut told = UserText::filled(
        "the packages of requirements.txt do not resolve: {} (Apache Airflow {} and the packages that come with it keep their versions.)",
        &[&Quoted::resolver(&explanation(said)), &runtime.version],
    );
    if said.contains("no usable wheels") || said.contains("no wheels") || said.contains("Wheels are required")
    {
        told = UserText::joined(
            [told, "Only packages with wheels can be installed here: nothing is built from source.".into()],
            " ",
        );
    }
    PrepareError::Refused(Reason::new(told, last_line(said)))
}

/// Why resolved packages could not be installed.
pub(super) fn uninstalled(error: &JobError) -> PrepareError {
    match error {
        JobError::Failed { said, .. } if is_unreachable(said) => PrepareError::Wait(
            "packages",
            Reason::new("the package index cannot be reached", last_line(said)),
        ),
        JobError::Failed { said, .. } if !said.trim().is_empty() => PrepareError::Refused(Reason::new(
            UserText::filled(
                "the project's packages cannot be installed: {}",
                &[&Quoted::resolver(&explanation(said))],
            ),
            last_line(said),
        )),
        _ => failed(error),
    }
}

fn failed(error: &JobError) -> PrepareError {
    match error {
        JobError::TooLarge(most) => PrepareError::Refused(
            UserText::filled("the project's packages need more than {} MiB of disk", &[&(*most >> 20)])
                .into(),
        ),
        JobError::TooMany => PrepareError::Refused(
            UserText::filled("the project's packages have more than {} files", &[&job::MOST_FILES]).into(),
        ),
        JobError::TooLong => PrepareError::Refused("installing the project's packages took too long".into()),
        JobError::DiskFull => PrepareError::Wait(
            "packages",
            "the project's packages cannot be installed: the disk is full".into(),
        ),
        JobError::NotRun(_) | JobError::Failed { .. } => PrepareError::Wait(
            "packages",
            Reason::new("the project's packages cannot be installed now", error),
        ),
    }
}

/// What the resolver says about the requirements, without its decoration and advice.
fn explanation(said: &str) -> String {
    let is_word = |word: &&str| word.chars().any(char::is_alphanumeric);
    let lines = said.lines().map(str::trim).take_while(|line| !line.starts_with("hint:"));
    let words = lines.flat_map(str::split_whitespace).filter(is_word);
    let words = words.collect::<Vec<_>>().join(" ");
    let because = words.find("Because").map_or(words.as_str(), |at| &words[at..]);
    because.trim_start_matches("error: ").to_owned()
}

fn last_line(said: &str) -> String {
    said.lines()
        .rev()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default()
        .trim()
        .chars()
        .take(300)
        .collect()
}
