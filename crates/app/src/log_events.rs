//! Follows the logs of a deployment: a stream of events that ends when the caller loses the right to read.
//!
//! A stream buffers no lines: it is woken when there are new ones, and reads them from the store at the reader's pace.

use std::fmt::Write as _;
use std::time::Duration;

use podium_api::DeploymentId;
use podium_api::deployment_logs::{self as api, DeploymentLogEntry};
use podium_api::text::escaped_json;
use podium_db::Conn;
use podium_domain::{Refusal, deployment_logs as rules};
use podium_logs::{Follow, Follower, Query};
use podium_store::{InScope, Scope, deployments};
use tokio::time::Instant;

use crate::authority::Watch;
use crate::cx::{Call, Cx};
use crate::error::{Error, Result};
use crate::streams::OpenStream;

/// How often a keep-alive is sent when there are no lines.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(15);

pub struct LogEvents {
    cx: Cx<Scope>,
    deployment: InScope<DeploymentId>,
    follower: Follower,
    watch: Watch,
    end: Option<Instant>,
    _open: OpenStream,
}

/// Follows the logs of a deployment, after the event that `Last-Event-ID` names; only new lines where it names none.
pub async fn follow(cx: Cx<Scope>, call: Call<api::Follow>) -> Result<LogEvents> {
    let (deployment_id, query) = (call.path.deployment_id, call.query);
    let after = rules::last_event(cx.request().last_event_id.as_deref())?;
    let found = cx.read(move |cx, conn| Ok(deployments::proven(conn, cx.scope(), deployment_id)?)).await?;
    let (proof, deployment) = found.ok_or_else(|| Refusal::not_found("deployment"))?;
    cx.app().require_local(deployment_id).await?;
    let open = cx.app().log_streams.open(&cx)?;
    let search = Follow {
        deployment_id,
        sources: rules::present(&query.sources, &deployment.spec.runtime_version),
        query: Query::parse(query.search_text.as_deref().unwrap_or_default()),
    };
    let follower = cx.app().logs_of(proof).follow(search, after);
    let end = query.wait_seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let watch = cx.watch();
    Ok(LogEvents { cx, deployment: proof, follower, watch, end, _open: open })
}

impl LogEvents {
    /// The next chunk to send, once there is one; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>>> {
        let beat = Instant::now() + HEARTBEAT;
        loop {
            let news = match self.cx.app().logs_of(self.deployment).new_lines(&self.follower).await {
                Ok(news) => news,
                Err(error) => {
                    return Some(Err(Error::Internal(format!("logs cannot be read: {error}"))));
                }
            };
            match self.may_read().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
            self.follower.advance(&news);
            if !news.lines.is_empty() {
                let events = news.lines.into_iter().map(|line| {
                    let entry = DeploymentLogEntry {
                        raw: line.entry.text,
                        source: line.entry.source,
                        timestamp: line.entry.timestamp.millis(),
                    };
                    (line.number, entry)
                });
                return Some(written(events));
            }
            if news.has_more {
                continue;
            }
            if self.end.is_some_and(|end| end <= Instant::now()) {
                return None;
            }
            let until = self.end.map_or(beat, |end| end.min(beat));
            tokio::select! {
                goes_on = self.follower.woken() => if !goes_on { return None },
                () = self.watch.ended() => return None,
                () = tokio::time::sleep_until(until) => {
                    if until == beat {
                        // Clients ignore an event without data; its id only records the reader's position.
                        return Some(Ok(format!(": nothing new\nid: {}\n\n", self.follower.seen()).into_bytes()));
                    }
                }
            }
        }
    }

    /// Whether the caller's rights are unchanged and the deployment still exists.
    async fn may_read(&self) -> Result<bool> {
        let deployment_id = *self.deployment.get();
        let exists = move |cx: &Cx<Scope>, conn: &Conn| {
            Ok(deployments::get(conn, cx.scope(), deployment_id)?.is_some())
        };
        let checked = self.cx.read_on(exists);
        match checked.await {
            Err(Error::Unauthenticated(_)) => Ok(false),
            Err(error) if error.is_stale() => Ok(false),
            checked => checked,
        }
    }
}

fn written(lines: impl Iterator<Item = (u64, DeploymentLogEntry)>) -> Result<Vec<u8>> {
    let mut text = String::new();
    for (number, entry) in lines {
        let data = serde_json::to_string(&entry).map_err(|error| Error::Internal(error.to_string()))?;
        let data = escaped_json(data);
        let _ = write!(text, "id: {number}\ndata: {data}\n\n");
    }
    Ok(text.into_bytes())
}
