//! Finds a page of lines, newest first.
//!
//! Hours are read from the newest to the oldest, several at a time if one has too few blocks for a parallel scan, and
//! their blocks in the order of their latest line. Hits that are later than all unread blocks are final. Only the
//! positions of hits are held until it is known which of them are on the page.

use std::collections::BTreeSet;
use std::io;

use crate::block::{Block, Summary, source_bits};
use crate::hour::Hour;
use crate::parallel_scan::ParallelScan;
use crate::shared::Shared;
use crate::view::{Candidate, View};
use crate::{Entry, Page, Search};

/// The maximum number of results of a search over all pages, and so of positions that are held.
const MAX_RESULTS: u64 = 100_000;
const MAX_PAGE: u64 = 10_000;
/// A page ends once its texts are as long as this together.
const MAX_PAGE_BYTES: usize = 32 * 1024 * 1024;

/// The position of a line in the order: newer lines are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub(crate) millis: i64,
    pub(crate) number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    position: Position,
    candidate: u32,
    index: u32,
}

pub(crate) struct PageRequest<'a> {
    pub(crate) search: &'a Search,
    /// Only lines below this number are seen.
    pub(crate) below: u64,
    /// This many results come before the page, down to this position.
    pub(crate) from: Option<(u64, Position)>,
    pub(crate) page: Page,
}

/// A page, and where it ends.
pub(crate) struct Found {
    pub(crate) entries: Vec<Entry>,
    pub(crate) end: Option<(u64, Position)>,
}

/// Counts results and collects those of the page.
struct Counter {
    skip: u64,
    take: u64,
    counted: u64,
    last: Option<Position>,
    bytes: usize,
    entries: Vec<Entry>,
}

impl Counter {
    fn new(wanted: &PageRequest<'_>) -> Self {
        let most = wanted.search.max_results.min(MAX_RESULTS);
        let offset = wanted.page.offset.min(most);
        let counted = wanted.from.map_or(0, |(counted, _)| counted.min(offset));
        let take = wanted.page.limit.min(MAX_PAGE).min(most - offset);
        Self { skip: offset - counted, take, counted, last: None, bytes: 0, entries: Vec::new() }
    }

    fn total(&self) -> u64 {
        self.skip + self.take
    }

    fn is_done(&self) -> bool {
        self.take == 0
    }
}

pub(crate) fn page(shared: &Shared, wanted: &PageRequest<'_>) -> io::Result<Found> {
    let mut counter = Counter::new(wanted);
    let window = &wanted.search.window;
    if counter.is_done() || window.start >= window.end {
        return Ok(Found { entries: Vec::new(), end: None });
    }
    let upto = wanted.from.map_or(i64::MAX, |(_, position)| position.millis);
    let fits = |hour: Hour| {
        hour.begins() < window.end && hour.ends() > window.start && hour.begins().millis() <= upto
    };
    let mut view = View::new(shared, wanted.search.deployment_id, None, fits)?;
    let words = wanted.search.query.words_to_look_up();
    let hours: Vec<Hour> = view.hours.keys().copied().collect();
    let mut hours = hours.into_iter().rev();
    let mut scan_pool = ParallelScan::new(&shared.helpers, &wanted.search.query);
    while !counter.is_done() {
        let mut candidates = Vec::new();
        while candidates.len() < scan_pool.stride()
            && let Some(hour) = hours.next()
        {
            candidates.extend(view.candidates(hour, &words, |summary| is_near(wanted, summary))?);
        }
        if candidates.is_empty() {
            break;
        }
        read_blocks(&mut view, &mut scan_pool, candidates, wanted, &mut counter)?;
    }
    Ok(Found { end: counter.last.map(|last| (counter.counted, last)), entries: counter.entries })
}

fn is_near(wanted: &PageRequest<'_>, summary: &Summary) -> bool {
    let window = &wanted.search.window;
    summary.millis.0 < window.end.millis()
        && summary.millis.1 >= window.start.millis()
        && wanted.from.is_none_or(|(_, position)| summary.millis.0 <= position.millis)
        && summary.numbers.0 < wanted.below
        && summary.sources & source_bits(&wanted.search.sources) != 0
}

/// Counts the hits of some blocks, all of which are later than those that have not been read.
fn read_blocks(
    view: &mut View,
    scan_pool: &mut ParallelScan<'_>,
    mut candidates: Vec<Candidate>,
    wanted: &PageRequest<'_>,
    counter: &mut Counter,
) -> io::Result<()> {
    candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.summary.millis.1));
    let sources = source_bits(&wanted.search.sources);
    let window = wanted.search.window.start.millis()..wanted.search.window.end.millis();
    let fits = |block: &Block, index: usize| {
        window.contains(&block.millis[index])
            && block.numbers[index] < wanted.below
            && sources & 1 << block.sources[index] != 0
            && wanted.from.is_none_or(|(_, from)| position(block, index) < from)
    };
    let mut pending: BTreeSet<Hit> = BTreeSet::new();
    let mut read = 0;
    while let Some(latest) = candidates.get(read).map(|candidate| candidate.summary.millis.1) {
        while pending.last().is_some_and(|hit| hit.position.millis > latest) && !counter.is_done() {
            count_off(view, &candidates, &mut pending, counter)?;
        }
        let has_enough = pending.len() as u64 >= counter.total();
        if counter.is_done() || has_enough && pending.first().is_some_and(|hit| hit.position.millis > latest)
        {
            break;
        }
        let together = &candidates[read..candidates.len().min(read + scan_pool.stride())];
        let blocks: Vec<_> =
            together.iter().map(|candidate| view.source(&candidate.place)).collect::<io::Result<_>>()?;
        for hits in scan_pool.scan(&blocks, fits)? {
            let candidate = (read + hits.at) as u32;
            for index in hits.lines {
                let hit = Hit { position: position(&hits.block, index as usize), candidate, index };
                if (pending.len() as u64) < counter.total() {
                    pending.insert(hit);
                } else if pending.first().is_some_and(|oldest| *oldest < hit) {
                    pending.pop_first();
                    pending.insert(hit);
                }
            }
            view.hold(&together[hits.at].place, hits.block, together.len());
        }
        read += together.len();
    }
    while !pending.is_empty() && !counter.is_done() {
        count_off(view, &candidates, &mut pending, counter)?;
    }
    Ok(())
}

fn position(block: &Block, index: usize) -> Position {
    Position { millis: block.millis[index], number: block.numbers[index] }
}

/// Counts the newest pending hit.
fn count_off(
    view: &mut View,
    candidates: &[Candidate],
    pending: &mut BTreeSet<Hit>,
    counter: &mut Counter,
) -> io::Result<()> {
    let Some(hit) = pending.pop_last() else { return Ok(()) };
    if counter.skip > 0 {
        counter.skip -= 1;
    } else {
        let block = view.block(&candidates[hit.candidate as usize].place)?;
        let Some(entry) = block.and_then(|block| block.entry(hit.index as usize)) else { return Ok(()) };
        counter.take -= 1;
        counter.bytes += entry.text.len();
        if counter.bytes >= MAX_PAGE_BYTES {
            counter.take = 0;
        }
        counter.entries.push(entry);
    }
    counter.counted += 1;
    counter.last = Some(hit.position);
    Ok(())
}
