//! `podium work`: the pending work of the loops, and why it is not done.

use std::io::Write as _;
use std::sync::Arc;

use clap::Args;
use podium_api::Timestamp;
use podium_app::world::World;
use podium_store::work::{self, Pending};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::settings::Installation;
use crate::table;

const EXAMPLES: &str = "\
Examples:
  podium work --data-dir ./podium-data
  podium work --kind deployments --limit 20
  podium work --json | jq '.[] | select(.tries > 3)'";

/// Show the pending work of the loops, the most urgent first, and why it is not done.
///
/// Reads the installation's database, even while the server is running, and changes nothing.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Work {
    #[command(flatten)]
    installation: Installation,
    /// Only work of this kind: clusters, deployments or deploys.
    #[arg(long)]
    kind: Option<String>,
    /// Maximum number of work items to show.
    #[arg(long, default_value_t = 100)]
    limit: u32,
    /// As JSON, for programs.
    #[arg(long)]
    json: bool,
}

impl Work {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let (db, system) = self.installation.view().await?;
        let (kind, limit) = (self.kind.clone(), self.limit);
        let found = db.scan(None, move |conn| work::pending(conn, &system, kind.as_deref(), limit)).await;
        db.close().await;
        let found: Vec<Pending> = found?;
        let now = Arc::new(World::machine()).now();
        let text = if self.json { as_json(&found, now) } else { as_table(&found, now) };
        // A reader that stops early, such as `head`, is not an error.
        let _ = std::io::stdout().write_all(text.as_bytes());
        Ok(())
    }
}

fn state(row: &Pending, now: Timestamp) -> &'static str {
    match (row.holder.is_empty(), row.due_at <= now) {
        (false, false) => "running",
        (false, true) => "lapsed",
        (true, true) => "due",
        (true, false) if row.attempts > 0 => "retrying",
        (true, false) => "waiting",
    }
}

fn as_json(rows: &[Pending], now: Timestamp) -> String {
    let value = |row: &Pending| {
        json!({
            "kind": row.kind,
            "id": row.id,
            "state": state(row, now),
            "dueAt": row.due_at,
            "tries": row.attempts,
            "since": row.since,
            "reason": row.reason,
        })
    };
    format!("{:#}\n", Value::Array(rows.iter().map(value).collect()))
}

fn as_table(rows: &[Pending], now: Timestamp) -> String {
    if rows.is_empty() {
        return "Nothing is pending.\n".into();
    }
    let head = ["KIND", "ID", "STATE", "DUE", "TRIES", "SINCE", "REASON"].map(str::to_owned);
    let mut table = vec![head];
    table.extend(rows.iter().map(|row| {
        [
            row.kind.clone(),
            row.id.to_string(),
            state(row, now).to_owned(),
            row.due_at.to_string(),
            row.attempts.to_string(),
            row.since.to_string(),
            row.reason.clone(),
        ]
    }));
    table::text(table)
}

#[cfg(test)]
mod tests {
    use podium_api::Id;

    use super::*;

    fn row(number: u32, due_at: i64, attempts: i64, holder: &str, reason: &str) -> Pending {
        Pending {
            kind: "deployments".into(),
            id: Id::from_parts(0, number, 0),
            due_at: Timestamp::from_millis(due_at),
            since: Timestamp::from_millis(500),
            attempts,
            reason: reason.into(),
            holder: holder.into(),
        }
    }

    fn rows() -> [Pending; 5] {
        [
            row(1, 900, 0, "", ""),
            row(2, 1_000, 2, "c1", "no room"),
            row(3, 1_001, 1, "c2", ""),
            row(4, 5_000, 7, "", "no route to host"),
            row(5, 86_400_000, 0, "", "The next hibernation event."),
        ]
    }

    #[test]
    fn a_table_says_what_is_pending_and_why() {
        let now = Timestamp::from_millis(1_000);
        assert_eq!(as_table(&[], now), "Nothing is pending.\n");
        let expected = "\
KIND         ID                         STATE     DUE                       TRIES  SINCE                     REASON
deployments  c000000000001000000000000  due       1970-01-01T00:00:00.900Z  0      1970-01-01T00:00:00.500Z
deployments  c000000000002000000000000  lapsed    1970-01-01T00:00:01.000Z  2      1970-01-01T00:00:00.500Z  no room
deployments  c000000000003000000000000  running   1970-01-01T00:00:01.001Z  1      1970-01-01T00:00:00.500Z
deployments  c000000000004000000000000  retrying  1970-01-01T00:00:05.000Z  7      1970-01-01T00:00:00.500Z  no route to host
deployments  c000000000005000000000000  waiting   1970-01-02T00:00:00.000Z  0      1970-01-01T00:00:00.500Z  The next hibernation event.
";
        assert_eq!(as_table(&rows(), now), expected);
    }

    #[test]
    fn json_says_the_same() {
        let text = as_json(&rows()[3..4], Timestamp::from_millis(1_000));
        let value: Value = serde_json::from_str(&text).unwrap();
        let expected = json!([{
            "kind": "deployments",
            "id": "c000000000004000000000000",
            "state": "retrying",
            "dueAt": "1970-01-01T00:00:05.000Z",
            "tries": 7,
            "since": "1970-01-01T00:00:00.500Z",
            "reason": "no route to host",
        }]);
        assert_eq!(value, expected);
    }
}
