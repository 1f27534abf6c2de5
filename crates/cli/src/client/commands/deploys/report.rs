//! What came of a deploy, for people.

use std::io::Write as _;

use podium_api::deploy_reports::{self as api, ReportedChanges, ReportedImportError};
use podium_api::enums::{DeployReportState, DeployStep};
use podium_api::path::OfDeploy;
use serde::Deserialize;

use crate::client::commands::{Outcome, Session, View, Word, one_line, printable, shout};

const VIEW: View = View::plain("deployId", "DEPLOY deployId, STATE state");
const MOST_NAMES: usize = 200;
/// How many files that could not be imported somebody is warned of by name.
const MOST_WARNED: usize = 5;
/// How many lines of a traceback are shown: its end says what happened.
const MOST_TRACEBACK_LINES: usize = 20;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Report {
    deploy_id: String,
    pub(crate) state: Word<DeployReportState>,
    pub(crate) reason: Option<String>,
    files: Option<ReportedChanges>,
    dags: Option<ReportedChanges>,
    import_errors: Vec<ReportedImportError>,
    pub(crate) import_error_count: u64,
    is_parsed: Option<bool>,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    step: Word<DeployStep>,
    milliseconds: u64,
}

pub(super) async fn show(session: &Session, path: &OfDeploy) -> Outcome {
    let answer = session.get::<api::Get>(path).await?;
    if !session.format.is_table() {
        return session.show(&answer.raw, &VIEW);
    }
    let report: Report = answer.part()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "Deploy {}: {}", report.deploy_id, report.state)?;
    if let Some(reason) = report.reason.as_ref().filter(|reason| !reason.is_empty()) {
        writeln!(out, "{}", printable(reason))?;
    }
    let changes = changes("Files", report.files.as_ref()).chain(changes("DAGs", report.dags.as_ref()));
    for line in changes.chain(tracebacks(&report, usize::MAX)).chain(unread(&report)) {
        writeln!(out, "{line}")?;
    }
    for Step { step, milliseconds } in &report.steps {
        writeln!(out, "  {:<9} {:.1} s", step.to_string(), *milliseconds as f64 / 1000.0)?;
    }
    Ok(())
}

/// Warns of what could not be imported when a deploy was live; one without a report may be gone back to as well.
pub(super) async fn warn_of_errors(session: &Session, path: &OfDeploy) {
    let report = session.get::<api::Get>(path).await.and_then(|answer| answer.part());
    let Ok(Report { deploy_id, import_errors, import_error_count: count, .. }) = report else { return };
    if count > 0 {
        let files = podium_api::counted(count, "file");
        shout(&format!("When this deploy was live, {files} could not be imported:"));
        import_errors.iter().take(MOST_WARNED).for_each(|error| eprintln!("  {}", summary(error)));
        let more = count.saturating_sub(MOST_WARNED as u64);
        if more > 0 {
            eprintln!("  and {more} more: podium deploy report {deploy_id}");
        }
    }
}

/// What changed and what is broken, a line each.
pub(crate) fn lines(report: &Report) -> Vec<String> {
    changes("Files", report.files.as_ref()).chain(lines_of_dags(report)).collect()
}

/// The same without the files.
pub(super) fn lines_of_dags(report: &Report) -> Vec<String> {
    let broken = report.import_errors.iter().map(|error| format!("Broken: {}", summary(error)));
    changes("DAGs", report.dags.as_ref()).chain(broken).chain(unread(report)).collect()
}

/// Says so if Airflow had not read every file when the report was made.
fn unread(report: &Report) -> Option<String> {
    let why =
        "Airflow has not read every file of this version yet: DAGs and broken files may be missing here.";
    (report.is_parsed == Some(false)).then(|| why.to_owned())
}

/// Files that cannot be imported, at most so many, each with the end of its traceback below it.
pub(super) fn tracebacks(report: &Report, most: usize) -> Vec<String> {
    let (mut lines, errors) = (Vec::new(), &report.import_errors);
    for error in errors.iter().take(most) {
        lines.push(format!("Broken: {}", summary(error)));
        let all: Vec<&str> = error.traceback.lines().collect();
        let end = &all[all.len().saturating_sub(MOST_TRACEBACK_LINES)..];
        lines.extend(end.iter().map(|line| format!("  {}", one_line(line)).trim_end().to_owned()));
    }
    let more = report.import_error_count.saturating_sub(errors.len().min(most) as u64);
    if more > 0 && errors.len() > most {
        lines.push(format!("and {more} more: podium deploy report {}", report.deploy_id));
    } else if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}

/// The file, the line and the message of an import error.
fn summary(error: &ReportedImportError) -> String {
    let line = error.line.map(|line| format!(":{line}")).unwrap_or_default();
    format!("{}{line}: {}", one_line(&error.file), one_line(&error.message))
}

/// What is new, has changed and is gone, a line each.
fn changes(what: &str, changes: Option<&ReportedChanges>) -> impl Iterator<Item = String> {
    let lines = changes.into_iter().flat_map(|changes| {
        [
            line(&format!("{what} added"), &changes.added, changes.added_count),
            line(&format!("{what} changed"), &changes.changed, changes.changed_count),
            line(&format!("{what} removed"), &changes.removed, changes.removed_count),
        ]
    });
    lines.flatten().collect::<Vec<_>>().into_iter()
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
    use serde_json::{Value, json};

    use super::*;

    fn report(value: Value) -> Report {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_report_names_what_changed_and_what_is_broken() {
        let changes = |added: Value, changed: Value, counts: [u64; 2]| {
            json!({
                "added": added, "changed": changed, "removed": [], "addedCount": counts[0],
                "changedCount": counts[1], "removedCount": 0,
            })
        };
        let report = report(json!({
            "files": changes(json!(["a.py", "b.py"]), json!([]), [5, 0]),
            "dags": changes(json!([]), json!(["hello"]), [0, 1]),
            "importErrors": [{ "file": "bad.py", "line": 3, "message": "SyntaxError: x", "traceback": "" }],
        }));
        let expected =
            ["Files added: a.py, b.py and 3 more", "DAGs changed: hello", "Broken: bad.py:3: SyntaxError: x"];
        assert_eq!(lines(&report), expected);
        assert_eq!(lines_of_dags(&report), expected[1..]);
        let incomplete = lines_of_dags(&Report { is_parsed: Some(false), ..Report::default() });
        assert!(incomplete[0].starts_with("Airflow has not read every file"), "{incomplete:?}");
        let parsed = Report { is_parsed: Some(true), ..Report::default() };
        assert_eq!((lines_of_dags(&parsed), lines(&Report::default())), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_traceback_is_shown_to_its_end() {
        let long: String = (1..=30).map(|line| format!("  line {line}\u{1b}\n")).collect();
        let error = |file: &str, traceback: &str| json!({ "file": file, "line": 3, "message": "SyntaxError: x", "traceback": traceback });
        let report = report(json!({
            "deployId": "c1", "importErrorCount": 4,
            "importErrors": [error("a\n.py", "Traceback\n\nSyntaxError: x\n"), error("b.py", &long), error("c.py", "")],
        }));
        let shown = tracebacks(&report, 2);
        let first = ["Broken: a .py:3: SyntaxError: x", "  Traceback", "", "  SyntaxError: x"];
        assert_eq!(shown[..4], first);
        assert_eq!(shown[4..6], ["Broken: b.py:3: SyntaxError: x", "    line 11\u{fffd}"]);
        assert_eq!(shown[24..], ["    line 30\u{fffd}", "and 2 more: podium deploy report c1"]);
        let all = tracebacks(&report, usize::MAX);
        assert_eq!(all[25..], ["Broken: c.py:3: SyntaxError: x", "and 1 more"]);
        assert_eq!(tracebacks(&Report::default(), 5), [""; 0]);
    }
}
