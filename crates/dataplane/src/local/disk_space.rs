//! How much space is left on a disk, and archives that stop unpacking when it runs full.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use podium_api::DeploymentId;

use crate::blocking::assert_may_block;
use crate::{Archive, Archives, PlaneFuture};

/// A disk with fewer free inodes than this counts as full.
pub(super) const FEWEST_FILES: u64 = 1_500;

/// What is left on the disk of a directory.
pub(super) struct FreeSpace {
    pub(super) bytes: u64,
    /// How many more files there may be; `None` where they are not counted.
    pub(super) files: Option<u64>,
}

impl FreeSpace {
    pub(super) fn of(directory: &Path) -> io::Result<Self> {
        assert_may_block();
        let disk = rustix::fs::statvfs(directory)?;
        let files = (disk.f_files > 0).then_some(disk.f_favail);
        Ok(Self { bytes: disk.f_bavail.saturating_mul(disk.f_frsize), files })
    }
}

/// Free space is checked after this many bytes of an archive, which may unpack to two hundred times as many.
const CHECK_EVERY: usize = 64 * 1024;

/// Archives that fail once less than the reserve is free.
pub(super) struct SpaceCheckedArchives<'a> {
    pub(super) archives: &'a dyn Archives,
    pub(super) directory: PathBuf,
    pub(super) reserve: u64,
}

impl Archives for SpaceCheckedArchives<'_> {
    fn open<'a>(&'a self, deployment_id: DeploymentId, version: &'a str) -> PlaneFuture<'a, Option<Archive>> {
        let (directory, reserve) = (self.directory.clone(), self.reserve);
        Box::pin(async move {
            let opened = self.archives.open(deployment_id, version).await?;
            let watched = |inner| {
                Box::new(SpaceCheckedReader { inner, directory, reserve, since_check: CHECK_EVERY })
                    as Archive
            };
            Ok(opened.map(watched))
        })
    }
}

struct SpaceCheckedReader {
    inner: Archive,
    directory: PathBuf,
    reserve: u64,
    since_check: usize,
}

impl Read for SpaceCheckedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.since_check >= CHECK_EVERY {
            self.since_check = 0;
            if FreeSpace::of(&self.directory)?.bytes < self.reserve {
                return Err(io::Error::new(ErrorKind::StorageFull, "the disk is full"));
            }
        }
        let most = buffer.len().min(CHECK_EVERY);
        let count = self.inner.read(&mut buffer[..most])?;
        self.since_check += count;
        Ok(count)
    }
}
