//! What may be done only now and then.

use podium_api::Timestamp;

/// How often something may be done: it is saved up while it is not done, one for each `MILLIS`, and `MOST` at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowance<const MOST: i64, const MILLIS: i64> {
    /// How often it may be done now.
    pub left: i64,
    /// Since when it has been saved up.
    pub since: Timestamp,
}

impl<const MOST: i64, const MILLIS: i64> Allowance<MOST, MILLIS> {
    /// The most that is saved up.
    pub const MOST: i64 = MOST;

    /// That of somebody who has done nothing yet.
    pub const fn full(now: Timestamp) -> Self {
        Self { left: MOST, since: now }
    }

    #[must_use]
    pub fn at(self, now: Timestamp) -> Self {
        let earned = (now.millis().saturating_sub(self.since.millis()) / MILLIS).max(0);
        if self.left.saturating_add(earned) >= MOST {
            return Self::full(now);
        }
        // The time that is left over is saved up further.
        let since = self.since.millis() + earned * MILLIS;
        Self { left: self.left + earned, since: Timestamp::from_millis(since.min(now.millis())) }
    }

    /// The same after it was done so often.
    #[must_use]
    pub const fn less(self, count: i64) -> Self {
        Self { left: self.left - count, ..self }
    }
}
