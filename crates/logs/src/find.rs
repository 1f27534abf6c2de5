//! Finds a page of lines, newest first.
//!
//! Days are read from the newest to the oldest and each from its end. Lines in a file are nearly in order; each frame
//! says how late the lines before it are, so what is later than all of them is final and can be counted off. Only the
//! places of lines are held until it is known which of them are on the page; their texts are read then.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::backwards::{Backwards, Place};
use crate::day_files::{Bound, DayFiles};
use crate::frame::{Frame, Seen};
use crate::{Entry, Page, Search};

/// The most lines of a search over all pages, and so the most places that are held.
const MAX_RESULTS: u64 = 100_000;
/// The most lines of a page.
const MAX_PAGE: u64 = 10_000;
/// A page ends once its texts are as long as this together.
const MAX_PAGE_BYTES: usize = 32 * 1024 * 1024;

/// Where a line stands: newer lines are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Spot {
    millis: i64,
    place: Place,
    index: u32,
}

/// How much is still to be skipped and taken.
struct Wanted {
    skip: u64,
    take: u64,
}

impl Wanted {
    fn new(search: &Search, page: Page) -> Self {
        let most = search.max_results.min(MAX_RESULTS);
        let skip = page.offset.min(most);
        Self { skip, take: page.limit.min(MAX_PAGE).min(most - skip) }
    }

    fn total(&self) -> u64 {
        self.skip + self.take
    }

    /// Counts off a line; says whether it is on the page.
    fn count(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.take -= 1;
        true
    }
}

/// Reads a page of what a search finds within a bound.
pub(crate) fn page(files: &DayFiles, search: &Search, bound: &Bound, page: Page) -> io::Result<Vec<Entry>> {
    let mut wanted = Wanted::new(search, page);
    let mut entries = Vec::new();
    let mut bytes = 0;
    for (day, end) in &bound.0 {
        if wanted.take == 0 {
            break;
        }
        let Some(file) = files.open((search.deployment_id, *day))? else { continue };
        let spots = spots(&file, *end, search, &mut wanted)?;
        if !read_texts(&file, &spots, &mut entries, &mut bytes)? {
            break;
        }
    }
    Ok(entries)
}

/// The spots of one day that are on the page, newest first.
fn spots(file: &File, end: u64, search: &Search, wanted: &mut Wanted) -> io::Result<Vec<Spot>> {
    let mut frames = Backwards::from(file, end)?;
    let mut pending = BTreeSet::new();
    let mut on_page = Vec::new();
    let window = search.window.start.millis()..search.window.end.millis();
    while let Some((place, frame)) = frames.next()? {
        for (index, seen) in (0..).zip(frame.lines()) {
            if fits(search, &seen) {
                pending.insert(Spot { millis: seen.timestamp.millis(), place, index });
                if pending.len() as u64 > wanted.total() {
                    pending.pop_first();
                }
            }
        }
        let before = frame.latest_before;
        while pending.last().is_some_and(|spot| spot.millis >= before) {
            let Some(spot) = pending.pop_last() else { break };
            if wanted.count() {
                on_page.push(spot);
            }
            if wanted.take == 0 {
                return Ok(on_page);
            }
        }
        if before < window.start {
            break;
        }
    }
    while wanted.take > 0
        && let Some(spot) = pending.pop_last()
    {
        if wanted.count() {
            on_page.push(spot);
        }
    }
    Ok(on_page)
}

fn fits(search: &Search, seen: &Seen<'_>) -> bool {
    search.window.contains(&seen.timestamp)
        && search.sources.contains(&seen.source)
        && search.query.matches(seen.text)
}

/// Reads the texts of spots, frame by frame; says whether there is room for more.
fn read_texts(file: &File, spots: &[Spot], entries: &mut Vec<Entry>, bytes: &mut usize) -> io::Result<bool> {
    let mut frame_bytes = Vec::new();
    for together in spots.chunk_by(|left, right| left.place == right.place) {
        let place = together[0].place;
        frame_bytes.resize((place.end - place.start) as usize, 0);
        file.read_exact_at(&mut frame_bytes, place.start)?;
        let lines: Vec<Seen<'_>> = Frame::read(&frame_bytes).iter().flat_map(Frame::lines).collect();
        for seen in together.iter().filter_map(|spot| lines.get(spot.index as usize)) {
            if *bytes >= MAX_PAGE_BYTES {
                return Ok(false);
            }
            *bytes += seen.text.len();
            entries.push((*seen).into());
        }
    }
    Ok(true)
}
