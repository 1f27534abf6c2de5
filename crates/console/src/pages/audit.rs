//! The audit log: who did what, when, from where?

use podium_api::Timestamp;
use podium_api::organizations::{self, GetAuditLogs};
use serde::Deserialize;

use super::{Cell, Choice, Filter, ListPage, OrganizationVisit, Result, Row, Table, Tone, view};

/// How many records a page shows.
const SHOWN: usize = 500;
const HOUR: i64 = 3_600_000;
const RANGES: [(i64, &str); 4] =
    [(1, "Last hour"), (24, "Last day"), (24 * 7, "Last 7 days"), (24 * 30, "Last 30 days")];

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Record {
    operation_id: String,
    status_code: u16,
    subject_name: String,
    source_address: String,
    timestamp: Option<Timestamp>,
}

/// The records of a time range, the newest first.
pub(crate) async fn list(visit: &OrganizationVisit<'_>) -> Result {
    let hours =
        RANGES.iter().map(|(hours, _)| *hours).find(|hours| visit.query().get("hours") == hours.to_string());
    let hours = hours.unwrap_or(24);
    let records = newest(visit, hours * HOUR).await?;
    let start = Timestamp::from_millis(visit.visit.now.millis() - hours * HOUR).to_string();
    let asked = form_urlencoded::Serializer::new(String::new()).append_pair("startDate", &start).finish();
    let rows = records.iter().map(|record| row(visit, record));
    let choices = RANGES.iter().map(|(value, label)| Choice::new(value.to_string(), *label, *value == hours));
    let filter = Filter { name: "hours", label: "Time", choices: choices.collect() };
    let table = Table::whole(["What", "Result", "Who", "From", "When"], rows)
        .or("No records", "Nobody changed anything in this time range.");
    let lead = "Every change and every refused attempt, with who made it and from where. The newest 500 records are shown; the export has all records of this time range.";
    ListPage::new(visit.shell("Audit log").await?, lead, table)
        .offer(true, "Export", visit.link(&format!("/audit/export?{asked}")))
        .narrowed_by(filter)
        .answer()
}

/// The newest records of a time range. The log is read from its end, in windows that grow.
async fn newest(visit: &OrganizationVisit<'_>, range: i64) -> Result<Vec<Record>> {
    let now = visit.visit.now.millis();
    let mut found: Vec<Record> = Vec::new();
    let (mut end, mut width) = (now + 1, HOUR / 12);
    while found.len() < SHOWN && end > now - range {
        let start = (end - width).max(now - range);
        let at = |millis| Some(Timestamp::from_millis(millis));
        let query = GetAuditLogs { start_date: at(start), end_date: at(end) };
        let text = visit.calls().lines::<organizations::AuditLogs>(visit.here(), query).await?;
        found.extend(text.lines().rev().filter_map(|line| serde_json::from_str(line).ok()));
        (end, width) = (start, width * 6);
    }
    found.truncate(SHOWN);
    Ok(found)
}

fn row(visit: &OrganizationVisit<'_>, of: &Record) -> Row {
    let tone = if of.status_code < 400 { Tone::Good } else { Tone::Warning };
    let word = match of.status_code {
        0..400 => "Done",
        403 => "Refused",
        404 => "Not found",
        _ => "Failed",
    };
    Row::of(vec![
        view::spaced(&of.operation_id).into(),
        view::status(tone, word).into(),
        of.subject_name.clone().into(),
        Cell::Mono(of.source_address.clone()),
        of.timestamp.map(|at| view::time(at, visit.visit.now)).into(),
    ])
}
