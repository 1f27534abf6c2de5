//! What came of a deploy, for people.

use std::io::Write as _;

use podium_api::deploy_reports as api;
use podium_api::path::OfDeploy;
use serde_json::Value;

use crate::client::ending::{Outcome, printable};
use crate::client::output::{View, column};
use crate::client::session::{Session, text};

const VIEW: View =
    View { name: "deployId", columns: &[column("DEPLOY", "deployId"), column("STATE", "state")] };

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
    for line in lines(&report) {
        writeln!(out, "{line}")?;
    }
    for step in report["steps"].as_array().into_iter().flatten() {
        let seconds = step["milliseconds"].as_f64().unwrap_or_default() / 1000.0;
        writeln!(out, "  {:<9} {seconds:.1} s", text(&step["step"]))?;
    }
    Ok(())
}

/// What changed and what is broken, a line each.
pub(crate) fn lines(report: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (what, changes) in [("Files", &report["files"]), ("DAGs", &report["dags"])] {
        for (how, count) in
            [("added", "addedCount"), ("changed", "changedCount"), ("removed", "removedCount")]
        {
            let names: Vec<String> =
                changes[how].as_array().into_iter().flatten().map(|name| printable(text(name))).collect();
            if let Some(count) = changes[count].as_u64().filter(|count| *count > 0) {
                let more = count.saturating_sub(names.len() as u64);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                lines.push(format!("{what} {how}: {}{more}", names.join(", ")));
            }
        }
    }
    for error in report["importErrors"].as_array().into_iter().flatten() {
        let line = error["line"].as_u64().map(|line| format!(":{line}")).unwrap_or_default();
        let (file, message) = (printable(text(&error["file"])), printable(text(&error["message"])));
        lines.push(format!("Broken: {file}{line}: {message}"));
    }
    lines
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
        assert_eq!(lines(&json!({})), [""; 0]);
    }
}
