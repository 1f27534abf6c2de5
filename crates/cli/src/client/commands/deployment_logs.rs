//! `podium logs`.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use podium_api::enums::LogSource;
use podium_api::path::OfDeployment;
use podium_api::{Timestamp, deployment_logs as api};
use podium_app::world::World;
use podium_client::Call;
use serde::Deserialize;
use serde_json::Value;

use super::{Outcome, Session, Setup, View, Word, duration, is_styled, printable, read};
use crate::client::project::DeploymentFlags;
use crate::client::streams::{Heard, MOST_CUTS, Stream};

/// Show the logs of a deployment, oldest first, and follow them.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium logs --since 2h
  podium logs --deployment nightly --source scheduler --source worker '\"out of memory\"'
  podium logs --deployment nightly --follow
  podium logs --deployment nightly --since 1d --limit 5000 --output jsonl | jq .raw")]
pub(crate) struct Logs {
    /// Words that lines must contain; word* matches the beginning of a word, "…" any part of the text.
    #[arg(value_name = "TEXT")]
    search: Option<String>,
    /// Name or id; the default is the deployment of podium.yaml, or the only one.
    #[arg(long, short, env = "PODIUM_DEPLOYMENT")]
    deployment: Option<String>,
    /// Component to show lines of: scheduler, webserver, triggerer, worker, dag-processor or apiserver; the default
    /// is all.
    #[arg(long, value_name = "COMPONENT")]
    source: Vec<LogSource>,
    /// How far back, such as 90s, 2h or 7d.
    #[arg(long, default_value = "1h", value_parser = duration, value_name = "TIME")]
    since: Duration,
    /// Maximum number of lines, the newest ones.
    #[arg(long, default_value_t = 500, value_name = "NUMBER")]
    limit: usize,
    /// Keep showing new lines as they are written.
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    flags: DeploymentFlags,
    #[command(flatten)]
    setup: Setup,
}

const VIEW: View = View::plain("raw", "LINE raw");

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    results: Vec<Value>,
    search_id: Option<String>,
}

impl Logs {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let path = self.flags.find(&session, self.deployment.as_deref(), Path::new(".")).await?;
        let printer = Lines { session: &session, is_styled: is_styled() };
        let (sources, search_text) = (self.sources(), self.search.clone());
        let query = api::FollowDeploymentLogs { sources, search_text, ..Default::default() };
        let call = Call::to::<api::Follow>(&path).query_params(&query)?;
        let mut stream = Stream::new(&session, call, MOST_CUTS);
        // The stream is open before the search, so that no line falls between the two.
        if self.follow
            && let Heard::Broken(failed) = stream.hear().await?
        {
            return Err(failed);
        }
        let found = self.search(&session, &path).await?;
        printer.print(&found)?;
        if !self.follow {
            return Ok(());
        }
        loop {
            let line = stream.next().await?;
            // Others were written between the opening of the stream and the search.
            if !found.contains(&line) {
                printer.print(&[line])?;
            }
        }
    }

    fn sources(&self) -> Vec<LogSource> {
        if self.source.is_empty() { LogSource::ALL.to_vec() } else { self.source.clone() }
    }

    /// What was written so far, oldest first.
    async fn search(&self, session: &Session, path: &OfDeployment) -> Outcome<Vec<Value>> {
        let now = World::machine().now();
        let mut query = api::GetDeploymentLogs {
            sources: self.sources(),
            limit: 0,
            offset: 0,
            range: 3_600,
            max_num_results: self.limit as u64,
            search_id: None,
            search_text: self.search.clone(),
            start_date: Some(now - self.since.max(Duration::from_secs(1))),
            end_date: Some(now + Duration::from_secs(60)),
        };
        let mut found: Vec<Value> = Vec::new();
        while found.len() < self.limit {
            query.limit = (self.limit - found.len()).min(500) as u64;
            query.offset = found.len() as u64;
            let page: Page = session.ask::<api::Get>(path, &query).await?.part()?;
            query.search_id = page.search_id;
            let count = page.results.len() as u64;
            found.extend(page.results);
            if count < query.limit {
                break;
            }
        }
        found.reverse();
        Ok(found)
    }
}

/// Prints lines: for people with time and source, for programs as on the wire.
struct Lines<'a> {
    session: &'a Session,
    is_styled: bool,
}

impl Lines<'_> {
    fn print(&self, lines: &[Value]) -> Outcome {
        if !self.session.format.is_table() {
            // Each call is one document: a stream of lines has no end.
            let mut printer = self.session.format.printer(&VIEW)?;
            for line in lines {
                printer.one(line)?;
            }
            return Ok(());
        }
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        for line in lines {
            writeln!(out, "{}", read::<Line>(line)?.shown(self.is_styled))?;
        }
        Ok(out.flush()?)
    }
}

#[derive(Deserialize)]
pub(crate) struct Line {
    pub(crate) raw: String,
    pub(crate) source: Word<LogSource>,
    timestamp: i64,
}

impl Line {
    /// A line for people: time, source and text. What goes on below it is indented, so that it does not look like a line
    /// of its own.
    pub(crate) fn shown(&self, is_styled: bool) -> String {
        let at = Timestamp::from_millis(self.timestamp);
        let source = format!("{:<13}", self.source.to_string());
        let source = if is_styled { colored(&source) } else { source };
        format!("{at} {source} {}", printable(&self.raw).replace('\n', "\n    "))
    }
}

fn colored(source: &str) -> String {
    let code = match source.trim() {
        "scheduler" => 36,
        "worker" => 32,
        "dag-processor" => 33,
        "triggerer" => 35,
        _ => 34,
    };
    format!("\u{1b}[{code}m{source}\u{1b}[0m")
}
