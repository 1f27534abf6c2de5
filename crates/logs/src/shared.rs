//! State shared by the threads and readers of the store, and tails: lines in memory that are in no segment yet, by
//! deployment and hour.
//!
//! A tail grows while lines are appended. Once it or the journal is long enough, it is *cut*: the lines so far become
//! an immutable piece that stays in memory until it has been flushed to a segment. The length of the journal files that
//! are still needed bounds all tails together.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use std::{fs, io};

use podium_api::DeploymentId;
use tokio::sync::Semaphore;

use crate::block::Block;
use crate::follow::Notifier;
use crate::hour::{Hour, Key};
use crate::{missing_is_none, parallel_scan};

/// How many bytes of lines may wait to be flushed before appends block.
const MOST_WAITING: usize = 24 * 1024 * 1024;
/// How often a blocked append checks for failure or shutdown.
const LOOK: Duration = Duration::from_millis(200);

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

    pub(crate) fn journal(&self) -> PathBuf {
        self.root.join("journal")
    }

    pub(crate) fn directory(&self, deployment_id: DeploymentId) -> PathBuf {
        self.root.join(deployment_id.as_str())
    }

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

/// A tail is cut once it has this size.
pub(crate) const LONG: usize = 8 * 1024 * 1024;

/// An immutable piece that was cut off a tail.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) key: Key,
    pub(crate) blocks: Vec<Arc<Block>>,
    /// The number of its last line.
    pub(crate) last: u64,
    pub(crate) weight: usize,
}

#[derive(Default)]
struct Tail {
    cuts: Vec<Arc<Cut>>,
    full: Vec<Arc<Block>>,
    open: Block,
    weight: usize,
    last: u64,
}

impl Tail {
    fn cut(&mut self, key: Key) -> Option<Arc<Cut>> {
        let open = std::mem::take(&mut self.open);
        if !open.is_empty() {
            self.full.push(Arc::new(open));
        }
        let blocks = std::mem::take(&mut self.full);
        let weight = std::mem::take(&mut self.weight);
        if blocks.is_empty() {
            return None;
        }
        let cut = Arc::new(Cut { key, blocks, last: self.last, weight });
        self.cuts.push(Arc::clone(&cut));
        Some(cut)
    }
}

/// Lines of one deployment and hour that are in no segment yet, for a search.
pub(crate) struct TailView {
    pub(crate) hour: Hour,
    /// The number of the last line.
    pub(crate) last: u64,
    pub(crate) blocks: Vec<Arc<Block>>,
}

#[derive(Default)]
pub(crate) struct Tails(Mutex<HashMap<DeploymentId, HashMap<Hour, Tail>>>);

/// Adds lines to the tails while it holds the lock.
pub(crate) struct TailsWriter<'a> {
    tails: MutexGuard<'a, HashMap<DeploymentId, HashMap<Hour, Tail>>>,
    pub(crate) cuts: Vec<Arc<Cut>>,
}

impl TailsWriter<'_> {
    pub(crate) fn push(&mut self, key: Key, millis: i64, number: u64, source: u8, text: &str) {
        let tail = self.tails.entry(key.0).or_default().entry(key.1).or_default();
        if tail.open.is_full_for(text.len()) {
            tail.full.push(Arc::new(std::mem::take(&mut tail.open)));
        }
        tail.open.push(millis, number, source, text);
        tail.last = number;
        tail.weight += text.len() + 21;
        if tail.weight >= LONG {
            self.cuts.extend(tail.cut(key));
        }
    }
}

impl Tails {
    fn lock(&self) -> MutexGuard<'_, HashMap<DeploymentId, HashMap<Hour, Tail>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the tails to add lines.
    pub(crate) fn writer(&self) -> TailsWriter<'_> {
        TailsWriter { tails: self.lock(), cuts: Vec::new() }
    }

    pub(crate) fn cut_all(&self) -> Vec<Arc<Cut>> {
        let mut tails = self.lock();
        let each = tails
            .iter_mut()
            .flat_map(|(id, hours)| hours.iter_mut().map(|(hour, tail)| ((*id, *hour), tail)));
        each.filter_map(|(key, tail)| tail.cut(key)).collect()
    }

    pub(crate) fn remove_flushed(&self, cut: &Arc<Cut>) {
        let mut tails = self.lock();
        let (id, hour) = cut.key;
        let Some(hours) = tails.get_mut(&id) else { return };
        if let Some(tail) = hours.get_mut(&hour) {
            tail.cuts.retain(|known| !Arc::ptr_eq(known, cut));
            if tail.cuts.is_empty() && tail.full.is_empty() && tail.open.is_empty() {
                hours.remove(&hour);
            }
        }
        if hours.is_empty() {
            tails.remove(&id);
        }
    }

    pub(crate) fn remove(&self, deployment_id: DeploymentId) {
        self.lock().remove(&deployment_id);
    }

    /// Removes the hours that fit.
    pub(crate) fn forget(&self, goes: impl Fn(Hour) -> bool) {
        let mut tails = self.lock();
        tails.values_mut().for_each(|hours| hours.retain(|hour, _| !goes(*hour)));
        tails.retain(|_, hours| !hours.is_empty());
    }

    /// The lines of a deployment in hours that fit, after a number. The growing block is copied.
    pub(crate) fn view(
        &self,
        deployment_id: DeploymentId,
        after: Option<u64>,
        fits: impl Fn(Hour) -> bool,
    ) -> Vec<TailView> {
        let tails = self.lock();
        let Some(hours) = tails.get(&deployment_id) else { return Vec::new() };
        let is_new = |last: u64| after.is_none_or(|after| last > after);
        let mut seen = Vec::new();
        for (hour, tail) in hours.iter().filter(|(hour, tail)| fits(**hour) && is_new(tail.last)) {
            for cut in tail.cuts.iter().filter(|cut| is_new(cut.last)) {
                seen.push(TailView { hour: *hour, last: cut.last, blocks: cut.blocks.clone() });
            }
            let mut blocks = tail.full.clone();
            if !tail.open.is_empty() {
                blocks.push(Arc::new(tail.open.clone()));
            }
            if !blocks.is_empty() {
                seen.push(TailView { hour: *hour, last: tail.last, blocks });
            }
        }
        seen
    }
}
