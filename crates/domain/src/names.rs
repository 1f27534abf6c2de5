//! Names that people choose: trimmed, never blank, compared ignoring case.
//!
//! The store enforces uniqueness: it stores the folded key next to the name, computed here because databases fold
//! differently.

use podium_api::{FieldError, text};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    /// As it is compared.
    pub key: String,
}

/// Checks a name of at most `max` characters.
pub fn name(field: &str, text: &str, max: usize) -> Result<Name, FieldError> {
    let text = text.trim();
    let wrong = |code, message: String| Err(FieldError::new(field, code, message));
    let length = text.chars().count();
    if text.is_empty() {
        return wrong("required", "must not be blank".into());
    }
    if let Some(c) = text::hidden(text) {
        return wrong("format", text::complaint(c));
    }
    if length > max {
        return wrong("maxLength", format!("must have at most {max} characters, has {length}"));
    }
    Ok(Name { text: text.to_owned(), key: fold(text) })
}

/// The form in which names are compared.
pub fn fold(text: &str) -> String {
    text.trim().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_trimmed_and_folded() {
        let table = [
            ("Data Team", Ok(("Data Team", "data team"))),
            ("  Ünïcode  ", Ok(("Ünïcode", "ünïcode"))),
            ("12345678901234567890", Ok(("12345678901234567890", "12345678901234567890"))),
            ("", Err("required")),
            (" \t\n ", Err("required")),
            ("two\nlines", Err("format")),
            ("bell\u{7}", Err("format")),
            ("ow\u{200b}ner", Err("format")),
            ("\u{202e}renwo", Err("format")),
            ("123456789012345678901", Err("maxLength")),
        ];
        for (text, expected) in table {
            let got = name("name", text, 20);
            let got = got.as_ref().map(|n| (n.text.as_str(), n.key.as_str())).map_err(|e| e.code.as_str());
            assert_eq!(got, expected, "{text:?}");
        }
    }
}
