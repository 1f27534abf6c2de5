//! Schedules in words. Airflow describes a schedule that is a cron expression, and prints one that is a time span the way
//! Python does: `0:01:00`, or `2 days, 0:00:00`. Airflow 2 says the same as an object with days and seconds.

use serde_json::Value;

/// The schedule of a DAG as people say it: Airflow's description or else its summary, and a time span as "every minute".
pub fn in_words(
    description: Option<&str>,
    summary: Option<&str>,
    interval: Option<&Value>,
) -> Option<String> {
    let said = [description, summary].into_iter().flatten().map(str::trim).find(|text| !text.is_empty());
    let Some(text) = said else {
        let interval = interval.filter(|interval| interval["__type"] == "TimeDelta")?;
        let part = |name: &str| interval[name].as_u64();
        let seconds = part("days")?.checked_mul(86_400)?.checked_add(part("seconds")?)?;
        return (seconds > 0).then(|| every(seconds));
    };
    Some(match span(text) {
        Some(seconds) if seconds > 0 => every(seconds),
        _ => text.to_owned(),
    })
}

/// The seconds of a time span, if a text is one.
fn span(text: &str) -> Option<u64> {
    let (days, clock) = match text.split_once(", ") {
        Some((days, clock)) => (days.strip_suffix(" days").or_else(|| days.strip_suffix(" day"))?, clock),
        None => ("0", text),
    };
    let clock = clock.split_once('.').map_or(clock, |(whole, _)| whole);
    let mut parts = clock.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let is_clock = parts.next().is_none() && hours.len() <= 2 && minutes.len() == 2 && seconds.len() == 2;
    let number = |text: &str| text.parse::<u64>().ok();
    let seconds = number(hours)? * 3_600 + number(minutes)? * 60 + number(seconds)?;
    number(days)?.checked_mul(86_400)?.checked_add(seconds).filter(|_| is_clock)
}

fn every(seconds: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")];
    let mut left = seconds;
    let mut parts = Vec::new();
    for (size, unit) in UNITS {
        match left / size {
            0 => {}
            1 if left == seconds && left.is_multiple_of(size) => parts.push(unit.to_owned()),
            count => parts.push(crate::counted(count, unit)),
        }
        left %= size;
    }
    format!("every {}", parts.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn time_spans_are_said_in_words_and_the_rest_stays() {
        for (said, expected) in [
            ("0:01:00", "every minute"),
            ("0:05:00", "every 5 minutes"),
            ("1:00:00", "every hour"),
            ("1:30:00", "every 1 hour 30 minutes"),
            ("0:00:30", "every 30 seconds"),
            ("1 day, 0:00:00", "every day"),
            ("7 days, 0:00:00", "every 7 days"),
            ("1 day, 12:00:00", "every 1 day 12 hours"),
            ("0:00:00.500000", "0:00:00.500000"),
            ("-1 day, 23:00:00", "-1 day, 23:00:00"),
            ("At 00:00", "At 00:00"),
            ("At 02:00, only on Monday", "At 02:00, only on Monday"),
            ("@daily", "@daily"),
            ("99999999999999999999 days, 0:00:00", "99999999999999999999 days, 0:00:00"),
        ] {
            assert_eq!(in_words(Some(said), None, None).as_deref(), Some(expected), "{said}");
        }
        assert_eq!(in_words(Some(""), Some("0:01:00"), None).as_deref(), Some("every minute"));
        assert_eq!(in_words(Some("At 00:00"), Some("@daily"), None).as_deref(), Some("At 00:00"));
        assert_eq!(in_words(None, Some(" "), None), None);
        let old = json!({ "__type": "TimeDelta", "days": 0, "seconds": 60, "microseconds": 0 });
        assert_eq!(in_words(Some(""), None, Some(&old)).as_deref(), Some("every minute"));
        let cron = json!({ "__type": "CronExpression", "value": "@daily" });
        assert_eq!(in_words(None, None, Some(&cron)), None);
    }
}
