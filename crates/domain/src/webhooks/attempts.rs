//! Attempts to send an event: what an answer means, and when to try again.

use std::time::Duration;

use podium_api::Timestamp;

use crate::reason::UserText;

/// How long to wait after each failed attempt: together about three days. A tenth of each is added at random at most.
pub const RETRIES: [Duration; 9] = [
    Duration::from_secs(5),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_hours(2),
    Duration::from_hours(5),
    Duration::from_hours(10),
    Duration::from_hours(14),
    Duration::from_hours(20),
    Duration::from_hours(20),
];
/// The longest delay that a receiver can ask for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_hours(24);
/// How long no attempt may succeed before the webhook is switched off.
pub const FAILING_FOR: Duration = Duration::from_hours(24);
/// How long the secret before the current one signs too.
pub const SECRET_OVERLAP: Duration = Duration::from_hours(24);
/// How much of an answer is kept, in bytes.
const KEPT_RESPONSE: usize = 1024;

/// Why a webhook was switched off: its receiver said so.
pub const GONE: UserText = UserText::new("Its receiver answered 410 Gone.");
/// Why a webhook was switched off: nothing arrived.
pub const NO_SUCCESS: UserText = UserText::new("No attempt to send an event has succeeded for a day.");
/// Why an event is not sent any more.
pub const TOO_LATE: &str = "The event is no longer kept.";

/// What an answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Received,
    /// The attempt failed, and another one may succeed.
    Failed,
    /// The receiver wants no more events.
    Gone,
}

pub const fn outcome(status: u16) -> Outcome {
    match status {
        200..=299 => Outcome::Received,
        410 => Outcome::Gone,
        _ => Outcome::Failed,
    }
}

/// When to try again after so many failed attempts; `None` if it was the last one. A receiver may ask for a longer
/// delay, within bounds.
pub fn retry_at(
    now: Timestamp,
    failures: u32,
    retry_after: Option<Duration>,
    random: u64,
) -> Option<Timestamp> {
    let index = usize::try_from(failures.checked_sub(1)?).ok()?;
    let delay = *RETRIES.get(index)?;
    let jitter = u64::try_from(delay.as_millis() / 10).unwrap_or_default();
    let delay = delay + Duration::from_millis(random % (jitter + 1));
    Some(now + delay.max(retry_after.unwrap_or_default().min(LONGEST_RETRY_AFTER)))
}

/// How long a receiver asks to wait, by its header `Retry-After`: seconds, or a date.
pub fn retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp().as_millisecond();
    u64::try_from(date.saturating_sub(now.millis())).ok().map(Duration::from_millis)
}

/// The beginning of an answer, as it is kept and shown: one line, without control characters.
pub fn shown_response(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(KEPT_RESPONSE)]);
    let one_line: String = text.chars().map(|c| if is_shown(c) { c } else { ' ' }).collect();
    one_line.trim().to_owned()
}

fn is_shown(c: char) -> bool {
    !c.is_control() && podium_api::text::hidden(c.encode_utf8(&mut [0; 4])).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_repeated_for_about_three_days() {
        let now = Timestamp::from_millis(0);
        let after = |failures, random| retry_at(now, failures, None, random).map(Timestamp::millis);
        assert_eq!(after(1, 0), Some(5000));
        assert_eq!(after(1, 500), Some(5500));
        assert_eq!(after(1, 501), Some(5000));
        assert_eq!(after(2, 0), Some(300_000));
        assert_eq!(after(10, 0), None);
        assert_eq!(after(0, 0), None);
        let hours = RETRIES.iter().sum::<Duration>().as_secs() / 3600;
        assert!((70..=72).contains(&hours), "{hours}");
    }

    #[test]
    fn a_receiver_can_ask_for_more_time_within_bounds() {
        let now = Timestamp::from_millis(0);
        let after = |seconds| retry_at(now, 1, Some(Duration::from_secs(seconds)), 0).map(Timestamp::millis);
        assert_eq!(after(1), Some(5000));
        assert_eq!(after(60), Some(60_000));
        assert_eq!(after(u64::MAX), Some(86_400_000));
    }

    #[test]
    fn a_delay_is_a_number_of_seconds_or_a_date() {
        let now = Timestamp::from_millis(1_445_412_420_000);
        let table = [
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("Wed, 21 Oct 2015 07:28:00 GMT", Some(60)),
            ("Wed, 21 Oct 2015 07:26:00 GMT", None),
            ("-1", None),
            ("soon", None),
            ("", None),
        ];
        for (text, seconds) in table {
            assert_eq!(retry_after(text, now), seconds.map(Duration::from_secs), "{text}");
        }
    }

    #[test]
    fn only_2xx_is_success_and_410_is_the_end() {
        let table = [(200, Outcome::Received), (204, Outcome::Received), (299, Outcome::Received)];
        let failed =
            [100, 199, 300, 301, 307, 400, 404, 429, 500, 503].map(|status| (status, Outcome::Failed));
        for (status, expected) in table.into_iter().chain(failed).chain([(410, Outcome::Gone)]) {
            assert_eq!(outcome(status), expected, "{status}");
        }
    }

    #[test]
    fn an_answer_is_kept_as_one_short_line() {
        assert_eq!(shown_response(b" ok\r\n\x1b[31mred\0"), "ok   [31mred");
        assert_eq!(shown_response("\u{202e}evil\u{200b}".as_bytes()), "evil");
        assert_eq!(shown_response(&[b'a'; 5000]).len(), 1024);
        assert!(shown_response(&[0xff; 2000]).chars().count() <= 1024);
    }
}
