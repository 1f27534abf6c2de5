//! When the server is asked for everything again.

use std::time::Duration;

use tokio::time::Instant;

/// How long events are gathered, and how long the server is not asked without one.
const SETTLING: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);
/// The least time between two questions: each may read many pages, and counts against the person's rate limit.
const LEAST: Duration = Duration::from_secs(5);

pub(super) struct Pace {
    due: Instant,
    last: Option<Instant>,
}

impl Pace {
    /// Nothing has been asked yet.
    pub(super) fn new(now: Instant) -> Self {
        Self { due: now + LONGEST, last: None }
    }

    /// When to ask again.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Something changed, and more may follow.
    pub(super) fn event(&mut self, now: Instant) {
        self.ask_by(now + SETTLING);
    }

    /// Changes are heard of from now on.
    pub(super) fn following(&mut self, now: Instant) {
        self.ask_by(now);
    }

    /// Whether it is time; then the next time is later.
    pub(super) fn begins(&mut self, now: Instant) -> bool {
        let is_due = now >= self.due;
        if is_due {
            (self.due, self.last) = (now + LONGEST, Some(now));
        }
        is_due
    }

    fn ask_by(&mut self, wanted: Instant) {
        let earliest = self.last.map_or(wanted, |last| last + LEAST);
        self.due = self.due.min(wanted.max(earliest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_stream_asks_at_once_and_the_next_questions_keep_apart() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        assert!(!pace.begins(start));
        pace.following(start);
        assert!(pace.begins(start), "what changed before the stream is in no event");
        assert!(!pace.begins(start), "once");
        for millis in (100..5_000).step_by(100) {
            let now = start + Duration::from_millis(millis);
            pace.event(now);
            pace.following(now);
            assert!(!pace.begins(now), "{millis}");
        }
        assert_eq!(pace.due(), start + LEAST);
        assert!(pace.begins(start + LEAST));
    }

    #[test]
    fn events_are_gathered_and_silence_is_not_trusted() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        pace.event(start);
        pace.event(start + SETTLING / 2);
        assert_eq!(pace.due(), start + SETTLING, "a stream of events does not put it off");
        assert!(pace.begins(start + SETTLING));
        assert_eq!(pace.due(), start + SETTLING + LONGEST);
    }
}
