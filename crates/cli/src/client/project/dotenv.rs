//! `.env`: values of a project's variables that stay on this machine. It is never deployed, and no message repeats a value.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::Path;

use crate::client::ending::{Failed, Outcome};

pub(crate) const FILE: &str = ".env";
/// The largest file of a project that is read as a whole.
pub(super) const MOST_BYTES: u64 = 1 << 20;

/// The variables of the file; none if there is no file.
pub(super) fn read(folder: &Path) -> Outcome<HashMap<String, String>> {
    let path = folder.join(FILE);
    let text = text_of(&path)?.unwrap_or_default();
    parse(&text).map_err(|(line, why)| Failed::usage(format!("{}:{line}: {why}", path.display())))
}

/// Lines of `KEY=VALUE`; or the number of a line, and what is wrong with it.
fn parse(text: &str) -> Result<HashMap<String, String>, (usize, &'static str)> {
    let mut variables = HashMap::new();
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |why| (index + 1, why);
        let exported = line.strip_prefix("export").filter(|rest| rest.starts_with([' ', '\t']));
        let (name, rest) = exported.unwrap_or(line).split_once('=').ok_or(wrong("write KEY=VALUE"))?;
        let name = name.trim();
        if !is_name(name) {
            return Err(wrong("the name before `=` may have letters, digits, `_`, `.` and `-`"));
        }
        // Of two, the later one counts, as in a shell.
        variables.insert(name.to_owned(), value(rest).map_err(wrong)?.to_owned());
    }
    Ok(variables)
}

/// What follows `=`: in quotes as it stands, otherwise up to a comment.
fn value(rest: &str) -> Result<&str, &'static str> {
    let trimmed = rest.trim_start();
    if let Some(quote) = trimmed.chars().next().filter(|first| matches!(first, '"' | '\'')) {
        let (value, after) =
            trimmed[1..].split_once(quote).ok_or("the value has no closing quote on its line")?;
        let after = after.trim_start();
        let is_end = after.is_empty() || after.starts_with('#');
        return if is_end { Ok(value) } else { Err("something follows the closing quote of the value") };
    }
    let comment = rest.match_indices('#').find(|(at, _)| rest[..*at].ends_with([' ', '\t']));
    Ok(rest[..comment.map_or(rest.len(), |(at, _)| at)].trim())
}

/// Whether this can be the name of an environment variable.
pub(super) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// The text of a file of the project; none if there is no such file.
pub(super) fn text_of(path: &Path) -> Outcome<Option<String>> {
    let unreadable =
        |why: &dyn std::fmt::Display| Failed::because(format!("{} cannot be read: {why}", path.display()));
    let mut text = String::new();
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        // A pipe would never end.
        Ok(found) if !found.is_file() => return Err(unreadable(&"it is not a file")),
        Err(error) => return Err(unreadable(&error)),
        Ok(_) => {
            let file = std::fs::File::open(path).map_err(|error| unreadable(&error))?;
            file.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|error| unreadable(&error))?;
        }
    }
    match text.len() as u64 > MOST_BYTES {
        true => Err(unreadable(&format!("it is larger than {MOST_BYTES} bytes"))),
        false => Ok(Some(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_and_without_quotes() {
        let text = "\u{feff}A=1\n# comment\n\n  export B = two words # why \r\nC='single # \"kept\" '\nD=\"d=e\" # x\nE=\n\
                    F=#kept\nG= # nothing\nA=last\nexport\tH=h\nexporter=i\nJ=\"\"\nK=a'b\n";
        let expected = [
            ("A", "last"),
            ("B", "two words"),
            ("C", "single # \"kept\" "),
            ("D", "d=e"),
            ("E", ""),
            ("F", "#kept"),
            ("G", ""),
            ("H", "h"),
            ("J", ""),
            ("K", "a'b"),
            ("exporter", "i"),
        ];
        let read = parse(text).unwrap();
        assert_eq!(read.len(), expected.len());
        for (name, value) in expected {
            assert_eq!(read.get(name).map(String::as_str), Some(value), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_by_its_line_only() {
        let table = [
            ("A=1\nhidden\n", (2, "write KEY=VALUE")),
            ("export\n", (1, "write KEY=VALUE")),
            ("A=\"hidden\n", (1, "the value has no closing quote on its line")),
            ("A='hidden' more\n", (1, "something follows the closing quote of the value")),
            ("=hidden\n", (1, "the name before `=` may have letters, digits, `_`, `.` and `-`")),
            ("A B=hidden\n", (1, "the name before `=` may have letters, digits, `_`, `.` and `-`")),
        ];
        for (text, expected) in table {
            assert_eq!(parse(text).unwrap_err(), expected, "{text}");
        }
    }

    #[test]
    fn hostile_files_are_bounded_and_harmless() {
        let pieces = ["=", "'", "\"", "#", " ", "\t", "A", "ä", "\u{1F600}", "\0", "export ", "\\", "\r"];
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    for start in ["", "A="] {
                        let _ = parse(&format!("{start}{first}{second}{third}{second}"));
                    }
                }
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let write = |bytes: &[u8]| std::fs::write(folder.path().join(FILE), bytes).unwrap();
        assert!(read(folder.path()).unwrap().is_empty(), "there is none");
        write(&vec![b'A'; MOST_BYTES as usize + 1]);
        assert!(read(folder.path()).unwrap_err().reason().contains("is larger than"));
        write(b"A=\xff\n");
        assert!(read(folder.path()).unwrap_err().reason().contains("cannot be read"));
    }
}
