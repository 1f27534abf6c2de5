//! Hashes of words, so that a search can rule out blocks.
//!
//! In addition to each word, its first four letters are indexed for prefix searches.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::block::Block;

/// The number of bits of a hash. More give fewer collisions, fewer take less space.
pub(crate) const HASH_BITS: u32 = 26;
/// The length of an indexed prefix.
pub(crate) const PREFIX: usize = 4;
const PREFIX_SEED: u64 = 0x62_6567_696e;
/// The size of the cache that skips recently seen hashes.
const REMEMBERED: usize = 1 << 14;

/// The hash of a lower-case word.
pub(crate) fn of_word(lowered: &[u8]) -> u32 {
    short(xxh3_64(lowered))
}

/// The hash of a lower-case prefix; `None` if it is too short.
pub(crate) fn of_prefix(lowered: &[u8]) -> Option<u32> {
    let head = lowered.get(..PREFIX)?;
    Some(short(xxh3_64_with_seed(head, PREFIX_SEED)))
}

fn short(hash: u64) -> u32 {
    (hash >> (64 - HASH_BITS)) as u32
}

/// Whether a byte belongs to a word.
pub(crate) fn is_word_byte(byte: u8) -> bool {
    IS_WORD[usize::from(byte)]
}

const IS_WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let it = byte as u8;
        table[byte] = it.is_ascii_alphanumeric() || it == b'_';
        byte += 1;
    }
    table
};

/// The words of a text, one after the other.
pub(crate) fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.iter().position(|byte| is_word_byte(*byte))?;
        let from = &rest[start..];
        let length = from.iter().position(|byte| !is_word_byte(*byte)).unwrap_or(from.len());
        let (word, after) = from.split_at(length);
        rest = after;
        Some(word)
    })
}

/// Collects the hashes of the words of blocks.
pub(crate) struct Collector {
    remembered: Vec<u32>,
    lowered: Vec<u8>,
}

impl Collector {
    pub(crate) fn new() -> Self {
        Self { remembered: vec![u32::MAX; REMEMBERED], lowered: Vec::new() }
    }

    /// Calls `found` with the hashes of a block's words; some of them more than once.
    pub(crate) fn collect(&mut self, block: &Block, mut found: impl FnMut(u32)) {
        self.remembered.fill(u32::MAX);
        let mut lowered = std::mem::take(&mut self.lowered);
        let mut start = 0;
        for end in &block.ends {
            let line = block.text.get(start..*end as usize).unwrap_or_default();
            start = *end as usize;
            lowered.clear();
            lowered.extend_from_slice(line.as_bytes());
            lowered.make_ascii_lowercase();
            self.add(&lowered, &mut found);
            if !line.is_ascii() {
                // Non-ASCII letters may become ASCII letters in lower case, and phrases are compared that way.
                self.add(line.to_lowercase().as_bytes(), &mut found);
            }
        }
        self.lowered = lowered;
    }

    fn add(&mut self, lowered: &[u8], found: &mut impl FnMut(u32)) {
        for word in words(lowered) {
            let numbers = [Some(of_word(word)), of_prefix(word)];
            for number in numbers.into_iter().flatten() {
                let slot = &mut self.remembered[number as usize % REMEMBERED];
                if *slot != number {
                    *slot = number;
                    found(number);
                }
            }
        }
    }
}
