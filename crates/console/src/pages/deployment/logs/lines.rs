//! Lines of a log, as a page shows them.

use std::borrow::Cow;

use podium_api::Timestamp;
use podium_api::deployment_logs::{DeploymentLogEntry, LogLevel};

use crate::pages::{OrganizationVisit, view};

/// How many characters of a line are shown: of a longer one so many of its beginning, and the rest of its end, which is
/// where a traceback says what happened.
const LONGEST: usize = 4096;
const BEGINNING: usize = 1024;
/// How often what is searched for is marked in a line.
const MARKS: usize = 50;
/// What a link to a line shows around it, in milliseconds before and after.
const AROUND: (i64, i64) = (600_000, 5000);

pub(super) struct Line {
    pub(super) id: String,
    pub(super) time: String,
    pub(super) exact: String,
    /// A link to it, which stays good when more is written.
    pub(super) href: String,
    pub(super) source: &'static str,
    pub(super) level: &'static str,
    /// Pieces of the text, and whether each is what was searched for.
    pub(super) text: Vec<(bool, String)>,
}

/// The lines of a page. Those of one moment are counted from the oldest, so that their ids stay the same.
pub(super) fn lines(
    visit: &OrganizationVisit<'_>,
    entries: &[DeploymentLogEntry],
    search: &str,
) -> Vec<Line> {
    let (mut moment, mut count) = (i64::MIN, 0);
    let mut shown: Vec<Line> = Vec::with_capacity(entries.len());
    for of in entries.iter().rev() {
        count = if of.timestamp == moment { count + 1 } else { 0 };
        moment = of.timestamp;
        shown.push(line(visit, of, count, search));
    }
    shown.reverse();
    shown
}

fn line(visit: &OrganizationVisit<'_>, of: &DeploymentLogEntry, count: usize, search: &str) -> Line {
    let exact = view::exact(Timestamp::from_millis(of.timestamp));
    let id = format!("l{}-{count}", of.timestamp);
    let (before, after) = AROUND;
    let (from, to) = (of.timestamp - before, of.timestamp + after);
    let window = super::window(visit, Timestamp::from_millis(from), Timestamp::from_millis(to));
    Line {
        href: format!("{window}#{id}"),
        id,
        time: exact.split(' ').nth(1).unwrap_or_default().to_owned(),
        exact,
        source: of.source.as_str(),
        level: level(&of.raw),
        text: highlighted(without_time(&of.raw), search),
    }
}

/// A line without the time that components write in front of it: the page shows when it was written.
fn without_time(text: &str) -> &str {
    let Some((time, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) else {
        return text;
    };
    let is_time =
        time.len() >= 19 && time.starts_with(|c: char| c.is_ascii_digit()) && time.as_bytes()[4] == b'-';
    if is_time && time.len() <= 40 && !rest.is_empty() { rest } else { text }
}

/// The class of a line by how serious it looks.
fn level(text: &str) -> &'static str {
    match LogLevel::of(text) {
        LogLevel::Error => "error",
        LogLevel::Warning => "warning",
        LogLevel::Other => "",
    }
}

/// The text in pieces; what is searched for is marked, whatever its case.
fn highlighted(text: &str, search: &str) -> Vec<(bool, String)> {
    let text = &*without_middle(text);
    let (folded, wanted) = (text.to_ascii_lowercase(), search.to_ascii_lowercase());
    let mut pieces = Vec::new();
    let mut from = 0;
    while !wanted.is_empty()
        && pieces.len() < 2 * MARKS
        && let Some(at) = folded[from..].find(&wanted).map(|at| at + from)
    {
        pieces.push((false, text[from..at].to_owned()));
        pieces.push((true, text[at..at + wanted.len()].to_owned()));
        from = at + wanted.len();
    }
    pieces.push((false, text[from..].to_owned()));
    pieces
}

/// A text of which the middle is left out if it is too long to show.
fn without_middle(text: &str) -> Cow<'_, str> {
    if text.char_indices().nth(LONGEST).is_none() {
        return Cow::Borrowed(text);
    }
    let begins = text.char_indices().nth(BEGINNING).map_or(text.len(), |(at, _)| at);
    let ends = text.char_indices().rev().nth(LONGEST - BEGINNING - 1).map_or(0, |(at, _)| at);
    Cow::Owned(format!("{} … the middle is left out … {}", &text[..begins], &text[ends..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_in_front_of_a_line_is_not_shown_twice() {
        assert_eq!(without_time("[2027-01-16T14:49:50.360Z] {a.py:1} INFO - b"), "{a.py:1} INFO - b");
        assert_eq!(without_time("[2027-01-16 14:49:50,360] {a.py:1} INFO - b"), "{a.py:1} INFO - b");
        for kept in ["[worker] starts", "[2027] a", "plain", "[äöüäöüäöüäöüäöüäöü] a"] {
            assert_eq!(without_time(kept), kept);
        }
    }

    #[test]
    fn what_is_searched_for_is_marked_whatever_its_case() {
        let pieces = highlighted("Task FAILED, failed again: é", "failed");
        let marked: Vec<&str> =
            pieces.iter().filter(|(is_found, _)| *is_found).map(|(_, text)| text.as_str()).collect();
        assert_eq!(marked, ["FAILED", "failed"]);
        assert_eq!(
            pieces.iter().map(|(_, text)| text.as_str()).collect::<String>(),
            "Task FAILED, failed again: é"
        );
        assert_eq!(highlighted("abc", ""), [(false, "abc".to_owned())]);
        let long = highlighted(&"ä".repeat(100_000), "ä");
        let shown: usize = long.iter().map(|(_, text)| text.chars().count()).sum();
        assert!(long.len() < 200 && shown < 5000, "{} pieces, {shown} characters", long.len());
        let traceback = format!("Traceback:\n{}ValueError: no", "  File \"é.py\"\n".repeat(1000));
        let shown = without_middle(&traceback);
        assert!(shown.starts_with("Traceback:\n") && shown.ends_with("\nValueError: no"), "{shown}");
    }
}
