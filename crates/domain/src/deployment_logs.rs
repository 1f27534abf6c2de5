//! Logs of a deployment: the time window of a search, and the components that can be searched.

use std::ops::Range;
use std::time::Duration;

use podium_api::agent_logs::AgentLogLine;
use podium_api::deployment_logs::{CountDeploymentLogs, GetDeploymentLogs};
use podium_api::enums::LogSource;
use podium_api::{Timestamp, WrittenTime, counted};

use crate::refusal::{Fields, Result};

/// The window of a search: from a date to before another, or the last seconds up to this moment.
pub fn window(query: &GetDeploymentLogs, now: Timestamp) -> Result<Range<Timestamp>> {
    window_of((query.start_date, query.end_date), query.range, now)
}

/// The window of a count, by the same rules.
pub fn counted_window(query: &CountDeploymentLogs, now: Timestamp) -> Result<Range<Timestamp>> {
    let at = |date: &Option<WrittenTime>| date.as_ref().map(WrittenTime::at);
    window_of((at(&query.start_date), at(&query.end_date)), query.range, now)
}

fn window_of(
    dates: (Option<Timestamp>, Option<Timestamp>),
    range: u64,
    now: Timestamp,
) -> Result<Range<Timestamp>> {
    let mut fields = Fields::new();
    match dates {
        (None, None) => {
            let end = now + Duration::from_millis(1);
            return Ok(now - Duration::from_secs(range)..end);
        }
        (Some(start), Some(end)) if start < end => return Ok(start..end),
        (Some(_), Some(_)) => fields.push("endDate", "order", "must be later than `startDate`"),
        (Some(_), None) => fields.push("endDate", "required", "is required when `startDate` is given"),
        (None, Some(_)) => fields.push("startDate", "required", "is required when `endDate` is given"),
    }
    fields.finish(None)
}

/// When a part of a window begins that is divided into parts of the same length.
pub fn bucket_start(window: &Range<Timestamp>, bucket: usize, of: usize) -> Timestamp {
    let (start, end) = (i128::from(window.start.millis()), i128::from(window.end.millis()));
    // The first millisecond that the division puts into it.
    let offset = ((end - start) * bucket as i128).div_euclid(of.max(1) as i128)
        + i128::from((end - start) * bucket as i128 % of.max(1) as i128 != 0);
    i64::try_from(start + offset).map_or(window.end, Timestamp::from_millis)
}

/// How far ahead of ours the clock of an agent may be.
const AHEAD: Duration = Duration::from_hours(1);

/// Refuses lines of an agent that are older than the retention, or in the future; each of them is reported.
pub fn of_agent(lines: &[AgentLogLine], now: Timestamp, kept_for: Duration) -> Result<()> {
    let mut fields = Fields::new();
    for (index, line) in lines.iter().enumerate() {
        let field = || format!("lines[{index}].timestamp");
        if line.timestamp < now - kept_for {
            let message = format!("must not be older than {}", counted(kept_for.as_secs() / 86_400, "day"));
            fields.push(field(), "min", message);
        } else if line.timestamp > now + AHEAD {
            fields.push(field(), "max", "must not be in the future: check the agent's clock");
        }
    }
    fields.into_result()
}

/// The number of the event that a follower has seen last.
pub fn last_event(header: Option<&str>) -> Result<Option<u64>> {
    let Some(text) = header else { return Ok(None) };
    let mut fields = Fields::new();
    let number = text.trim().parse().ok();
    if number.is_none() {
        fields.push("Last-Event-ID", "format", "must be the id of an event of this stream");
    }
    fields.finish(Some(number))
}

/// Those of the components that a deployment of this runtime has.
pub fn present(requested: &[LogSource], runtime_version: &str) -> Vec<LogSource> {
    let is_airflow_2 = runtime_version.split('.').next() == Some("2");
    let there = |source: &LogSource| match source {
        LogSource::Scheduler | LogSource::Triggerer | LogSource::Worker => true,
        LogSource::Webserver => is_airflow_2,
        LogSource::ApiServer | LogSource::DagProcessor => !is_airflow_2,
    };
    requested.iter().copied().filter(there).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixtures::told;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1000)
    }

    fn query(start: Option<i64>, end: Option<i64>, range: u64) -> GetDeploymentLogs {
        let asked = json!({
            "sources": ["scheduler"], "limit": 500, "offset": 0, "range": range, "maxNumResults": 10_000,
            "startDate": start.map(at), "endDate": end.map(at),
        });
        serde_json::from_value(asked).unwrap()
    }

    #[test]
    fn a_window_has_both_ends_or_ends_now() {
        let now = at(10_000);
        let last_hour = at(6400)..Timestamp::from_millis(10_000_001);
        assert_eq!(window(&query(None, None, 3600), now), Ok(last_hour));
        assert_eq!(window(&query(Some(1), Some(2), 3600), now), Ok(at(1)..at(2)));
        for (start, end, wrong) in [
            (Some(1), None, "endDate required"),
            (None, Some(1), "startDate required"),
            (Some(2), Some(2), "endDate order"),
            (Some(3), Some(2), "endDate order"),
        ] {
            assert_eq!(told(&window(&query(start, end, 60), now).unwrap_err()), [wrong]);
        }
        let everything = window(&query(None, None, u64::MAX / 2000), now).unwrap();
        assert!(everything.start < at(0));
    }

    #[test]
    fn a_part_of_a_window_begins_with_the_first_moment_that_is_counted_in_it() {
        let window = Timestamp::from_millis(100)..Timestamp::from_millis(110);
        let starts = |of| (0..of).map(move |bucket| bucket_start(&window, bucket, of).millis());
        assert_eq!(starts.clone()(1).collect::<Vec<_>>(), [100]);
        assert_eq!(starts.clone()(4).collect::<Vec<_>>(), [100, 103, 105, 108]);
        assert_eq!(starts(5).collect::<Vec<_>>(), [100, 102, 104, 106, 108]);
    }

    #[test]
    fn lines_of_agents_are_neither_too_old_nor_from_the_future() {
        let day = Duration::from_hours(24);
        let line =
            |seconds| AgentLogLine { timestamp: at(seconds), source: LogSource::Worker, text: String::new() };
        let now = at(1_000_000);
        let good = [line(1_000_000 - 86_400), line(1_000_000), line(1_003_600)];
        assert_eq!(of_agent(&good, now, day), Ok(()));
        let bad = [line(1_000_000), line(1_000_000 - 86_401), line(1_003_601)];
        let told = told(&of_agent(&bad, now, day).unwrap_err());
        assert_eq!(told, ["lines[1].timestamp min", "lines[2].timestamp max"]);
    }

    #[test]
    fn the_last_event_is_a_number() {
        assert_eq!(last_event(None), Ok(None));
        assert_eq!(last_event(Some(" 17 ")), Ok(Some(17)));
        for wrong in ["", "-1", "x", "99999999999999999999"] {
            assert_eq!(told(&last_event(Some(wrong)).unwrap_err()), ["Last-Event-ID format"]);
        }
    }

    #[test]
    fn components_depend_on_the_generation_of_airflow() {
        use LogSource::{ApiServer, DagProcessor, Scheduler, Triggerer, Webserver, Worker};
        assert_eq!(present(LogSource::ALL, "2.11.2"), [Scheduler, Webserver, Triggerer, Worker]);
        assert_eq!(present(LogSource::ALL, "3.3.2"), [Scheduler, Triggerer, Worker, DagProcessor, ApiServer]);
        assert_eq!(present(&[Webserver], "3.3.2"), []);
    }
}
