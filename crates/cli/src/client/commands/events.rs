//! `podium event`.

use std::io::Write as _;
use std::time::Duration;

use clap::{Args, Subcommand};
use podium_api::enums::EventType;
use podium_api::events::{self as api, FollowEvents};
use podium_app::world::World;
use podium_client::Call;
use serde::Deserialize;
use serde_json::Value;

use super::{Outcome, Session, Verbs, View, Word, duration, printable, read};
use crate::client::streams::{MOST_CUTS, Stream};

/// The largest page.
pub(crate) const PAGE: u64 = 1_000;

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium event list --since 2h
  podium event list --deployment nightly --type podium.deployment.unhealthy --output jsonl
  podium event follow
  podium event follow --workspace Reports --output jsonl | jq .type";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List events, oldest first.
    List {
        #[command(flatten)]
        which: Which,
        /// How far back, such as 90s, 2h or 7d.
        #[arg(long, default_value = "1d", value_parser = duration, value_name = "TIME")]
        since: Duration,
        /// Maximum number of events to show.
        #[arg(long, default_value_t = 10_000, value_name = "NUMBER")]
        limit: u64,
    },
    /// Show events as they happen, until you stop it.
    Follow {
        #[command(flatten)]
        which: Which,
        /// Begin with earlier events, going back this far, such as 10m.
        #[arg(long, value_parser = duration, value_name = "TIME")]
        since: Option<Duration>,
    },
}

/// Which events.
#[derive(Args)]
pub(crate) struct Which {
    /// Only events of this type, such as podium.deployment.healthy; can be repeated.
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<EventType>,
    /// Only events of this workspace and its deployments.
    #[arg(long)]
    workspace: Option<String>,
    /// Only events of this deployment.
    #[arg(long)]
    deployment: Option<String>,
}

const VIEW: View = View {
    name: "id",
    columns: "TIME time, TYPE type, NAME data.resource.name, BY data.actor.name, STATUS data.status",
    wide: "REASON data.statusReason, SUBJECT subject, ID id",
};

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Happened {
    #[serde(default)]
    pub(crate) time: String,
    #[serde(rename = "type")]
    pub(crate) kind: Word<EventType>,
    #[serde(default)]
    subject: String,
    pub(crate) data: Told,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Told {
    #[serde(default)]
    pub(crate) deployment_id: String,
    #[serde(default)]
    pub(crate) status_reason: String,
    #[serde(default)]
    pub(crate) resource: Name,
    actor: Option<Name>,
    pub(crate) dag_run: Option<DagRun>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Name {
    pub(crate) name: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DagRun {
    pub(crate) dag_id: String,
}

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        let path = session.in_organization().await?;
        match self {
            Self::List { which, since, limit } => {
                let query = which.query(session, Some(since)).await?;
                let mut printer = session.format.printer(&VIEW)?;
                let print = |page: &[Value]| Ok(printer.page(page)?);
                session.behind_cursor::<api::List>(&path, &query, (limit, PAGE, u64::MAX), print).await?;
                Ok(printer.finish()?)
            }
            Self::Follow { which, since } => {
                let query = which.query(session, since).await?;
                let call = Call::to::<api::Follow>(&path).query_params(&query)?;
                let mut stream = Stream::new(session, call, MOST_CUTS);
                loop {
                    print(session, &stream.next().await?)?;
                }
            }
        }
    }
}

impl Which {
    async fn query(&self, session: &Session, since: Option<Duration>) -> Outcome<FollowEvents> {
        let (workspace_id, _) = session.ids_in(self.workspace.as_deref(), None).await?;
        let deployment_id = match &self.deployment {
            Some(name) => Some(session.deployment(name, self.workspace.as_deref()).await?.deployment_id),
            None => None,
        };
        let (types, since) = (self.types.clone(), since.map(|since| World::machine().now() - since));
        Ok(FollowEvents { types, workspace_id, deployment_id, since, ..FollowEvents::default() })
    }
}

fn print(session: &Session, event: &Value) -> Outcome {
    if !session.format.is_table() {
        return session.show(event, &VIEW);
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", printable(&line(&read(event)?)))?;
    Ok(out.flush()?)
}

fn line(event: &Happened) -> String {
    let data = &event.data;
    let name = data.resource.name.as_ref().unwrap_or(&event.subject);
    let mut line = format!("{} {} {name}", event.time, event.kind);
    if let Some(actor) = data.actor.as_ref().and_then(|actor| actor.name.as_ref()) {
        line += &format!(" by {actor}");
    }
    if !data.status_reason.is_empty() {
        line += &format!(": {}", data.status_reason);
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let event = json!({
            "time": "2026-01-01T00:00:00.000Z", "type": "podium.deployment.unhealthy", "subject": "deployment/c1",
            "data": { "resource": { "name": "nightly" }, "actor": { "name": "ada" }, "statusReason": "Out of disk" },
        });
        let expected = "2026-01-01T00:00:00.000Z podium.deployment.unhealthy nightly by ada: Out of disk";
        assert_eq!(line(&read(&event).unwrap()), expected);
        let plain = json!({ "time": "t", "type": "x", "subject": "team/c1", "data": { "resource": {} } });
        assert_eq!(line(&read(&plain).unwrap()), "t x team/c1");
    }
}
