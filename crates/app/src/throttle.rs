//! Slows down those who guess passwords: by account and by address, known or not.

use std::time::Duration;

use podium_api::Timestamp;
use quick_cache::sync::Cache;

use crate::error::{Error, Result};

/// How many failures cost nothing: people mistype, and many may share an address.
const FREE_FAILURES: u32 = 5;
const FREE_FAILURES_OF_AN_ADDRESS: u32 = 50;
const LONGEST_WAIT: u64 = 15 * 60;
const FORGOTTEN_AFTER: Duration = Duration::from_hours(1);
const REMEMBERED: usize = 100_000;

/// Whose failures are counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    /// An account, known or not, by its folded name.
    Account(String),
    /// An address, or a network of them.
    Address(String),
}

/// Failures so far.
#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    free: u32,
    last: Timestamp,
}

impl Failures {
    fn wait_until(self) -> Timestamp {
        let doublings = self.count.saturating_sub(self.free);
        let seconds = if doublings == 0 {
            0
        } else {
            1u64.checked_shl(doublings).unwrap_or(u64::MAX).min(LONGEST_WAIT)
        };
        self.last + Duration::from_secs(seconds)
    }
}

/// Counts failures by key.
pub(crate) struct Throttle(Cache<Who, Failures>);

impl Default for Throttle {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Throttle {
    /// Refuses an attempt that comes too soon after failures under any of these keys.
    pub(crate) fn check(&self, keys: &[Who], now: Timestamp) -> Result<()> {
        let until = keys.iter().filter_map(|key| self.0.get(key)).map(Failures::wait_until).max();
        match until {
            Some(until) if until > now => {
                let wait = (until.millis() - now.millis()).unsigned_abs();
                Err(Error::TooMany { retry_after: wait.div_ceil(1000) })
            }
            _ => Ok(()),
        }
    }

    /// Notes a failure.
    pub(crate) fn failed(&self, keys: &[Who], now: Timestamp) {
        for key in keys {
            let recent = self.0.get(key).filter(|failures| failures.last + FORGOTTEN_AFTER > now);
            let count = recent.map_or(0, |failures| failures.count) + 1;
            let free = match key {
                Who::Account(_) => FREE_FAILURES,
                Who::Address(_) => FREE_FAILURES_OF_AN_ADDRESS,
            };
            self.0.insert(key.clone(), Failures { count, free, last: now });
        }
    }

    /// Forgets the failures of an account that has signed in.
    pub(crate) fn succeeded(&self, key: &Who) {
        self.0.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_after_some_failures_and_end_with_success() {
        let throttle = Throttle::default();
        let keys = [Who::Account("ada".into()), Who::Address("192.0.2.1".into())];
        let now = Timestamp::from_millis(1_800_000_000_000);
        for _ in 0..FREE_FAILURES {
            throttle.failed(&keys, now);
            assert!(throttle.check(&keys, now).is_ok());
        }
        let mut waits = Vec::new();
        for _ in 0..12 {
            throttle.failed(&keys, now);
            let Err(Error::TooMany { retry_after }) = throttle.check(&keys, now) else {
                panic!("not slowed down")
            };
            waits.push(retry_after);
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
        assert!(throttle.check(&keys[..1], now + Duration::from_secs(900)).is_ok());
        throttle.succeeded(&keys[0]);
        assert!(throttle.check(&keys, now).is_ok());
        for _ in 0..FREE_FAILURES_OF_AN_ADDRESS {
            throttle.failed(&keys[1..], now);
        }
        assert!(throttle.check(&keys[1..], now).is_err());
    }
}
