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
use serde_json::{Value, json};

use crate::client::ending::{Failed, Outcome, printable};
use crate::client::output::{View, column, is_styled};
use crate::client::progress::pause;
use crate::client::project::DeploymentFlags;
use crate::client::session::{Session, Setup, text};
use crate::client::wait::duration;

/// How often a broken stream is opened again before the command gives up.
const MOST_CUTS: usize = 8;

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

const VIEW: View = View { name: "raw", columns: &[column("LINE", "raw")] };

impl Logs {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let path = self.flags.find(&session, self.deployment.as_deref(), Path::new(".")).await?;
        let printer = Lines { session: &session, is_styled: is_styled() };
        // The stream is open before the search, so that no line falls between the two.
        let stream = if self.follow { Some(self.open(&session, &path, None).await?) } else { None };
        let found = self.search(&session, &path).await?;
        printer.print(&found)?;
        match stream {
            Some(stream) => self.follow(&session, &path, stream, &found, &printer).await,
            None => Ok(()),
        }
    }

    fn sources(&self) -> Vec<LogSource> {
        if self.source.is_empty() { LogSource::ALL.to_vec() } else { self.source.clone() }
    }

    /// What was written so far, oldest first.
    async fn search(&self, session: &Session, path: &OfDeployment) -> Outcome<Vec<Value>> {
        let now = World::machine().now();
        let from = now - self.since.max(Duration::from_secs(1));
        let mut found: Vec<Value> = Vec::new();
        let mut search_id = Value::Null;
        while found.len() < self.limit {
            let asked = (self.limit - found.len()).min(500);
            let params = json!({
                "sources": self.sources(),
                "startDate": from,
                "endDate": now + Duration::from_secs(60),
                "searchText": self.search,
                "limit": asked,
                "offset": found.len(),
                "maxNumResults": self.limit,
                "searchId": search_id,
            });
            let call = Call::to::<api::Get>(path).query_params(&params)?;
            let mut page: Value = session.client.send(call).await?.body;
            search_id = page["searchId"].take();
            let Value::Array(lines) = page["results"].take() else { break };
            let count = lines.len();
            found.extend(lines);
            if count < asked {
                break;
            }
        }
        found.reverse();
        Ok(found)
    }

    async fn open(
        &self,
        session: &Session,
        path: &OfDeployment,
        after: Option<String>,
    ) -> Outcome<podium_client::Events> {
        let params = json!({ "sources": self.sources(), "searchText": self.search });
        let call = Call::to::<api::Follow>(path).query_params(&params)?.after_event(after);
        Ok(session.client.events(&call).await?)
    }

    /// Prints new lines until the person stops; a broken stream goes on where it broke.
    async fn follow(
        &self,
        session: &Session,
        path: &OfDeployment,
        mut stream: podium_client::Events,
        printed: &[Value],
        printer: &Lines<'_>,
    ) -> Outcome {
        let mut last = None;
        let mut cuts = 0;
        loop {
            match stream.next().await {
                Ok(Some(event)) => {
                    cuts = 0;
                    last = event.id.or(last);
                    let line: Value = serde_json::from_str(&event.data)
                        .map_err(|_| Failed::because("the server sent a line that is not JSON"))?;
                    // Written between the opening of the stream and the search.
                    if !printed.contains(&line) {
                        printer.print(&[line])?;
                    }
                    continue;
                }
                Err(error) if cuts >= MOST_CUTS => return Err(error.into()),
                _ => {}
            }
            loop {
                pause(cuts).await;
                cuts += 1;
                match self.open(session, path, last.clone()).await {
                    Ok(opened) => break stream = opened,
                    Err(failed) if cuts >= MOST_CUTS || !is_passing(&failed) => return Err(failed),
                    Err(_) => {}
                }
            }
        }
    }
}

/// Whether a stream that cannot be opened now may be later.
fn is_passing(failed: &Failed) -> bool {
    failed.exit == crate::client::ending::Exit::Unreachable
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
            writeln!(out, "{}", line_of(line, self.is_styled))?;
        }
        Ok(out.flush()?)
    }
}

/// A line for people: time, source and text. What goes on below it is indented, so that it does not look like a line of
/// its own.
pub(crate) fn line_of(line: &Value, is_styled: bool) -> String {
    let at = Timestamp::from_millis(line["timestamp"].as_i64().unwrap_or_default());
    let source = format!("{:<13}", text(&line["source"]));
    let source = if is_styled { colored(&source) } else { source };
    format!("{at} {source} {}", printable(text(&line["raw"])).replace('\n', "\n    "))
}

/// A colour for each source.
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
