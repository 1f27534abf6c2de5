//! `podium audit`.

use std::io::Write as _;

use clap::Subcommand;
use podium_api::organizations::AuditLogs;
use podium_client::Call;
use serde_json::json;

use super::{Outcome, Session, Verbs};

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium audit export > audit.jsonl
  podium audit export --start 2026-11-01T00:00:00Z --end 2026-11-02T00:00:00Z | jq .";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Print records, a line of JSON each.
    #[command(alias = "list")]
    Export {
        /// From when, such as 2026-11-01T00:00:00Z; the default is a day before the end.
        #[arg(long, value_name = "TIME")]
        start: Option<String>,
        /// Until when; the default is now.
        #[arg(long, value_name = "TIME")]
        end: Option<String>,
    },
}

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        let Self::Export { start, end } = self;
        let path = session.in_organization().await?;
        let call =
            Call::to::<AuditLogs>(&path).query_params(&json!({ "startDate": start, "endDate": end }))?;
        let mut lines = session.client.lines(&call).await?;
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        while let Some(line) = lines.next().await? {
            writeln!(out, "{line}")?;
        }
        Ok(out.flush()?)
    }
}
