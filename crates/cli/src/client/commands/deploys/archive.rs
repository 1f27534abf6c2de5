//! Packs a folder: the same files always give the same archive.

use std::fs;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};
use flate2::{Compression, GzBuilder};
use ignore::WalkBuilder;

use crate::client::commands::{Failed, Outcome};

/// What is never packed: other people's code, and secrets of this machine.
const NEVER: &[&str] = &[".git", ".venv", "__pycache__", "podium-data", ".env", ".DS_Store"];
const MOST_FILES: usize = 50_000;
/// How many bytes of a file are hashed at once.
const READ_AT_ONCE: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    pub(super) name: String,
    is_link: bool,
}

/// The name of a file, with its time and size where they can be read.
pub(crate) type Stamped = (String, Option<(std::time::SystemTime, u64)>);

impl File {
    /// What changes when the file is saved.
    pub(super) fn stamped(&self) -> Stamped {
        let read = fs::symlink_metadata(&self.path).ok();
        let stamp = read.and_then(|meta| Some((meta.modified().ok()?, meta.len())));
        (self.name.clone(), stamp)
    }

    pub(super) fn is_link(&self) -> bool {
        self.is_link
    }

    /// Whether it is a file of this size and SHA-256, in lower-case hexadecimal.
    pub(super) fn holds(&self, size: u64, sha256: &str) -> Outcome<bool> {
        if self.is_link {
            return Ok(false);
        }
        let read = || {
            let mut file = fs::File::open(&self.path)?;
            if file.metadata()?.len() != size {
                return Ok(false);
            }
            let (mut hash, mut buffer) = (Context::new(&SHA256), vec![0; READ_AT_ONCE]);
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    count => hash.update(&buffer[..count]),
                }
            }
            Ok::<_, std::io::Error>(podium_api::hex(hash.finish().as_ref()) == sha256)
        };
        read().map_err(|error| Failed::because(format!("{} cannot be read: {error}", self.path.display())))
    }
}

/// The files of a folder that are not ignored, in the order of their names.
pub(super) fn files(folder: &Path) -> Outcome<Vec<File>> {
    let walk = WalkBuilder::new(folder)
        .hidden(false)
        .require_git(false)
        .git_global(false)
        .add_custom_ignore_filename(".podiumignore")
        .filter_entry(|entry| {
            entry.depth() == 0 || !entry.file_name().to_str().is_some_and(|name| NEVER.contains(&name))
        })
        .build();
    let mut files = Vec::new();
    for entry in walk {
        let entry = entry.map_err(|error| Failed::because(error.to_string()))?;
        let is_link = entry.path_is_symlink();
        if !is_link && !entry.file_type().is_some_and(|kind| kind.is_file()) {
            continue;
        }
        let relative = entry.path().strip_prefix(folder).unwrap_or(entry.path());
        let Some(name) = relative.to_str() else {
            return Err(Failed::usage(format!("the name of {} is not valid UTF-8", entry.path().display())));
        };
        let name = name.replace('\\', "/");
        if name.is_empty() {
            continue;
        }
        files.push(File { path: entry.path().to_owned(), name, is_link });
        if files.len() > MOST_FILES {
            return Err(Failed::usage(format!(
                "there are more than {MOST_FILES} files in {}",
                folder.display()
            ))
            .hint("Leave some out with .podiumignore."));
        }
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(files)
}

/// Writes files to an archive: no times, no owners, and only two modes.
pub(super) fn pack(files: &[File], out: impl Write) -> Outcome {
    let mut archive = tar::Builder::new(GzBuilder::new().write(out, Compression::default()));
    for file in files {
        append(&mut archive, file)
            .map_err(|error| Failed::because(format!("{} cannot be packed: {error}", file.path.display())))?;
    }
    archive.into_inner()?.finish()?.flush()?;
    Ok(())
}

fn append(archive: &mut tar::Builder<impl Write>, file: &File) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    if file.is_link {
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        return archive.append_link(&mut header, &file.name, fs::read_link(&file.path)?);
    }
    let content = fs::read(&file.path)?;
    header.set_entry_type(tar::EntryType::Regular);
    header.set_size(content.len() as u64);
    header.set_mode(if is_executable(&file.path)? { 0o755 } else { 0o644 });
    archive.append_data(&mut header, &file.name, content.as_slice())
}

fn is_executable(path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(fs::metadata(path)?.permissions().mode() & 0o100 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    fn names(folder: &tempfile::TempDir) -> Vec<String> {
        files(folder.path()).unwrap().into_iter().map(|file| file.name).collect()
    }

    #[test]
    fn ignored_files_and_secrets_stay_here() {
        let folder = folder(&[
            ("dags/b.py", ""),
            ("dags/a.py", ""),
            ("dags/notes.md", ""),
            ("dags/__pycache__/a.pyc", ""),
            ("secret.txt", ""),
            (".env", "KEY=1"),
            (".git/config", ""),
            ("podium-data/owner-token", ""),
            (".gitignore", "secret.txt\n"),
            (".podiumignore", "*.md\n"),
            ("requirements.txt", ""),
        ]);
        let expected = [".gitignore", ".podiumignore", "dags/a.py", "dags/b.py", "requirements.txt"];
        assert_eq!(names(&folder), expected);
    }

    #[test]
    fn the_same_files_give_the_same_archive() {
        let pack_one = || {
            let folder = folder(&[("dags/a.py", "print()"), ("b.txt", "b")]);
            std::os::unix::fs::symlink("b.txt", folder.path().join("c.txt")).unwrap();
            let mut bytes = Vec::new();
            pack(&files(folder.path()).unwrap(), &mut bytes).unwrap();
            bytes
        };
        let bytes = pack_one();
        assert_eq!(bytes, pack_one());
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let header = entry.header();
            (entry.path().unwrap().display().to_string(), header.size().unwrap(), header.mtime().unwrap())
        });
        let expected =
            [("b.txt".to_owned(), 1, 0), ("c.txt".to_owned(), 0, 0), ("dags/a.py".to_owned(), 7, 0)];
        assert_eq!(entries.collect::<Vec<_>>(), expected);
    }
}
