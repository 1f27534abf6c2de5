//! `podium operation`.

use clap::{Args, Subcommand};
use podium_api::enums::{OperationKind, OperationState};
use podium_api::operations as api;
use podium_api::path::OfOperation;
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::ending::{Exit, Failed, Outcome, printable};
use crate::client::follow::{Progress, pause};
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::{Session, Setup, text};

/// How often in a row a stream may break before that is an error.
const MOST_CUTS: usize = 8;

/// Changes that take time: what they are doing, and how they ended.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium operation list --state running
  podium operation list --deployment nightly --kind deploy
  podium operation follow c1234567890abcdefghijklmn
  podium operation cancel c1234567890abcdefghijklmn --yes
  podium operation force c1234567890abcdefghijklmn --yes")]
pub(crate) struct Operations {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List operations, newest first.
    List {
        /// Only those of this deployment: its name or id.
        #[arg(long)]
        deployment: Option<String>,
        /// Only those of this cluster: its name or id.
        #[arg(long, conflicts_with = "deployment")]
        cluster: Option<String>,
        /// Only those of these kinds, such as deploy.
        #[arg(long, value_parser = word::<OperationKind>)]
        kind: Vec<OperationKind>,
        /// Only those in these states, such as running.
        #[arg(long, value_parser = word::<OperationState>)]
        state: Vec<OperationState>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show an operation.
    Get {
        /// Id of the operation.
        operation: String,
    },
    /// Show how an operation proceeds, until it has ended.
    Follow {
        /// Id of the operation.
        operation: String,
    },
    /// Go back to what was wanted before the operation.
    Cancel {
        /// Id of the operation.
        operation: String,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// Go on without waiting for running tasks, which are ended.
    Force {
        /// Id of the operation.
        operation: String,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
}

const VIEW: View = View {
    name: "id",
    columns: &[
        column("ID", "id"),
        column("KIND", "kind"),
        column("TARGET", "target.name"),
        column("STATE", "state"),
        column("CREATED", "createdAt"),
        wide("ENDED", "endedAt"),
        wide("BY", "subject.username"),
        wide("CAUSE", "cause"),
    ],
};

/// A word of an enumeration, in any case and with either dash.
fn word<T: std::str::FromStr<Err = podium_api::enums::UnknownValue>>(
    text: &str,
) -> Result<T, podium_api::enums::UnknownValue> {
    text.to_uppercase().replace('-', "_").parse()
}

impl Operations {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        match self.verb {
            Verb::List { deployment, cluster, kind, state, listing } => {
                let path = session.in_organization().await?;
                let target = match (deployment, cluster) {
                    (Some(name), _) => Some(session.deployment(&name, None).await?.deployment_id.to_string()),
                    (None, Some(name)) => Some(session.cluster(&name).await?.cluster_id.to_string()),
                    (None, None) => None,
                };
                let targets: Vec<String> = target.into_iter().collect();
                let params = json!({ "targetIds": targets, "kinds": kind, "states": state });
                session.list(Call::to::<api::List>(&path).query_params(&params)?, &VIEW, &listing).await
            }
            Verb::Get { operation } => {
                let path = of(&session, &operation).await?;
                session.show(&session.get::<api::Get>(&path).await?, &VIEW)
            }
            Verb::Follow { operation } => follow(&session, of(&session, &operation).await?).await,
            Verb::Cancel { operation, yes } => {
                let path = of(&session, &operation).await?;
                session.agree(&format!("Cancel the operation {operation}?"), yes)?;
                let cancelled = session.post::<api::Cancel>(&path, &Value::Null).await?;
                eprintln!("Cancelled {operation}: what was wanted before is wanted again.");
                session.show(&cancelled, &VIEW)
            }
            Verb::Force { operation, yes } => {
                let path = of(&session, &operation).await?;
                session.agree(
                    &format!("End the running tasks that the operation {operation} waits for?"),
                    yes,
                )?;
                let forced = session.post::<api::Force>(&path, &Value::Null).await?;
                eprintln!("The operation {operation} goes on without waiting for running tasks.");
                session.show(&forced, &VIEW)
            }
        }
    }
}

async fn of(session: &Session, operation: &str) -> Outcome<OfOperation> {
    let operation_id = operation.parse().map_err(|_| {
        Failed::usage(format!("{operation:?} is not the id of an operation"))
            .hint("See podium operation list.")
    })?;
    Ok(OfOperation { organization_id: session.organization().await?, operation_id })
}

/// Shows each state of an operation until it has ended; it is an error if it failed.
async fn follow(session: &Session, path: OfOperation) -> Outcome {
    let mut progress = Progress::new();
    let (mut last, mut cuts, mut operation) = (None, 0, Value::Null);
    while !is_ended(&operation) {
        let call = Call::to::<api::Follow>(&path).after_event(last.clone());
        match session.client.events(&call).await {
            Ok(mut stream) => {
                while let Ok(Some(event)) = stream.next().await {
                    cuts = 0;
                    last = event.id.or(last);
                    operation = serde_json::from_str(&event.data)
                        .map_err(|_| Failed::because("the server sent an operation that is not JSON"))?;
                    progress.say(&state(&operation));
                }
            }
            Err(error) => {
                let failed = Failed::from(error);
                if failed.exit != Exit::Unreachable || cuts >= MOST_CUTS {
                    return Err(failed);
                }
            }
        }
        if !is_ended(&operation) {
            pause(cuts).await;
            cuts += 1;
        }
    }
    drop(progress);
    session.show(&operation, &VIEW)?;
    match text(&operation["state"]) {
        "FAILED" => {
            let failure = &operation["failure"];
            let failed = Failed::new(Exit::OperationFailed, text(&failure["reason"]).to_owned());
            Err(failed.hint(printable(text(&failure["hint"]))))
        }
        _ => Ok(()),
    }
}

fn is_ended(operation: &Value) -> bool {
    operation.get("endedAt").is_some()
}

/// What an operation is doing, in one line.
fn state(operation: &Value) -> String {
    let mut line = format!(
        "{} of {}: {}",
        text(&operation["kind"]),
        text(&operation["target"]["name"]),
        text(&operation["state"])
    );
    let step = operation["steps"].as_array().and_then(|steps| steps.last());
    if let Some(step) = step.filter(|step| step.get("endedAt").is_none()) {
        line += &format!(", {}", text(&step["name"]));
    }
    let progress = &operation["progress"];
    if let (Some(done), Some(total)) = (progress["done"].as_u64(), progress["total"].as_u64()) {
        line += &format!(" {done} of {total}");
    }
    if !text(&progress["message"]).is_empty() {
        line += &format!(": {}", text(&progress["message"]));
    }
    let tasks: Vec<&str> = progress["waitsFor"].as_array().into_iter().flatten().map(text).collect();
    if !tasks.is_empty() {
        line += &format!(" (waits for {})", tasks.join(", "));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_an_operation_is_doing() {
        let target = json!({ "name": "nightly" });
        let pending = json!({ "kind": "DEPLOY", "target": target, "state": "PENDING", "steps": [] });
        assert_eq!(state(&pending), "DEPLOY of nightly: PENDING");
        let running = json!({
            "kind": "DEPLOY", "target": target, "state": "RUNNING",
            "steps": [{ "name": "UNPACK", "endedAt": "x" }, { "name": "PACKAGES" }],
            "progress": { "done": 3, "total": 7, "message": "Installing pandas", "waitsFor": ["a/b/c"] },
        });
        assert_eq!(
            state(&running),
            "DEPLOY of nightly: RUNNING, PACKAGES 3 of 7: Installing pandas (waits for a/b/c)"
        );
    }

    #[test]
    fn words_are_read_in_any_case() {
        assert_eq!(word::<OperationKind>("runtime-upgrade").unwrap(), OperationKind::RuntimeUpgrade);
        assert!(word::<OperationState>("sleeping").is_err());
    }
}
