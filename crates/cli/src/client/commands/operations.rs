//! `podium operation`.

use clap::Subcommand;
use podium_api::enums::{OperationKind, OperationState};
use podium_api::path::OfOperation;
use podium_api::{Nothing, operations as api};

use super::{Listing, Outcome, Session, Verbs, View, Watch, id, word};
use crate::client::follow::failure;

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium operation list --state running
  podium operation list --deployment nightly --kind deploy
  podium operation follow c1234567890abcdefghijklmn
  podium operation cancel c1234567890abcdefghijklmn --yes
  podium operation force c1234567890abcdefghijklmn --yes";

#[derive(Subcommand)]
pub(crate) enum Verb {
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
    columns: "ID id, KIND kind, TARGET target.name, STATE state, CREATED createdAt",
    wide: "ENDED endedAt, BY subject.username, CAUSE cause",
};

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        match self {
            Self::List { deployment, cluster, kind, state, listing } => {
                let path = session.in_organization().await?;
                let target = match (deployment, cluster) {
                    (Some(name), _) => Some(session.deployment(&name, None).await?.deployment_id.id()),
                    (None, Some(name)) => Some(session.cluster(&name).await?.cluster_id.id()),
                    (None, None) => None,
                };
                let query = api::ListOperations {
                    target_ids: target.into_iter().map(Into::into).collect(),
                    kinds: kind,
                    states: state,
                    ..api::ListOperations::default()
                };
                session.list_where::<api::List>(&path, &query, &VIEW, &listing).await
            }
            Self::Get { operation } => {
                session.show_at::<api::Get>(&of(session, &operation).await?, &VIEW).await
            }
            Self::Follow { operation } => follow(session, of(session, &operation).await?).await,
            Self::Cancel { operation } => {
                let path = of(session, &operation).await?;
                session.agree(&format!("Cancel the operation {operation}?"))?;
                let cancelled = session.post::<api::Cancel>(&path, &Nothing).await?;
                eprintln!("Cancelled {operation}: the previous settings were restored.");
                session.follow().await?;
                session.show(&cancelled.raw, &VIEW)
            }
            Self::Force { operation } => {
                let path = of(session, &operation).await?;
                session.agree(&format!("End the running tasks that the operation {operation} waits for?"))?;
                let forced = session.post::<api::Force>(&path, &Nothing).await?;
                eprintln!("The operation {operation} goes on without waiting for running tasks.");
                if session.wait.is_wanted() && !session.is_planning() {
                    return follow(session, path).await;
                }
                session.show(&forced.raw, &VIEW)
            }
        }
    }
}

async fn of(session: &Session, operation: &str) -> Outcome<OfOperation> {
    let operation_id = id(operation, "an operation", "See podium operation list.")?;
    Ok(OfOperation { organization_id: session.organization().await?, operation_id })
}

/// Shows an operation when it has ended; it is an error if it did not succeed.
async fn follow(session: &Session, path: OfOperation) -> Outcome {
    let watch = Watch::new();
    let (ended, raw) = session.wait.until(&watch, session.ended(path, &watch)).await?;
    drop(watch);
    session.show(&raw, &VIEW)?;
    if let Some(newer) = &ended.superseded_by_id {
        eprintln!("A newer change replaced this operation: podium operation follow {newer}");
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
