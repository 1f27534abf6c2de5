//! Which connections are idle, and may be closed to make room for others.
//!
//! A request whose caller is not authenticated does not count while its body is awaited: a client that sends half a sign-in
//! is treated like one that sends half a head.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Connection;

/// Milliseconds after which an awaited body is closed before idle connections: honest clients send head and body together.
const SLOW: u64 = 1_000;

/// One awaited body of an unauthenticated client; the bits below count running requests.
const AWAITED: u64 = 1 << 32;
/// The connection is being closed.
const CLOSING: u64 = 1 << 63;

/// How many requests run, responses being sent included, and how many of them await the body of an unauthenticated client.
/// It is one number, so that a body that arrives while its connection is closed is never processed.
#[derive(Debug, Default)]
pub(super) struct Activity(AtomicU64);

/// The connection was closed to make room.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shed;

/// A body of an unauthenticated client that is awaited until this is dropped.
pub(crate) struct AwaitedBody(Option<Arc<Connection>>);

impl Activity {
    pub(super) fn begin(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends a request; returns whether the connection is idle now.
    pub(super) fn end(&self) -> bool {
        is_idle(self.0.fetch_sub(1, Ordering::SeqCst) - 1)
    }

    /// Whether there is no request at all.
    pub(super) fn is_unused(&self) -> bool {
        running(self.0.load(Ordering::SeqCst)) == 0
    }

    /// Whether no request runs, except for those that await the body of an unauthenticated client.
    pub(super) fn is_idle(&self) -> bool {
        is_idle(self.0.load(Ordering::SeqCst))
    }

    /// Marks the connection as closing if it is idle.
    fn close(&self) -> bool {
        let close = |state: u64| is_idle(state).then_some(state | CLOSING);
        self.0.try_update(Ordering::SeqCst, Ordering::SeqCst, close).is_ok()
    }

    fn awaits(&self) -> bool {
        awaited(self.0.load(Ordering::SeqCst)) > 0
    }
}

fn running(state: u64) -> u64 {
    state & (AWAITED - 1)
}

fn awaited(state: u64) -> u64 {
    (state & !CLOSING) / AWAITED
}

fn is_idle(state: u64) -> bool {
    running(state) == awaited(state)
}

impl Connection {
    /// Whether it may be closed: no request runs and no response is being written.
    pub(super) fn is_idle(&self) -> bool {
        self.activity.is_idle() && !self.is_stalled.load(Ordering::Relaxed)
    }

    /// How long it has had no request, in milliseconds; `None` if it has one.
    pub(super) fn unused_for(&self, now: u64) -> Option<u64> {
        let is_unused = self.activity.is_unused() && !self.is_stalled.load(Ordering::Relaxed);
        is_unused.then(|| now.saturating_sub(self.idle_at.load(Ordering::Relaxed)))
    }

    /// The order in which connections are closed to make room: overdue bodies first, then the longest idle ones.
    pub(super) fn rank(&self, now: u64) -> (bool, u64) {
        let idle_for = now.saturating_sub(self.idle_at.load(Ordering::Relaxed));
        let is_slow = self.activity.awaits() && idle_for >= SLOW;
        (!is_slow, self.idle_since.load(Ordering::Relaxed))
    }

    /// Records that it becomes idle now.
    pub(super) fn note_idle(&self) {
        self.idle_since.store(self.all.next.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        self.idle_at.store(self.all.now(), Ordering::Relaxed);
    }

    /// Starts to await the body of an unauthenticated client: until it has arrived, its request does not count as running.
    pub(crate) fn await_public_body(self: &Arc<Self>) -> AwaitedBody {
        self.note_idle();
        let before = self.activity.0.fetch_add(AWAITED, Ordering::SeqCst);
        if is_idle(before + AWAITED) {
            self.all.note_one_became_idle();
        }
        AwaitedBody(Some(Arc::clone(self)))
    }

    /// Resolves once it has to be closed to make room.
    pub(crate) async fn close_requested(&self) {
        loop {
            self.go.notified().await;
            // A request may have arrived meanwhile.
            if !self.is_stalled.load(Ordering::Relaxed) && self.activity.close() {
                self.all.counts.shed.fetch_add(1, Ordering::Relaxed);
                return;
            }
            self.all.became_idle.notify_one();
        }
    }
}

impl AwaitedBody {
    /// The wait is over: the request counts as running again, unless the connection was closed meanwhile.
    pub(crate) fn end(mut self) -> Result<(), Shed> {
        match self.0.take().map(|connection| connection.activity.0.fetch_sub(AWAITED, Ordering::SeqCst)) {
            Some(before) if before & CLOSING != 0 => Err(Shed),
            _ => Ok(()),
        }
    }
}

impl Drop for AwaitedBody {
    fn drop(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.activity.0.fetch_sub(AWAITED, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use futures_util::FutureExt as _;

    use super::super::{Admitted, Connections};
    use super::*;
    use crate::settings::Settings;

    /// As many connections as a server has room for; it started ten seconds ago.
    fn opened(count: u8) -> (Arc<Connections>, Vec<Admitted>) {
        let all = Connections::new(&Settings { connections: count.into(), ..Settings::default() });
        let started = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let all = Arc::new(Connections { started, ..all });
        let opened = (1..=count).map(|number| all.admit([192, 0, 2, number].into()).unwrap());
        let opened = opened.inspect(Admitted::open).collect();
        (all, opened)
    }

    #[test]
    fn an_overdue_public_body_is_closed_first() {
        let (connections, all) = opened(4);
        let running: Vec<_> = all[..3].iter().map(|one| one.0.begin()).collect();
        let awaited = [all[0].0.await_public_body(), all[1].0.await_public_body()];
        let closed = || {
            assert!(connections.make_room().now_or_never().is_none(), "it goes on until there is room");
            all.iter().position(|one| one.0.close_requested().now_or_never().is_some())
        };
        assert_eq!(closed(), Some(3), "a body that was requested just now has some time");
        // The second has been awaited for longer than the first, both for ten seconds.
        all[1].0.idle_since.store(0, Ordering::Relaxed);
        all.iter().for_each(|one| one.0.idle_at.store(0, Ordering::Relaxed));
        assert_eq!(closed(), Some(1));
        let [first, second] = awaited.map(AwaitedBody::end);
        assert_eq!(first, Ok(()), "it runs now");
        assert_eq!(second, Err(Shed), "it arrived too late and must not run");
        assert!(!all[0].0.is_idle() && !all[2].0.is_idle());
        drop(running);
        assert!(all[0].0.is_idle() && all[2].0.is_idle());
    }

    #[test]
    fn awaiting_a_public_body_makes_a_connection_idle() {
        let (connections, all) = opened(1);
        let _running = all[0].0.begin();
        let mut waiting = Box::pin(connections.make_room());
        assert!((&mut waiting).now_or_never().is_none());
        assert!(all[0].0.close_requested().now_or_never().is_none(), "a request runs");
        let _awaited = all[0].0.await_public_body();
        assert!((&mut waiting).now_or_never().is_none());
        assert!(all[0].0.close_requested().now_or_never().is_some());
    }

    #[test]
    fn idle_time_does_not_depend_on_the_number_of_requests() {
        let (connections, all) = opened(1);
        // Many requests were served before.
        connections.next.store(1_000_000_000, Ordering::Relaxed);
        drop(all[0].0.begin());
        let now = connections.now();
        let became_idle = now - all[0].0.unused_for(now).unwrap();
        assert!((10_000..=now).contains(&became_idle), "{became_idle} ms after the start, and it is {now}");
        let later = now + 60_000;
        assert_eq!(all[0].0.unused_for(later), Some(later - became_idle));
        let _running = all[0].0.begin();
        let _awaited = all[0].0.await_public_body();
        assert_eq!(
            all[0].0.unused_for(later),
            None,
            "there is a request, even if it does not count as running"
        );
    }
}
