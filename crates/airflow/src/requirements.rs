//! Reads `requirements.txt` of a project.
//!
//! The file is written by an author who is not trusted, and installers accept far more in it than names of packages:
//! options, other files, URLs, paths, values of environment variables. Only requirements by name are accepted here, and
//! what is passed on is what was understood, not the file.

use std::fmt::Write as _;

use podium_domain::{Reason, UserText};

pub const MOST_BYTES: usize = 64 * 1024;
const MOST_LINES: usize = 1000;
const LONGEST_LINE: usize = 1000;

/// Comparisons of versions; a longer one before its prefix.
const COMPARISONS: &[&str] = &["~=", "==", "!=", "<=", ">=", "<", ">"];

/// The requirements of a project, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirements(Vec<String>);

impl Requirements {
    /// Reads the file; `None` if it names no package. An error names the line.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Reason> {
        let whole = |why: &'static str| Reason::from(UserText::filled("requirements.txt {}", &[&why]));
        if bytes.len() > MOST_BYTES {
            return Err(whole("is larger than 64 KiB"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| whole("is not UTF-8 text"))?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if text.lines().count() > MOST_LINES {
            return Err(whole("has more than 1000 lines"));
        }
        let mut all = Vec::new();
        for (line, number) in text.lines().zip(1_u32..) {
            let read = requirement(line);
            let read =
                read.map_err(|why| UserText::filled("requirements.txt, line {}: {}", &[&number, &why]))?;
            all.extend(read);
        }
        Ok((!all.is_empty()).then_some(Self(all)))
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The requirements as an installer reads them, one per line.
    pub fn text(&self) -> String {
        self.0.iter().fold(String::new(), |mut text, one| {
            // Writing to a `String` does not fail.
            let _ = writeln!(text, "{one}");
            text
        })
    }
}

fn requirement(line: &str) -> Result<Option<String>, &'static str> {
    if line.len() > LONGEST_LINE {
        return Err("it is longer than 1000 bytes");
    }
    let line = without_comment(line).trim();
    if line.is_empty() {
        return Ok(None);
    }
    if line.starts_with('-') {
        return Err(
            "options are not accepted, such as indexes, other files or hashes: the server's operator chooses the package indexes",
        );
    }
    if line.ends_with('\\') {
        return Err("a requirement must be on one line, without hashes");
    }
    if line.contains('$') {
        return Err("environment variables are not replaced here: write out the value");
    }
    if line.contains('@') || line.contains("://") {
        return Err("URLs are not accepted: require a package by its name and version");
    }
    if line.contains(['/', '\\']) || line.starts_with('.') {
        return Err("paths are not accepted: put modules into the project's folder `include`");
    }
    if line.contains("--") {
        return Err("options are not accepted: remove everything from `--` on");
    }
    let (specified, marker) = match line.split_once(';') {
        Some((specified, marker)) => (specified.trim(), Some(marker.trim())),
        None => (line, None),
    };
    let mut read = package(specified)?;
    if let Some(marker) = marker {
        let fits = |c: char| c.is_ascii_alphanumeric() || " _.'\"<>=!~()-+*,".contains(c);
        if marker.is_empty() || !marker.chars().all(fits) {
            return Err("its condition after `;` is not one that Python packages have");
        }
        // Writing to a `String` does not fail.
        let _ = write!(read, " ; {marker}");
    }
    Ok(Some(read))
}

fn without_comment(line: &str) -> &str {
    let starts = line.match_indices('#').map(|(at, _)| at);
    let is_comment = |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
    starts.into_iter().find(is_comment).map_or(line, |at| &line[..at])
}

/// Name, extras and versions, without spaces.
fn package(text: &str) -> Result<String, &'static str> {
    const MALFORMED: &str = "it is not a requirement such as `name`, `name==1.2` or `name[extra]>=1.2,<2`";
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c))).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let ends_well = |text: &str| {
        let is_alphanumeric = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        is_alphanumeric(text.as_bytes().first()) && is_alphanumeric(text.as_bytes().last())
    };
    if !ends_well(name) {
        return Err(MALFORMED);
    }
    let mut read = name.to_owned();
    let mut rest = rest.trim_start();
    if let Some(after) = rest.strip_prefix('[') {
        let (extras, after) = after.split_once(']').ok_or(MALFORMED)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let extras: Vec<&str> = extras.split(',').map(str::trim).collect();
        if !extras.iter().all(|extra| ends_well(extra) && extra.chars().all(fits)) {
            return Err(MALFORMED);
        }
        // Writing to a `String` does not fail.
        let _ = write!(read, "[{}]", extras.join(","));
        rest = after.trim_start();
    }
    if rest.is_empty() {
        return Ok(read);
    }
    for (index, clause) in rest.split(',').map(str::trim).enumerate() {
        let comparison = COMPARISONS.iter().find(|comparison| clause.starts_with(**comparison));
        let comparison = comparison.ok_or(MALFORMED)?;
        let version = clause[comparison.len()..].trim_start();
        let fits = |c: char| c.is_ascii_alphanumeric() || ".*+!_-".contains(c);
        let begins_well = version.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
        if !begins_well || !version.chars().all(fits) {
            return Err(MALFORMED);
        }
        // Writing to a `String` does not fail.
        let _ = write!(read, "{}{comparison}{version}", if index == 0 { "" } else { "," });
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Requirements::parse(text.as_bytes()).unwrap_err().user_text().to_string()
    }

    #[test]
    fn requirements_by_name_are_passed_on_as_they_were_understood() {
        let text = "\u{feff}# packages\nrequests\n\n  Flask-Login [ a , b-c ] >= 1.2 , <2.0rc1  # why\r\n\
            apache-airflow-providers-http==4.*\nx~=1.0+local ; python_version < '3.12' and extra == \"a\"\na#b==1";
        let (good, bad) = text.rsplit_once('\n').unwrap();
        let read = Requirements::parse(good.as_bytes()).unwrap().unwrap();
        assert_eq!(
            read.text(),
            "requests\nFlask-Login[a,b-c]>=1.2,<2.0rc1\napache-airflow-providers-http==4.*\n\
             x~=1.0+local ; python_version < '3.12' and extra == \"a\"\n"
        );
        assert_eq!(read.count(), 4);
        assert!(refused(bad).contains("line 1: it is not a requirement"), "it is no comment");
    }

    #[test]
    fn a_file_without_requirements_needs_nothing() {
        for text in ["", "\n\n", "# none\n   # at all"] {
            assert_eq!(Requirements::parse(text.as_bytes()), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn everything_else_is_refused_with_its_line() {
        for (line, why) in [
            ("-r other.txt", "options are not accepted"),
            ("-e .", "options are not accepted"),
            ("--index-url https://evil.example", "options are not accepted"),
            ("  --extra-index-url=x", "options are not accepted"),
            ("requests --hash=sha256:00", "options are not accepted"),
            ("requests==1 \\", "must be on one line"),
            ("requests==${VERSION}", "environment variables"),
            ("$PACKAGE", "environment variables"),
            ("requests @ https://evil.example/x.whl", "URLs are not accepted"),
            ("git+ssh://git.example/x", "URLs are not accepted"),
            ("https://evil.example/x.whl", "URLs are not accepted"),
            ("./wheels/x.whl", "paths are not accepted"),
            ("/etc/passwd", "paths are not accepted"),
            ("..", "paths are not accepted"),
            ("requests===1", "not a requirement"),
            ("requests (>=1)", "not a requirement"),
            ("requests 1.0", "not a requirement"),
            ("requests==", "not a requirement"),
            ("requests[", "not a requirement"),
            ("requests[a b]", "not a requirement"),
            ("requests[]", "not a requirement"),
            ("_x", "not a requirement"),
            ("päckage", "not a requirement"),
            ("requests ; os_name == `id`", "condition"),
            ("requests ;", "condition"),
            (&"x".repeat(1001), "longer than 1000"),
        ] {
            let said = refused(&format!("\n{line}\n"));
            assert!(said.starts_with("requirements.txt, line 2: ") && said.contains(why), "{line}: {said}");
        }
    }

    #[test]
    fn the_file_is_bounded() {
        assert_eq!(refused(&"\n".repeat(1001)), "requirements.txt has more than 1000 lines");
        assert_eq!(refused(&"x".repeat(MOST_BYTES + 1)), "requirements.txt is larger than 64 KiB");
        let binary = Requirements::parse(b"\xff\xfe").unwrap_err();
        assert_eq!(*binary.user_text(), "requirements.txt is not UTF-8 text");
    }
}
