//! Parses the DAGs of a version once before they are live: as the author's code that they are, within limits.
//!
//! What the parser says is the author's claim. It decides whether a deploy that is to be strict goes live, and nothing
//! else.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use podium_api::deploy_reports::ReportedImportError;
use podium_domain::{Given, Quoted, Reason, UserText};
use serde::Deserialize;

use crate::api::{KnownDag, KnownError};
use crate::files::Files;
use crate::parsing::DagFolder;

/// How long a version may take to be parsed.
pub const LONGEST: Duration = Duration::from_mins(10);
pub const MOST_BYTES: usize = 16 << 20;
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
pub struct CheckedDags {
    /// The files of the DAGs by their ids.
    pub dags: BTreeMap<String, String>,
    pub errors: Vec<ReportedImportError>,
    /// The files that may have DAGs.
    pub files: BTreeSet<String>,
}

#[derive(Deserialize)]
pub struct ParserAnswer {
    dags: Vec<KnownDag>,
    import_errors: Vec<KnownError>,
}

impl ParserAnswer {
    /// What it says, as far as it is looked at.
    pub fn checked(self, folder: DagFolder) -> CheckedDags {
        let file = |dag: KnownDag| (dag.dag_id, folder.relative(&dag.fileloc));
        CheckedDags {
            dags: self.dags.into_iter().take(MOST_DAGS_READ).map(file).collect(),
            errors: self
                .import_errors
                .iter()
                .take(MOST_ERRORS_READ)
                .map(|error| folder.described(error))
                .collect(),
            files: BTreeSet::new(),
        }
    }
}

/// The command line of a process that parses the DAGs in a folder and prints a [`ParserAnswer`].
pub fn arguments(files: &Files, folder: &Path) -> Vec<OsString> {
    vec![
        files.program("python").into(),
        files.module("podium_check.py").into(),
        folder.into(),
        LONGEST.as_secs().to_string().into(),
    ]
}

/// The import errors of a version, compared with those of the version before it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Those that the version before does not have, each with the DAGs that cannot be imported any more because of it.
    pub new: Vec<ReportedImportError>,
    /// Those of files that could not be imported before either.
    pub known: Vec<ReportedImportError>,
}

/// Compares the import errors of a version with those of the version before it.
pub fn compared(before: &CheckedDags, after: CheckedDags) -> Compared {
    let was_broken = |file: &str| before.errors.iter().any(|error| error.file == file);
    let errors = errors_with_broken_dags(before, after);
    let (known, new) =
        errors.into_iter().partition(|error| was_broken(&error.file) && error.dag_ids.is_empty());
    Compared { new, known }
}

/// The errors of a version, each with the DAGs that could be imported before and cannot any more because of it.
fn errors_with_broken_dags(before: &CheckedDags, after: CheckedDags) -> Vec<ReportedImportError> {
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

/// Why a strict deploy is refused, given the import errors that the live version does not have; `None` if there are none.
pub fn refusal(errors: &[ReportedImportError]) -> Option<Reason> {
    let mut named: Vec<UserText> = errors.iter().take(MOST_NAMED).map(described_break).collect();
    match errors.len().saturating_sub(MOST_NAMED) {
        0 => {}
        1 => named.push("and 1 more file".into()),
        more => named.push(UserText::filled("and {} more files", &[&more])),
    }
    let more = UserText::joined(named, "; ");
    let text = match errors.len() {
        0 => return None,
        1 => UserText::filled("the deploy is strict, and one of its files cannot be imported: {}", &[&more]),
        count => UserText::filled(
            "the deploy is strict, and {} of its files cannot be imported: {}",
            &[&count, &more],
        ),
    };
    Some(text.into())
}

/// A file that cannot be imported: the line, the error and the DAGs that it breaks.
fn described_break(error: &ReportedImportError) -> UserText {
    let mut ids: Vec<UserText> =
        error.dag_ids.iter().take(MOST_DAGS).map(|id| UserText::filled("{}", &[&Given::word(id)])).collect();
    if error.dag_ids.len() > MOST_DAGS {
        ids.push(UserText::filled("{} more", &[&(error.dag_ids.len() - MOST_DAGS)]));
    }
    let (file, message) = (Quoted::dag_file(&error.file), Quoted::import_error(&error.message));
    let text = match error.line {
        Some(line) => UserText::filled("{}, line {}: {}", &[&file, &line, &message]),
        None => UserText::filled("{}: {}", &[&file, &message]),
    };
    match ids.is_empty() {
        true => text,
        false => UserText::filled("{} (breaks {})", &[&text, &UserText::joined(ids, ", ")]),
    }
}

#[cfg(test)]
mod tests;
