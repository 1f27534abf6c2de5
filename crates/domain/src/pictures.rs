//! Pictures of people: their initials, drawn on request. The path of a picture holds the initials and nothing else, so that
//! whoever sees or fetches it learns nothing about whose it is, and any number of people share one.

use std::fmt::Write as _;

/// What the paths of pictures begin with.
pub const ROOT: &str = "/pictures/";
const EXTENSION: &str = ".svg";

/// Backgrounds on which white letters are easy to read.
const COLOURS: [&str; 8] =
    ["#1f4e9c", "#7a2e8a", "#8a2f2f", "#1f6b3a", "#6b4a12", "#14646b", "#4a4a7d", "#5c3a21"];

/// Where the picture of a person is: the first letters of the first and last name, or of the username where there is no name.
pub fn path(full_name: &str, username: &str) -> Option<String> {
    let letters = |text: &str| text.split_whitespace().filter_map(first_letter).collect::<Vec<char>>();
    let named = letters(full_name);
    let initials: String = match named.as_slice() {
        [] => letters(username).into_iter().take(1).collect(),
        [only] => only.to_string(),
        [first, .., last] => [*first, *last].iter().collect(),
    };
    let mut path = ROOT.to_owned();
    for byte in initials.bytes() {
        let _ = match byte.is_ascii_alphanumeric() {
            true => write!(path, "{}", char::from(byte)),
            false => write!(path, "%{byte:02X}"),
        };
    }
    (!initials.is_empty()).then(|| path + EXTENSION)
}

/// The first letter or digit of a word, as a capital where the script has any.
fn first_letter(word: &str) -> Option<char> {
    let letter = word.chars().find(|c| c.is_alphanumeric())?;
    letter.to_uppercase().next().filter(|capital| capital.is_alphanumeric())
}

/// The picture at a path, as SVG. Only one or two capitals are drawn: every picture has one path.
pub fn drawn(path: &str) -> Option<String> {
    let initials = decoded(path.strip_prefix(ROOT)?.strip_suffix(EXTENSION)?)?;
    let (count, is_one) = (initials.chars().count(), |c: char| first_letter(&c.to_string()) == Some(c));
    if !(1..=2).contains(&count) || !initials.chars().all(is_one) || !path.is_ascii() {
        return None;
    }
    let number = initials.chars().fold(0, |sum: u32, c| sum.wrapping_mul(31).wrapping_add(u32::from(c)));
    let colour = COLOURS[number as usize % COLOURS.len()];
    // Letters and digits need no escape.
    Some(format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64" viewBox="0 0 64 64" role="img" aria-label="{initials}"><rect width="64" height="64" fill="{colour}"/><text x="32" y="32" fill="#fff" font-family="system-ui, sans-serif" font-size="26" text-anchor="middle" dominant-baseline="central">{initials}</text></svg>"##
    ))
}

/// What a part of a path stands for.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        bytes.push(match byte {
            b'%' => u8::try_from(digit(rest.next())? * 16 + digit(rest.next())?).ok()?,
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_holds_the_initials_and_nothing_else() {
        let table = [
            (("Ada Lovelace", "ada@podium.test"), "/pictures/AL.svg"),
            (("ada king countess lovelace", ""), "/pictures/AL.svg"),
            (("Ada", "x@y"), "/pictures/A.svg"),
            (("", "ada@podium.test"), "/pictures/A.svg"),
            (("  (ada) «lovelace» ", ""), "/pictures/AL.svg"),
            (("Иван Петров", ""), "/pictures/%D0%98%D0%9F.svg"),
            (("山田 太郎", ""), "/pictures/%E5%B1%B1%E5%A4%AA.svg"),
            (("فريق", ""), "/pictures/%D9%81.svg"),
            (("ß", ""), "/pictures/S.svg"),
            (("7th", ""), "/pictures/7.svg"),
        ];
        for ((name, username), expected) in table {
            assert_eq!(path(name, username).as_deref(), Some(expected), "{name}");
            assert!(drawn(expected).is_some(), "{expected}");
        }
        for name in ["", "  ", "<>&\"'", "\u{202e}\u{1b}", "🚀"] {
            assert_eq!(path(name, ""), None, "{name:?}");
        }
    }

    #[test]
    fn only_initials_are_drawn() {
        let picture = drawn("/pictures/AL.svg").unwrap();
        assert!(picture.contains(">AL</text>") && picture.starts_with("<svg "), "{picture}");
        assert!(drawn("/pictures/%D0%98%D0%9F.svg").unwrap().contains(">ИП</text>"));
        let wrong = "/pictures/.svg /pictures/ALO.svg /pictures/al.svg /pictures/A /pictures/A.png \
            /pictures/%3C.svg /pictures/%26.svg /pictures/%22.svg /pictures/A%00.svg \
            /pictures/%E2%80%AE.svg /pictures/%D0.svg /pictures/%zz.svg /pictures/%.svg /pictures/И.svg \
            /pictures/A/L.svg /pictures/../AL.svg /other/A.svg /picturesA.svg";
        for wrong in wrong.split(' ').chain([""]) {
            assert_eq!(drawn(wrong), None, "{wrong}");
        }
    }
}
