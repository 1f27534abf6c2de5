//! Follows an operation: a stream of events that ends after its final state, or when the caller may not see it any more.
//!
//! A stream buffers nothing: it is woken when something may have changed, and reads the operation again.

use std::time::Duration;

use podium_api::OperationId;
use podium_api::operations as api;
use podium_db::Change;
use podium_domain::deployment_logs::last_event;
use podium_domain::operations::is_final;
use podium_store::Scope;
use podium_store::operations::KIND;
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};
use tokio::time::Instant;

use super::{find, shown};
use crate::authority::Watch;
use crate::cx::{Call, Cx};
use crate::error::{Error, Result};
use crate::log_events::HEARTBEAT;
use crate::streams::OpenStream;

/// How many notices wait for a slow stream; one that has missed some reads again.
const NOTICES: usize = 256;
/// How often a stream reads at the most because another replica has changed something.
const REREAD: Duration = Duration::from_secs(1);

/// Notifies those who follow operations: of a target, or of anything where another replica has made changes.
#[derive(Clone)]
pub(crate) struct OperationNotifier(Sender<Option<String>>);

impl Default for OperationNotifier {
    fn default() -> Self {
        Self(broadcast::channel(NOTICES).0)
    }
}

impl OperationNotifier {
    /// Notifies of committed changes of this process.
    pub(crate) fn committed(&self, changes: &[Change]) {
        if self.0.receiver_count() == 0 {
            return;
        }
        for change in changes.iter().filter(|change| change.kind == KIND) {
            // Nobody may be listening any more.
            let _ = self.0.send(Some(change.id.clone()));
        }
    }

    /// Notifies that another replica may have changed something.
    pub(crate) fn others_changed(&self) {
        let _ = self.0.send(None);
    }
}

pub struct OperationEvents {
    cx: Cx<Scope>,
    id: OperationId,
    target_id: String,
    notices: Receiver<Option<String>>,
    watch: Watch,
    seen: Option<u64>,
    /// When it was read last.
    read_at: Instant,
    end: Option<Instant>,
    is_over: bool,
    _open: OpenStream,
}

/// Follows an operation, after the event that `Last-Event-ID` names.
pub async fn follow(cx: Cx<Scope>, call: Call<api::Follow>) -> Result<OperationEvents> {
    let id = call.path.operation_id;
    let seen = last_event(cx.request().last_event_id.as_deref())?;
    // Before the first read: whatever changes after it is noticed.
    let notices = cx.app().operation_notifier.0.subscribe();
    let row = cx.read(move |cx, conn| find(cx, conn, id)).await?;
    let open = cx.app().log_streams.open(&cx)?;
    let end = call.query.wait_seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let (watch, target_id) = (cx.watch(), row.target.id().to_string());
    let read_at = Instant::now();
    Ok(OperationEvents { cx, id, target_id, notices, watch, seen, read_at, end, is_over: false, _open: open })
}

impl OperationEvents {
    /// The next chunk to send, once there is one; `None` at the end.
    pub async fn next(&mut self) -> Option<Result<Vec<u8>>> {
        if self.is_over {
            return None;
        }
        let beat = Instant::now() + HEARTBEAT;
        loop {
            let operation = match self.read().await {
                Ok(Some(operation)) => operation,
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            };
            let (version, operation) = operation;
            self.is_over = is_final(operation.state);
            if self.seen.is_none_or(|seen| seen < version) {
                self.seen = Some(version);
                return Some(written(version, &operation));
            }
            if self.is_over || self.end.is_some_and(|end| end <= Instant::now()) {
                return None;
            }
            let until = self.end.map_or(beat, |end| end.min(beat));
            tokio::select! {
                () = Self::woken(&mut self.notices, &self.target_id, self.read_at) => {}
                () = self.watch.ended() => return None,
                () = tokio::time::sleep_until(until) => {
                    if until == beat {
                        return Some(Ok(b": nothing new\n\n".to_vec()));
                    }
                }
            }
        }
    }

    /// Resolves once the operation may have changed.
    async fn woken(notices: &mut Receiver<Option<String>>, target_id: &str, read_at: Instant) {
        loop {
            match notices.recv().await {
                Ok(Some(changed)) if changed != target_id => {}
                Ok(None) => return tokio::time::sleep_until(read_at + REREAD).await,
                Ok(Some(_)) | Err(RecvError::Lagged(_)) => return,
                // The application holds the sender.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }

    /// The operation as it is now, with its version; `None` if the caller may not see it any more.
    async fn read(&mut self) -> Result<Option<(u64, api::Operation)>> {
        self.read_at = Instant::now();
        let id = self.id;
        let read = self.cx.read_on(move |cx, conn| {
            let row = find(cx, conn, id)?;
            Ok((row.version.unsigned_abs(), shown(cx, &row)))
        });
        match read.await {
            Ok(found) => Ok(Some(found)),
            Err(Error::Refused(_) | Error::Unauthenticated(_)) => Ok(None),
            Err(error) if error.is_stale() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn written(version: u64, operation: &api::Operation) -> Result<Vec<u8>> {
    let data = serde_json::to_string(operation).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(format!("id: {version}\ndata: {data}\n\n").into_bytes())
}
