//! Connections that stay open too long. On HTTP/2 a client can stall a response without blocking writes to the socket,
//! by never opening a window for it; and a connection without a request has no deadline of its own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{Connection, Running};

/// So many more requests may be taken back than are not.
const MOST_ABANDONED: u32 = 200;

/// One answer may wait so many times longer than all of a connection's together.
const LONGER_ALONE: u64 = 10;

/// Why a connection has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CloseReason {
    /// An answer is not read.
    RequestBody,
    /// It asks, and takes back what it asked, again and again.
    Abandoned,
    /// Nothing was asked for long enough.
    Idle,
}

/// An answer that may wait for its reader, until this is dropped.
pub(crate) struct ResponseWatch {
    connection: Arc<Connection>,
    id: u64,
    /// Since when it does, in milliseconds since the start and from one; none where it is not its reader's turn.
    since: Arc<AtomicU64>,
}

impl Connection {
    /// Watches an answer.
    pub(crate) fn watch(self: &Arc<Self>) -> ResponseWatch {
        let (id, since) = (self.all.next.fetch_add(1, Ordering::Relaxed), Arc::default());
        let mut stalled = self.stalled.lock().unwrap_or_else(PoisonError::into_inner);
        stalled.insert(id, Arc::clone(&since));
        ResponseWatch { connection: Arc::clone(self), id, since }
    }

    /// Resolves when the connection has to end: answers wait and none of them was read for `unread`, one was not for
    /// much longer although others were, or nothing was asked for `idle`.
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
            let idle_since = self.idle_since.load(Ordering::Relaxed);
            if self.is_idle() && now.saturating_sub(idle_since) >= millis(idle) {
                counts.idle.fetch_add(1, Ordering::Relaxed);
                return CloseReason::Idle;
            }
        }
    }

    /// Since when the answer waits that waits the longest.
    fn stalled_since(&self) -> Option<u64> {
        let stalled = self.stalled.lock().unwrap_or_else(PoisonError::into_inner);
        stalled.values().map(|since| since.load(Ordering::Relaxed)).filter(|since| *since > 0).min()
    }

    /// Notes whether a request was answered, or taken back before.
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
    /// It is its reader's turn.
    pub(crate) fn waits(&self) {
        self.connection.moved.store(self.connection.all.now(), Ordering::Relaxed);
        self.since.store(self.connection.all.now().max(1), Ordering::Relaxed);
    }

    /// It is not.
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

/// A request that was begun: taken back, unless all of its answer was handed over.
pub(crate) struct PendingRequest {
    running: Running,
    is_answered: bool,
}

impl PendingRequest {
    pub(crate) fn new(running: Running) -> Self {
        Self { running, is_answered: false }
    }

    /// All of its answer was handed over.
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
