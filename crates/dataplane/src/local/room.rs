//! Archives that are unpacked only as long as the disk has room for them.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use podium_api::DeploymentId;

use super::services::{Archive, Archives};
use crate::Answer;

/// After so many bytes of an archive it is looked again whether there is room: they may be two hundred times as many once
/// they are unpacked.
const LOOK_EVERY: usize = 64 * 1024;

/// Archives that end early where less would be left than the reserve.
pub(super) struct Roomy<'a> {
    pub(super) archives: &'a dyn Archives,
    /// Where they are unpacked.
    pub(super) directory: &'a Path,
    pub(super) reserve: u64,
}

impl Archives for Roomy<'_> {
    fn open<'a>(&'a self, deployment_id: DeploymentId, version: &'a str) -> Answer<'a, Option<Archive>> {
        let (directory, reserve) = (self.directory.to_owned(), self.reserve);
        Box::pin(async move {
            let opened = self.archives.open(deployment_id, version).await?;
            let watched =
                |inner| Box::new(Watched { inner, directory, reserve, unseen: LOOK_EVERY }) as Archive;
            Ok(opened.map(watched))
        })
    }
}

struct Watched {
    inner: Archive,
    directory: PathBuf,
    reserve: u64,
    unseen: usize,
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.unseen >= LOOK_EVERY {
            self.unseen = 0;
            let disk = rustix::fs::statvfs(&self.directory)?;
            if disk.f_bavail.saturating_mul(disk.f_frsize) < self.reserve {
                return Err(io::Error::new(ErrorKind::StorageFull, "the disk is full"));
            }
        }
        let most = buffer.len().min(LOOK_EVERY);
        let count = self.inner.read(&mut buffer[..most])?;
        self.unseen += count;
        Ok(count)
    }
}
