//! Directories as they go into a backup.
//!
//! Untrusted code may write to some of them while they are read. So every step uses a descriptor of the parent
//! directory, and no link is ever followed: an entry that is replaced by a link is skipped.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, readlinkat, statat};
use rustix::io::Errno;

use super::archive::Writer;

/// Deeper directories are skipped; none of ours is that deep.
const DEEPEST: usize = 100;
/// Longer paths are skipped: they could not be restored below another directory.
const LONGEST: usize = 2048;
/// How often a changing tree is read again.
const ROUNDS: usize = 20;

/// A directory that goes into a backup.
pub(super) struct Tree {
    root: PathBuf,
    excluded: BTreeSet<PathBuf>,
    /// Whether unreadable entries are skipped with a message: untrusted code writes here, and must not stop a backup.
    is_others: bool,
}

impl Tree {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), excluded: BTreeSet::new(), is_others: false }
    }

    /// The same directory, to which untrusted code writes.
    pub(super) fn of_others(mut self) -> Self {
        self.is_others = true;
        self
    }

    /// The same directory without some of its files and directories.
    pub(super) fn without(mut self, paths: &[PathBuf]) -> Self {
        self.excluded.extend(paths.iter().cloned());
        self
    }

    /// Writes it under a name; nothing if it does not exist.
    pub(super) fn write(&self, writer: &mut Writer, name: &Path) -> io::Result<()> {
        self.round(writer, name).map(drop)
    }

    /// Writes a directory whose files are being replaced, repeating until none vanished while it was read.
    pub(super) fn write_moving(&self, writer: &mut Writer, name: &Path) -> io::Result<()> {
        for _ in 0..ROUNDS {
            if self.round(writer, name)? == 0 {
                return Ok(());
            }
        }
        Err(io::Error::other("its files keep changing"))
    }

    /// Writes what is not written yet; returns how many entries vanished meanwhile.
    fn round(&self, writer: &mut Writer, name: &Path) -> io::Result<usize> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = match openat(CWD, &self.root, flags, Mode::empty()) {
            Ok(root) => root,
            Err(Errno::NOENT) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let mut vanished = 0;
        self.directory(writer, &root, &self.root, name, 0, &mut vanished)?;
        Ok(vanished)
    }

    fn directory(
        &self,
        writer: &mut Writer,
        directory: &OwnedFd,
        at: &Path,
        name: &Path,
        depth: usize,
        vanished: &mut usize,
    ) -> io::Result<()> {
        if depth > DEEPEST {
            eprintln!("Skipped, because it is nested too deeply: {}", at.display());
            return Ok(());
        }
        if !writer.has(name) {
            writer.directory(name, fstat(directory)?.st_mode)?;
        }
        let mut entries: Vec<OsString> = Vec::new();
        for entry in Dir::read_from(directory)? {
            let entry = entry?.file_name().to_bytes().to_vec();
            if entry != b"." && entry != b".." {
                entries.push(OsString::from_vec(entry));
            }
        }
        entries.sort();
        for entry in entries {
            let (at, name) = (at.join(&entry), name.join(&entry));
            if self.excluded.contains(&at) {
                continue;
            }
            if self.is_others && name.as_os_str().len() > LONGEST {
                eprintln!("Skipped, because its path is too long: {}", shortened(&at));
                continue;
            }
            match self.entry(writer, directory, (&entry, &at, &name), depth, vanished) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => *vanished += 1,
                // It was replaced by a link, which only untrusted code does.
                Err(error) if Errno::from_io_error(&error) == Some(Errno::LOOP) => {}
                written => written?,
            }
        }
        Ok(())
    }

    fn entry(
        &self,
        writer: &mut Writer,
        directory: &OwnedFd,
        (entry, at, name): (&OsString, &Path, &Path),
        depth: usize,
        vanished: &mut usize,
    ) -> io::Result<()> {
        let seen = statat(directory, entry, AtFlags::SYMLINK_NOFOLLOW)?;
        let open = |flags: OFlags| match openat(directory, entry, flags, Mode::empty()) {
            // Not a fault of the file: without it the backup would be incomplete.
            Err(error @ (Errno::MFILE | Errno::NFILE)) => Err(error),
            Err(error) if self.is_others && error != Errno::NOENT && error != Errno::LOOP => {
                eprintln!("Skipped, because it cannot be read ({error}): {}", at.display());
                Ok(None)
            }
            opened => opened.map(Some),
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match FileType::from_raw_mode(seen.st_mode) {
            FileType::Directory => {
                let Some(below) = open(flags | OFlags::DIRECTORY)? else { return Ok(()) };
                self.directory(writer, &below, at, name, depth + 1, vanished)
            }
            _ if writer.has(name) => Ok(()),
            FileType::RegularFile => {
                let Some(file) = open(flags)? else { return Ok(()) };
                let found = fstat(&file)?;
                if self.is_others && is_mostly_holes(found.st_size, found.st_blocks) {
                    eprintln!("Skipped, because it is mostly empty: {}", at.display());
                } else if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile {
                    writer.open_file(File::from(file), name)?;
                }
                Ok(())
            }
            FileType::Symlink => {
                let target = readlinkat(directory, entry, Vec::new())?;
                writer.link(name, &OsString::from_vec(target.into_bytes()))
            }
            // Sockets and pipes are created again when they are needed.
            _ => Ok(()),
        }
    }
}

/// The beginning of a very long path.
fn shortened(path: &Path) -> String {
    let text = path.display().to_string();
    format!("{}…", text.chars().take(200).collect::<String>())
}

/// Whether a file is mostly holes: reading it would take as long as its nominal size.
fn is_mostly_holes(size: i64, blocks: i64) -> bool {
    const SMALL: i64 = 64 << 20;
    size > SMALL && blocks.saturating_mul(512) < size / 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_files_are_recognised() {
        assert!(is_mostly_holes(16 << 40, 0) && is_mostly_holes(1 << 30, 8));
        assert!(!is_mostly_holes(1 << 30, 1 << 21) && !is_mostly_holes(1 << 20, 0));
    }
}
