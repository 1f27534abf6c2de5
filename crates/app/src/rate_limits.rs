//! Rate limits for each subject.

use std::num::NonZeroU32;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use podium_api::{Method, SubjectId};

use crate::error::{Error, Result};

/// Calls a second for each subject; bursts of ten seconds' worth are fine.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub reads: NonZeroU32,
    /// Creates, updates and actions.
    pub writes: NonZeroU32,
    pub deletes: NonZeroU32,
}

impl Default for Rates {
    fn default() -> Self {
        let rate = |n| NonZeroU32::new(n).expect("a rate is not zero");
        Self { reads: rate(25), writes: rate(10), deletes: rate(5) }
    }
}

pub struct RateLimits(Option<[Limiter; 3]>);

struct Limiter {
    rate: NonZeroU32,
    limiter: DefaultKeyedRateLimiter<SubjectId>,
}

impl RateLimits {
    /// Limits at these rates; none where there are none.
    pub fn new(rates: Option<Rates>) -> Self {
        let limiter = |rate| {
            let limiter = RateLimiter::keyed(Quota::per_second(rate).allow_burst(burst(rate)));
            Limiter { rate, limiter }
        };
        Self(rates.map(|rates| [limiter(rates.reads), limiter(rates.writes), limiter(rates.deletes)]))
    }

    /// Counts a call; refuses it where there were too many.
    pub fn count(&self, subject_id: SubjectId, method: Method) -> Result<()> {
        self.count_some(subject_id, method, |_| NonZeroU32::MIN)
    }

    /// Counts what a call does beyond one call; refuses it where there were too many. Together they count as a burst at
    /// most: more could never be done.
    pub fn count_more(&self, subject_id: SubjectId, method: Method, more: usize) -> Result<()> {
        let Some(more) = NonZeroU32::new(u32::try_from(more).unwrap_or(u32::MAX)) else { return Ok(()) };
        self.count_some(subject_id, method, |burst| {
            NonZeroU32::new(burst.get() - 1).map_or(burst, |rest| more.min(rest))
        })
    }

    fn count_some(
        &self,
        subject_id: SubjectId,
        method: Method,
        calls: impl FnOnce(NonZeroU32) -> NonZeroU32,
    ) -> Result<()> {
        let Some(limiters) = &self.0 else { return Ok(()) };
        let Limiter { rate, limiter } = match method {
            Method::Get => &limiters[0],
            Method::Post => &limiters[1],
            Method::Delete => &limiters[2],
        };
        let counted = limiter.check_key_n(&subject_id, calls(burst(*rate)));
        counted.expect("at most a burst").map_err(|until| {
            let wait = until.wait_time_from(DefaultClock::default().now());
            Error::TooMany { retry_after: wait.as_secs() + 1 }
        })
    }

    /// Drops subjects that have not called for a while.
    pub fn tidy(&self) {
        for Limiter { limiter, .. } in self.0.iter().flatten() {
            limiter.retain_recent();
        }
    }
}

const TEN: NonZeroU32 = NonZeroU32::new(10).unwrap();

fn burst(rate: NonZeroU32) -> NonZeroU32 {
    rate.saturating_mul(TEN)
}

/// Bounds the audit records that a subject's refused calls leave.
pub(crate) struct Refusals(DefaultKeyedRateLimiter<SubjectId>);

impl Default for Refusals {
    fn default() -> Self {
        let burst = NonZeroU32::new(100).expect("100 is not zero");
        Self(RateLimiter::keyed(Quota::per_second(TEN).allow_burst(burst)))
    }
}

impl Refusals {
    /// Whether another record may be left.
    pub(crate) fn allow(&self, subject_id: SubjectId) -> bool {
        self.0.check_key(&subject_id).is_ok()
    }

    /// Drops subjects that have not been refused for a while.
    pub(crate) fn tidy(&self) {
        self.0.retain_recent();
    }
}

#[cfg(test)]
mod tests {
    use podium_api::{Id, TypedId};

    use super::*;

    fn id<I: TypedId>(number: u64) -> I {
        I::from_raw(Id::from_parts(0, 0, number))
    }

    #[test]
    fn a_subject_may_make_ten_seconds_worth_of_calls_of_each_kind_at_once() {
        let limits = RateLimits::new(Some(Rates::default()));
        for (method, burst) in [(Method::Get, 250), (Method::Post, 100), (Method::Delete, 50)] {
            let passed = (0..100_000).take_while(|_| limits.count(id(1), method).is_ok()).count();
            assert!((burst..2 * burst).contains(&passed), "{method:?}: {passed}");
            assert!(limits.count(id(2), method).is_ok(), "another subject is counted by itself");
        }
        let replica = RateLimits::new(Some(Rates::default()));
        assert!(replica.count(id(1), Method::Delete).is_ok(), "another replica counts by itself");
    }

    #[test]
    fn a_call_that_stands_for_several_counts_as_many() {
        let limits = RateLimits::new(Some(Rates::default()));
        assert!(limits.count_more(id(1), Method::Post, 90).is_ok());
        assert!(limits.count_more(id(1), Method::Post, 90).is_err());
        assert!(limits.count_more(id(2), Method::Delete, 0).is_ok());
        assert!(limits.count(id(2), Method::Delete).is_ok());
        assert!(limits.count_more(id(2), Method::Delete, 1000).is_ok(), "at most a burst in all");
        assert!(limits.count_more(id(2), Method::Delete, 40).is_err());
    }

    #[test]
    fn refused_calls_leave_so_many_records_and_no_more() {
        let refusals = Refusals::default();
        let recorded = (0..10_000).filter(|_| refusals.allow(id(1))).count();
        assert!((100..10_000).contains(&recorded), "{recorded}");
        assert!(refusals.allow(id(2)));
    }
}
