//! What came of a deploy, for people.

use std::io::Write as _;

use podium_api::deploy_reports as api;
use podium_api::path::OfDeploy;
use serde_json::Value;

use crate::client::ending::{Outcome, one_line, printable};
use crate::client::output::{View, column, shout};
use crate::client::session::{Session, text};

const VIEW: View =
    View { name: "deployId", columns: &[column("DEPLOY", "deployId"), column("STATE", "state")] };
/// How many names a line has.
const MOST_NAMES: usize = 200;
/// How many files that could not be imported somebody is warned of by name.
const MOST_WARNED: usize = 5;
/// How many lines of a traceback are shown: its end says what happened.
const MOST_TRACEBACK_LINES: usize = 20;

/// Shows the report of a deploy.
pub(super) async fn show(session: &Session, path: &OfDeploy) -> Outcome {
    let report = session.get::<api::Get>(path).await?;
    if !session.format.is_table() {
        return session.show(&report, &VIEW);
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "Deploy {}: {}", text(&report["deployId"]), text(&report["state"]))?;
    if !text(&report["reason"]).is_empty() {
        writeln!(out, "{}", printable(text(&report["reason"])))?;
    }
    let changes = changes("Files", &report["files"]).into_iter().chain(changes("DAGs", &report["dags"]));
    for line in changes.chain(tracebacks(&report, usize::MAX)).chain(unread(&report)) {
        writeln!(out, "{line}")?;
    }
    for step in report["steps"].as_array().into_iter().flatten() {
        let seconds = step["milliseconds"].as_f64().unwrap_or_default() / 1000.0;
        writeln!(out, "  {:<9} {seconds:.1} s", text(&step["step"]))?;
    }
    Ok(())
}

/// Warns of what could not be imported when a deploy was live; one without a report may be gone back to as well.
pub(super) async fn warn_of_errors(session: &Session, path: &OfDeploy) {
    let Ok(report) = session.get::<api::Get>(path).await else { return };
    let count = error_count(&report);
    if count > 0 {
        let files = podium_api::counted(count, "file");
        shout(&format!("When this deploy was live, {files} could not be imported:"));
        errors(&report).take(MOST_WARNED).for_each(|error| eprintln!("  {}", summary(error)));
        let more = count.saturating_sub(MOST_WARNED as u64);
        if more > 0 {
            eprintln!("  and {more} more: podium deploy report {}", text(&report["deployId"]));
        }
    }
}

/// How many files could not be imported.
pub(super) fn error_count(report: &Value) -> u64 {
    report["importErrorCount"].as_u64().unwrap_or_default()
}

/// What changed and what is broken, a line each.
pub(crate) fn lines(report: &Value) -> Vec<String> {
    let files = changes("Files", &report["files"]);
    files.into_iter().chain(lines_of_dags(report)).collect()
}

/// The same without the files.
pub(super) fn lines_of_dags(report: &Value) -> Vec<String> {
    let mut lines = changes("DAGs", &report["dags"]);
    lines.extend(errors(report).map(|error| format!("Broken: {}", summary(error))));
    lines.extend(unread(report));
    lines
}

/// Says so if Airflow had not read every file when the report was made.
fn unread(report: &Value) -> Option<String> {
    let why =
        "Airflow has not read every file of this version yet: DAGs and broken files may be missing here.";
    (report["isParsed"] == false).then(|| why.to_owned())
}

/// Files that cannot be imported, at most so many, each with the end of its traceback below it.
pub(super) fn tracebacks(report: &Value, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for error in errors(report).take(most) {
        lines.push(format!("Broken: {}", summary(error)));
        let all: Vec<&str> = text(&error["traceback"]).lines().collect();
        let end = &all[all.len().saturating_sub(MOST_TRACEBACK_LINES)..];
        lines.extend(end.iter().map(|line| format!("  {}", one_line(line)).trim_end().to_owned()));
    }
    let more = error_count(report).saturating_sub(errors(report).take(most).count() as u64);
    if more > 0 && errors(report).count() > most {
        lines.push(format!("and {more} more: podium deploy report {}", text(&report["deployId"])));
    } else if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

fn errors(report: &Value) -> impl Iterator<Item = &Value> {
    report["importErrors"].as_array().into_iter().flatten()
}

/// The file, the line and the message of an import error.
fn summary(error: &Value) -> String {
    let line = error["line"].as_u64().map(|line| format!(":{line}")).unwrap_or_default();
    format!("{}{line}: {}", one_line(text(&error["file"])), one_line(text(&error["message"])))
}

/// What is new, has changed and is gone, a line each.
fn changes(what: &str, changes: &Value) -> Vec<String> {
    let kinds = [("added", "addedCount"), ("changed", "changedCount"), ("removed", "removedCount")];
    let lines = kinds.iter().filter_map(|(how, count)| {
        let names: Vec<&str> = changes[*how].as_array().into_iter().flatten().map(text).collect();
        line(&format!("{what} {how}"), &names, changes[*count].as_u64().unwrap_or_default())
    });
    lines.collect()
}

/// A line with the first of so many names; none if there are none.
pub(super) fn line(what: &str, names: &[impl AsRef<str>], count: u64) -> Option<String> {
    let shown: Vec<String> = names.iter().take(MOST_NAMES).map(|name| one_line(name.as_ref())).collect();
    let more = match count.saturating_sub(shown.len() as u64) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (count > 0).then(|| format!("{what}: {}{more}", shown.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_names_what_changed_and_what_is_broken() {
        let report = json!({
            "files": { "added": ["a.py", "b.py"], "changed": [], "removed": [], "addedCount": 5 },
            "dags": { "added": [], "changed": ["hello"], "removed": [], "changedCount": 1 },
            "importErrors": [{ "file": "bad.py", "line": 3, "message": "SyntaxError: x" }],
        });
        let expected =
            ["Files added: a.py, b.py and 3 more", "DAGs changed: hello", "Broken: bad.py:3: SyntaxError: x"];
        assert_eq!(lines(&report), expected);
        assert_eq!(lines_of_dags(&report), expected[1..]);
        let incomplete = lines_of_dags(&json!({ "isParsed": false }));
        assert!(incomplete[0].starts_with("Airflow has not read every file"), "{incomplete:?}");
        assert_eq!(lines_of_dags(&json!({ "isParsed": true })), [""; 0]);
        assert_eq!(lines(&json!({})), [""; 0]);
    }

    #[test]
    fn a_traceback_is_shown_to_its_end() {
        let long: String = (1..=30).map(|line| format!("  line {line}\u{1b}\n")).collect();
        let error = |file: &str, traceback: &str| json!({ "file": file, "line": 3, "message": "SyntaxError: x", "traceback": traceback });
        let report = json!({
            "deployId": "c1", "importErrorCount": 4,
            "importErrors": [error("a\n.py", "Traceback\n\nSyntaxError: x\n"), error("b.py", &long), error("c.py", "")],
        });
        let shown = tracebacks(&report, 2);
        let first = ["Broken: a .py:3: SyntaxError: x", "  Traceback", "", "  SyntaxError: x"];
        assert_eq!(shown[..4], first);
        assert_eq!(shown[4..6], ["Broken: b.py:3: SyntaxError: x", "    line 11\u{fffd}"]);
        assert_eq!(shown[24..], ["    line 30\u{fffd}", "and 2 more: podium deploy report c1"]);
        let all = tracebacks(&report, usize::MAX);
        assert_eq!(all[25..], ["Broken: c.py:3: SyntaxError: x", "and 1 more"]);
        assert_eq!(tracebacks(&json!({}), 5), [""; 0]);
    }
}
