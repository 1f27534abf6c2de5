//! Cron expressions with five fields, in UTC.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::Offset;
use podium_api::Timestamp;

pub(super) const WELL_FORMED: &str = "must be a five-field cron expression in UTC that matches some date";

/// Parses an expression; `None` if it is not one.
pub(super) fn cron(text: &str) -> Option<Cron> {
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    (text.split_whitespace().count() == 5).then(|| parser.parse(text).ok()).flatten()
}

/// The first time after a moment; `None` if there is none.
pub(super) fn next_after(cron: &Cron, moment: Timestamp) -> Option<Timestamp> {
    timestamp(cron.find_next_occurrence(&civil(moment)?, false).ok()?)
}

/// A moment as a date and time in UTC.
pub(super) fn civil(moment: Timestamp) -> Option<DateTime> {
    Some(Offset::UTC.to_datetime(jiff::Timestamp::from_millisecond(moment.millis()).ok()?))
}

/// A date and time in UTC as a moment.
pub(super) fn timestamp(civil: DateTime) -> Option<Timestamp> {
    Some(Timestamp::from_millis(Offset::UTC.to_timestamp(civil).ok()?.as_millisecond()))
}
