//! Watches the disk and keeps a reserve that uploads and installations may not use, so that people can still sign in,
//! look around and clean up when the disk fills up.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use podium_domain::{Reason, UserText};
use podium_store::work;

use crate::App;
use crate::error::{Error, Result};

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

const EVERY: Duration = Duration::from_secs(5);
/// A disk that can take fewer files than this is as full as one without room.
const FILES: u64 = 2_000;

/// The last known state of the disk.
#[derive(Default)]
pub struct Disk(Mutex<Option<Reason>>);

/// The disk space that a server keeps in reserve.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    pub directories: Vec<PathBuf>,
    /// How many bytes are to stay free on the disk of each.
    pub bytes: u64,
}

impl Reserve {
    /// The reason if less is free than the reserve; operators also see where.
    pub fn shortage(&self) -> Option<Reason> {
        self.shortage_for(0)
    }

    /// The reason if less than the reserve would be free after writing this many bytes; operators also see where.
    pub fn shortage_for(&self, more: u64) -> Option<Reason> {
        self.directories.iter().find_map(|directory| {
            let Free { bytes, files } = free(directory)?;
            let (free, kept) = (mebibytes(bytes), mebibytes(self.bytes));
            let told = if bytes < self.bytes {
                UserText::filled(
                    "The disk is full: {} MiB are free and {} MiB are reserved.",
                    &[&free, &kept],
                )
            } else if bytes - self.bytes < more {
                UserText::filled(
                    "The disk is too full for {} MiB: {} MiB are free and {} MiB are reserved.",
                    &[&mebibytes(more), &free, &kept],
                )
            } else if self.bytes > 0 && files.is_some_and(|files| files < FILES) {
                UserText::filled("The disk is full: fewer than {} more files can be created.", &[&FILES])
            } else {
                return None;
            };
            Some(Reason::new(told, directory.display()))
        })
    }
}

impl App {
    pub fn disk_is_full(&self) -> Option<Reason> {
        self.disk.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Refuses what would fill the disk.
    pub(crate) async fn require_disk_space(&self) -> Result<()> {
        self.require_disk_space_for(0).await
    }

    /// Refuses to write so many bytes where that would fill the disk.
    pub(crate) async fn require_disk_space_for(&self, bytes: u64) -> Result<()> {
        match self.shortage_for(bytes).await? {
            Some(why) => Err(Error::DiskFull(why)),
            None => Ok(()),
        }
    }

    /// Checks the disks on the blocking pool, because a disk may respond slowly.
    async fn shortage_for(&self, bytes: u64) -> Result<Option<Reason>> {
        let reserve = self.config.reserve.clone();
        let looked = tokio::task::spawn_blocking(move || reserve.shortage_for(bytes)).await;
        looked.map_err(|error| Error::Internal(error.to_string()))
    }

    /// Checks the disk; when it becomes full or has space again, every deployment is reconciled to report it.
    pub async fn check_disk(&self) -> Result<()> {
        let shortage = self.shortage_for(0).await?;
        let was_full = {
            let mut known = self.disk.0.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *known, shortage.clone()).is_some()
        };
        if was_full == shortage.is_some() {
            return Ok(());
        }
        match &shortage {
            Some(why) => tracing::error!("{why} Installs and uploads are refused until space is free again."),
            None => tracing::info!("the disk has free space again"),
        }
        let (system, now) = (system(self), self.world.now());
        db(self).write(None, move |tx| work::enqueue_everything(tx, &system, now)).await?;
        Ok(())
    }
}

/// Watches the disk until the task is dropped.
pub async fn run(app: App) {
    let mut ticks = tokio::time::interval(EVERY);
    loop {
        ticks.tick().await;
        if let Err(error) = app.check_disk().await {
            tracing::warn!(%error, "could not update the disk status of every deployment");
        }
    }
}

struct Free {
    bytes: u64,
    /// How many files more there can be, where they are counted.
    files: Option<u64>,
}

/// What is free for this process at a directory; `None` if that cannot be determined.
fn free(directory: &Path) -> Option<Free> {
    let found = directory.ancestors().find(|path| path.exists())?;
    let disk = rustix::fs::statvfs(found).ok()?;
    let files = (disk.f_files > 0).then_some(disk.f_favail);
    Some(Free { bytes: disk.f_bavail.saturating_mul(disk.f_frsize), files })
}

fn mebibytes(bytes: u64) -> u64 {
    bytes >> 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_full_when_less_is_free_than_the_reserve() {
        let directory = std::env::temp_dir().join("not/there/yet");
        let at = |bytes| Reserve { directories: vec![directory.clone()], bytes };
        assert_eq!(at(0).shortage(), None);
        assert_eq!(at(1).shortage(), None);
        let shortage = at(u64::MAX).shortage().unwrap();
        assert!(shortage.user_text().as_str().starts_with("The disk is full: "), "{shortage}");
        let path = directory.display().to_string();
        assert!(!shortage.user_text().as_str().contains(&path), "{shortage}");
        assert_eq!(shortage.detail(), path, "operators read where");
        assert_eq!(Reserve::default().shortage(), None);
        let shortage = at(1).shortage_for(u64::MAX).unwrap();
        assert!(shortage.user_text().as_str().starts_with("The disk is too full for "), "{shortage}");
    }
}
