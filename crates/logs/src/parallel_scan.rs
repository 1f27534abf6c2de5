//! Scans blocks, in parallel if a search has to scan many.
//!
//! Most pages are full after a few blocks, so a search starts with one thread. A longer one borrows helper threads, of
//! which the whole store has one for each further CPU; if all are busy it continues alone. Results come back in the
//! order of the blocks. A search holds at most a few blocks for each thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{io, thread};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::Query;
use crate::block::Block;
use crate::scan::Scan;
use crate::segment::{Segment, Unpacker};

/// How many blocks a search scans before it borrows helpers.
const ALONE: usize = 4;
/// How many blocks per thread are scanned together: at first, and once nothing has been found for a while. Threads wait
/// for each other after each round, so larger rounds wait less; blocks with hits are held, so larger rounds use more
/// memory.
const AT_ONCE: usize = 8;
const MOST_AT_ONCE: usize = 32;
/// The maximum number of helpers of one search.
const MOST_HELPERS: usize = 7;

/// Permits for helper threads: one for each CPU but the first.
pub(crate) fn helpers() -> Semaphore {
    Semaphore::new(thread::available_parallelism().map_or(0, |all| all.get() - 1))
}

/// A block to scan.
pub(crate) enum Source {
    Memory(Arc<Block>),
    Stored(Arc<Segment>, usize),
}

pub(crate) struct Hits {
    /// Which of the blocks it is.
    pub(crate) at: usize,
    pub(crate) block: Arc<Block>,
    pub(crate) lines: Vec<u32>,
}

/// The scanner threads of one search.
pub(crate) struct ParallelScan<'a> {
    free: &'a Semaphore,
    query: &'a Query,
    own: BlockScanner<'a>,
    helpers: Vec<(BlockScanner<'a>, SemaphorePermit<'a>)>,
    scanned: usize,
    at_once: usize,
}

impl<'a> ParallelScan<'a> {
    pub(crate) fn new(free: &'a Semaphore, query: &'a Query) -> Self {
        Self { free, query, own: BlockScanner::new(query), helpers: Vec::new(), scanned: 0, at_once: AT_ONCE }
    }

    pub(crate) fn stride(&mut self) -> usize {
        if self.scanned >= ALONE && self.helpers.is_empty() {
            let permits = std::iter::from_fn(|| self.free.try_acquire().ok()).take(MOST_HELPERS);
            self.helpers.extend(permits.map(|permit| (BlockScanner::new(self.query), permit)));
        }
        if self.helpers.is_empty() { 1 } else { self.at_once * (1 + self.helpers.len()) }
    }

    /// Scans for lines that fit, in the order of the blocks. Blocks without hits are left out.
    pub(crate) fn scan(
        &mut self,
        blocks: &[Source],
        fits: impl Fn(&Block, usize) -> bool + Sync,
    ) -> io::Result<Vec<Hits>> {
        self.scanned += blocks.len();
        let next = AtomicUsize::new(0);
        let work = |scanner: &mut BlockScanner<'_>| {
            let mut found = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(block) = blocks.get(at) else { return Ok(found) };
                let hits = scanner.scan(block, &fits)?;
                found.extend(hits.map(|(block, lines)| Hits { at, block, lines }));
            }
        };
        if blocks.len() < 2 {
            return work(&mut self.own);
        }
        let mut found = thread::scope(|scope| -> io::Result<Vec<Hits>> {
            let helping = self.helpers.iter_mut().filter_map(|(scanner, _)| {
                let thread = thread::Builder::new().name("log search".into());
                // If a thread cannot be started, the others do the work.
                thread.spawn_scoped(scope, || work(scanner)).ok()
            });
            let helping: Vec<_> = helping.collect();
            let mut found = work(&mut self.own)?;
            for helper in helping {
                let failed = |_| io::Error::other("a log search ended unexpectedly");
                found.extend(helper.join().map_err(failed)??);
            }
            Ok(found)
        })?;
        self.at_once = if found.is_empty() { MOST_AT_ONCE.min(self.at_once * 2) } else { AT_ONCE };
        found.sort_unstable_by_key(|hits| hits.at);
        Ok(found)
    }
}

struct BlockScanner<'a> {
    unpacker: Unpacker,
    scan: Scan<'a>,
}

impl<'a> BlockScanner<'a> {
    fn new(query: &'a Query) -> Self {
        Self { unpacker: Unpacker::default(), scan: Scan::new(query) }
    }

    /// The lines of a block that fit, if there are any.
    fn scan(
        &mut self,
        block: &Source,
        fits: impl Fn(&Block, usize) -> bool,
    ) -> io::Result<Option<(Arc<Block>, Vec<u32>)>> {
        let block = match block {
            Source::Memory(block) => Some(Arc::clone(block)),
            Source::Stored(segment, number) => {
                let may_hold = |packed: &[u8]| self.scan.may_hold(packed);
                segment.block_if(*number, &mut self.unpacker, may_hold)?.map(Arc::new)
            }
        };
        let Some(block) = block else { return Ok(None) };
        let mut lines = Vec::new();
        self.scan.lines(&block, |index| fits(&block, index), |index| lines.push(index as u32));
        Ok((!lines.is_empty()).then_some((block, lines)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(count: usize) -> Vec<Source> {
        let block = |number: usize| {
            let mut block = Block::default();
            for line in 0..10 {
                let text =
                    format!("block {number} line {line}{}", if number % 7 == 3 { " seventh" } else { "" });
                block.push(line, number as u64, 0, &text);
            }
            Source::Memory(Arc::new(block))
        };
        (0..count).map(block).collect()
    }

    /// Looks through all blocks as a search does; says what was found, and how many blocks at a time.
    fn look(scan_pool: &mut ParallelScan<'_>, blocks: &[Source]) -> (Vec<(usize, Vec<u32>)>, Vec<usize>) {
        let (mut found, mut strides, mut read) = (Vec::new(), Vec::new(), 0);
        while read < blocks.len() {
            let stride = scan_pool.stride().min(blocks.len() - read);
            let hits = scan_pool.scan(&blocks[read..read + stride], |_, index| index % 2 == 0).unwrap();
            found.extend(hits.into_iter().map(|hits| (read + hits.at, hits.lines)));
            strides.push(stride);
            read += stride;
        }
        (found, strides)
    }

    #[test]
    fn helpers_find_the_same_in_the_same_order_and_are_returned() {
        let (query, blocks) = (Query::parse("\"venth\""), blocks(100));
        let due: Vec<(usize, Vec<u32>)> = (3..100).step_by(7).map(|at| (at, vec![0, 2, 4, 6, 8])).collect();
        for (free, strides) in [(0, vec![1; 100]), (2, vec![1, 1, 1, 1, 24, 24, 24, 24])] {
            let helpers = Semaphore::new(free);
            let mut scan_pool = ParallelScan::new(&helpers, &query);
            assert_eq!(look(&mut scan_pool, &blocks), (due.clone(), strides));
            assert_eq!(helpers.available_permits(), 0);
            drop(scan_pool);
            assert_eq!(helpers.available_permits(), free);
        }
    }

    #[test]
    fn more_blocks_are_scanned_at_once_while_nothing_is_found() {
        let (query, blocks, helpers) = (Query::parse("nothing"), blocks(400), Semaphore::new(1));
        let strides = vec![1, 1, 1, 1, 16, 32, 64, 64, 64, 64, 64, 28];
        assert_eq!(look(&mut ParallelScan::new(&helpers, &query), &blocks), (Vec::new(), strides));
    }

    #[test]
    fn one_search_leaves_helpers_to_others() {
        let (query, blocks, helpers) = (Query::parse("line"), blocks(10), Semaphore::new(MOST_HELPERS + 5));
        let mut scan_pool = ParallelScan::new(&helpers, &query);
        assert_eq!(look(&mut scan_pool, &blocks).0.len(), 10);
        assert_eq!(helpers.available_permits(), 5);
    }
}
