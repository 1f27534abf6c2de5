//! Copies the logs of components and tasks to the log store.
//!
//! Components append to files of the control plane; tasks write to their own tree. Untrusted code owns the files of
//! tasks: they are opened below one directory without following links.

mod scan;

pub(super) use self::scan::open_below;
use std::sync::Arc;
use std::time::Duration;

use podium_airflow::lines;
use podium_api::DeploymentId;
use tokio::task::{JoinError, JoinSet};

use self::scan::{Chunk, Offsets, Scanner, Writer};
use super::components;
use super::layout::Place;
use crate::Clock;
use crate::LogLine;
use crate::Logs;
use crate::blocking::blocking;

/// How often files are scanned.
const PACE: Duration = Duration::from_secs(1);
/// The longest pause before following is retried; the first is [`PACE`].
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Follows the logs of one environment.
pub(super) struct Tail {
    id: DeploymentId,
    logs: Arc<dyn Logs>,
    clock: Clock,
    scanner: Scanner,
}

impl Tail {
    fn new(id: DeploymentId, place: &Place, logs: Arc<dyn Logs>, clock: Clock) -> std::io::Result<Self> {
        let scanner = Scanner::new(place.logs(), place.task_logs(), Offsets::open(&place.offsets())?);
        Ok(Self { id, logs, clock, scanner })
    }

    /// Follows the logs of an environment until it is dropped, despite errors and panics. Dropping it loses nothing:
    /// what was not recorded is read again.
    pub(super) async fn follow(id: DeploymentId, place: Place, logs: Arc<dyn Logs>, clock: Clock) {
        let follow = || {
            let (place, logs, clock) = (place.clone(), Arc::clone(&logs), Arc::clone(&clock));
            async move {
                match blocking(move || Self::new(id, &place, logs, clock)).await {
                    Ok(tail) => tail.run().await,
                    Err(error) => {
                        tracing::error!(%id, %error, "the logs of an environment cannot be followed yet");
                    }
                }
            }
        };
        restarting(follow, |error| {
            tracing::error!(%id, %error, "following an environment's logs failed and restarts");
        })
        .await;
    }

    async fn run(mut self) {
        loop {
            let is_all;
            (self, is_all) = self.step().await;
            if is_all {
                tokio::time::sleep(PACE).await;
            }
        }
    }

    /// Copies new lines; returns whether that was all.
    async fn step(mut self) -> (Self, bool) {
        let (id, now) = (self.id, (self.clock)());
        let scanned = blocking(move || {
            let found = self.scanner.scan();
            (self, found)
        });
        let (mut tail, (chunks, is_all)) = scanned.await;
        let steps: Vec<(u64, u64)> = chunks.iter().map(|chunk| (chunk.file, chunk.end)).collect();
        if steps.is_empty() {
            return (tail, is_all);
        }
        let lines = chunks.into_iter().flat_map(|chunk| lines(id, &chunk, now)).collect();
        if let Err(fault) = tail.logs.append(lines).await {
            tracing::warn!(%id, %fault, "an environment's log lines could not be stored yet");
            return (tail, true);
        }
        let remembered = blocking(move || {
            let remembered = tail.scanner.remember(&steps);
            (tail, remembered)
        });
        let (tail, remembered) = remembered.await;
        if let Err(error) = remembered {
            tracing::error!(%id, %error, "log offsets cannot be saved yet");
            return (tail, true);
        }
        (tail, is_all)
    }
}

/// Does something again and again until it is dropped, despite errors and panics.
pub(super) async fn restarting<F: Future<Output = ()> + Send + 'static>(
    work: impl Fn() -> F,
    failed: impl Fn(JoinError),
) {
    let mut restarts = Restarts::new();
    loop {
        let began = tokio::time::Instant::now();
        // A separate task contains panics, and ends with this one.
        let mut task = JoinSet::new();
        task.spawn(work());
        if let Some(Err(error)) = task.join_next().await {
            failed(error);
        }
        tokio::time::sleep(restarts.wait_after(began.elapsed())).await;
    }
}

/// The backoff between restarts: longer each time, reset after a run that lasted.
struct Restarts {
    wait: Duration,
}

impl Restarts {
    const fn new() -> Self {
        Self { wait: PACE }
    }

    fn wait_after(&mut self, ran: Duration) -> Duration {
        let wait = if ran >= LONGEST_WAIT { PACE } else { self.wait };
        self.wait = LONGEST_WAIT.min(wait * 2);
        wait
    }
}

/// The lines of a chunk. One without a timestamp gets that of the line before it.
fn lines(id: DeploymentId, chunk: &Chunk, now: podium_api::Timestamp) -> Vec<LogLine> {
    let source = match &chunk.writer {
        Writer::Task(_) => "worker",
        Writer::Component(component) => match components::source(component) {
            Some(source) => source,
            None => return Vec::new(),
        },
    };
    let read = |line: &str| match &chunk.writer {
        Writer::Task(task) => lines::of_task(line, task),
        Writer::Component(_) => lines::of_component(line),
    };
    let mut time = None;
    let text = String::from_utf8_lossy(&chunk.bytes);
    let found = lines::all(&text, read).into_iter().map(|line| {
        time = line.timestamp.or(time);
        (time, line.text)
    });
    let found: Vec<_> = found.collect();
    let first = found.iter().find_map(|(time, _)| *time).unwrap_or(now);
    let line = |(time, text): (Option<podium_api::Timestamp>, String)| LogLine {
        deployment_id: id,
        source: source.to_owned(),
        timestamp: time.unwrap_or(first),
        text,
    };
    found.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests;
