//! State shared by the threads and readers of the store.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError, RwLock};
use std::time::Duration;
use std::{fs, io};

use podium_api::DeploymentId;
use tokio::sync::Semaphore;

use crate::follow::Notifier;
use crate::tails::Tails;
use crate::{missing_is_none, parallel_scan};

/// How many bytes of lines may wait to be flushed before appends block.
const MOST_WAITING: usize = 24 * 1024 * 1024;
/// How often a blocked append checks for failure or shutdown.
const LOOK: Duration = Duration::from_millis(200);

/// The state of a store.
pub(crate) struct Shared {
    pub(crate) root: PathBuf,
    pub(crate) tails: Tails,
    pub(crate) notifier: Notifier,
    /// Every line below this number is visible.
    next: AtomicU64,
    /// Read-locked to list segments, write-locked to replace them.
    pub(crate) names: RwLock<()>,
    /// Permits for helper threads of searches.
    pub(crate) helpers: Semaphore,
    waiting: Mutex<Waiting>,
    less: Condvar,
    stops: AtomicBool,
}

/// Lines that wait to be flushed to segments.
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

    /// The number of the next line: every line below it is visible.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Acquire)
    }

    /// Makes lines below a number visible.
    pub(crate) fn publish(&self, next: u64) {
        self.next.store(next, Ordering::Release);
    }

    /// Starts closing the store.
    pub(crate) fn stop(&self) {
        self.stops.store(true, Ordering::Release);
    }

    /// Whether the store is being closed.
    pub(crate) fn stops(&self) -> bool {
        self.stops.load(Ordering::Acquire)
    }

    /// Records that lines wait to be flushed.
    pub(crate) fn wait_for(&self, weight: usize) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).bytes += weight;
    }

    /// Records that lines have been flushed.
    pub(crate) fn flushed(&self, weight: usize) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.bytes = waiting.bytes.saturating_sub(weight);
        waiting.failure = None;
        self.less.notify_all();
    }

    /// Records that flushing fails.
    pub(crate) fn failed(&self, error: &io::Error) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.failure = Some(error.to_string());
        self.less.notify_all();
    }

    /// Blocks until there is room for more lines; fails if flushing fails or the store is being closed.
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
