//! Decides whether Airflow has read every file of a version, and describes what it found.
//!
//! A DAG is read once it is at the new version (3.1 and later say so) and was parsed after the version went live (all
//! versions say so; files are parsed every few seconds whether they have changed or not). A file without DAGs leaves no
//! trace: it is read once Airflow has come around to another file for the second time, because files take turns.
//!
//! Airflow goes on with the files of the version before until it notices the new one, several seconds after it went live,
//! and keeps the import errors of both in the same place. An error is of the version that the paths in its traceback
//! name. Where they name none, it counts once Airflow has certainly moved on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use podium_api::Timestamp;
use podium_api::deploy_reports::{ReportedChanges, ReportedImportError, ReportedStep, RolloutReport};
use podium_domain::deploys::reports;

use crate::api::{KnownDag, KnownError};

/// The folder of an environment's DAGs, as a part of the paths in what Airflow says: `/code/dags/` stands for everything
/// below any such folder. Versions are below `versions` in it, and `current` is a link: see
/// [`Files::dags`](crate::files::Files::dags).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DagFolder(pub &'static str);

/// A version that is being read.
#[derive(Debug)]
pub struct Parsing {
    folder: DagFolder,
    version: String,
    /// What is read: files below the DAGs that may contain some.
    files: BTreeSet<String>,
    /// When each file was first seen to be read.
    first: BTreeMap<String, Timestamp>,
    /// When the first error of each file was found after the version went live.
    first_errors: BTreeMap<String, Timestamp>,
    /// How long to wait for files that leave no trace if no other file is read, and for Airflow to leave the version
    /// before.
    settles_after: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The files of the DAGs by their ids.
    pub dags: BTreeMap<String, String>,
    pub errors: Vec<ReportedImportError>,
    /// How many files were read, and of how many.
    pub done: (u64, u64),
    /// Whether every file was read.
    pub is_complete: bool,
}

impl Parsing {
    /// A version of which nothing is known yet.
    pub fn new(folder: DagFolder, version: &str, files: BTreeSet<String>, settles_after: Duration) -> Self {
        let (version, first, first_errors) = (version.to_owned(), BTreeMap::new(), BTreeMap::new());
        Self { folder, version, files, first, first_errors, settles_after }
    }

    /// What is known, given what Airflow says about a version that went live at this time.
    pub fn look(
        &mut self,
        dags: &[KnownDag],
        errors: &[KnownError],
        live_at: Timestamp,
        now: Timestamp,
    ) -> Parsed {
        let folder = self.folder;
        let time = |text: &Option<String>| text.as_deref().and_then(Timestamp::parse);
        let current_errors = self.errors_of_version(errors, live_at);
        let mut read: BTreeMap<String, Timestamp> = BTreeMap::new();
        let mut note = |file: &str, at: Option<Timestamp>| {
            if let Some(at) = at.filter(|at| *at >= live_at) {
                let last = read.entry(file.to_owned()).or_insert(at);
                *last = (*last).max(at);
            }
        };
        let is_current = |dag: &KnownDag| {
            let version = dag.bundle_version.as_deref().or_else(|| folder.version_in(&dag.fileloc));
            version.is_none_or(|version| version == self.version)
        };
        for dag in dags.iter().filter(|dag| is_current(dag)) {
            note(&folder.relative(&dag.fileloc), time(&dag.last_parsed_time));
        }
        for error in &current_errors {
            note(&folder.relative(&error.filename), time(&error.timestamp));
        }
        let mut has_come_around = false;
        for (file, at) in &read {
            let first = *self.first.entry(file.clone()).or_insert(*at);
            has_come_around |= *at > first;
        }
        let settled = now.millis() - live_at.millis()
            >= i64::try_from(self.settles_after.as_millis()).unwrap_or(i64::MAX);
        // A DAG whose file was read without it is gone from the file; so is an error.
        let waits_for = |path: &str| {
            let file = folder.relative(path);
            self.files.contains(&file) && !read.contains_key(&file)
        };
        let left = self.files.iter().filter(|file| !read.contains_key(*file)).count() as u64;
        let is_nothing_stale = !dags.iter().any(|dag| waits_for(&dag.fileloc))
            && !errors.iter().any(|error| waits_for(&error.filename));
        let is_complete = left == 0 || is_nothing_stale && (has_come_around || read.is_empty() && settled);
        let is_read =
            |dag: &&KnownDag| is_current(dag) && time(&dag.last_parsed_time).is_some_and(|at| at >= live_at);
        let total = self.files.len() as u64;
        Parsed {
            dags: dags
                .iter()
                .filter(is_read)
                .map(|dag| (dag.dag_id.clone(), folder.relative(&dag.fileloc)))
                .collect(),
            errors: current_errors.into_iter().map(|error| folder.described(error)).collect(),
            done: (total - left, total),
            is_complete,
        }
    }

    /// The errors that are certainly of this version.
    fn errors_of_version<'a>(&mut self, errors: &'a [KnownError], live_at: Timestamp) -> Vec<&'a KnownError> {
        let moved_on = live_at + self.settles_after;
        let mut found = Vec::new();
        for error in errors {
            let Some(at) = error.timestamp.as_deref().and_then(Timestamp::parse).filter(|at| *at >= live_at)
            else {
                continue;
            };
            let first = *self.first_errors.entry(error.filename.clone()).or_insert(at);
            let is_of_version = match self.folder.origin(error) {
                Origin::Version(version) => version == self.version,
                // It was read through the link, but possibly before the link was moved.
                Origin::Link => at > first,
                Origin::Unknown => at >= moved_on,
            };
            if is_of_version {
                found.push(error);
            }
        }
        found
    }
}

/// What the traceback of an import error says about the version it is of.
enum Origin<'a> {
    Version(&'a str),
    /// It names files by the link to the current version, as Airflow 2 finds them.
    Link,
    /// It names no file of the DAGs.
    Unknown,
}

impl DagFolder {
    /// A path of Airflow's relative to the DAGs.
    pub fn relative(self, path: &str) -> String {
        let Some((_, below)) = path.rsplit_once(self.0) else { return path.to_owned() };
        let below = match below.split_once('/') {
            Some(("versions", rest)) => rest.split_once('/').map_or(rest, |(_, file)| file),
            Some(("current", rest)) => return rest.to_owned(),
            _ => below,
        };
        below.strip_prefix("dags/").unwrap_or(below).to_owned()
    }

    /// An import error with its line and its message.
    pub fn described(self, error: &KnownError) -> ReportedImportError {
        let file = self.relative(&error.filename);
        let mut line = None;
        for (path, rest) in traced(&error.stack_trace) {
            if self.relative(path) == file {
                line = rest
                    .split(|c: char| !c.is_ascii_digit())
                    .next()
                    .and_then(|digits| digits.parse().ok())
                    .or(line);
            }
        }
        let last = error.stack_trace.lines().rev().find(|text| !text.trim().is_empty()).unwrap_or_default();
        ReportedImportError {
            file,
            line,
            message: last.trim().to_owned(),
            traceback: error.stack_trace.clone(),
            dag_ids: Vec::new(),
        }
    }

    fn version_in(self, path: &str) -> Option<&str> {
        let (_, below) = path.rsplit_once(self.0)?;
        below.strip_prefix("versions/")?.split('/').next()
    }

    /// The version an error is of, by its own file if the traceback names that, or else by any file of the DAGs.
    fn origin(self, error: &KnownError) -> Origin<'_> {
        let file = self.relative(&error.filename);
        let paths = || traced(&error.stack_trace).map(|(path, _)| path).filter(|path| path.contains(self.0));
        let named = { paths() }.find(|path| self.relative(path) == file).or_else(|| paths().next());
        match named {
            None => Origin::Unknown,
            Some(path) => self.version_in(path).map_or(Origin::Link, Origin::Version),
        }
    }
}

/// The DAGs that differ: those of files that changed count as changed.
pub fn changed_dags(
    before: &BTreeSet<String>,
    after: &BTreeMap<String, String>,
    files: Option<&ReportedChanges>,
    has_errors: bool,
) -> ReportedChanges {
    let is_changed = |file: &String| {
        files.is_some_and(|files| names_file(&files.changed, file) || names_file(&files.added, file))
    };
    let added = after.keys().filter(|id| !before.contains(*id)).cloned().collect();
    let changed = after.iter().filter(|(id, file)| before.contains(*id) && is_changed(file));
    // Of a file that cannot be imported it is unknown which DAGs it has.
    let removed = before.iter().filter(|id| !has_errors && !after.contains_key(*id)).cloned().collect();
    reports::changes(added, changed.map(|(id, _)| id.clone()).collect(), removed)
}

/// Whether a file of the DAGs is among the files of a version, whose DAGs may be in a folder.
fn names_file(names: &[String], file: &str) -> bool {
    names.iter().any(|name| name == file || name.strip_prefix("dags/") == Some(file))
}

/// The files that a traceback names, each with what follows `line`.
fn traced(trace: &str) -> impl Iterator<Item = (&str, &str)> {
    trace.lines().filter_map(|text| text.trim_start().strip_prefix("File \"")?.split_once("\", line "))
}

/// Whether Airflow looks for DAGs in a Python file: it mentions both words.
pub fn may_have_dags(mut text: Vec<u8>) -> bool {
    text.make_ascii_lowercase();
    let mentions = |word: &[u8]| text.windows(word.len()).any(|window| window == word);
    mentions(b"dag") && mentions(b"airflow")
}

/// What is known of a version of the DAGs that was to go live.
#[derive(Debug, Default)]
pub struct VersionFindings {
    /// The files that differ from those that ran before, if that is known.
    pub files: Option<ReportedChanges>,
    /// The DAGs that Airflow knew before, if it said so.
    pub dags_before: Option<BTreeSet<String>>,
    /// What Airflow said last of the version; `None` if it has not said anything.
    pub parsed: Option<Parsed>,
}

/// The report of a rollout with these steps, of a version that was checked before it was live with these errors.
pub fn of_rollout(
    steps: Vec<ReportedStep>,
    checked: &[ReportedImportError],
    version: Option<VersionFindings>,
) -> RolloutReport {
    let mut report = RolloutReport { steps, ..RolloutReport::default() };
    if !checked.is_empty() {
        report.import_error_count = checked.len() as u64;
        report.import_errors = checked.to_vec();
    }
    if let Some(VersionFindings { files, dags_before, parsed }) = version {
        let is_known = parsed.is_some();
        let Parsed { dags, errors, is_complete, .. } = parsed.unwrap_or_default();
        let before = dags_before.filter(|_| is_known);
        report.dags = before.map(|before| changed_dags(&before, &dags, files.as_ref(), !errors.is_empty()));
        report.is_parsed = is_known.then_some(is_complete);
        report.files = files;
        report.import_error_count = errors.len() as u64;
        report.import_errors = errors;
    }
    reports::bounded(report)
}

#[cfg(test)]
mod tests;
