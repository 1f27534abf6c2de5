//! The files of a version of the DAGs on this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use podium_airflow::parsing::may_have_dags;
use podium_api::deploy_reports::ReportedChanges;
use podium_domain::deploys::reports;

use super::layout::missing_is_none;
use crate::blocking::assert_may_block;

/// How many files of a version are looked at.
const MOST_FILES: usize = 20_000;
/// How much of a file is searched for the words that make Airflow read it.
const SEARCHED: u64 = 1 << 20;

/// The files below a folder of DAGs that Airflow reads: those that mention both words.
pub(super) fn dag_files(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for (name, path) in files(folder)? {
        if !name.ends_with(".py") {
            continue;
        }
        let mut bytes = Vec::new();
        File::open(&path)?.take(SEARCHED).read_to_end(&mut bytes)?;
        if may_have_dags(bytes) {
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
        for entry in missing_is_none(fs::read_dir(&folder))?.into_iter().flatten() {
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
mod tests {
    use super::*;

    #[test]
    fn files_are_compared_by_content() {
        let (before, after) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |directory: &tempfile::TempDir, name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for (name, old, new) in [
            ("same.py", "Airflow DAG", "Airflow DAG"),
            ("sub/changed.py", "a", "b"),
            ("gone.py", "x", ""),
            ("new.txt", "", "airflow dag"),
        ] {
            for (directory, text) in [(&before, old), (&after, new)] {
                if !text.is_empty() {
                    write(directory, name, text);
                }
            }
        }
        let changes = changed_files(before.path(), after.path()).unwrap();
        assert_eq!(
            changes,
            reports::changes(vec!["new.txt".into()], vec!["sub/changed.py".into()], vec!["gone.py".into()])
        );
        assert_eq!(dag_files(after.path()).unwrap(), BTreeSet::from(["same.py".into()]));
    }
}
