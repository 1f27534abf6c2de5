//! Delays before retries: exponential backoff within bounds, with jitter.

use std::time::Duration;

use crate::reconciler::Backoff;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST_SHORT: Duration = Duration::from_secs(15);
const LONGEST_LONG: Duration = Duration::from_secs(5 * 60);

/// The delay after this many attempts: between half and all of the exponential backoff.
pub(crate) fn delay(backoff: Backoff, attempts: i64, random: u64) -> Duration {
    let longest = match backoff {
        Backoff::Short => LONGEST_SHORT,
        Backoff::Long => LONGEST_LONG,
    };
    let doublings = u32::try_from(attempts.clamp(1, 20) - 1).unwrap_or_default();
    let whole = FIRST.saturating_mul(1 << doublings).min(longest);
    let half = whole / 2;
    let jitter = random % u64::try_from(half.as_millis() + 1).unwrap_or(1);
    half + Duration::from_millis(jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shortest and the longest pause, in milliseconds.
    fn bounds(backoff: Backoff, attempts: i64) -> (u128, u128) {
        let shortest = delay(backoff, attempts, 0);
        let longest = delay(backoff, attempts, u64::try_from(shortest.as_millis()).unwrap());
        assert!((0..5000).all(|random| (shortest..=longest).contains(&delay(
            backoff,
            attempts,
            random * 7919
        ))));
        (shortest.as_millis(), longest.as_millis())
    }

    #[test]
    fn pauses_double_within_bounds() {
        for (attempts, expected) in [
            (0, 1000),
            (1, 1000),
            (2, 2000),
            (3, 4000),
            (4, 8000),
            (5, 15_000),
            (6, 15_000),
            (i64::MAX, 15_000),
        ] {
            assert_eq!(bounds(Backoff::Short, attempts), (expected / 2, expected), "{attempts}");
        }
        for (attempts, expected) in [(1, 1000), (5, 16_000), (9, 256_000), (10, 300_000), (i64::MAX, 300_000)]
        {
            assert_eq!(bounds(Backoff::Long, attempts), (expected / 2, expected), "{attempts}");
        }
    }
}
