//! Blocks: some lines of one deployment and hour, stored by column.
//!
//! A block is the unit of compression, and of what a search holds in memory. Each line has a number, assigned in the
//! order of writing: it orders lines with the same timestamp and determines what a snapshot sees.

use podium_api::Timestamp;
use podium_api::enums::LogSource;

use crate::Entry;
use crate::bytes::{Reader, put, put_signed};

/// The longest text of one line; a longer one is stored as several.
pub(crate) const MAX_TEXT: usize = 64 * 1024;
/// A block holds no more text than this, unless a single line is longer.
pub(crate) const FULL: usize = 256 * 1024;
/// A block holds no more lines than this.
const MAX_LINES: usize = 32 * 1024;
/// The maximum length of a packed block: its text, and the most that each line adds.
pub(crate) const MAX_PACKED: usize = FULL + MAX_TEXT + (MAX_LINES + 1) * 32;

/// The numbers of sources in a block; the order never changes.
pub(crate) const SOURCES: [LogSource; 6] = [
    LogSource::Scheduler,
    LogSource::Webserver,
    LogSource::Triggerer,
    LogSource::Worker,
    LogSource::DagProcessor,
    LogSource::ApiServer,
];

/// The number of a source: its index above. The match is exhaustive, so that a new source does not compile without one.
pub(crate) fn number_of(source: LogSource) -> u8 {
    match source {
        LogSource::Scheduler => 0,
        LogSource::Webserver => 1,
        LogSource::Triggerer => 2,
        LogSource::Worker => 3,
        LogSource::DagProcessor => 4,
        LogSource::ApiServer => 5,
    }
}

pub(crate) fn source_of(number: u8) -> Option<LogSource> {
    SOURCES.get(usize::from(number)).copied()
}

/// Sources as a set of bits.
pub(crate) fn source_bits(sources: &[LogSource]) -> u8 {
    sources.iter().fold(0, |bits, source| bits | 1 << number_of(*source))
}

/// Some lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) millis: Vec<i64>,
    pub(crate) numbers: Vec<u64>,
    pub(crate) sources: Vec<u8>,
    /// Where the text of each line ends.
    pub(crate) ends: Vec<u32>,
    pub(crate) text: String,
}

/// The summary of a block, known without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) lines: u32,
    /// The earliest and the latest timestamp.
    pub(crate) millis: (i64, i64),
    /// The lowest number and the highest.
    pub(crate) numbers: (u64, u64),
    /// The sources that occur, as a set of bits.
    pub(crate) sources: u8,
}

impl Block {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether a text of this length should go into another block.
    pub(crate) fn is_full_for(&self, text: usize) -> bool {
        !self.is_empty() && (self.text.len() + text > FULL || self.len() >= MAX_LINES)
    }

    /// Adds a line whose text is no longer than [`MAX_TEXT`].
    pub(crate) fn push(&mut self, millis: i64, number: u64, source: u8, text: &str) {
        self.millis.push(millis);
        self.numbers.push(number);
        self.sources.push(source);
        self.text.push_str(text);
        self.ends.push(self.text.len() as u32);
    }

    pub(crate) fn text_of(&self, index: usize) -> &str {
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(index).copied().unwrap_or(start);
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    /// A line as callers see it.
    pub(crate) fn entry(&self, index: usize) -> Option<Entry> {
        Some(Entry {
            timestamp: Timestamp::from_millis(*self.millis.get(index)?),
            source: source_of(*self.sources.get(index)?)?,
            text: self.text_of(index).to_owned(),
        })
    }

    pub(crate) fn summary(&self) -> Summary {
        let range = |values: &[i64]| {
            (values.iter().copied().min().unwrap_or(0), values.iter().copied().max().unwrap_or(0))
        };
        Summary {
            lines: self.len() as u32,
            millis: range(&self.millis),
            numbers: (
                self.numbers.iter().copied().min().unwrap_or(0),
                self.numbers.iter().copied().max().unwrap_or(0),
            ),
            sources: self.sources.iter().fold(0, |bits, source| bits | 1 << source),
        }
    }

    /// Writes it as bytes that compress well.
    pub(crate) fn pack(&self, into: &mut Vec<u8>) {
        into.clear();
        put(into, self.len() as u64);
        let mut before = 0;
        for millis in &self.millis {
            put_signed(into, millis.wrapping_sub(before));
            before = *millis;
        }
        let mut before = 0;
        for number in &self.numbers {
            put_signed(into, number.wrapping_sub(before) as i64);
            before = *number;
        }
        into.extend_from_slice(&self.sources);
        let mut before = 0;
        for end in &self.ends {
            put(into, u64::from(end - before));
            before = *end;
        }
        into.extend_from_slice(self.text.as_bytes());
    }

    /// Reads what [`Block::pack`] wrote; `None` if it is invalid.
    pub(crate) fn unpack(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let lines = usize::try_from(reader.number()?).ok().filter(|lines| *lines <= bytes.len())?;
        let mut block = Self {
            millis: Vec::with_capacity(lines),
            numbers: Vec::with_capacity(lines),
            ends: Vec::with_capacity(lines),
            ..Self::default()
        };
        let mut before = 0i64;
        for _ in 0..lines {
            before = before.wrapping_add(reader.signed()?);
            block.millis.push(before);
        }
        let mut before = 0u64;
        for _ in 0..lines {
            before = before.wrapping_add(reader.signed()? as u64);
            block.numbers.push(before);
        }
        block.sources = reader.take(lines)?.to_vec();
        let mut before = 0u32;
        for _ in 0..lines {
            before = before.checked_add(u32::try_from(reader.number()?).ok()?)?;
            block.ends.push(before);
        }
        let text = reader.rest();
        if text.len() != before as usize || !block.sources.iter().all(|source| source_of(*source).is_some()) {
            return None;
        }
        block.text = String::from_utf8(text.to_vec()).ok()?;
        block.ends.iter().all(|end| block.text.is_char_boundary(*end as usize)).then_some(block)
    }
}

/// Splits a text into pieces that are not too long; an empty text is one piece.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (piece, more) = text.split_at(text.floor_char_boundary(MAX_TEXT));
        rest = (!more.is_empty()).then_some(more);
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_found_by_its_number() {
        for source in SOURCES {
            assert_eq!(source_of(number_of(source)), Some(source));
        }
        assert_eq!(source_of(SOURCES.len() as u8), None);
    }

    #[test]
    fn a_block_gives_back_what_was_put_in() {
        let mut block = Block::default();
        for (index, source) in LogSource::ALL.iter().enumerate() {
            let text = if index == 2 { "" } else { "naïve" };
            block.push(-5 + index as i64 * 3, u64::MAX - index as u64, number_of(*source), text);
        }
        let mut packed = Vec::new();
        block.pack(&mut packed);
        assert_eq!(Block::unpack(&packed).as_ref(), Some(&block));
        let summary = block.summary();
        assert_eq!((summary.millis, summary.numbers), ((-5, 10), (u64::MAX - 5, u64::MAX)));
        assert_eq!(summary.sources, source_bits(LogSource::ALL));
        assert_eq!(block.entry(1).unwrap().text, "naïve");
        assert_eq!(block.entry(1).unwrap().source, LogSource::ALL[1]);
        for length in 0..packed.len() {
            assert_eq!(Block::unpack(&packed[..length]), None, "cut at {length}");
        }
    }

    #[test]
    fn long_texts_become_several_pieces() {
        let text = "é".repeat(MAX_TEXT);
        let lengths: Vec<usize> = pieces(&text).map(str::len).collect();
        assert_eq!(lengths, [MAX_TEXT, MAX_TEXT]);
        assert_eq!(pieces("").count(), 1);
    }
}
