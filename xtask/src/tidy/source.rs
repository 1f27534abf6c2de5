//! A Rust source without its comments and literals.
//!
//! It is not a parser: rules that need more than words and literals do not belong in tidy.

/// Code with comments and literals blanked out, line by line as in the file.
pub(super) struct Source {
    pub(super) code: String,
}

impl Source {
    pub(super) fn read(text: &str) -> Self {
        let mut reader = Reader { rest: text, code: String::new() };
        while !reader.rest.is_empty() {
            reader.step();
        }
        Self { code: reader.code }
    }

    /// Lines whose code holds this text, not as part of a longer word.
    pub(super) fn lines_with(&self, text: &str) -> Vec<usize> {
        let holds = |line: &&str| word_at(line, text);
        self.code.lines().enumerate().filter(|(_, line)| holds(line)).map(|(i, _)| i + 1).collect()
    }
}

/// A file without the tests at its end.
pub(super) fn untested(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at])
}

/// The line that a place in a text is on.
pub(super) fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// What a bracket at the beginning of a text is closed by; the `>` of an arrow closes nothing.
pub(super) fn closing(text: &str) -> Option<usize> {
    let open = text.chars().next()?;
    let close = [('<', '>'), ('(', ')'), ('{', '}')].into_iter().find(|pair| pair.0 == open)?.1;
    let (mut depth, mut before) = (0, ' ');
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close && !(c == '>' && before == '-') {
            depth -= 1;
            if depth == 0 {
                return Some(at);
            }
        }
        before = c;
    }
    None
}

/// Whether a line holds a text that no letter, digit or `_` continues on either side.
pub(super) fn word_at(line: &str, text: &str) -> bool {
    line.match_indices(text).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + text.len()..].chars().next();
        let continues =
            before.is_some_and(is_word) || (text.ends_with(is_word) && after.is_some_and(is_word));
        !continues
    })
}

struct Reader<'t> {
    rest: &'t str,
    code: String,
}

impl Reader<'_> {
    /// Reads one comment, literal, word or character.
    fn step(&mut self) {
        if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            self.blank(end);
        } else if self.rest.starts_with("/*") {
            let end = comment_end(self.rest);
            self.blank(end);
        } else if let Some((open, hashes)) = raw_string(self.rest) {
            let close = format!("\"{}", "#".repeat(hashes));
            let end = self.rest[open..].find(&close).map_or(self.rest.len(), |at| open + at);
            self.blank((end + close.len()).min(self.rest.len()));
        } else if self.rest.starts_with('"') {
            self.blank((quoted_end(self.rest, '"') + 1).min(self.rest.len()));
        } else if self.rest.starts_with('\'') {
            match char_end(self.rest) {
                Some(end) => self.blank(end),
                None => self.keep(1),
            }
        } else {
            let word = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
            self.keep(if word == 0 { self.rest.chars().next().map_or(1, char::len_utf8) } else { word });
        }
    }

    fn keep(&mut self, length: usize) {
        let (text, rest) = self.rest.split_at(length);
        self.code.push_str(text);
        self.rest = rest;
    }

    fn blank(&mut self, length: usize) {
        let (text, rest) = self.rest.split_at(length);
        self.code.push(' ');
        self.code.push_str(&"\n".repeat(text.matches('\n').count()));
        self.rest = rest;
    }
}

/// The end of a block comment, which may hold others.
fn comment_end(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of `r#"` and the number of its `#`, if a raw string starts here.
fn raw_string(text: &str) -> Option<(usize, usize)> {
    let start = ["r", "br", "cr"].iter().find_map(|p| text.strip_prefix(p).map(|rest| (p.len(), rest)))?;
    let hashes = start.1.bytes().take_while(|b| *b == b'#').count();
    start.1[hashes..].starts_with('"').then_some((start.0 + hashes + 1, hashes))
}

/// The place of the closing quote.
fn quoted_end(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at,
            _ => {}
        }
    }
    text.len()
}

/// The length of a character literal; a lifetime is none.
fn char_end(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    let (_, first) = characters.next()?;
    let is_literal = first == '\\' || characters.next().is_some_and(|(_, second)| second == '\'');
    is_literal.then(|| (quoted_end(text, '\'') + 1).min(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_code_from_comments_and_literals() {
        let source = Source::read(
            "a // x\n/* y /* z */ */ b\nlet c: &'static str = \"d\\\"e\";\nlet f = ('\"', '\\'', r#\"g\"h\"#);\nend",
        );
        assert_eq!(source.code, "a  \n  b\nlet c: &'static str =  ;\nlet f = ( ,  ,  );\nend");
    }

    #[test]
    fn keeps_line_numbers() {
        let source = Source::read("\"one\ntwo\"\n/* three\n */\nfour");
        assert_eq!(source.lines_with("four"), [5]);
    }

    #[test]
    fn matches_whole_words() {
        assert!(word_at("use hyper::Body", "hyper") && word_at("todo!()", "todo!"));
        assert!(!word_at("use hyper_util::x", "hyper") && !word_at("my_todo!()", "todo!"));
    }
}
