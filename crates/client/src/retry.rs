//! When a request is sent again: only if that cannot take effect twice, a few times, and not at once.

use std::time::Duration;

use podium_api::enums::ErrorCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use crate::{Attempt, Error};

/// How often, and after how long, requests are sent again.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// How often a request is sent at most.
    pub tries: u32,
    /// The delay before the second time; it doubles from then on.
    pub first_delay: Duration,
    /// The longest delay; a server that asks for more is not waited for.
    pub longest_delay: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { tries: 4, first_delay: Duration::from_millis(250), longest_delay: Duration::from_secs(30) }
    }
}

/// What follows from a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Again(Duration),
    GiveUp,
}

impl Retry {
    /// Decides whether to send a request again that has been sent so many times.
    pub(crate) fn verdict(&self, failed: &Attempt, is_repeatable: bool, tries: u32) -> Verdict {
        if tries >= self.tries || !is_worth_it(failed, is_repeatable) {
            return Verdict::GiveUp;
        }
        let delay = match failed.retry_after {
            Some(wanted) if wanted > self.longest_delay => return Verdict::GiveUp,
            Some(wanted) => wanted.max(self.first_delay),
            None => self.first_delay.saturating_mul(1 << (tries - 1).min(16)).min(self.longest_delay),
        };
        // Up to half as much again, so that clients that failed together do not come back together.
        let half = u64::try_from(delay.as_millis() / 2).unwrap_or(0);
        Verdict::Again(delay + Duration::from_millis(if half == 0 { 0 } else { random_number() % half }))
    }
}

/// Whether the failure may pass, and the request cannot take effect twice.
fn is_worth_it(failed: &Attempt, is_repeatable: bool) -> bool {
    match &failed.error {
        Error::Unreachable { .. } => is_repeatable || !failed.was_sent,
        Error::Refused(body) => match body.code() {
            // It was turned away at the door.
            ErrorCode::TooManyRequests => true,
            ErrorCode::Unavailable | ErrorCode::InProgress => is_repeatable,
            // An older server says no more than that the first one with the same key is still running.
            ErrorCode::Conflict => is_repeatable && failed.retry_after.is_some(),
            _ => false,
        },
        _ => false,
    }
}

/// The delay that a response asks for.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// A new `Idempotency-Key`.
pub(crate) fn new_key() -> String {
    podium_api::hex(&random_bytes::<16>())
}

fn random_number() -> u64 {
    u64::from_le_bytes(random_bytes())
}

/// Random bytes. A client has no App to take them from.
#[expect(clippy::disallowed_methods, reason = "keys and delays of a client are part of no snapshot")]
fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    bytes
}

#[cfg(test)]
mod tests {
    use podium_api::ErrorBody;

    use super::*;

    fn refused(status_code: u16, retry_after: Option<u64>) -> Attempt {
        let body = ErrorBody {
            message: String::new(),
            request_id: String::new(),
            status_code,
            code: None,
            field_errors: None,
        };
        Attempt {
            error: Error::Refused(body),
            was_sent: true,
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    fn unreachable(was_sent: bool) -> Attempt {
        let error = Error::Unreachable { url: String::new(), reason: String::new() };
        Attempt { error, was_sent, retry_after: None }
    }

    #[test]
    fn only_what_cannot_take_effect_twice_is_sent_again() {
        let table = [
            (unreachable(true), true, false),
            (unreachable(false), true, true),
            (refused(503, None), true, false),
            (refused(502, Some(1)), true, false),
            (refused(429, Some(1)), true, true),
            (refused(409, Some(1)), true, false),
            (refused(409, None), false, false),
            (refused(400, None), false, false),
            (refused(404, None), false, false),
            (refused(412, Some(1)), false, false),
            (refused(500, None), false, false),
        ];
        let retry = Retry::default();
        let is_again =
            |attempt: &Attempt, repeatable| retry.verdict(attempt, repeatable, 1) != Verdict::GiveUp;
        for (attempt, repeatable, once) in table {
            assert_eq!(
                (is_again(&attempt, true), is_again(&attempt, false)),
                (repeatable, once),
                "{attempt:?}"
            );
        }
    }

    #[test]
    fn delays_grow_and_end() {
        let retry = Retry::default();
        let bounds = |attempt: &Attempt, tries: u32, least: u64, most: u64| {
            let Verdict::Again(delay) = retry.verdict(attempt, true, tries) else { panic!("{attempt:?}") };
            let millis = u64::try_from(delay.as_millis()).unwrap();
            assert!((least..most).contains(&millis), "{millis}");
        };
        bounds(&refused(503, None), 1, 250, 375);
        bounds(&refused(503, None), 3, 1_000, 1_500);
        bounds(&refused(503, Some(7)), 1, 7_000, 10_500);
        assert_eq!(retry.verdict(&refused(503, None), true, 4), Verdict::GiveUp);
        assert_eq!(
            retry.verdict(&refused(503, Some(31)), true, 1),
            Verdict::GiveUp,
            "longer than anyone waits"
        );
    }
}
