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
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::Duration;

use podium_airflow::api::{KnownDag, KnownError};
use podium_api::Timestamp;
use podium_api::deploy_reports::{ReportedChanges, ReportedImportError};
use podium_domain::deploys::reports;

use crate::blocking::assert_may_block;

/// Where the versions of an environment are, and a link to the current one.
const DAGS: &str = "/code/dags/";
/// How many files of a version are looked at.
const MOST_FILES: usize = 20_000;
/// How much of a file is searched for the words that make Airflow read it.
const SEARCHED: u64 = 1 << 20;

/// A version that is being read.
#[derive(Debug)]
pub(super) struct Parsing {
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

/// What Airflow has found in a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) dags: BTreeMap<String, String>,
    pub(super) errors: Vec<ReportedImportError>,
    /// How many files were read, and of how many.
    pub(super) done: (u64, u64),
    pub(super) is_complete: bool,
}

impl Parsing {
    pub(super) fn new(version: &str, files: BTreeSet<String>, settles_after: Duration) -> Self {
        let (version, first, first_errors) = (version.to_owned(), BTreeMap::new(), BTreeMap::new());
        Self { version, files, first, first_errors, settles_after }
    }

    /// What is known, given what Airflow says about a version that went live at this time.
    pub(super) fn look(
        &mut self,
        dags: &[KnownDag],
        errors: &[KnownError],
        live_at: Timestamp,
        now: Timestamp,
    ) -> Parsed {
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
            let version = dag.bundle_version.as_deref().or_else(|| version_in(&dag.fileloc));
            version.is_none_or(|version| version == self.version)
        };
        for dag in dags.iter().filter(|dag| is_current(dag)) {
            note(&relative(&dag.fileloc), time(&dag.last_parsed_time));
        }
        for error in &current_errors {
            note(&relative(&error.filename), time(&error.timestamp));
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
            let file = relative(path);
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
                .map(|dag| (dag.dag_id.clone(), relative(&dag.fileloc)))
                .collect(),
            errors: current_errors.into_iter().map(described).collect(),
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
            let is_of_version = match origin(error) {
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
    /// It names files of this version.
    Version(&'a str),
    /// It names files by the link to the current version, as Airflow 2 finds them.
    Link,
    /// It names no file of the DAGs.
    Unknown,
}

/// The version an error is of, by its own file if the traceback names that, or else by any file of the DAGs.
fn origin(error: &KnownError) -> Origin<'_> {
    let file = relative(&error.filename);
    let paths = || traced(&error.stack_trace).map(|(path, _)| path).filter(|path| path.contains(DAGS));
    let named = { paths() }.find(|path| relative(path) == file).or_else(|| paths().next());
    match named {
        None => Origin::Unknown,
        Some(path) => version_in(path).map_or(Origin::Link, Origin::Version),
    }
}

/// The DAGs that differ: those of files that changed count as changed.
pub(super) fn changed_dags(
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

/// The version whose folder a path is in.
fn version_in(path: &str) -> Option<&str> {
    let (_, below) = path.rsplit_once(DAGS)?;
    below.strip_prefix("versions/")?.split('/').next()
}

/// The files that a traceback names, each with what follows `line`.
fn traced(trace: &str) -> impl Iterator<Item = (&str, &str)> {
    trace.lines().filter_map(|text| text.trim_start().strip_prefix("File \"")?.split_once("\", line "))
}

/// A path of Airflow's relative to the DAGs.
pub(super) fn relative(path: &str) -> String {
    let Some((_, below)) = path.rsplit_once(DAGS) else { return path.to_owned() };
    let below = match below.split_once('/') {
        Some(("versions", rest)) => rest.split_once('/').map_or(rest, |(_, file)| file),
        Some(("current", rest)) => return rest.to_owned(),
        _ => below,
    };
    below.strip_prefix("dags/").unwrap_or(below).to_owned()
}

/// An import error with its line and its message.
pub(super) fn described(error: &KnownError) -> ReportedImportError {
    let file = relative(&error.filename);
    let mut line = None;
    for (path, rest) in traced(&error.stack_trace) {
        if relative(path) == file {
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

/// The files below a folder of DAGs that Airflow reads: those that mention both words.
pub(super) fn dag_files(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for (name, path) in files(folder)? {
        if !name.ends_with(".py") {
            continue;
        }
        let mut bytes = Vec::new();
        File::open(&path)?.take(SEARCHED).read_to_end(&mut bytes)?;
        bytes.make_ascii_lowercase();
        let mentions = |word: &[u8]| bytes.windows(word.len()).any(|window| window == word);
        if mentions(b"dag") && mentions(b"airflow") {
            found.insert(name);
        }
    }
    Ok(found)
}

/// The files that differ between two versions.
pub(super) fn changed_files(before: &Path, after: &Path) -> io::Result<ReportedChanges> {
    let (before, after) = (files(before)?, files(after)?);
    let mut changed = Vec::new();
    for (name, path) in &after {
        if let Some(older) = before.get(name)
            && !is_same(older, path)?
        {
            changed.push(name.clone());
        }
    }
    let added = after.keys().filter(|name| !before.contains_key(*name)).cloned().collect();
    let removed = before.keys().filter(|name| !after.contains_key(*name)).cloned().collect();
    Ok(reports::changes(added, changed, removed))
}

/// The regular files below a directory by their relative names, up to a bound.
fn files(directory: &Path) -> io::Result<BTreeMap<String, std::path::PathBuf>> {
    assert_may_block();
    let (mut found, mut below) = (BTreeMap::new(), vec![directory.to_owned()]);
    while let Some(folder) = below.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            if kind.is_dir() {
                below.push(path);
            } else if kind.is_file() && found.len() < MOST_FILES {
                let name = path.strip_prefix(directory).unwrap_or(&path).to_string_lossy().into_owned();
                found.insert(name, path);
            }
        }
    }
    Ok(found)
}

fn is_same(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut left, mut right) = ([0; 16 * 1024], [0; 16 * 1024]);
    loop {
        let count = one.read(&mut left)?;
        if count == 0 {
            return Ok(true);
        }
        other.read_exact(&mut right[..count])?;
        if left[..count] != right[..count] {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests;
