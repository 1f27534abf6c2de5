//! Connections that stay open too long. On HTTP/2 a client can stall a response without blocking writes to the socket,
//! by never opening a window for it; and a connection without a request has no deadline of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{Connection, Running};

/// How many more requests may be cancelled than completed.
const MOST_ABANDONED: u32 = 200;

/// A single response may stall this many times longer than a whole connection.
const LONGER_ALONE: u64 = 10;

/// Why a connection has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// A response is not read.
    RequestBody,
    /// It keeps sending requests and cancelling them.
    Abandoned,
    /// There was no request for too long.
    Idle,
}

/// A response that may stall, until this is dropped.
pub(crate) struct ResponseWatch {
    connection: Arc<Connection>,
    id: u64,
    /// Since when it has stalled, in milliseconds since the start plus one; zero if it is not waiting for the reader.
    since: Arc<AtomicU64>,
}

impl Connection {
    pub(crate) fn watch(self: &Arc<Self>) -> ResponseWatch {
        let (id, since) = (self.all.next.fetch_add(1, Ordering::Relaxed), Arc::default());
        let mut stalled = self.stalled.lock().unwrap_or_else(PoisonError::into_inner);
        stalled.insert(id, Arc::clone(&since));
        ResponseWatch { connection: Arc::clone(self), id, since }
    }

    /// Resolves when the connection has to close: responses wait and none of them was read for `unread`, one was not
    /// for much longer although others were, or there was no request for `idle`.
    pub(crate) async fn close_reason(&self, unread: Duration, idle: Duration) -> CloseReason {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let look = (unread.min(idle) / 4).max(Duration::from_millis(5));
        let counts = &self.all.counts;
        loop {
            tokio::select! {
                () = tokio::time::sleep(look) => {}
                () = self.gives_up.notified() => {
                    counts.unread.fetch_add(1, Ordering::Relaxed);
                    return CloseReason::Abandoned;
                }
            }
            let now = self.all.now();
            let moved = now.saturating_sub(self.moved.load(Ordering::Relaxed));
            let is_unread = |since: u64| {
                let waits = now.saturating_sub(since);
                waits.min(moved) >= millis(unread) || waits >= millis(unread).saturating_mul(LONGER_ALONE)
            };
            if self.stalled_since().is_some_and(is_unread) {
                counts.unread.fetch_add(1, Ordering::Relaxed);
                return CloseReason::RequestBody;
            }
            if self.unused_for(now).is_some_and(|unused| unused >= millis(idle)) {
                counts.idle.fetch_add(1, Ordering::Relaxed);
                return CloseReason::Idle;
            }
        }
    }

    /// Since when the longest-waiting response has stalled.
    fn stalled_since(&self) -> Option<u64> {
        let stalled = self.stalled.lock().unwrap_or_else(PoisonError::into_inner);
        stalled.values().map(|since| since.load(Ordering::Relaxed)).filter(|since| *since > 0).min()
    }

    /// Records whether a request completed, or was cancelled.
    fn ended(&self, is_answered: bool) {
        let change =
            |count: u32| if is_answered { count.checked_sub(1) } else { Some(count.saturating_add(1)) };
        let before = self.abandoned.try_update(Ordering::Relaxed, Ordering::Relaxed, change);
        if !is_answered && before.is_ok_and(|count| count >= MOST_ABANDONED) {
            self.gives_up.notify_one();
        }
    }
}

impl ResponseWatch {
    /// It waits for the reader.
    pub(crate) fn waits(&self) {
        self.connection.moved.store(self.connection.all.now(), Ordering::Relaxed);
        self.since.store(self.connection.all.now().max(1), Ordering::Relaxed);
    }

    /// It no longer waits.
    pub(crate) fn moves(&self) {
        self.since.store(0, Ordering::Relaxed);
    }
}

impl Drop for ResponseWatch {
    fn drop(&mut self) {
        self.connection.moved.store(self.connection.all.now(), Ordering::Relaxed);
        self.connection.stalled.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// A request in progress: cancelled, unless its whole response was handed over.
pub(crate) struct PendingRequest {
    running: Running,
    is_answered: bool,
}

impl PendingRequest {
    pub(crate) fn new(running: Running) -> Self {
        Self { running, is_answered: false }
    }

    /// Its whole response was handed over.
    pub(crate) fn answered(&mut self) {
        if !self.is_answered {
            self.is_answered = true;
            self.running.0.ended(true);
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if !self.is_answered {
            self.running.0.ended(false);
        }
    }
}
