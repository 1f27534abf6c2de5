//! When the history of an environment is cleaned up: runs, tasks and their logs that are older than its deployment keeps
//! them.

use std::time::Duration;

use podium_api::Timestamp;

use super::cron::{WELL_FORMED, cron, next_after};
use super::spec::Spec;
use crate::refusal::Fields;

/// When, unless the deployment says otherwise: every night.
const NIGHTLY: &str = "0 3 * * *";
/// The least time from one to the next.
const LEAST_PAUSE: Duration = Duration::from_mins(59);
const DAY: Duration = Duration::from_hours(24);

/// When the history is cleaned up next, which may be in the past; `None` if everything is kept. What counts is when the last
/// clean-up began, and when the schedule was set.
pub fn next(spec: &Spec, last: Option<Timestamp>) -> Option<Timestamp> {
    days(spec)?;
    let after = last.map(|last| last + LEAST_PAUSE).max(spec.clean_up_since)?;
    next_after(&cron(spec.clean_up_cron.as_deref().unwrap_or(NIGHTLY))?, after)
}

/// What is removed: everything from before this time; `None` if everything is kept.
pub fn cutoff(spec: &Spec, now: Timestamp) -> Option<Timestamp> {
    Some(now - DAY * days(spec)?)
}

/// How many days are kept; 0 and nothing mean that everything is.
fn days(spec: &Spec) -> Option<u32> {
    spec.history_retention_days.filter(|days| *days > 0)
}

/// Takes what is asked for; what is omitted stays.
pub(super) fn set(
    (retention_days, schedule): (Option<u32>, Option<&str>),
    spec: &mut Spec,
    now: Timestamp,
    fields: &mut Fields,
) {
    let before = (days(spec).is_some(), spec.clean_up_cron.clone());
    spec.history_retention_days = retention_days.or(spec.history_retention_days);
    match schedule {
        Some(schedule) if cron(schedule).is_some_and(|cron| next_after(&cron, now).is_some()) => {
            spec.clean_up_cron = Some(schedule.to_owned());
        }
        Some(_) => fields.push("cleanUpCron", "format", format!("{WELL_FORMED}, such as `{NIGHTLY}`")),
        None => {}
    }
    if before != (days(spec).is_some(), spec.clean_up_cron.clone()) {
        spec.clean_up_since = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use podium_api::enums::DeploymentType;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn spec(days: Option<u32>, cron: Option<&str>) -> Spec {
        let mut spec = Spec::new(DeploymentType::Standard, "3.3.2");
        let asked = (days, cron);
        set(asked, &mut spec, at("2026-03-01T12:00:00Z"), &mut Fields::new());
        spec
    }

    #[test]
    fn nothing_is_removed_unless_it_is_asked_for() {
        for days in [None, Some(0)] {
            let spec = spec(days, Some("0 * * * *"));
            assert_eq!(next(&spec, None), None);
            assert_eq!(cutoff(&spec, at("2026-03-01T12:00:00Z")), None);
        }
    }

    #[test]
    fn it_happens_at_night_unless_a_schedule_is_set() {
        assert_eq!(next(&spec(Some(30), None), None), Some(at("2026-03-02T03:00:00Z")));
        let monthly = spec(Some(30), Some("30 4 1 * *"));
        assert_eq!(next(&monthly, None), Some(at("2026-04-01T04:30:00Z")));
        assert_eq!(next(&monthly, Some(at("2026-04-01T05:00:00Z"))), Some(at("2026-05-01T04:30:00Z")));
    }

    #[test]
    fn what_was_missed_is_due_at_once_and_once() {
        let nightly = spec(Some(30), None);
        let last = at("2026-03-05T03:00:00Z");
        assert_eq!(next(&nightly, Some(last)), Some(at("2026-03-06T03:00:00Z")));
        assert_eq!(next(&nightly, Some(at("2026-03-09T10:00:00Z"))), Some(at("2026-03-10T03:00:00Z")));
    }

    #[test]
    fn a_new_schedule_counts_from_when_it_is_set_and_other_changes_do_not_put_it_off() {
        let mut changed = spec(Some(30), None);
        let later = at("2026-03-09T10:00:00Z");
        set((Some(60), None), &mut changed, later, &mut Fields::new());
        assert_eq!(next(&changed, None), Some(at("2026-03-02T03:00:00Z")), "it has been due since");
        set((None, Some("0 5 * * *")), &mut changed, later, &mut Fields::new());
        assert_eq!(next(&changed, None), Some(at("2026-03-10T05:00:00Z")));
        set((Some(0), None), &mut changed, later, &mut Fields::new());
        assert_eq!(next(&changed, None), None);
        set((Some(7), None), &mut changed, at("2026-04-01T10:00:00Z"), &mut Fields::new());
        assert_eq!(next(&changed, Some(later)), Some(at("2026-04-02T05:00:00Z")));
    }

    #[test]
    fn it_happens_once_an_hour_at_most() {
        let always = spec(Some(1), Some("* * * * *"));
        let last = at("2026-03-02T03:00:00Z");
        assert_eq!(next(&always, Some(last)), Some(at("2026-03-02T04:00:00Z")));
    }

    #[test]
    fn whole_days_are_kept() {
        assert_eq!(
            cutoff(&spec(Some(30), None), at("2026-03-31T03:00:00Z")),
            Some(at("2026-03-01T03:00:00Z"))
        );
    }
}
