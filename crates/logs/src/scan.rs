//! Looks through a block for the lines that a query matches.
//!
//! The longest thing that the query asks for is looked for in the whole block at once; only lines in which it occurs
//! are looked at closely.

use memchr::memmem::Finder;

use crate::Query;
use crate::block::Block;
use crate::query::Needle;

/// A query that looks through blocks.
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

    /// Gives each line that the query matches, of those that fit.
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
        // Texts are compared in lower case of all letters, which is made line by line where it is not that of ASCII.
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
