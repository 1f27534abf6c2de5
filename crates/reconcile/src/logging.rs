//! Writes the log lines of the simulated data plane to the log store.

use std::collections::BTreeSet;
use std::sync::Arc;

use podium_api::DeploymentId;
use podium_app::App;
use podium_dataplane::{LogLine, LogSink};
use podium_logs::Line;
use podium_store::{Steward, deployments};
use tokio::sync::mpsc;

/// How many batches can wait for the log store; further ones are dropped, because the plane does not wait.
const WAITING: usize = 8192;

/// Why lines could not be appended.
#[derive(Debug, thiserror::Error)]
pub enum AppendError {
    /// The log store failed.
    #[error("the log store: {0}")]
    Logs(#[from] std::io::Error),
    /// The database failed when checking for deleted deployments.
    #[error("the database: {0}")]
    Database(#[from] podium_db::Error),
}

/// A sink that appends lines to the log store in the background.
pub fn log_sink(app: &App, system: Steward) -> LogSink {
    let (sender, mut receiver) = mpsc::channel::<Vec<LogLine>>(WAITING);
    let app = app.clone();
    tokio::spawn(async move {
        let mut batches = Vec::new();
        while receiver.recv_many(&mut batches, WAITING).await > 0 {
            if let Err(error) = append_lines(&app, system, batches.drain(..).flatten().collect()).await {
                tracing::warn!(%error, "log lines of the simulated data plane were dropped");
            }
        }
    });
    Arc::new(move |batch| {
        if sender.try_send(batch).is_err() {
            tracing::warn!("log lines of the simulated data plane were dropped: the log store is behind");
        }
    })
}

/// Appends lines of existing deployments.
///
/// Whether a deployment exists is checked after its lines are stored: deleting it later removes them, and nothing else
/// would clean up after one that was deleted before.
pub async fn append_lines(app: &App, system: Steward, said: Vec<LogLine>) -> Result<(), AppendError> {
    let speakers: BTreeSet<DeploymentId> = said.iter().map(|line| line.deployment_id).collect();
    app.log_store(&system).append(said.into_iter().filter_map(line).collect()).await?;
    let gone: podium_db::Result<Vec<DeploymentId>> =
        app.db(&system).scan(None, move |conn| deployments::absent(conn, &system, &speakers)).await;
    for id in gone? {
        app.log_store(&system).remove(id).await?;
    }
    Ok(())
}

fn line(line: LogLine) -> Option<Line> {
    let source = line.source.parse().ok()?;
    Some(Line { deployment_id: line.deployment_id, source, timestamp: line.timestamp, text: line.text })
}
