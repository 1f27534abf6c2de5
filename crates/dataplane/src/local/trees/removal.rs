//! Removes a tree with a handful of descriptors, however deep it is: directories that are not empty are moved up to the
//! top, so that nothing is ever further down than two levels.

use std::ffi::CStr;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, RawDir, SeekFrom, renameat, seek, unlinkat};
use rustix::io::Errno;

use super::{NAMES, is_dots, make_accessible, open_directory};
use crate::blocking::assert_may_block;

/// How much was left by a removal that was to do so much and no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Remaining {
    /// Nothing.
    Nothing,
    /// Something; to be gone on with.
    Something,
}

/// Removes a file, or a directory and everything in it; none is fine.
pub(in super::super) fn remove(path: &Path) -> io::Result<()> {
    assert_may_block();
    let none_is_fine = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    };
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            clear(path, None, u64::MAX)?;
            std::fs::remove_dir(path).or_else(none_is_fine)
        }
        Ok(_) => std::fs::remove_file(path).or_else(none_is_fine),
        Err(error) => none_is_fine(error),
    }
}

/// Removes what is in a directory but for one name, in at most so many steps; no directory is fine. An error says why
/// something cannot be removed, and comes after everything else is gone.
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
    /// How many names were given to what was moved up.
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

    /// Goes through the top once; tells whether nothing was there.
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

    /// Removes an entry; tells whether that is all, which is not so for a directory with something in it.
    fn take(&mut self, above: &OwnedFd, name: &CStr, kind: FileType) -> bool {
        let as_file = match kind {
            FileType::Directory => Err(Errno::ISDIR),
            _ => unlinkat(above, name, AtFlags::empty()),
        };
        let taken = match as_file {
            // Not every system says it in the same way.
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

    /// Empties a directory at the top, and removes it: what it holds that is not empty is moved to the top.
    fn empty_and_remove(&mut self, name: &CStr) {
        if let Err(error) = self.empty(name) {
            self.error = Some(error);
            return;
        }
        let root = self.root.as_fd();
        match unlinkat(root, name, AtFlags::REMOVEDIR) {
            Ok(()) => self.steps += 1,
            // Something was put there meanwhile, or could not be taken away: that is known already.
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
                // Somebody has that name.
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                // It is to get another parent, so it has to be writable itself.
                Err(Errno::ACCESS) if !is_opened => {
                    is_opened = true;
                    make_accessible(from, name)?;
                }
                moved => return moved,
            }
        }
    }
}
