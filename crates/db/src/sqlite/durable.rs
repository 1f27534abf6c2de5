//! How far the log is on disk, compared with how far others may see it.
//!
//! A group that is committed without waiting for the disk is visible to readers before it would survive a power cut. So
//! each such group has a number: a reader whose snapshot may contain a group that is not on disk yet waits for it before it
//! tells anybody what it read.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use crate::{Error, Result};

/// What the writer, the thread that syncs, and readers share.
pub(super) struct Durable {
    /// The last group that readers may see.
    visible: AtomicU64,
    /// The last group that is on disk.
    synced: AtomicU64,
    failure: OnceLock<Error>,
    /// Rung after either of the two above has changed.
    bell: watch::Sender<()>,
}

impl Default for Durable {
    fn default() -> Self {
        Self {
            visible: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            failure: OnceLock::new(),
            bell: watch::Sender::new(()),
        }
    }
}

impl Durable {
    /// The number of the next group. Called before its COMMIT, so that nobody sees the group and misses the number.
    pub(super) fn next(&self) -> u64 {
        self.visible.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Says that there is nothing left to sync up to this group.
    pub(super) fn reached(&self, group: u64) {
        self.synced.store(group, Ordering::Release);
        self.bell.send_replace(());
    }

    /// Says that a sync failed. Nothing that is not on disk by now will ever be acknowledged by this process: the
    /// kernel forgets what it could not write, and the next sync would succeed without it.
    pub(super) fn fail(&self, error: Error) {
        // The first failure is the one that matters.
        let _ = self.failure.set(error);
        self.bell.send_replace(());
    }

    /// Why nothing is written any more.
    pub(super) fn failure(&self) -> Option<Error> {
        self.failure.get().cloned()
    }

    /// Whether everything that readers may see is on disk.
    pub(super) fn is_caught_up(&self) -> bool {
        let seen = self.visible.load(Ordering::Acquire);
        self.synced.load(Ordering::Acquire) >= seen && self.failure.get().is_none()
    }

    /// Waits until everything that the caller may have read is on disk.
    pub(super) async fn catch_up(&self) -> Result<()> {
        if self.is_caught_up() {
            return Ok(());
        }
        let seen = self.visible.load(Ordering::Acquire);
        let mut bell = self.bell.subscribe();
        loop {
            if let Some(error) = self.failure() {
                return Err(error);
            }
            if self.synced.load(Ordering::Acquire) >= seen {
                return Ok(());
            }
            // Cannot fail: the sender is in `self`.
            let _ = bell.changed().await;
        }
    }
}
