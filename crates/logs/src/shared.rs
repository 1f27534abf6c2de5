//! What the threads of the store and those who read share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;
use std::{fs, io};

use podium_api::DeploymentId;
use tokio::sync::Semaphore;

use crate::missing_is_none;
use crate::notifier::Notifier;
use crate::parallel_scan;
use crate::tails::Tails;

/// So many bytes of lines may wait for their segments before those who bring lines have to wait.
const MOST_WAITING: usize = 24 * 1024 * 1024;
/// How often whoever waits looks whether it waits in vain.
const LOOK: Duration = Duration::from_millis(200);

/// The state of a store.
pub(crate) struct Shared {
    root: PathBuf,
    pub(crate) tails: Tails,
    pub(crate) notifier: Notifier,
    /// Every line below this number can be seen.
    next: AtomicU64,
    /// Held to list segments, and alone to replace some by others.
    pub(crate) names: RwLock<()>,
    /// Those who can help searches.
    pub(crate) helpers: Semaphore,
    waiting: Mutex<Waiting>,
    less: Condvar,
    stops: AtomicBool,
}

/// What waits to be written to segments.
#[derive(Default)]
struct Waiting {
    bytes: usize,
    /// Why it cannot be written.
    failure: Option<String>,
}

impl Shared {
    pub(crate) fn new(root: PathBuf) -> Self {
        Self {
            root,
            tails: Tails::default(),
            notifier: Notifier::default(),
            next: AtomicU64::new(0),
            names: RwLock::default(),
            helpers: parallel_scan::helpers(),
            waiting: Mutex::default(),
            less: Condvar::new(),
            stops: AtomicBool::new(false),
        }
    }

    /// Where the journal is.
    pub(crate) fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    /// Where the count of numbers is kept.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where the segments of a deployment are.
    pub(crate) fn directory(&self, deployment_id: DeploymentId) -> PathBuf {
        self.root.join(deployment_id.as_str())
    }

    /// The deployments that have segments.
    pub(crate) fn deployments(&self) -> io::Result<Vec<DeploymentId>> {
        let Some(entries) = missing_is_none(fs::read_dir(&self.root))? else { return Ok(Vec::new()) };
        let mut ids = Vec::new();
        for entry in entries {
            ids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<DeploymentId>().ok()));
        }
        Ok(ids)
    }

    /// The number that the next line gets: every line below it can be seen.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    /// Lets lines below a number be seen.
    pub(crate) fn publish(&self, next: u64) {
        self.next.store(next, Ordering::Release);
    }

    /// Says that the store is being closed.
    pub(crate) fn stop(&self) {
        self.stops.store(true, Ordering::Release);
    }

    /// Whether the store is being closed.
    pub(crate) fn stops(&self) -> bool {
        self.stops.load(Ordering::Acquire)
    }

    /// Notes that lines wait to be written to segments.
    pub(crate) fn wait_for(&self, weight: usize) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).bytes += weight;
    }

    /// Notes that lines have been written to segments.
    pub(crate) fn flushed(&self, weight: usize) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.bytes = waiting.bytes.saturating_sub(weight);
        waiting.failure = None;
        self.less.notify_all();
    }

    /// Notes that lines cannot be written to segments for now.
    pub(crate) fn failed(&self, error: &io::Error) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.failure = Some(error.to_string());
        self.less.notify_all();
    }

    /// Waits until there is room for more lines; fails where there will be none for now.
    pub(crate) fn has_room(&self) -> io::Result<()> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        while waiting.bytes > MOST_WAITING {
            if let Some(failure) = &waiting.failure {
                return Err(io::Error::other(format!("log segments cannot be written: {failure}")));
            }
            if self.stops() {
                return Err(io::Error::other("the log store is being closed"));
            }
            let woken = self.less.wait_timeout(waiting, LOOK);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}
