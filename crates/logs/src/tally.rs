//! How serious lines look, found for a whole block at once, and how many of each kind there are.

use memchr::memmem::Finder;
use podium_api::deployment_logs::LogLevel;

use crate::block::{Block, SOURCES};

/// How many levels there are: the number of each is its place in [`LogLevel::ALL`].
pub(crate) const LEVELS: usize = LogLevel::ALL.len();

/// How many lines of each source look how serious.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally(pub(crate) [[u32; LEVELS]; SOURCES.len()]);

impl Tally {
    pub(crate) fn of(block: &Block) -> Self {
        let mut tally = Self::default();
        for (source, level) in block.sources.iter().zip(levels(block)) {
            tally.0[usize::from(*source)][level as usize] += 1;
        }
        tally
    }

    /// Whether it counts this many lines. Blocks of the first version of the format have an empty one.
    pub(crate) fn counts(&self, lines: u32) -> bool {
        self.0.iter().flatten().map(|count| u64::from(*count)).sum::<u64>() == u64::from(lines)
    }

    /// The lines of some sources.
    pub(crate) fn of_sources(&self, bits: u8) -> [u64; LEVELS] {
        let mut all = [0; LEVELS];
        for (_, counts) in self.0.iter().enumerate().filter(|(source, _)| bits & 1 << source != 0) {
            all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += u64::from(*count));
        }
        all
    }
}

/// The level of each line: what [`LogLevel::of`] says.
pub(crate) fn levels(block: &Block) -> Vec<LogLevel> {
    let mut levels = vec![LogLevel::Other; block.len()];
    // The most serious come last, and stay.
    for (level, words) in LogLevel::WORDS.iter().rev() {
        for word in *words {
            let finder = Finder::new(word);
            let mut from = 0;
            while let Some(hit) = block.text.as_bytes().get(from..).and_then(|rest| finder.find(rest)) {
                let at = from + hit;
                let index = block.ends.partition_point(|end| *end as usize <= at);
                let Some(end) = block.ends.get(index).map(|end| *end as usize) else { break };
                // Nothing stands between lines: a word across their border is in neither.
                let is_within = at + word.len() <= end;
                if is_within {
                    levels[index] = *level;
                }
                from = if is_within { end } else { at + 1 };
            }
        }
    }
    levels
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    const PIECES: [&str; 14] = [
        "ERROR",
        "ERR",
        "OR",
        "CRITICAL",
        "Traceback",
        "[error",
        "[",
        "error",
        "WARNING",
        "WARN",
        "[warning",
        "info ",
        "é",
        "",
    ];

    proptest! {
        #[test]
        fn a_block_has_the_levels_of_its_lines(lines in vec((vec(select(&PIECES[..]), 0..4), 0..6u8), 0..40)) {
            let mut block = Block::default();
            let mut expected = Tally::default();
            let mut expected_levels = Vec::new();
            for (number, (pieces, source)) in lines.iter().enumerate() {
                let text = pieces.concat();
                block.push(0, number as u64, *source, &text);
                expected_levels.push(LogLevel::of(&text));
                expected.0[usize::from(*source)][LogLevel::of(&text) as usize] += 1;
            }
            prop_assert_eq!(levels(&block), expected_levels);
            prop_assert_eq!(Tally::of(&block), expected);
            prop_assert!(expected.counts(lines.len() as u32));
            let of_one = lines.iter().filter(|(_, source)| *source == 3).count() as u64;
            prop_assert_eq!(expected.of_sources(1 << 3).iter().sum::<u64>(), of_one);
        }
    }
}
