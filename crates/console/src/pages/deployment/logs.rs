//! Logs: what happened around then?

use askama::Template;
use podium_api::deployment_logs::{self, DeploymentLogEntry};
use podium_api::enums::LogSource;
use podium_api::{DeploymentId, Timestamp};

use super::Head;
use crate::answer::{Answer, Result};
use crate::calls::Problem;
use crate::form::Choice;
use crate::shell::Shell;
use crate::view;
use crate::visit::OrganizationVisit;

/// How many lines a page shows.
const LINES: usize = 500;
/// How much of a line is shown, and how often what is searched for is marked in it.
const LONGEST: usize = 4096;
const MARKS: usize = 50;
/// How many bars the histogram has.
const BARS: usize = 60;
/// Time ranges: seconds and their names.
const RANGES: [(u64, &str); 5] = [
    (900, "Last 15 minutes"),
    (3600, "Last hour"),
    (21_600, "Last 6 hours"),
    (86_400, "Last day"),
    (604_800, "Last 7 days"),
];

#[derive(Template)]
#[template(path = "deployment/logs.html")]
struct LogsPage<'a> {
    shell: &'a Shell,
    head: &'a Head,
    sources: Vec<Choice>,
    ranges: Vec<Choice>,
    search: String,
    lines: Vec<Line>,
    bars: Vec<Bar>,
    total: u64,
    problem: Option<String>,
    is_narrowed: bool,
    whole: String,
}

/// A line of a log.
struct Line {
    id: String,
    time: String,
    exact: String,
    source: &'static str,
    level: &'static str,
    /// Pieces of the text, and whether each is what was searched for.
    text: Vec<(bool, String)>,
}

/// A bar of the histogram.
struct Bar {
    height: u64,
    href: String,
    label: String,
}

/// The lines of a time range.
pub(crate) async fn show(visit: &OrganizationVisit<'_>, id: DeploymentId) -> Result {
    let (of, _) = super::read(visit, id).await?;
    let head = Head::new(visit, &of, "logs").await?;
    let query = visit.query();
    let chosen: Vec<LogSource> = {
        let named: Vec<&str> = query.all("sources").collect();
        let all = LogSource::ALL.iter().copied();
        all.filter(|source| named.is_empty() || named.contains(&source.as_str())).collect()
    };
    let range =
        RANGES.iter().map(|(seconds, _)| *seconds).find(|seconds| query.get("range") == seconds.to_string());
    let range = range.unwrap_or(3600);
    let now = visit.visit.now;
    let start = query.opt("from").and_then(Timestamp::parse);
    let end = query.opt("to").and_then(Timestamp::parse);
    let is_narrowed = start.is_some() && end.is_some();
    let (start, end) = match (start, end) {
        (Some(start), Some(end)) => (start, end),
        _ => (Timestamp::from_millis(now.millis() - i64::try_from(range).unwrap_or_default() * 1000), now),
    };
    let search = query.get("q").to_owned();
    let (start_text, end_text, limit) = (start.to_string(), end.to_string(), LINES.to_string());
    let mut asked: Vec<(&str, &str)> = chosen.iter().map(|source| ("sources", source.as_str())).collect();
    asked.extend([
        ("startDate", start_text.as_str()),
        ("endDate", end_text.as_str()),
        ("limit", limit.as_str()),
    ]);
    if !search.is_empty() {
        asked.push(("searchText", &search));
    }
    let found = visit.calls().get::<deployment_logs::Get>(visit.deployment(id), &asked).await;
    let (entries, total, problem) = match found {
        Ok(found) => (found.results, found.result_count, None),
        Err(Problem { status: 400, message, fields }) => {
            let fields: Vec<String> = fields.into_iter().map(|field| field.message).collect();
            (Vec::new(), 0, Some(format!("{message} {}", fields.join(" "))))
        }
        Err(problem) => return Err(problem),
    };
    let page = LogsPage {
        sources: LogSource::ALL
            .iter()
            .map(|source| choice(source.as_str(), source.as_str(), chosen.contains(source)))
            .collect(),
        ranges: RANGES
            .iter()
            .map(|(seconds, name)| choice(&seconds.to_string(), name, *seconds == range))
            .collect(),
        bars: bars(visit, &entries, start, end),
        lines: entries.iter().enumerate().map(|(at, entry)| line(entry, at, &search)).collect(),
        search,
        total,
        problem,
        is_narrowed,
        whole: format!(
            "?{}",
            query
                .with("from", "")
                .split('&')
                .filter(|part| !part.starts_with("to="))
                .collect::<Vec<_>>()
                .join("&")
        ),
        shell: &head.shell,
        head: &head,
    };
    Answer::page(&page)
}

fn choice(value: &str, label: &str, is_chosen: bool) -> Choice {
    Choice { value: value.to_owned(), label: label.to_owned(), is_chosen }
}

fn line(of: &DeploymentLogEntry, at: usize, search: &str) -> Line {
    let exact = view::exact(Timestamp::from_millis(of.timestamp));
    Line {
        id: format!("{}-{at}", of.timestamp),
        time: exact.split(' ').nth(1).unwrap_or_default().to_owned(),
        exact,
        source: of.source.as_str(),
        level: level(&of.raw),
        text: highlighted(&of.raw, search),
    }
}

/// How serious a line looks.
fn level(text: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["ERROR", "CRITICAL", "Traceback", "[error"]) {
        "error"
    } else if has(&["WARNING", "WARN", "[warning"]) {
        "warning"
    } else {
        ""
    }
}

/// The text in pieces; what is searched for is marked, whatever its case.
fn highlighted(text: &str, search: &str) -> Vec<(bool, String)> {
    let (text, is_cut) = match text.char_indices().nth(LONGEST) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    };
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
    if is_cut {
        pieces.push((false, " … the rest of the line is cut".to_owned()));
    }
    pieces
}

fn bars(
    visit: &OrganizationVisit<'_>,
    entries: &[DeploymentLogEntry],
    start: Timestamp,
    end: Timestamp,
) -> Vec<Bar> {
    let span = (end.millis() - start.millis()).max(1);
    let bars = i64::try_from(BARS).unwrap_or(1);
    let mut counts = [0_u64; BARS];
    for entry in entries {
        let at = (entry.timestamp - start.millis()).clamp(0, span - 1) * bars / span;
        counts[usize::try_from(at).unwrap_or_default()] += 1;
    }
    let most = counts.iter().copied().max().unwrap_or_default().max(1);
    let at = |bar: usize| {
        Timestamp::from_millis(start.millis() + span * i64::try_from(bar).unwrap_or_default() / bars)
    };
    let bar = |(index, count): (usize, u64)| {
        let (from, to) = (at(index), at(index + 1));
        let kept = visit.query().with("from", &from.to_string());
        let kept: Vec<&str> = kept.split('&').filter(|part| !part.starts_with("to=")).collect();
        let to_query =
            form_urlencoded::Serializer::new(String::new()).append_pair("to", &to.to_string()).finish();
        Bar {
            height: (count * 100).div_ceil(most) / 5 * 5,
            href: format!("?{}&{to_query}", kept.join("&")),
            label: format!("{count} lines from {}", view::exact(from)),
        }
    };
    if entries.is_empty() { Vec::new() } else { counts.into_iter().enumerate().map(bar).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
