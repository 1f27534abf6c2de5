//! Counts lines over time, by how serious they look.
//!
//! A block whose lines all fit and lie in one bucket is counted by its header. Others are read. The newest are counted
//! first, and only so many: the result says from when on it is complete.

use std::io;

use podium_api::Timestamp;

use crate::Search;
use crate::block::{Block, Summary, source_bits};
use crate::hour::Hour;
use crate::parallel_scan::ParallelScan;
use crate::shared::Shared;
use crate::tally::{LEVELS, levels};
use crate::view::{Candidate, View};

/// How much work a count may be. A block is at most a few hundred kilobytes of text.
const BUDGET: usize = 64 * 1024;
/// What it costs to read a block; one that is counted by its header costs 1.
const READING: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The lines of each part of the window, by level in the order of `LogLevel::ALL`.
    pub buckets: Vec<[u64; LEVELS]>,
    /// If there was too much to read: from when on all lines are counted. Of earlier ones only some are.
    pub complete_from: Option<Timestamp>,
}

struct Counter<'a> {
    search: &'a Search,
    /// Only lines below this number are seen.
    below: u64,
    sources: u8,
    buckets: Vec<[u64; LEVELS]>,
    budget: usize,
}

/// Counts the lines that a search finds, in a window that is divided into buckets of the same length.
pub(crate) fn count(shared: &Shared, search: &Search, buckets: usize) -> io::Result<Counts> {
    count_within(shared, search, buckets, BUDGET)
}

fn count_within(shared: &Shared, search: &Search, buckets: usize, budget: usize) -> io::Result<Counts> {
    let mut counter = Counter {
        search,
        below: shared.next(),
        sources: source_bits(&search.sources),
        buckets: vec![[0; LEVELS]; buckets],
        budget,
    };
    let window = &search.window;
    if window.start >= window.end || buckets == 0 {
        return Ok(Counts { buckets: counter.buckets, complete_from: None });
    }
    let fits = |hour: Hour| hour.begins() < window.end && hour.ends() > window.start;
    let mut view = View::new(shared, search.deployment_id, None, fits)?;
    let words = search.query.words_to_look_up();
    let hours: Vec<Hour> = view.hours.keys().copied().collect();
    let mut scan_pool = ParallelScan::new(&shared.helpers, &search.query);
    let mut complete_from = None;
    for hour in hours.into_iter().rev() {
        let candidates = view.candidates(hour, &words, |summary| counter.is_near(summary))?;
        complete_from = counter.count_hour(&mut view, &mut scan_pool, candidates)?;
        if complete_from.is_some() {
            break;
        }
    }
    Ok(Counts { buckets: counter.buckets, complete_from })
}

impl Counter<'_> {
    fn is_near(&self, summary: &Summary) -> bool {
        let window = &self.search.window;
        summary.millis.0 < window.end.millis()
            && summary.millis.1 >= window.start.millis()
            && summary.numbers.0 < self.below
            && summary.sources & self.sources != 0
    }

    fn bucket(&self, millis: i64) -> Option<usize> {
        let (start, end) = (self.search.window.start.millis(), self.search.window.end.millis());
        let span = i128::from(end) - i128::from(start);
        let at = (i128::from(millis) - i128::from(start)) * self.buckets.len() as i128 / span;
        (start <= millis && millis < end).then_some(at as usize)
    }

    /// Counts the blocks of an hour; if there is too much to read, says from when on all lines are counted.
    fn count_hour(
        &mut self,
        view: &mut View,
        scan_pool: &mut ParallelScan<'_>,
        mut candidates: Vec<Candidate>,
    ) -> io::Result<Option<Timestamp>> {
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.summary.millis.1));
        let after = |candidate: &Candidate| Timestamp::from_millis(candidate.summary.millis.1 + 1);
        if self.budget < candidates.len() {
            return Ok(candidates.first().map(after));
        }
        candidates.retain(|candidate| !self.count_by_header(candidate));
        let mut unread = candidates.as_slice();
        while let Some(next) = unread.first() {
            let together = unread.len().min(scan_pool.stride()).min(self.budget / READING);
            if together == 0 {
                return Ok(Some(after(next)));
            }
            self.budget -= together * READING;
            let (now, later) = unread.split_at(together);
            unread = later;
            self.read(view, scan_pool, now)?;
        }
        Ok(None)
    }

    /// Counts a block without reading it, if that is possible.
    fn count_by_header(&mut self, candidate: &Candidate) -> bool {
        let Candidate { summary, tally, .. } = candidate;
        let (first, last) = (self.bucket(summary.millis.0), self.bucket(summary.millis.1));
        let Some(at) = first.filter(|_| first == last) else { return false };
        let suffices =
            self.search.query.is_empty() && summary.numbers.1 < self.below && tally.counts(summary.lines);
        if suffices {
            self.budget -= 1;
            self.buckets[at]
                .iter_mut()
                .zip(tally.of_sources(self.sources))
                .for_each(|(sum, own)| *sum += own);
        }
        suffices
    }

    fn read(
        &mut self,
        view: &mut View,
        scan_pool: &mut ParallelScan<'_>,
        candidates: &[Candidate],
    ) -> io::Result<()> {
        let blocks: Vec<_> =
            candidates.iter().map(|candidate| view.source(&candidate.place)).collect::<io::Result<_>>()?;
        let (window, below, sources) = (&self.search.window, self.below, self.sources);
        let window = window.start.millis()..window.end.millis();
        let fits = |block: &Block, index: usize| {
            window.contains(&block.millis[index])
                && block.numbers[index] < below
                && sources & 1 << block.sources[index] != 0
        };
        for hits in scan_pool.scan(&blocks, fits)? {
            let levels = levels(&hits.block);
            for index in hits.lines.into_iter().map(|index| index as usize) {
                if let Some(at) = self.bucket(hits.block.millis[index]) {
                    self.buckets[at][levels[index] as usize] += 1;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
