//! Scans a block for the lines that a query matches.
//!
//! The longest term of the query is searched for in the whole block at once; only lines that contain it are matched
//! completely. Before that it is searched for in the packed bytes of a block, which rules out most blocks.

use memchr::memmem::{self, Finder};

use crate::Query;
use crate::block::Block;
use crate::query::Needle;

/// How many bytes are lower-cased at once, so that they stay in the CPU cache.
const AT_ONCE: usize = 8 * 1024;
/// The only non-ASCII letters whose lower case contains an ASCII letter: the kelvin sign, and the capital I with a dot.
const LIKE_ASCII: [(u8, &str); 2] = [(b'k', "\u{212a}"), (b'i', "\u{130}")];

pub(crate) struct Scan<'a> {
    query: &'a Query,
    needle: Option<(Finder<'a>, bool)>,
    lowered: Vec<u8>,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(query: &'a Query) -> Self {
        let needle = query.needle().map(|Needle { lowered, is_text }| (Finder::new(lowered), is_text));
        Self { query, needle, lowered: Vec::new() }
    }

    /// Whether a packed block may contain a line that the query matches.
    pub(crate) fn may_hold(&mut self, packed: &[u8]) -> bool {
        let Some((finder, is_text)) = &self.needle else { return true };
        let needle = finder.needle();
        if *is_text && (!needle.is_ascii() || has_letters_like(needle, packed)) {
            return true;
        }
        // The pieces overlap, so that a needle across a boundary is found.
        let step = AT_ONCE.max(needle.len());
        (0..packed.len()).step_by(step).any(|start| {
            let end = packed.len().min(start + step + needle.len() - 1);
            self.lowered.clear();
            self.lowered.extend_from_slice(&packed[start..end]);
            self.lowered.make_ascii_lowercase();
            finder.find(&self.lowered).is_some()
        })
    }

    /// Calls `found` with each line that fits and matches the query.
    pub(crate) fn lines(
        &mut self,
        block: &Block,
        fits: impl Fn(usize) -> bool,
        mut found: impl FnMut(usize),
    ) {
        let mut look = |index: usize| {
            if fits(index) && self.query.matches(block.text_of(index)) {
                found(index);
            }
        };
        let Some((finder, is_text)) = &self.needle else {
            (0..block.len()).for_each(look);
            return;
        };
        self.lowered.clear();
        self.lowered.extend_from_slice(block.text.as_bytes());
        self.lowered.make_ascii_lowercase();
        // Phrases are compared with full case folding, which is done line by line for non-ASCII lines.
        let looks_closer = *is_text && !block.text.is_ascii();
        let is_beyond_ascii = |index: usize| looks_closer && !block.text_of(index).is_ascii();
        let mut from = 0;
        while let Some(hit) = self.lowered.get(from..).and_then(|rest| finder.find(rest)) {
            let index = block.ends.partition_point(|end| *end as usize <= from + hit);
            let Some(end) = block.ends.get(index) else { break };
            if !is_beyond_ascii(index) {
                look(index);
            }
            from = *end as usize;
        }
        if looks_closer {
            (0..block.len()).filter(|index| is_beyond_ascii(*index)).for_each(look);
        }
    }
}

/// Whether there are non-ASCII letters whose lower case is a letter of the text.
fn has_letters_like(text: &[u8], packed: &[u8]) -> bool {
    LIKE_ASCII
        .iter()
        .any(|(letter, like)| text.contains(letter) && memmem::find(packed, like.as_bytes()).is_some())
}

#[cfg(test)]
mod tests;
