//! Codes and bounds of sign-ins of terminals that a person approves in a browser.

use std::time::Duration;

use podium_api::FieldError;

/// How long a sign-in can be approved.
pub const LASTS: Duration = Duration::from_mins(10);
/// How long a terminal has at least, once it was approved, to fetch its session.
pub const FETCHED_WITHIN: Duration = Duration::from_secs(30);
/// How long a terminal waits between two questions.
pub const INTERVAL: Duration = Duration::from_secs(2);
/// How many sign-ins one address, or one IPv6 network, may have open.
pub const MOST_OF_A_PLACE: u64 = 20;
/// How many one IPv6 site (a /48), which has many networks, may have open.
pub const MOST_OF_A_SITE: u64 = 100;
/// How many may be open in all.
pub const MOST: u64 = 2000;

/// Letters that are hard to confuse and spell no words. Eight of them are 34 bits, guessed at a throttled rate.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";
const LENGTH: usize = 8;

/// A code from randomness, every one as likely; none if there was too little of it.
pub fn user_code(random: &[u8]) -> Option<String> {
    let all = LETTERS.len() * (256 / LETTERS.len());
    let letters = random.iter().map(|byte| usize::from(*byte)).filter(|byte| *byte < all);
    let code: String = letters.take(LENGTH).map(|byte| char::from(LETTERS[byte % LETTERS.len()])).collect();
    (code.len() == LENGTH).then_some(code)
}

/// A code as a person typed it: case, spaces and hyphens do not matter.
pub fn typed(field: &str, text: &str) -> Result<String, FieldError> {
    let code: String = text
        .chars()
        .filter(|letter| !letter.is_whitespace() && *letter != '-')
        .map(|letter| letter.to_ascii_uppercase())
        .collect();
    let is_code = code.len() == LENGTH && code.bytes().all(|letter| LETTERS.contains(&letter));
    if is_code {
        return Ok(code);
    }
    Err(FieldError::new(field, "pattern", "must be the eight letters that the terminal shows"))
}

/// A code as people read it.
pub fn shown(code: &str) -> String {
    match code.split_at_checked(LENGTH / 2) {
        Some((first, second)) => format!("{first}-{second}"),
        None => code.to_owned(),
    }
}

/// The name of a machine as it is shown: on one line, and no longer than it may be.
pub fn client_name(text: &str) -> String {
    one_line(text, 128)
}

/// A user agent as it is shown: the same, and long enough to name the browser.
pub fn user_agent(text: &str) -> String {
    one_line(text, 256)
}

fn one_line(text: &str, most: usize) -> String {
    let is_plain = |letter: &char| !letter.is_control() && !is_invisible(*letter);
    text.chars().filter(is_plain).take(most).collect::<String>().trim().to_owned()
}

/// Whether a character changes how others are shown, or is not shown itself.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_eight_letters_each_as_likely() {
        let every: Vec<u8> = (0..=255).collect();
        let mut seen = [0; 256];
        for byte in &every {
            if let Some(code) = user_code(&[*byte; 8]) {
                assert_eq!(code.len(), 8);
                seen[usize::from(code.as_bytes()[0])] += 1;
            }
        }
        for letter in LETTERS {
            assert_eq!(seen[usize::from(*letter)], 12);
        }
        assert_eq!(user_code(&[255; 64]), None);
        assert_eq!(user_code(&[0; 7]), None);
    }

    #[test]
    fn a_code_is_understood_however_it_is_typed() {
        let code = user_code(&[0, 1, 2, 3, 4, 5, 6, 7]).unwrap();
        assert_eq!((code.as_str(), shown(&code).as_str()), ("BCDFGHJK", "BCDF-GHJK"));
        for text in ["BCDFGHJK", "bcdf-ghjk", " bcdf ghjk\n", "BCDF\u{a0}GHJK"] {
            assert_eq!(typed("userCode", text).as_ref(), Ok(&code), "{text:?}");
        }
        for text in ["", "BCDFGHJ", "BCDFGHJKL", "BCDFGHJA", "BCDFGHJ1", "ＢCDFGHJK", "BCDF/GHJK"] {
            assert_eq!(typed("userCode", text).unwrap_err().field, "userCode", "{text:?}");
        }
    }

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(client_name("  ada@desk\n\u{202e}evil\u{0}  "), "ada@deskevil");
        assert_eq!(client_name(&"x".repeat(500)).len(), 128);
        assert_eq!(user_agent(&format!("\u{1b}[31m{}", "x".repeat(500))), format!("[31m{}", "x".repeat(252)));
    }
}
