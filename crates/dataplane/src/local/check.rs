//! Parses the DAGs of a version once before they are live: as the author's code that they are, within limits.
//!
//! What the parser says is the author's claim. It decides whether a deploy that is to be strict goes live, and nothing
//! else.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use podium_api::deploy_reports::ReportedImportError;
use podium_domain::{Given, Quoted, Reason, UserText};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use tokio::io::AsyncReadExt as _;
use tokio::time::{Instant, sleep_until, timeout};

use super::airflow_api::{KnownDag, KnownError};
use super::isolation::Isolation;
use super::parsing::{described, relative};
use super::settings::Variables;

/// How long a version may take to be parsed.
pub(super) const LONGEST: Duration = Duration::from_mins(10);
/// How long what the parser has left behind may hold its output open.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The longest answer.
const MOST_BYTES: usize = 16 << 20;
/// How many DAGs and errors are looked at. An honest parser says no more; the author's code may have spoken for it.
const MOST_DAGS_READ: usize = 5000;
const MOST_ERRORS_READ: usize = 500;
/// How many DAGs are listed for one error.
const MOST_LISTED: usize = 100;
/// How many broken files a refusal names.
const MOST_NAMED: usize = 3;
/// How many DAGs of each.
const MOST_DAGS: usize = 5;

/// What a version consists of, according to its parser.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CheckedDags {
    /// The files of the DAGs by their ids.
    pub(super) dags: BTreeMap<String, String>,
    pub(super) errors: Vec<ReportedImportError>,
    /// The files that may have DAGs.
    pub(super) files: BTreeSet<String>,
}

/// Why a version was not parsed.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckError {
    #[error("it cannot be run: {0}")]
    NotRun(#[from] io::Error),
    #[error("it took more than {} minutes", LONGEST.as_secs() / 60)]
    TooLong,
    #[error("it ended with {0}")]
    Failed(ExitStatus),
    #[error("its answer cannot be read: {0}")]
    Garbled(String),
}

#[derive(Deserialize)]
struct Answer {
    dags: Vec<KnownDag>,
    import_errors: Vec<KnownError>,
}

/// Runs a parser to its end. Dropping the future ends it.
pub(super) async fn parse(
    isolation: &Isolation,
    arguments: &[OsString],
    variables: &Variables,
    directory: &Path,
) -> Result<CheckedDags, CheckError> {
    let mut command = isolation.command(arguments, variables);
    command.current_dir(directory).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.process_group(0);
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn()?;
    let group = Group(child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())));
    let mut output = child.stdout.take().ok_or_else(|| io::Error::from(io::ErrorKind::BrokenPipe))?;
    let deadline = Instant::now() + LONGEST;
    let (mut said, mut buffer, mut is_open) = (Vec::new(), [0; 16 * 1024], true);
    let status = loop {
        tokio::select! {
            read = output.read(&mut buffer), if is_open => match read? {
                0 => is_open = false,
                count => add(&mut said, &buffer[..count])?,
            },
            status = child.wait() => break status?,
            () = sleep_until(deadline) => return Err(CheckError::TooLong),
        }
    };
    // What it has started may hold the output open.
    drop(group);
    let rest = async {
        loop {
            match output.read(&mut buffer).await? {
                0 => return Ok(()),
                count => add(&mut said, &buffer[..count])?,
            }
        }
    };
    if is_open {
        timeout(LAST_WORDS, rest).await.unwrap_or(Ok::<(), CheckError>(()))?;
    }
    if !status.success() {
        return Err(CheckError::Failed(status));
    }
    let answer: Answer =
        serde_json::from_slice(&said).map_err(|error| CheckError::Garbled(error.to_string()))?;
    Ok(CheckedDags {
        dags: answer
            .dags
            .into_iter()
            .take(MOST_DAGS_READ)
            .map(|dag| (dag.dag_id, relative(&dag.fileloc)))
            .collect(),
        errors: answer.import_errors.iter().take(MOST_ERRORS_READ).map(described).collect(),
        files: BTreeSet::new(),
    })
}

fn add(said: &mut Vec<u8>, bytes: &[u8]) -> Result<(), CheckError> {
    if said.len() + bytes.len() > MOST_BYTES {
        return Err(CheckError::Garbled("it is too long".into()));
    }
    said.extend_from_slice(bytes);
    Ok(())
}

/// The errors of a version, each with the DAGs that could be imported before and cannot any more because of it.
pub(super) fn errors_with_broken_dags(before: &CheckedDags, after: CheckedDags) -> Vec<ReportedImportError> {
    let CheckedDags { dags, errors, files } = after;
    let lost: Vec<(&String, &String)> =
        before.dags.iter().filter(|(id, _)| !dags.contains_key(*id)).collect();
    let broken_by = |error: &ReportedImportError| {
        // A file that was not there before may be another one that was moved.
        let is_new = !before.files.contains(&error.file);
        let is_meant = |file: &String| *file == error.file || is_new && !files.contains(file);
        let meant = lost.iter().filter(|(_, file)| is_meant(file));
        meant.take(MOST_LISTED).map(|(id, _)| (*id).clone()).collect()
    };
    let with_dags = |error: ReportedImportError| {
        let dag_ids: Vec<String> = broken_by(&error);
        ReportedImportError { dag_ids, ..error }
    };
    errors.into_iter().map(with_dags).collect()
}

/// Why a strict deploy is refused; `None` if it breaks nothing.
pub(super) fn refusal(errors: &[ReportedImportError]) -> Option<Reason> {
    let broken: Vec<&ReportedImportError> = errors.iter().filter(|error| !error.dag_ids.is_empty()).collect();
    let count = broken.iter().flat_map(|error| &error.dag_ids).collect::<BTreeSet<_>>().len();
    if count == 0 {
        return None;
    }
    let mut named: Vec<UserText> =
        broken.iter().take(MOST_NAMED).map(|error| described_break(error)).collect();
    if broken.len() > MOST_NAMED {
        named.push(UserText::filled("and {} more files", &[&(broken.len() - MOST_NAMED)]));
    }
    let more = UserText::joined(named, "; ");
    Some(match count {
        1 => UserText::filled(
            "the deploy is strict, and a DAG that could be imported before cannot be imported any more: {}",
            &[&more],
        ),
        _ => UserText::filled(
            "the deploy is strict, and {} DAGs that could be imported before cannot be imported any more: {}",
            &[&count, &more],
        ),
    }
    .into())
}

/// The DAGs that a file breaks, with the file, the line and the error.
fn described_break(error: &ReportedImportError) -> UserText {
    let mut ids: Vec<UserText> =
        error.dag_ids.iter().take(MOST_DAGS).map(|id| UserText::filled("{}", &[&Given::word(id)])).collect();
    if error.dag_ids.len() > MOST_DAGS {
        ids.push(UserText::filled("{} more", &[&(error.dag_ids.len() - MOST_DAGS)]));
    }
    let (ids, file) = (UserText::joined(ids, ", "), Quoted::dag_file(&error.file));
    let message = Quoted::import_error(&error.message);
    match error.line {
        Some(line) => UserText::filled("{} ({}, line {}: {})", &[&ids, &file, &line, &message]),
        None => UserText::filled("{} ({}: {})", &[&ids, &file, &message]),
    }
}

/// A process group that is killed when it is dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests;
