//! Search queries: words, prefixes of words, and phrases, all of which must match, ignoring case.
//!
//! A word is a sequence of ASCII letters, digits and underscores, and matches whole words only. With a trailing `*` it
//! matches words that begin with it. Text in double quotes matches anywhere; an unclosed quote extends to the end. An
//! empty query matches every line.

use crate::tokens::{self, is_word_byte, words};

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

    /// Whether a line matches the query.
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
            let number = if word.is_prefix {
                tokens::of_prefix(&word.lowered)
            } else {
                Some(tokens::of_word(&word.lowered))
            };
            numbers.extend(number);
        }
        for text in &self.texts {
            let bytes = text.as_bytes();
            let Some(edge) = bytes.iter().position(|byte| !is_word_byte(*byte)) else { continue };
            let bytes = &bytes[edge..];
            let ends_in_word = bytes.last().is_some_and(|byte| is_word_byte(*byte));
            let found: Vec<&[u8]> = words(bytes).collect();
            let whole = found.len() - usize::from(ends_in_word);
            numbers.extend(found[..whole].iter().map(|word| tokens::of_word(word)));
            numbers.extend(found[whole..].iter().filter_map(|word| tokens::of_prefix(word)));
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

fn contains_ignoring_case(line: &[u8], lowered: &[u8]) -> bool {
    line.windows(lowered.len()).any(|window| window.eq_ignore_ascii_case(lowered))
}

#[cfg(test)]
mod tests;
