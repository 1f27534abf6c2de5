//! `podium event`.

use std::io::Write as _;
use std::time::Duration;

use clap::{Args, Subcommand};
use podium_api::enums::EventType;
use podium_api::events as api;
use podium_app::world::World;
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::ending::{Exit, Failed, Outcome, printable};
use crate::client::fields::given;
use crate::client::output::{View, column, wide};
use crate::client::progress::pause;
use crate::client::session::{Session, Setup, text};
use crate::client::wait::duration;

/// How often a broken stream is opened again before the command gives up.
const MOST_CUTS: usize = 8;
/// The largest page.
const PAGE: u64 = 1_000;

/// Events of the organization.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium event list --since 2h
  podium event list --deployment nightly --type podium.deployment.unhealthy --output jsonl
  podium event follow
  podium event follow --workspace Reports --output jsonl | jq .type")]
pub(crate) struct Events {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
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
struct Which {
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
    columns: &[
        column("TIME", "time"),
        column("TYPE", "type"),
        column("NAME", "data.resource.name"),
        column("BY", "data.actor.name"),
        column("STATUS", "data.status"),
        wide("REASON", "data.statusReason"),
        wide("SUBJECT", "subject"),
        wide("ID", "id"),
    ],
};

impl Events {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        match self.verb {
            Verb::List { which, since, limit } => {
                let params = which.params(&session, Some(since)).await?;
                list(&session, &params, limit).await
            }
            Verb::Follow { which, since } => {
                let params = which.params(&session, since).await?;
                follow(&session, &params).await
            }
        }
    }
}

impl Which {
    async fn params(&self, session: &Session, since: Option<Duration>) -> Outcome<Value> {
        let workspace_id = match &self.workspace {
            Some(name) => Some(session.workspace(name).await?.workspace_id),
            None => None,
        };
        let deployment_id = match &self.deployment {
            Some(name) => Some(session.deployment(name, self.workspace.as_deref()).await?.deployment_id),
            None => None,
        };
        let since = since.map(|since| World::machine().now() - since);
        Ok(given(json!({
            "types": self.types, "workspaceId": workspace_id, "deploymentId": deployment_id, "since": since,
        })))
    }
}

async fn list(session: &Session, params: &Value, limit: u64) -> Outcome {
    let path = session.in_organization().await?;
    let mut printer = session.format.printer(&VIEW)?;
    let (mut cursor, mut left) = (Value::Null, limit);
    while left > 0 {
        let page = json!({ "cursor": cursor, "limit": left.min(PAGE) });
        let call = Call::to::<api::List>(&path).query_params(params)?.query_params(&page)?;
        let mut page: Value = session.client.send(call).await?.body;
        let Value::Array(events) = page["events"].take() else { break };
        left = left.saturating_sub(events.len() as u64);
        printer.page(&events)?;
        cursor = page["nextCursor"].take();
        if page["hasMore"] != json!(true) {
            break;
        }
    }
    Ok(printer.finish()?)
}

/// Prints events until the person stops; a broken stream goes on where it broke.
async fn follow(session: &Session, params: &Value) -> Outcome {
    let path = session.in_organization().await?;
    let (mut last, mut cuts) = (None, 0);
    loop {
        let call = Call::to::<api::Follow>(&path).query_params(params)?.after_event(last.clone());
        match session.client.events(&call).await {
            Ok(mut stream) => {
                while let Ok(Some(event)) = stream.next().await {
                    cuts = 0;
                    last = event.id.or(last);
                    let event: Value = serde_json::from_str(&event.data)
                        .map_err(|_| Failed::because("the server sent an event that is not JSON"))?;
                    print(session, &event)?;
                }
            }
            Err(error) => {
                let failed = Failed::from(error);
                if failed.exit != Exit::Unreachable || cuts >= MOST_CUTS {
                    return Err(failed);
                }
            }
        }
        pause(cuts).await;
        cuts += 1;
    }
}

fn print(session: &Session, event: &Value) -> Outcome {
    if !session.format.is_table() {
        return session.show(event, &VIEW);
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", printable(&line(event)))?;
    Ok(out.flush()?)
}

/// An event in one line.
fn line(event: &Value) -> String {
    let data = &event["data"];
    let name = data["resource"]["name"].as_str().unwrap_or_else(|| text(&event["subject"]));
    let mut line = format!("{} {} {name}", text(&event["time"]), text(&event["type"]));
    if let Some(actor) = data["actor"]["name"].as_str() {
        line += &format!(" by {actor}");
    }
    if let Some(reason) = data["statusReason"].as_str().filter(|reason| !reason.is_empty()) {
        line += &format!(": {reason}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_line() {
        let event = json!({
            "time": "2026-01-01T00:00:00.000Z", "type": "podium.deployment.unhealthy", "subject": "deployment/c1",
            "data": { "resource": { "name": "nightly" }, "actor": { "name": "ada" }, "statusReason": "Out of disk" },
        });
        let expected = "2026-01-01T00:00:00.000Z podium.deployment.unhealthy nightly by ada: Out of disk";
        assert_eq!(line(&event), expected);
        let plain = json!({ "time": "t", "type": "x", "subject": "team/c1", "data": { "resource": {} } });
        assert_eq!(line(&plain), "t x team/c1");
    }
}
