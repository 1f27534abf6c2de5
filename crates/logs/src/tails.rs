//! Tails: lines in memory that are in no segment yet, by deployment and hour.
//!
//! A tail grows while lines are appended. Once it or the journal is long enough, it is *cut*: the lines so far become
//! an immutable piece that stays in memory until it has been flushed to a segment. The length of the journal files that
//! are still needed bounds all tails together.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use podium_api::DeploymentId;

use crate::block::Block;
use crate::hour::{Hour, Key};

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

/// All tails.
#[derive(Default)]
pub(crate) struct Tails(Mutex<HashMap<DeploymentId, HashMap<Hour, Tail>>>);

/// Adds lines to the tails while it holds the lock.
pub(crate) struct TailsWriter<'a> {
    tails: MutexGuard<'a, HashMap<DeploymentId, HashMap<Hour, Tail>>>,
    pub(crate) cuts: Vec<Arc<Cut>>,
}

impl TailsWriter<'_> {
    /// Adds a line.
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

    /// Cuts every tail.
    pub(crate) fn cut_all(&self) -> Vec<Arc<Cut>> {
        let mut tails = self.lock();
        let each = tails
            .iter_mut()
            .flat_map(|(id, hours)| hours.iter_mut().map(|(hour, tail)| ((*id, *hour), tail)));
        each.filter_map(|(key, tail)| tail.cut(key)).collect()
    }

    /// Removes a piece that has been flushed.
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

    /// Removes everything of a deployment.
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
