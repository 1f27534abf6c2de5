//! What a line must say: words, beginnings of words, and texts, all of them, without regard to case.
//!
//! A word is a run of letters, digits and underscores of ASCII, and matches whole words only. With `*` at its end it
//! matches words that begin with it. What stands in double quotes matches anywhere; a quote that is never closed goes
//! to the end. A query that says nothing matches every line.

/// A parsed search text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    words: Vec<Word>,
    texts: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    lowered: String,
    is_prefix: bool,
}

impl Query {
    /// Reads a search text; every text is one.
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
            let mut found: Vec<Word> = words(between_blanks)
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

    /// Whether a line says everything that the query asks for.
    pub fn matches(&self, line: &str) -> bool {
        self.has_words(line) && self.has_texts(line)
    }

    fn has_words(&self, line: &str) -> bool {
        self.words.iter().all(|wanted| words(line).any(|word| wanted.matches(word)))
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
    fn matches(&self, word: &str) -> bool {
        let wanted = self.lowered.as_bytes();
        let begins =
            word.as_bytes().get(..wanted.len()).is_some_and(|head| head.eq_ignore_ascii_case(wanted));
        begins && (self.is_prefix || word.len() == wanted.len())
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

fn contains_ignoring_case(line: &[u8], lowered: &[u8]) -> bool {
    line.windows(lowered.len()).any(|window| window.eq_ignore_ascii_case(lowered))
}

#[cfg(test)]
mod tests;
