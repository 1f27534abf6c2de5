//! `podium operation`.

use std::str::FromStr;

use clap::{Args, Subcommand};
use podium_api::enums::{OperationKind, OperationState};
use podium_api::operations as api;
use podium_api::path::OfOperation;
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::ending::{Failed, Outcome, one_line};
use crate::client::follow::failure;
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::{Session, Setup};
use crate::client::wait::Watch;

/// Changes that take time: their progress and results.
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
        /// Only operations on this deployment, by name or id.
        #[arg(long)]
        deployment: Option<String>,
        /// Only operations on this cluster, by name or id.
        #[arg(long, conflicts_with = "deployment")]
        cluster: Option<String>,
        /// Only operations of these kinds, such as deploy.
        #[arg(long, value_parser = word(OperationKind::ALL))]
        kind: Vec<OperationKind>,
        /// Only operations in these states, such as running.
        #[arg(long, value_parser = word(OperationState::ALL))]
        state: Vec<OperationState>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show an operation.
    Get {
        /// Id of the operation.
        operation: String,
    },
    /// Show the progress of an operation until it ends.
    Follow {
        /// Id of the operation.
        operation: String,
    },
    /// Cancel an operation and restore the previous settings.
    Cancel {
        /// Id of the operation.
        operation: String,
    },
    /// Continue an operation without waiting for running tasks; the tasks are ended.
    Force {
        /// Id of the operation.
        operation: String,
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

/// A text that is none of the words of an enumeration, which are these.
#[derive(Debug)]
struct NoWord(String);

impl std::fmt::Display for NoWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "write one of {}", self.0)
    }
}

impl std::error::Error for NoWord {}

/// Reads a word of an enumeration, in any case and with either dash.
fn word<T>(all: &'static [T]) -> impl Fn(&str) -> Result<T, NoWord> + Clone
where
    T: std::fmt::Display + FromStr + 'static,
{
    move |text| {
        text.to_uppercase().replace('-', "_").parse().map_err(|_| {
            let words = all.iter().map(|value| value.to_string().to_lowercase().replace('_', "-"));
            NoWord(words.collect::<Vec<_>>().join(", "))
        })
    }
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
            Verb::Cancel { operation } => {
                let path = of(&session, &operation).await?;
                session.agree(&format!("Cancel the operation {operation}?"))?;
                let cancelled = session.post::<api::Cancel>(&path, &Value::Null).await?;
                eprintln!("Cancelled {operation}: the previous settings were restored.");
                session.follow().await?;
                session.show(&cancelled, &VIEW)
            }
            Verb::Force { operation } => {
                let path = of(&session, &operation).await?;
                session.agree(&format!("End the running tasks that the operation {operation} waits for?"))?;
                let forced = session.post::<api::Force>(&path, &Value::Null).await?;
                eprintln!("The operation {operation} goes on without waiting for running tasks.");
                if session.wait.is_wanted() && !session.is_planning() {
                    return follow(&session, path).await;
                }
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

/// Shows an operation when it has ended; it is an error if it did not succeed.
async fn follow(session: &Session, path: OfOperation) -> Outcome {
    let watch = Watch::new();
    let ended = session.wait.until(&watch, session.ended(path, &watch)).await?;
    drop(watch);
    session.show(&ended, &VIEW)?;
    if let Some(newer) = ended["supersededById"].as_str() {
        eprintln!("A newer change replaced this operation: podium operation follow {}", one_line(newer));
    }
    failure(&ended).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_in_any_case() {
        assert_eq!(word(OperationKind::ALL)("runtime-upgrade").unwrap(), OperationKind::RuntimeUpgrade);
        assert_eq!(
            word(OperationState::ALL)("sleeping").unwrap_err().to_string(),
            "write one of pending, running, succeeded, failed, cancelled, superseded"
        );
    }
}
