//! Characters allowed in a line of text that people read: visible ones, and none that hide others, change their
//! direction or break the line.
//!
//! By Unicode's general categories: no controls, no line or paragraph separators, no format characters (zero-width
//! spaces and joiners, marks and overrides of direction, soft hyphens, tags), nothing unassigned, private or half of a
//! pair; and none of the few letters and marks that are blank by design. Two exceptions are seen: the variation
//! selector that makes a symbol an emoji, and the joiner inside an emoji of several. Joiners between letters, which
//! some scripts use for fine typography, are refused: two names that differ by one read the same to most people.

use std::borrow::Cow;
use std::fmt::Write as _;

use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

const ZERO_WIDTH_JOINER: char = '\u{200d}';
const EMOJI_SELECTOR: char = '\u{fe0f}';

/// The first character that is invisible or breaks the line.
pub fn hidden(line: &str) -> Option<char> {
    if line.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return None;
    }
    let mut before = None;
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let is_seen = match c {
            EMOJI_SELECTOR => before.is_some_and(is_symbol),
            ZERO_WIDTH_JOINER => before.is_some_and(is_symbol) && rest.peek().copied().is_some_and(is_symbol),
            c => !is_blank(c),
        };
        if !is_seen {
            return Some(c);
        }
        if c != EMOJI_SELECTOR {
            before = Some(c);
        }
    }
    None
}

/// The error message for a line that contains a hidden character.
pub fn complaint(c: char) -> String {
    let what = match c {
        '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => "a line break",
        '\t' => "a tab",
        c if c.is_control() => "a control character",
        _ => "an invisible character",
    };
    format!("must be one line of visible characters: it contains {what} (U+{:04X})", u32::from(c))
}

/// Whether a character is a command to the terminal or browser that shows it: controls (C0, DEL, C1), and what embeds,
/// overrides or isolates the direction of text, so that it reads as something else. Marks of direction and joiners between
/// letters belong to the scripts that use them.
pub fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text from elsewhere as it may be shown: with U+FFFD for what steers. Lines and tabs stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    let replaced = |c: char| steers(c) && !matches!(c, '\n' | '\t');
    if !text.contains(replaced) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|c| if replaced(c) { char::REPLACEMENT_CHARACTER } else { c }).collect())
}

/// JSON in which no character steers: those that JSON may hold as they are (DEL, C1 and those of direction) are written
/// as `\uXXXX`, which reads back as the same text.
pub fn escaped_json(json: String) -> String {
    if !may_steer(json.as_bytes()) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        // Lines and tabs are between the values; inside a text they are escaped already.
        if steers(c) && !c.is_ascii_whitespace() {
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Whether a text has the first byte of a character that steers; most have none. Every response is looked at.
fn may_steer(text: &[u8]) -> bool {
    memchr::memchr3(0x7f, 0xc2, 0xe2, text).is_some()
}

/// The same of bytes; what is no text is left alone.
pub fn escaped_json_bytes(json: Vec<u8>) -> Vec<u8> {
    if !may_steer(&json) {
        return json;
    }
    match String::from_utf8(json) {
        Ok(text) => escaped_json(text).into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

/// Pictures and their skin tones.
fn is_symbol(c: char) -> bool {
    use GeneralCategory::{MathSymbol, ModifierSymbol, OtherPunctuation, OtherSymbol};
    let is_keycap = matches!(c, '0'..='9' | '#' | '*');
    is_keycap
        || !c.is_ascii()
            && matches!(c.general_category(), OtherSymbol | MathSymbol | ModifierSymbol | OtherPunctuation)
            && !is_blank(c)
}

fn is_blank(c: char) -> bool {
    use GeneralCategory::{
        Control, Format, LineSeparator, ParagraphSeparator, PrivateUse, Surrogate, Unassigned,
    };
    let hides = matches!(
        c.general_category(),
        Control | Format | LineSeparator | ParagraphSeparator | PrivateUse | Surrogate | Unassigned
    );
    // Letters, marks and symbols by category that are shown as nothing.
    hides
        || matches!(
            c,
            '\u{34f}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{2800}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{ffa0}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_read_passes() {
        for line in [
            "",
            "Data Team",
            "Ünïcode, naïve, Zoë",
            "e\u{301}le\u{300}ve",
            "データ基盤",
            "資料　團隊",
            "데이터 팀",
            "فريق البيانات",
            "צוות נתונים",
            "डेटा टीम",
            "ทีมข้อมูล",
            "Команда",
            "⚠\u{fe0f} careful",
            "❤\u{fe0f}",
            "1\u{fe0f}\u{20e3}",
            "👩\u{200d}💻",
            "👩\u{1f3fd}\u{200d}🚀",
            "🏳\u{fe0f}\u{200d}🌈",
            "a ‘quoted’ — name…",
            "≠ ∑ ₿ №",
        ] {
            assert_eq!(hidden(line), None, "{line:?}");
        }
    }

    #[test]
    fn what_nobody_sees_does_not() {
        let hiding = [
            '\0',
            '\t',
            '\n',
            '\r',
            '\u{7f}',
            '\u{85}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{17b5}',
            '\u{180b}',
            '\u{180e}',
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{200e}',
            '\u{200f}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202e}',
            '\u{2060}',
            '\u{2064}',
            '\u{2066}',
            '\u{2069}',
            '\u{206f}',
            '\u{2800}',
            '\u{3164}',
            '\u{e000}',
            '\u{fe00}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{fff9}',
            '\u{ffff}',
            '\u{1d173}',
            '\u{e0001}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{10ffff}',
        ];
        for c in hiding {
            for line in [format!("ow{c}ner"), format!("{c}owner"), format!("owner{c}")] {
                assert_eq!(hidden(&line), Some(c), "{line:?}");
            }
        }
        assert_eq!(hidden("❤\u{200d}"), Some('\u{200d}'), "joined to nothing");
        assert_eq!(hidden("❤\u{200d}owner"), Some('\u{200d}'), "joined to a letter");
    }

    #[test]
    fn a_complaint_says_which() {
        assert_eq!(
            complaint('\n'),
            "must be one line of visible characters: it contains a line break (U+000A)"
        );
        assert_eq!(
            complaint('\u{200b}'),
            "must be one line of visible characters: it contains an invisible character (U+200B)"
        );
    }

    #[test]
    fn what_steers_is_not_shown_and_everything_else_is() {
        for shown in [
            "",
            "two\nlines and a\ttab",
            "فريق البيانات",
            "צוות\u{200f} (נתונים)",
            "می\u{200c}خواهم",
            "👩\u{200d}💻",
            "«é» — £5",
        ] {
            assert!(matches!(printable(shown), Cow::Borrowed(text) if text == shown), "{shown:?}");
        }
        for steering in
            ['\0', '\u{7}', '\u{1b}', '\r', '\u{7f}', '\u{85}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{2069}']
        {
            assert_eq!(printable(&format!("a{steering}b")), "a\u{fffd}b", "{steering:?}");
        }
    }

    #[test]
    fn json_reads_back_as_it_was_and_steers_nothing() {
        for text in
            ["plain", "é £ — 👩\u{200d}💻 צוות", "a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}evil\u{2066}\n\t\"\\"]
        {
            let value = serde_json::json!({ text: [text, { "lines\nof": text }] });
            for json in [value.to_string(), format!("{value:#}")] {
                let escaped = escaped_json(json);
                assert_eq!(serde_json::from_str::<serde_json::Value>(&escaped).unwrap(), value);
                assert!(!escaped.contains(|c: char| steers(c) && c != '\n'), "{escaped:?}");
            }
        }
        assert_eq!(escaped_json("\"é\u{202e}\"".into()), "\"é\\u202e\"");
        assert_eq!(escaped_json_bytes(b"\"\x7f\"".to_vec()), b"\"\\u007f\"");
        assert_eq!(escaped_json_bytes(vec![0xff, 0x7f]), [0xff, 0x7f]);
    }
}
