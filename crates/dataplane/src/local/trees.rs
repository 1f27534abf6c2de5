//! Trees of files that somebody else wrote: removed and walked whatever is in them.
//!
//! Whoever writes the files of an environment decides how deep its directories are nested, how long their paths become
//! and where its links lead. So nothing here calls itself for each level, holds a descriptor for each level, names a path
//! that somebody else chose or follows a link. A directory that its owner has closed is opened.

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
pub(super) use self::walk::{Entry, Walk};

/// What its owner may do with a directory that is to be looked at or emptied.
const ALL: u32 = 0o700;

/// Room for the names of some entries.
const NAMES: usize = 8 * 1024;

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

/// Opens a directory, not through a link, and for whoever owns it also where it is closed.
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
    // What can be read need not be open to be passed through or written to.
    let mode = fstat(&opened)?.st_mode;
    if mode & ALL != ALL {
        let _ = open_up(&opened);
    }
    Ok(opened)
}

/// Lets the owner of a directory that is open do everything with it.
fn open_up(directory: &OwnedFd) -> Result<()> {
    let mode = fstat(directory)?.st_mode;
    fchmod(directory, Mode::from_raw_mode(mode & 0o7777 | ALL))
}

/// Lets the owner of a directory do everything with it. By a descriptor: a link in its place is not followed.
fn make_accessible(above: impl AsFd, name: impl Arg) -> Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = openat(above, name, flags, Mode::empty())?;
    chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), Mode::from_raw_mode(ALL))
}

fn is_directory(mode: u32) -> bool {
    FileType::from_raw_mode(mode) == FileType::Directory
}
