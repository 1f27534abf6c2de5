//! What the simulated data plane says of its components goes to the log store.

use std::sync::Arc;

use podium_app::App;
use podium_dataplane::LogLine;
use podium_dataplane::simulated::LogSink;
use podium_logs::Line;
use tokio::sync::mpsc;

/// How many batches can wait for the log store; more are dropped, because the plane does not wait.
const WAITING: usize = 8192;

/// Takes lines to the log store, in the background.
pub fn log_sink(app: &App) -> LogSink {
    let (sender, mut receiver) = mpsc::channel::<Vec<LogLine>>(WAITING);
    let logs = Arc::clone(&app.logs);
    tokio::spawn(async move {
        let mut batches = Vec::new();
        while receiver.recv_many(&mut batches, WAITING).await > 0 {
            if let Err(error) = logs.append(batches.drain(..).flat_map(lines).collect()).await {
                tracing::warn!(%error, "lines of the simulated data plane are lost");
            }
        }
    });
    Arc::new(move |batch| {
        if sender.try_send(batch).is_err() {
            tracing::warn!("lines of the simulated data plane are lost: the log store is behind");
        }
    })
}

/// Lines as the log store takes them.
pub fn lines(batch: Vec<LogLine>) -> Vec<Line> {
    let line = |line: LogLine| {
        let source = line.source.parse().ok()?;
        Some(Line { deployment_id: line.deployment_id, source, timestamp: line.timestamp, text: line.text })
    };
    batch.into_iter().filter_map(line).collect()
}
