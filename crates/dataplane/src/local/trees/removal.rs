//! Removes a tree with a few descriptors, however deep it is: non-empty directories are moved up to the top, so that
//! nothing is ever more than two levels down.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::{fs, io};

use rustix::fs::{AtFlags, CWD, FileType, RawDir, SeekFrom, renameat, seek, unlinkat};
use rustix::io::Errno;

use super::{NAMES, is_dots, make_accessible, open_directory};
use crate::blocking::assert_may_block;
use crate::local::layout::missing_is_none;

/// What a bounded removal left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Remaining {
    Nothing,
    /// Something: call it again.
    Something,
}

/// Removes a file, or a directory and everything in it; it may be missing.
pub(in super::super) fn remove(path: &Path) -> io::Result<()> {
    assert_may_block();
    let Some(metadata) = missing_is_none(fs::symlink_metadata(path))? else { return Ok(()) };
    if metadata.is_dir() {
        clear(path, None, u64::MAX)?;
        missing_is_none(fs::remove_dir(path)).map(drop)
    } else {
        missing_is_none(fs::remove_file(path)).map(drop)
    }
}

/// Removes the contents of a directory except one name, in at most this many steps; the directory may be missing. An
/// error says why something cannot be removed, and is returned after everything else is gone.
pub(in super::super) fn clear(directory: &Path, kept: Option<&CStr>, steps: u64) -> io::Result<Remaining> {
    assert_may_block();
    let root = match open_directory(CWD, directory) {
        Err(Errno::NOENT) => return Ok(Remaining::Nothing),
        root => root?,
    };
    let mut removal = Removal { root, kept, moved: 0, steps: 0, most: steps, error: None };
    loop {
        let before = removal.steps;
        removal.error = None;
        let is_empty = removal.pass()?;
        if is_empty {
            return Ok(Remaining::Nothing);
        }
        if removal.is_over() {
            return Ok(Remaining::Something);
        }
        if removal.steps == before {
            return Err(removal.error.unwrap_or(Errno::NOTEMPTY).into());
        }
    }
}

struct Removal<'a> {
    root: OwnedFd,
    kept: Option<&'a CStr>,
    moved: u64,
    steps: u64,
    most: u64,
    /// Why something could not be removed.
    error: Option<Errno>,
}

impl Removal<'_> {
    fn is_over(&self) -> bool {
        self.steps >= self.most
    }

    /// Processes the top level once; returns whether it was empty.
    fn pass(&mut self) -> io::Result<bool> {
        let root = self.root.try_clone()?;
        seek(&root, SeekFrom::Start(0))?;
        let mut buffer = Vec::with_capacity(NAMES);
        let mut entries = RawDir::new(&root, buffer.spare_capacity_mut());
        let mut is_empty = true;
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if is_dots(name) || Some(name) == self.kept {
                continue;
            }
            is_empty = false;
            if self.is_over() {
                break;
            }
            if !self.take(&root, name, entry.file_type()) {
                self.empty_and_remove(name);
            }
        }
        Ok(is_empty)
    }

    /// Removes an entry; returns `false` for a non-empty directory.
    fn take(&mut self, above: &OwnedFd, name: &CStr, kind: FileType) -> bool {
        let as_file = match kind {
            FileType::Directory => Err(Errno::ISDIR),
            _ => unlinkat(above, name, AtFlags::empty()),
        };
        let taken = match as_file {
            // Systems report directories with different errors.
            Err(Errno::ISDIR | Errno::PERM) => unlinkat(above, name, AtFlags::REMOVEDIR),
            taken => taken,
        };
        match taken {
            Ok(()) => self.steps += 1,
            Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => return false,
            Err(error) => self.error = Some(error),
        }
        true
    }

    /// Empties a top-level directory and removes it; non-empty directories in it are moved to the top.
    fn empty_and_remove(&mut self, name: &CStr) {
        if let Err(error) = self.empty(name) {
            self.error = Some(error);
            return;
        }
        let root = self.root.as_fd();
        match unlinkat(root, name, AtFlags::REMOVEDIR) {
            Ok(()) => self.steps += 1,
            // Something was added in the meantime, or could not be removed, which is recorded already.
            Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(error) => self.error = Some(error),
        }
    }

    fn empty(&mut self, name: &CStr) -> rustix::io::Result<()> {
        let directory = open_directory(&self.root, name)?;
        let mut buffer = Vec::with_capacity(NAMES);
        let mut entries = RawDir::new(&directory, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name();
            if is_dots(name) {
                continue;
            }
            if self.is_over() {
                return Ok(());
            }
            if !self.take(&directory, name, entry.file_type()) {
                match self.move_up(&directory, name) {
                    Ok(()) => self.steps += 1,
                    Err(Errno::NOENT) => {}
                    Err(error) => self.error = Some(error),
                }
            }
        }
        Ok(())
    }

    fn move_up(&mut self, from: &OwnedFd, name: &CStr) -> rustix::io::Result<()> {
        let mut is_opened = false;
        loop {
            let free = format!(".removed-{}", self.moved);
            self.moved += 1;
            match renameat(from, name, &self.root, free.as_str()) {
                // The name is taken.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                // A directory must be writable itself to get another parent.
                Err(Errno::ACCESS) if !is_opened => {
                    is_opened = true;
                    make_accessible(from, name)?;
                }
                moved => return moved,
            }
        }
    }
}
