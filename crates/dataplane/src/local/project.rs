//! What an unpacked archive contains: a bare folder of DAGs, or a project.
//!
//! A project has a top-level folder `dags`. Next to it may be `plugins`, `include` and any other modules (the project's
//! folder is importable), and `requirements.txt`. The archive was checked when it was received, but its author chose
//! everything in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};
use podium_airflow::files::PLUGINS;
use podium_airflow::parsing::may_have_dags;
use podium_airflow::requirements::{self, Requirements};
use podium_api::deploy_reports::ReportedChanges;
use podium_domain::Reason;
use podium_domain::deploys::reports;
use rustix::fs::{Mode, OFlags};

use super::layout::missing_is_none;
use super::prepare_error::PrepareError;
use crate::blocking::assert_may_block;

/// The folder that makes an archive a project.
pub(super) const DAGS: &str = "dags";
/// What plugins may import.
const IMPORTED_BY_PLUGINS: &str = "include";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Project {
    pub(super) requirements: Option<Requirements>,
    /// A hash of its plugins and of what they may import, if it has plugins. Components load them when they start.
    pub(super) plugins: Option<String>,
}

#[expect(clippy::needless_pass_by_value, reason = "errors are mapped with it")]
fn unreadable(error: io::Error) -> PrepareError {
    PrepareError::Wait("code", Reason::of_io("the project cannot be read", &error))
}

/// Reads the project in a directory; `None` if it is a bare folder of DAGs.
pub(super) fn read(root: &Path) -> Result<Option<Project>, PrepareError> {
    assert_may_block();
    if !is_folder(&root.join(DAGS)) {
        return Ok(None);
    }
    let requirements = match bounded(&root.join("requirements.txt"), requirements::MOST_BYTES)? {
        Some(bytes) => Requirements::parse(&bytes).map_err(PrepareError::Refused)?,
        None => None,
    };
    if let Some(bytes) = bounded(&root.join("packages.txt"), requirements::MOST_BYTES)?
        && names_something(&bytes)
    {
        return Err(PrepareError::Refused(
            "packages.txt names packages of the operating system, which environments on this machine share with it: ask the server's operator to install them, and leave the file empty"
                .into(),
        ));
    }
    let plugins = is_folder(&root.join(PLUGINS)).then(|| hash_of(root, &[PLUGINS, IMPORTED_BY_PLUGINS]));
    Ok(Some(Project { requirements, plugins: plugins.transpose().map_err(unreadable)? }))
}

/// Whether there is a directory, not a link to one.
pub(super) fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// A file's content, up to one byte more than `most`; `None` if there is no such file. Links are not followed.
fn bounded(path: &Path, most: usize) -> Result<Option<Vec<u8>>, PrepareError> {
    let found = missing_is_none(fs::symlink_metadata(path)).map_err(unreadable)?;
    let Some(found) = found else { return Ok(None) };
    if !found.is_file() {
        let why = "requirements.txt and packages.txt must be files, not directories or links";
        return Err(PrepareError::Refused(why.into()));
    }
    let mut bytes = Vec::new();
    let read = open(path).and_then(|file| file.take(most as u64 + 1).read_to_end(&mut bytes));
    read.map(|_| Some(bytes)).map_err(unreadable)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Whether a list has a line that is not empty and not a comment.
fn names_something(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#'))
}

/// A hash of the names and contents of all files below some folders.
fn hash_of(root: &Path, folders: &[&str]) -> io::Result<String> {
    let mut hash = Context::new(&SHA256);
    let mut add = |kind: &[u8], bytes: &[u8]| {
        hash.update(kind);
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    let mut below: Vec<_> =
        folders.iter().map(|folder| root.join(folder)).filter(|path| is_folder(path)).collect();
    while let Some(folder) = below.pop() {
        let mut entries: Vec<_> = fs::read_dir(&folder)?.collect::<io::Result<_>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, kind) = (entry.path(), entry.file_type()?);
            let name = path.strip_prefix(root).unwrap_or(&path);
            add(b"name", name.as_os_str().as_encoded_bytes());
            if kind.is_dir() {
                below.push(path);
            } else if kind.is_symlink() {
                add(b"link", fs::read_link(&path)?.as_os_str().as_encoded_bytes());
            } else if kind.is_file() {
                let (mut file, mut buffer) = (open(&path)?, [0; 16 * 1024]);
                loop {
                    match file.read(&mut buffer)? {
                        0 => break,
                        count => add(b"part", &buffer[..count]),
                    }
                }
            }
        }
    }
    Ok(podium_api::hex(&hash.finish().as_ref()[..16]))
}

/// How many files of a version are looked at.
const MOST_FILES: usize = 20_000;
/// How much of a file is searched for the words that make Airflow read it.
const SEARCHED: u64 = 1 << 20;

/// The files below a folder of DAGs that Airflow reads: those that mention both words.
pub(super) fn dag_files(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for (name, path) in regular_files(folder)? {
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
    let (before, after) = (regular_files(before)?, regular_files(after)?);
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
fn regular_files(directory: &Path) -> io::Result<BTreeMap<String, std::path::PathBuf>> {
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

    fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        directory
    }

    fn project(files: &[(&str, &str)]) -> Project {
        read(written(files).path()).unwrap().unwrap()
    }

    fn refused(files: &[(&str, &str)]) -> String {
        match read(written(files).path()) {
            Err(PrepareError::Refused(why)) => why.user_text().to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_project_has_a_folder_of_dags() {
        let bare = written(&[("hello.py", ""), ("requirements.txt", "--what")]);
        assert_eq!(read(bare.path()), Ok(None), "nothing else of a bare folder is read");
        let plain = project(&[("dags/hello.py", ""), ("include/sql.py", "")]);
        assert_eq!(plain, Project { requirements: None, plugins: None });
        let packages = project(&[
            ("dags/hello.py", ""),
            ("requirements.txt", "requests\n"),
            ("packages.txt", "# none\n"),
        ]);
        assert_eq!(packages.requirements.unwrap().text(), "requests\n");
    }

    #[test]
    fn only_plugins_and_what_they_may_import_are_hashed() {
        let all = [("dags/a.py", "1"), ("plugins/p/q.py", "1"), ("include/i.py", "1")];
        let hash = |at: usize, text| {
            let mut files = all;
            if let Some(file) = files.get_mut(at) {
                file.1 = text;
            }
            project(&files).plugins.unwrap()
        };
        let first = hash(9, "");
        assert_eq!(first, hash(0, "2"), "DAGs are read again anyway");
        assert_ne!(first, hash(1, "2"));
        assert_ne!(first, hash(2, "2"));
    }

    #[test]
    fn what_its_author_has_to_change_is_refused() {
        assert!(refused(&[("dags/a.py", ""), ("requirements.txt", "\n-e .")]).contains("line 2"));
        assert!(
            refused(&[("dags/a.py", ""), ("packages.txt", "gcc\n")]).contains("ask the server's operator")
        );
        let linked = written(&[("dags/a.py", "")]);
        std::os::unix::fs::symlink("dags/a.py", linked.path().join("requirements.txt")).unwrap();
        assert!(matches!(read(linked.path()), Err(PrepareError::Refused(_))));
    }

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
