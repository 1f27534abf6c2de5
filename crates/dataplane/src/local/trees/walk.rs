//! Walks a tree incrementally, with a bounded number of descriptors: the way back up from deep levels is `..`, which is
//! checked to lead to the same directory.

use std::ffi::{CStr, CString};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, SeekFrom, Stat, fstat, openat, seek, statat};
use rustix::io::{Errno, Result};

use super::{NAMES, is_directory, is_dots, open_directory, open_up};

/// The number of levels whose descriptors are kept open.
const HELD: usize = 16;

/// A walk in progress. Directories come before their contents; other file systems are skipped.
pub(in super::super) struct Walk {
    /// The directories from the top to where the walk is.
    levels: Vec<Level>,
    /// Directories that were moved away during the walk, and inaccessible entries.
    pub(in super::super) lost: u64,
}

pub(in super::super) struct Entry<'a> {
    pub(in super::super) above: &'a OwnedFd,
    pub(in super::super) name: &'a CStr,
    pub(in super::super) stat: &'a Stat,
}

struct Level {
    /// `None` if the way back is `..`.
    held: Option<OwnedFd>,
    device: u64,
    inode: u64,
    /// Where to continue reading.
    position: u64,
}

/// Why the reading of a directory stopped.
enum Pause {
    /// A subdirectory has to be walked first.
    Below(CString),
    /// Enough for now.
    Enough,
    End,
}

impl Walk {
    /// Starts at a directory; a missing one has no entries.
    pub(in super::super) fn new(directory: &Path) -> Result<Self> {
        match open_directory(CWD, directory) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(Self { levels: Vec::new(), lost: 0 }),
            opened => Ok(Self { levels: vec![Level::new(opened?)?], lost: 0 }),
        }
    }

    /// Continues over at most this many entries; returns whether the walk is complete.
    pub(in super::super) fn advance(
        &mut self,
        mut most: usize,
        mut visit: impl FnMut(&Entry<'_>) -> Result<()>,
    ) -> Result<bool> {
        loop {
            let depth = self.levels.len();
            let Some(level) = self.levels.last_mut() else { return Ok(true) };
            let Some(directory) = level.held.take() else {
                // The current directory is always open.
                return Err(Errno::BADF);
            };
            let device = level.device;
            let pause = level.read(&directory, device, &mut most, &mut self.lost, &mut visit);
            match pause {
                Ok(Pause::Enough) => {
                    level.held = Some(directory);
                    return Ok(false);
                }
                Ok(Pause::Below(name)) => {
                    match open_directory(&directory, name.as_c_str()).and_then(Level::new) {
                        Ok(below) => {
                            if depth <= HELD {
                                level.held = Some(directory);
                            }
                            self.levels.push(below);
                        }
                        Err(error) => {
                            level.held = Some(directory);
                            if !is_gone(error) {
                                self.lost += 1;
                            }
                        }
                    }
                }
                Ok(Pause::End) => self.go_up(&directory),
                Err(error) => {
                    level.held = Some(directory);
                    return Err(error);
                }
            }
        }
    }

    /// Goes back to the parent directory, or to the nearest one that is still open.
    fn go_up(&mut self, from: &OwnedFd) {
        self.levels.pop();
        let Some(level) = self.levels.last_mut() else { return };
        if level.held.is_some() {
            return;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let above = openat(from, "..", flags, Mode::empty()).and_then(Level::new);
        match above {
            Ok(above) if (above.device, above.inode) == (level.device, level.inode) => {
                level.held = above.held;
            }
            _ => {
                self.lost += 1;
                while self.levels.last().is_some_and(|level| level.held.is_none()) {
                    self.levels.pop();
                }
            }
        }
    }
}

pub(in super::super) fn each(
    directory: &Path,
    visit: impl FnMut(&Entry<'_>) -> Result<()>,
) -> std::io::Result<()> {
    Ok(Walk::new(directory)?.advance(usize::MAX, visit).map(drop)?)
}

impl Level {
    fn new(directory: OwnedFd) -> Result<Self> {
        let stat = fstat(&directory)?;
        Ok(Self { held: Some(directory), device: stat.st_dev, inode: stat.st_ino, position: 0 })
    }

    fn read(
        &mut self,
        directory: &OwnedFd,
        device: u64,
        most: &mut usize,
        lost: &mut u64,
        visit: &mut impl FnMut(&Entry<'_>) -> Result<()>,
    ) -> Result<Pause> {
        seek(directory, SeekFrom::Start(self.position))?;
        let mut buffer = Vec::with_capacity(NAMES);
        let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            if *most == 0 {
                return Ok(Pause::Enough);
            }
            self.position = entry.next_entry_cookie();
            let name = entry.file_name();
            if is_dots(name) {
                continue;
            }
            *most -= 1;
            let look = || statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
            let looked = match look() {
                // Its permissions were removed after it was opened.
                Err(Errno::ACCESS) => open_up(directory).and_then(|()| look()),
                looked => looked,
            };
            let stat = match looked {
                Err(error) if is_gone(error) => continue,
                Err(Errno::ACCESS | Errno::PERM) => {
                    *lost += 1;
                    continue;
                }
                stat => stat?,
            };
            if stat.st_dev != device {
                continue;
            }
            visit(&Entry { above: directory, name, stat: &stat })?;
            if is_directory(stat.st_mode) {
                return Ok(Pause::Below(name.to_owned()));
            }
        }
        Ok(Pause::End)
    }
}

/// Whether the entry is gone, or has been replaced.
fn is_gone(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
}
