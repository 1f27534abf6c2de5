//! What happens on a connection, and whether it can be closed for another one.
//!
//! A request that nobody is known to have sent holds nothing while its body is awaited: whoever sends half of a sign-in and
//! waits has no more of a right to the connection than whoever sends half a head.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Connection;

/// A body that is awaited longer than this is the first to go: honest clients send all of it at once.
const SLOW: u64 = 1_000;

/// One body of a stranger that is awaited; requests that run are counted below.
const AWAITED: u64 = 1 << 32;
/// The connection is being closed.
const CLOSING: u64 = 1 << 63;

/// Requests that run, answers that are sent included, and how many of them await the body of a stranger: in one number, so
/// that a request either runs or is closed.
#[derive(Debug, Default)]
pub(super) struct Activity(AtomicU64);

/// The connection was closed for another one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shed;

/// The body of a stranger, which is awaited until this is dropped.
pub(crate) struct AwaitedBody(Option<Arc<Connection>>);

impl Activity {
    pub(super) fn begin(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether nothing is left that keeps the connection.
    pub(super) fn end(&self) -> bool {
        is_idle(self.0.fetch_sub(1, Ordering::SeqCst) - 1)
    }

    /// Whether there is no request at all.
    pub(super) fn is_unused(&self) -> bool {
        running(self.0.load(Ordering::SeqCst)) == 0
    }

    /// Whether nothing keeps the connection.
    pub(super) fn is_idle(&self) -> bool {
        is_idle(self.0.load(Ordering::SeqCst))
    }

    /// Closes it, if nothing keeps it.
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
    /// Whether nothing keeps it, and nothing is on its way.
    pub(super) fn is_idle(&self) -> bool {
        self.activity.is_idle() && !self.is_stalled.load(Ordering::Relaxed)
    }

    /// How long it has had no request, in milliseconds; nothing where it has one.
    pub(super) fn unused_for(&self, now: u64) -> Option<u64> {
        let is_unused = self.activity.is_unused() && !self.is_stalled.load(Ordering::Relaxed);
        is_unused.then(|| now.saturating_sub(self.idle_at.load(Ordering::Relaxed)))
    }

    /// Its place among those that go for others: bodies that do not come, then what has been idle the longest.
    pub(super) fn rank(&self, now: u64) -> (bool, u64) {
        let idle_for = now.saturating_sub(self.idle_at.load(Ordering::Relaxed));
        let is_slow = self.activity.awaits() && idle_for >= SLOW;
        (!is_slow, self.idle_since.load(Ordering::Relaxed))
    }

    /// Notes that it is idle from now on.
    pub(super) fn note_idle(&self) {
        self.idle_since.store(self.all.next.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        self.idle_at.store(self.all.now(), Ordering::Relaxed);
    }

    /// Begins to wait for the body of a stranger: meanwhile its request does not keep the connection.
    pub(crate) fn await_stranger(self: &Arc<Self>) -> AwaitedBody {
        self.note_idle();
        let before = self.activity.0.fetch_add(AWAITED, Ordering::SeqCst);
        if is_idle(before + AWAITED) {
            self.all.note_one_became_idle();
        }
        AwaitedBody(Some(Arc::clone(self)))
    }

    /// Resolves once it has to go for another one.
    pub(crate) async fn close_requested(&self) {
        loop {
            self.go.notified().await;
            // A request may have come in the meantime.
            if !self.is_stalled.load(Ordering::Relaxed) && self.activity.close() {
                self.all.counts.shed.fetch_add(1, Ordering::Relaxed);
                return;
            }
            self.all.became_idle.notify_one();
        }
    }
}

impl AwaitedBody {
    /// The body has come, or never will: from now on its request keeps the connection, unless that was closed before.
    pub(crate) fn has_come(mut self) -> Result<(), Shed> {
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

    /// So many connections to a server that has run for ten seconds and has room for no more.
    fn opened(count: u8) -> (Arc<Connections>, Vec<Admitted>) {
        let all = Connections::new(&Settings { connections: count.into(), ..Settings::default() });
        let started = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
        let all = Arc::new(Connections { started, ..all });
        let opened = (1..=count).map(|number| all.admit([192, 0, 2, number].into()).unwrap());
        let opened = opened.inspect(Admitted::open).collect();
        (all, opened)
    }

    #[test]
    fn a_body_of_a_stranger_that_does_not_come_goes_for_others() {
        let (connections, all) = opened(4);
        let running: Vec<_> = all[..3].iter().map(|one| one.0.begin()).collect();
        let awaited = [all[0].0.await_stranger(), all[1].0.await_stranger()];
        let told_to_go = || {
            assert!(connections.make_room().now_or_never().is_none(), "it goes on until there is room");
            all.iter().position(|one| one.0.close_requested().now_or_never().is_some())
        };
        assert_eq!(told_to_go(), Some(3), "one that has only just begun to send has some time");
        // The second has been awaited for longer than the first, and both for ten seconds.
        all[1].0.idle_since.store(0, Ordering::Relaxed);
        all.iter().for_each(|one| one.0.idle_at.store(0, Ordering::Relaxed));
        assert_eq!(told_to_go(), Some(1));
        let [first, second] = awaited.map(AwaitedBody::has_come);
        assert_eq!(first, Ok(()), "it runs from now on");
        assert_eq!(second, Err(Shed), "it comes too late to run");
        assert!(!all[0].0.is_idle() && !all[2].0.is_idle());
        drop(running);
        assert!(all[0].0.is_idle() && all[2].0.is_idle());
    }

    #[test]
    fn whoever_waits_for_room_hears_of_a_body_that_is_awaited() {
        let (connections, all) = opened(1);
        let _running = all[0].0.begin();
        let mut waiting = Box::pin(connections.make_room());
        assert!((&mut waiting).now_or_never().is_none());
        assert!(all[0].0.close_requested().now_or_never().is_none(), "a request runs");
        let _awaited = all[0].0.await_stranger();
        assert!((&mut waiting).now_or_never().is_none());
        assert!(all[0].0.close_requested().now_or_never().is_some());
    }

    #[test]
    fn how_long_a_connection_has_no_request_is_a_time() {
        let (connections, all) = opened(1);
        // As many requests as this have been answered.
        connections.next.store(1_000_000_000, Ordering::Relaxed);
        drop(all[0].0.begin());
        let now = connections.now();
        let became_idle = now - all[0].0.unused_for(now).unwrap();
        assert!((10_000..=now).contains(&became_idle), "{became_idle} ms after the start, and it is {now}");
        let later = now + 60_000;
        assert_eq!(all[0].0.unused_for(later), Some(later - became_idle));
        let _running = all[0].0.begin();
        let _awaited = all[0].0.await_stranger();
        assert_eq!(all[0].0.unused_for(later), None, "there is a request, even if it does not count");
    }
}
