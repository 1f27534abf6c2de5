//! When a deployment sleeps, drawn from its schedules.

use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{Span, ToSpan as _};
use podium_api::Timestamp;
use podium_api::deployments::DeploymentHibernationSchedule;

/// How many days are drawn, and how many changes are looked at for that.
const DAYS: i64 = 7;
const MOST_CHANGES: usize = 1000;
const DAY: i64 = 1440;

/// A day: its name, and when the deployment sleeps.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Day {
    pub(super) name: String,
    /// From which minute of the day, and for how many.
    pub(super) asleep: Vec<(i64, i64)>,
}

impl Day {
    /// When it sleeps, in words.
    pub(super) fn words(&self) -> String {
        let clock = |minute: i64| format!("{:02}:{:02}", minute / 60, minute % 60);
        let spans: Vec<String> = self
            .asleep
            .iter()
            .map(|(from, width)| format!("{}–{}", clock(*from), clock(from + width)))
            .collect();
        match self.asleep.as_slice() {
            [] => "awake".to_owned(),
            [(0, DAY)] => "all day".to_owned(),
            _ => spans.join(", "),
        }
    }
}

/// The next days, beginning with the one of a moment, in UTC.
pub(super) fn days(schedules: &[DeploymentHibernationSchedule], now: Timestamp) -> Vec<Day> {
    let crons: Vec<(Cron, bool)> = schedules
        .iter()
        .filter(|schedule| schedule.is_enabled)
        .flat_map(|schedule| [(&schedule.hibernate_at_cron, true), (&schedule.wake_at_cron, false)])
        .filter_map(|(text, sleeps)| Some((cron(text)?, sleeps)))
        .collect();
    let start = jiff::Timestamp::from_millisecond(now.millis()).ok();
    let start = start.map(|at| Offset::UTC.to_datetime(at).date().to_datetime(jiff::civil::Time::midnight()));
    let Some(start) = start.filter(|_| !crons.is_empty()) else { return Vec::new() };
    let asleep = spans(&crons, start);
    let day = |at: i64| {
        let (begin, end) = (at * DAY, (at + 1) * DAY);
        let inside = asleep.iter().map(|(from, to)| (begin.max(*from), end.min(*to)));
        let inside = inside.filter(|(from, to)| from < to).map(|(from, to)| (from - begin, to - from));
        let name = start.checked_add(at.days()).map(|day| day.strftime("%a %-d").to_string());
        Day { name: name.unwrap_or_default(), asleep: inside.collect() }
    };
    (0..DAYS).map(day).collect()
}

/// When it sleeps: minutes since the start. Of two changes at one moment the one that wakes it counts.
fn spans(crons: &[(Cron, bool)], start: DateTime) -> Vec<(i64, i64)> {
    let last = crons
        .iter()
        .filter_map(|(cron, sleeps)| Some((cron.find_previous_occurrence(&start, true).ok()?, !*sleeps)));
    let mut sleeps = last.max().is_some_and(|(_, wakes)| !wakes);
    let (mut asleep, mut since, mut at) = (Vec::new(), 0, start);
    for _ in 0..MOST_CHANGES {
        let next = crons
            .iter()
            .filter_map(|(cron, sleeps)| Some((cron.find_next_occurrence(&at, false).ok()?, *sleeps)))
            .min();
        let Some((moment, goes_to_sleep)) = next else { break };
        let minute = minutes(start, moment);
        if minute >= DAYS * DAY {
            break;
        }
        match (sleeps, goes_to_sleep) {
            (false, true) => since = minute,
            (true, false) => asleep.push((since, minute)),
            _ => {}
        }
        (sleeps, at) = (goes_to_sleep, moment);
    }
    if sleeps {
        asleep.push((since, DAYS * DAY));
    }
    asleep
}

fn minutes(from: DateTime, to: DateTime) -> i64 {
    from.until(to)
        .and_then(|span: Span| span.total((jiff::Unit::Minute, from)))
        .map_or(0, |total| total as i64)
}

fn cron(text: &str) -> Option<Cron> {
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    (text.split_whitespace().count() == 5).then(|| parser.parse(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(hibernate_at: &str, wake_at: &str) -> DeploymentHibernationSchedule {
        serde_json::from_value(serde_json::json!({
            "isEnabled": true, "hibernateAtCron": hibernate_at, "wakeAtCron": wake_at,
        }))
        .unwrap()
    }

    #[test]
    fn nights_and_weekends_are_drawn() {
        let friday = Timestamp::parse("2027-01-15T08:00:00Z").unwrap();
        let week = days(&[schedule("0 19 * * 1-5", "0 7 * * 1-5")], friday);
        let words: Vec<(String, String)> = week.iter().map(|day| (day.name.clone(), day.words())).collect();
        let expected = [
            ("Fri 15", "00:00–07:00, 19:00–24:00"),
            ("Sat 16", "all day"),
            ("Sun 17", "all day"),
            ("Mon 18", "00:00–07:00, 19:00–24:00"),
        ];
        for (found, (name, text)) in words.iter().zip(expected) {
            assert_eq!((found.0.as_str(), found.1.as_str()), (name, text));
        }
        assert_eq!(days(&[], friday), []);
        assert_eq!(days(&[schedule("nonsense", "also")], friday), []);
    }

    #[test]
    fn many_changes_are_not_followed_for_ever() {
        let now = Timestamp::parse("2027-01-15T08:00:00Z").unwrap();
        let week = days(&[schedule("*/2 * * * *", "1-59/2 * * * *")], now);
        assert_eq!(week.len(), 7);
    }
}
