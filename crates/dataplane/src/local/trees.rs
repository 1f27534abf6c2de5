//! Removes and walks file trees that untrusted code wrote.
//!
//! Untrusted code decides how deep its directories are nested, how long their paths become and where its links lead. So
//! nothing here recurses or holds a descriptor for each level, uses a path that somebody else chose, or follows a link.
//! A directory without permissions for its owner is made accessible.

mod removal;
#[cfg(test)]
mod tests;
mod walk;

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, chmod, fchmod, fstat, openat};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

pub(super) use self::removal::{Remaining, clear, remove};
#[cfg(test)]
pub(super) use self::tests::nest;
pub(super) use self::walk::{Entry, Walk, each};

/// The owner's permissions that are needed to list and empty a directory.
const ALL: u32 = 0o700;

/// Buffer size for directory entries.
const NAMES: usize = 8 * 1024;

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

/// Opens a directory without following a link, making it accessible if its owner's permissions are missing.
fn open_directory(above: impl AsFd, name: impl Arg + Copy) -> Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || openat(above.as_fd(), name, OFlags::RDONLY | flags, Mode::empty());
    let opened = match open() {
        Err(Errno::ACCESS) => {
            make_accessible(above.as_fd(), name)?;
            open()?
        }
        opened => opened?,
    };
    // A readable directory may lack the other permissions.
    let mode = fstat(&opened)?.st_mode;
    if mode & ALL != ALL {
        let _ = open_up(&opened);
    }
    Ok(opened)
}

/// Gives the owner of an open directory all permissions.
fn open_up(directory: &OwnedFd) -> Result<()> {
    let mode = fstat(directory)?.st_mode;
    fchmod(directory, Mode::from_raw_mode(mode & 0o7777 | ALL))
}

/// Gives the owner of a directory all permissions, through a descriptor, so that a link in its place is not followed.
fn make_accessible(above: impl AsFd, name: impl Arg) -> Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = openat(above, name, flags, Mode::empty())?;
    chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), Mode::from_raw_mode(ALL))
}

fn is_directory(mode: u32) -> bool {
    FileType::from_raw_mode(mode) == FileType::Directory
}
