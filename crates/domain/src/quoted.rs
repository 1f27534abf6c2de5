//! The words of a package resolver, as far as users may read them.
//!
//! They are the one exception to the rule that no output of a program reaches users: they are about the users' own
//! requirements, and nobody else can explain why these do not fit together. The resolver runs without the control
//! plane's files, and words with a path, a URL or anything unusual in them are left out.

use std::fmt;

/// The longest quotation.
const LONGEST: usize = 1000;
/// In place of words that are left out.
const LEFT_OUT: &str = "…";

/// What a package resolver said about requirements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quoted(String);

impl Quoted {
    /// The words of a package resolver, on one line.
    pub fn resolver(said: &str) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || ".,;:_-+*=<>!~'\"`()[]{}|&%?…".contains(c);
        let mut text = String::new();
        for word in said.split_whitespace() {
            let word = if word.chars().all(is_plain) { word } else { LEFT_OUT };
            if text.chars().count() + word.chars().count() >= LONGEST {
                text.push_str(LEFT_OUT);
                break;
            }
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(word);
        }
        Self(text)
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_urls_are_left_out_and_length_is_bounded() {
        let said = "Because you require\n  a>=2,<3 and b[x]==1.0\tis at https://user:pw@index/simple or /srv/data\u{7}:";
        assert_eq!(
            Quoted::resolver(said).to_string(),
            "Because you require a>=2,<3 and b[x]==1.0 is at … or …"
        );
        assert_eq!(Quoted::resolver("").to_string(), "");
        let long = Quoted::resolver(&"word ".repeat(1000)).to_string();
        assert!(long.chars().count() <= LONGEST && long.ends_with("word…"), "{long}");
        assert_eq!(Quoted::resolver(&"x".repeat(5000)).to_string(), LEFT_OUT);
    }
}
