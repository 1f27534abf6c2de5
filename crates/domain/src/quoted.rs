//! The words of a package resolver and of a DAG parser, as far as users may read them.
//!
//! They are the one exception to the rule that no output of a program reaches users: they are about the users' own
//! requirements and DAGs, and nobody else can explain what is wrong with them. Both run without the control plane's files,
//! and words with a path, a URL or anything unusual in them are left out.

use std::fmt;

const LONGEST: usize = 1000;
const LONGEST_FILE: usize = 200;
/// In place of words that are left out.
const LEFT_OUT: &str = "…";

/// What a package resolver said about requirements, or a parser about DAGs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quoted(String);

impl Quoted {
    /// The message of an error in a DAG file, on one line.
    pub fn import_error(said: &str) -> Self {
        Self::resolver(said)
    }

    /// A file below the folder of DAGs. Paths from the root of the machine are left out.
    pub fn dag_file(path: &str) -> Self {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-+/ ".contains(c);
        let is_shown = !path.is_empty() && !path.starts_with('/') && path.chars().all(fits);
        Self(if is_shown { path.chars().take(LONGEST_FILE).collect() } else { LEFT_OUT.to_owned() })
    }

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
    fn only_files_below_the_dags_are_named() {
        assert_eq!(Quoted::dag_file("sub/my dag.py").to_string(), "sub/my dag.py");
        for odd in ["", "/srv/data/dag.py", "a\nb.py"] {
            assert_eq!(Quoted::dag_file(odd).to_string(), LEFT_OUT, "{odd}");
        }
        assert_eq!(Quoted::dag_file(&"x".repeat(900)).to_string().len(), LONGEST_FILE);
    }

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
