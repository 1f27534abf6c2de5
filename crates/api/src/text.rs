//! Characters allowed in a line of text that people read: visible ones, and none that hide others, change their
//! direction or break the line.
//!
//! By Unicode's general categories: no controls, no line or paragraph separators, no format characters (zero-width
//! spaces and joiners, marks and overrides of direction, soft hyphens, tags), nothing unassigned, private or half of a
//! pair; and none of the few letters and marks that are blank by design. Two exceptions are seen: the variation
//! selector that makes a symbol an emoji, and the joiner inside an emoji of several. Joiners between letters, which
//! some scripts use for fine typography, are refused: two names that differ by one read the same to most people.

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
}
