//! Search queries: words, prefixes of words, and phrases, all of which must match, ignoring case. And hashes of words,
//! so that a search can rule out blocks.
//!
//! A word is a sequence of ASCII letters, digits and underscores, and matches whole words only. With a trailing `*` it
//! matches words that begin with it. Text in double quotes matches anywhere; an unclosed quote extends to the end. An
//! empty query matches every line. In addition to each word, its first four letters are indexed for prefix searches.

use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::block::Block;

/// A parsed search text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    words: Vec<Word>,
    texts: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    lowered: Vec<u8>,
    is_prefix: bool,
}

impl Query {
    /// Parses a search text; every text is valid.
    pub fn parse(text: &str) -> Self {
        let mut query = Self::default();
        for (index, part) in text.split('"').enumerate() {
            if index % 2 == 1 {
                query.add_text(part);
            } else {
                query.add_words(part);
            }
        }
        query
    }

    fn add_text(&mut self, text: &str) {
        let lowered = text.to_lowercase();
        if !lowered.is_empty() && !self.texts.contains(&lowered) {
            self.texts.push(lowered);
        }
    }

    fn add_words(&mut self, part: &str) {
        for between_blanks in part.split_whitespace() {
            let ends_in_star = between_blanks.ends_with('*');
            let mut found: Vec<Word> = words(between_blanks.as_bytes())
                .map(|word| Word { lowered: word.to_ascii_lowercase(), is_prefix: false })
                .collect();
            let stem = between_blanks.strip_suffix('*').unwrap_or_default();
            if let Some(last) = found.last_mut()
                && ends_in_star
                && stem.bytes().last().is_some_and(is_word_byte)
            {
                last.is_prefix = true;
            }
            found.retain(|word| !self.words.contains(word));
            self.words.append(&mut found);
        }
    }

    /// Whether it matches every line.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.texts.is_empty()
    }

    pub fn matches(&self, line: &str) -> bool {
        self.has_words(line) && self.has_texts(line)
    }

    fn has_words(&self, line: &str) -> bool {
        self.words.iter().all(|wanted| words(line.as_bytes()).any(|word| wanted.matches(word)))
    }

    fn has_texts(&self, line: &str) -> bool {
        if self.texts.is_empty() {
            return true;
        }
        if line.is_ascii() {
            return self.texts.iter().all(|text| contains_ignoring_case(line.as_bytes(), text.as_bytes()));
        }
        let lowered = line.to_lowercase();
        self.texts.iter().all(|text| lowered.contains(text.as_str()))
    }
}

impl Word {
    fn matches(&self, word: &[u8]) -> bool {
        let wanted = self.lowered.as_slice();
        let begins = word.get(..wanted.len()).is_some_and(|head| head.eq_ignore_ascii_case(wanted));
        begins && (self.is_prefix || word.len() == wanted.len())
    }
}

/// A term of a query, to be searched for in lower-cased lines.
pub(crate) struct Needle<'a> {
    pub(crate) lowered: &'a [u8],
    /// Whether it is a phrase, for which all letters are case-folded; words fold ASCII letters only.
    pub(crate) is_text: bool,
}

impl Query {
    /// The longest term that must occur in a line.
    pub(crate) fn needle(&self) -> Option<Needle<'_>> {
        let words = self.words.iter().map(|word| Needle { lowered: &word.lowered, is_text: false });
        let texts = self.texts.iter().map(|text| Needle { lowered: text.as_bytes(), is_text: true });
        words.chain(texts).max_by_key(|needle| needle.lowered.len())
    }

    /// The hashes of words that a block with a matching line must contain. Inside a phrase, words with separators on
    /// both sides are complete; a word at its end is at least a prefix.
    pub(crate) fn words_to_look_up(&self) -> Vec<u32> {
        let mut numbers = Vec::new();
        for word in &self.words {
            let number = if word.is_prefix { of_prefix(&word.lowered) } else { Some(of_word(&word.lowered)) };
            numbers.extend(number);
        }
        for text in &self.texts {
            let bytes = text.as_bytes();
            let Some(edge) = bytes.iter().position(|byte| !is_word_byte(*byte)) else { continue };
            let bytes = &bytes[edge..];
            let ends_in_word = bytes.last().is_some_and(|byte| is_word_byte(*byte));
            let found: Vec<&[u8]> = words(bytes).collect();
            let whole = found.len() - usize::from(ends_in_word);
            numbers.extend(found[..whole].iter().map(|word| of_word(word)));
            numbers.extend(found[whole..].iter().filter_map(|word| of_prefix(word)));
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

fn contains_ignoring_case(line: &[u8], lowered: &[u8]) -> bool {
    line.windows(lowered.len()).any(|window| window.eq_ignore_ascii_case(lowered))
}

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

#[cfg(test)]
mod tests;
