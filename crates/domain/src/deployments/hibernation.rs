//! When a deployment hibernates: schedules of cron expressions in UTC, and an override that takes precedence over
//! them.
//!
//! The latest event of any enabled schedule decides. At the same minute waking wins, so that a deployment that a
//! schedule has just woken is never found asleep.

use croner::Cron;
use jiff::civil::DateTime;
use podium_api::deployments::{
    DeploymentHibernationOverrideRequest, DeploymentHibernationSchedule, DeploymentHibernationSpecRequest,
};
use podium_api::enums::HibernationEvent;
use podium_api::{FieldError, Timestamp, WrittenTime};

use super::cron::{WELL_FORMED, civil, cron, next_after, timestamp};
use super::spec::{Hibernation, HibernationOverride};
use crate::refusal::Fields;

/// How many times to hibernate that are times to wake as well are passed over to find the next that is not.
const AHEAD: usize = 200;

/// Whether a deployment is to hibernate, and what comes next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    pub is_hibernating: bool,
    pub next: Option<(Timestamp, HibernationEvent)>,
    /// Why, in words for people.
    pub reason: String,
}

/// Whether a deployment is to hibernate now; one that is not in development mode never does.
pub fn state(hibernation: &Hibernation, is_development_mode: bool, now: Timestamp) -> State {
    if !is_development_mode {
        return State { is_hibernating: false, next: None, reason: String::new() };
    }
    let schedules = Schedules::of(hibernation);
    let in_force = hibernation.override_.as_ref().filter(|it| it.is_active(now));
    match in_force.map(|it| (it.is_hibernating, it.until.as_ref().map(WrittenTime::at))) {
        Some((is_hibernating, None)) => {
            let reason = format!("An override keeps it {} until it is deleted.", word(is_hibernating));
            State { is_hibernating, next: None, reason }
        }
        Some((is_hibernating, Some(until))) => {
            let after = if schedules.at(until) == is_hibernating {
                schedules.next_change(until, is_hibernating)
            } else {
                Some((until, event(!is_hibernating)))
            };
            let reason = format!("An override keeps it {} until {until}.", word(is_hibernating));
            State { is_hibernating, next: after, reason }
        }
        None => {
            let is_hibernating = schedules.at(now);
            let reason = if schedules.0.is_empty() {
                "It has no schedule.".into()
            } else {
                format!("Its schedules keep it {}.", word(is_hibernating))
            };
            State { is_hibernating, next: schedules.next_change(now, is_hibernating), reason }
        }
    }
}

/// The override with which a deployment is awake now and until its schedules hibernate it again; `None` if they keep it
/// awake.
pub fn awake(hibernation: &Hibernation, now: Timestamp) -> Option<HibernationOverride> {
    let schedules = Schedules::of(hibernation);
    let until = || schedules.next_change(now, false).map(|(at, _)| at.into());
    schedules.at(now).then(|| HibernationOverride { is_hibernating: false, until: until() })
}

fn word(is_hibernating: bool) -> &'static str {
    if is_hibernating { "hibernating" } else { "awake" }
}

const fn event(is_hibernating: bool) -> HibernationEvent {
    if is_hibernating { HibernationEvent::Hibernate } else { HibernationEvent::Wake }
}

/// The enabled cron expressions, and what each does.
struct Schedules(Vec<(Cron, HibernationEvent)>);

impl Schedules {
    fn of(hibernation: &Hibernation) -> Self {
        let enabled = hibernation.schedules.iter().filter(|schedule| schedule.is_enabled);
        let crons = enabled.flat_map(|schedule| {
            [
                (&schedule.hibernate_at_cron, HibernationEvent::Hibernate),
                (&schedule.wake_at_cron, HibernationEvent::Wake),
            ]
        });
        Self(crons.filter_map(|(text, event)| Some((cron(text)?, event))).collect())
    }

    /// Whether the latest event at or before a moment was to hibernate.
    fn at(&self, moment: Timestamp) -> bool {
        let Some(moment) = civil(moment) else { return false };
        let latest = self.0.iter().filter_map(|(cron, event)| {
            let last = cron.find_previous_occurrence(&moment, true).ok()?;
            Some((last, *event == HibernationEvent::Wake))
        });
        latest.max().is_some_and(|(_, wakes)| !wakes)
    }

    fn next_change(&self, moment: Timestamp, is_hibernating: bool) -> Option<(Timestamp, HibernationEvent)> {
        let mut moment = civil(moment)?;
        let wanted = event(!is_hibernating);
        for _ in 0..AHEAD {
            let at = self.next(moment, wanted)?;
            if wanted == HibernationEvent::Wake || !self.happens(at, HibernationEvent::Wake) {
                return Some((timestamp(at)?, wanted));
            }
            moment = at;
        }
        None
    }

    fn next(&self, moment: DateTime, wanted: HibernationEvent) -> Option<DateTime> {
        let of_kind = self.0.iter().filter(|(_, event)| *event == wanted);
        of_kind.filter_map(|(cron, _)| cron.find_next_occurrence(&moment, false).ok()).min()
    }

    fn happens(&self, at: DateTime, wanted: HibernationEvent) -> bool {
        self.0.iter().any(|(cron, event)| *event == wanted && cron.is_time_matching(&at).unwrap_or(false))
    }
}

/// Checks what is asked for, which is all that there is to be.
pub(super) fn check(
    requested: &DeploymentHibernationSpecRequest,
    now: Timestamp,
    fields: &mut Fields,
) -> Hibernation {
    const PATH: &str = "scalingSpec.hibernationSpec";
    let mut hibernation = Hibernation::default();
    if let Some(schedules) = &requested.schedules {
        for (index, schedule) in schedules.iter().enumerate() {
            check_schedule(&format!("{PATH}.schedules[{index}]"), schedule, now, fields);
        }
        hibernation.schedules.clone_from(schedules);
    }
    if let Some(DeploymentHibernationOverrideRequest { is_hibernating, override_until }) =
        &requested.override_
    {
        let path = format!("{PATH}.override.overrideUntil");
        hibernation.override_ = match is_hibernating {
            Some(is_hibernating) => {
                fields.take(check_until(&path, override_until.as_ref(), now));
                Some(HibernationOverride { is_hibernating: *is_hibernating, until: override_until.clone() })
            }
            None => None,
        };
    }
    hibernation
}

/// An override lapses in the future or never.
pub fn check_until(field: &str, until: Option<&WrittenTime>, now: Timestamp) -> Result<(), FieldError> {
    if until.is_some_and(|until| until.at() <= now) {
        return Err(FieldError::new(
            field,
            "past",
            "must be in the future, or omitted for an override without end",
        ));
    }
    Ok(())
}

fn check_schedule(path: &str, schedule: &DeploymentHibernationSchedule, now: Timestamp, fields: &mut Fields) {
    let texts = [("hibernateAtCron", &schedule.hibernate_at_cron), ("wakeAtCron", &schedule.wake_at_cron)];
    let mut valid = 0;
    for (name, text) in texts {
        if cron(text).is_some_and(|cron| next_after(&cron, now).is_some()) {
            valid += 1;
        } else {
            let message = format!("{WELL_FORMED}, such as `0 20 * * 1-5`");
            fields.push(format!("{path}.{name}"), "format", message);
        }
    }
    let same = |one: &str, other: &str| one.split_whitespace().eq(other.split_whitespace());
    if valid == 2 && same(&schedule.hibernate_at_cron, &schedule.wake_at_cron) {
        fields.push(format!("{path}.wakeAtCron"), "same", "must differ from `hibernateAtCron`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::wrong;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn schedule(hibernate: &str, wake: &str) -> DeploymentHibernationSchedule {
        let (hibernate_at_cron, wake_at_cron) = (hibernate.into(), wake.into());
        DeploymentHibernationSchedule { description: None, hibernate_at_cron, wake_at_cron, is_enabled: true }
    }

    fn nightly() -> Hibernation {
        Hibernation { schedules: vec![schedule("0 20 * * *", "0 6 * * 1-5")], override_: None }
    }

    fn shown(state: &State) -> String {
        let next = state.next.map(|(at, event)| format!(" {event} {at}")).unwrap_or_default();
        format!("{}{next}", word(state.is_hibernating))
    }

    #[test]
    fn the_latest_event_decides() {
        // 2027-01-15 is a Friday.
        let table = [
            ("2027-01-15T12:00:00Z", "awake HIBERNATE 2027-01-15T20:00:00.000Z"),
            ("2027-01-15T19:59:59Z", "awake HIBERNATE 2027-01-15T20:00:00.000Z"),
            ("2027-01-15T20:00:00Z", "hibernating WAKE 2027-01-18T06:00:00.000Z"),
            ("2027-01-16T21:00:00Z", "hibernating WAKE 2027-01-18T06:00:00.000Z"),
            ("2027-01-18T06:00:00Z", "awake HIBERNATE 2027-01-18T20:00:00.000Z"),
        ];
        for (now, expected) in table {
            assert_eq!(shown(&state(&nightly(), true, at(now))), expected, "{now}");
        }
    }

    #[test]
    fn what_is_woken_stays_awake_until_the_next_time_to_hibernate() {
        let woken = |now: &str| {
            awake(&nightly(), at(now)).map(|it| (it.is_hibernating, it.until.map(|until| until.at())))
        };
        assert_eq!(woken("2027-01-15T12:00:00Z"), None, "it is awake by itself");
        let evening = Some((false, Some(at("2027-01-16T20:00:00Z"))));
        assert_eq!(woken("2027-01-15T20:00:00Z"), evening);
        assert_eq!(
            woken("2027-01-16T19:00:00Z"),
            evening,
            "although the schedule does not wake it on that day"
        );
        let asleep = Some(HibernationOverride { is_hibernating: true, until: None });
        assert_eq!(
            awake(&Hibernation { override_: asleep, ..Hibernation::default() }, at("2027-01-15T20:00:00Z")),
            None
        );
    }

    #[test]
    fn several_schedules_disabled_ones_and_ties() {
        let now = at("2027-01-15T12:00:00Z");
        let mut hibernation = nightly();
        hibernation.schedules.push(schedule("0 11 * * *", "0 13 * * *"));
        assert_eq!(shown(&state(&hibernation, true, now)), "hibernating WAKE 2027-01-15T13:00:00.000Z");
        hibernation.schedules[1].is_enabled = false;
        assert_eq!(shown(&state(&hibernation, true, now)), "awake HIBERNATE 2027-01-15T20:00:00.000Z");
        let tie = Hibernation {
            schedules: vec![schedule("0 12 * * *", "0 13 * * *"), schedule("0 11 * * *", "0 12 * * *")],
            override_: None,
        };
        assert!(!state(&tie, true, now).is_hibernating, "waking wins");
    }

    #[test]
    fn the_next_event_is_the_next_that_changes_anything() {
        let now = at("2027-01-15T12:00:00Z");
        let of = |schedules: Vec<DeploymentHibernationSchedule>| {
            shown(&state(&Hibernation { schedules, override_: None }, true, now))
        };
        let table = [
            (vec![schedule("* * * * *", "0 6 29 2 *")], "hibernating WAKE 2028-02-29T06:00:00.000Z"),
            (vec![schedule("0 6 29 2 *", "* * * * *")], "awake"),
            (vec![schedule("0 * * * *", "0 0-22 * * *")], "awake HIBERNATE 2027-01-15T23:00:00.000Z"),
            (
                vec![schedule("0 20 * * *", "0 6 * * *"), schedule("0 19 * * *", "0 20 * * *")],
                "awake HIBERNATE 2027-01-15T19:00:00.000Z",
            ),
            (vec![schedule("0 13 * * SUN", "0 13 * * *")], "awake"),
        ];
        for (schedules, expected) in table {
            assert_eq!(of(schedules.clone()), expected, "{schedules:?}");
        }
    }

    #[test]
    fn an_override_outranks_schedules_until_it_lapses() {
        let now = at("2027-01-15T12:00:00Z");
        let with = |is_hibernating, until: Option<&str>| Hibernation {
            override_: Some(HibernationOverride { is_hibernating, until: until.map(|it| at(it).into()) }),
            ..nightly()
        };
        let table = [
            (with(true, None), "hibernating"),
            (with(true, Some("2027-01-15T13:00:00Z")), "hibernating WAKE 2027-01-15T13:00:00.000Z"),
            (with(true, Some("2027-01-15T21:00:00Z")), "hibernating WAKE 2027-01-18T06:00:00.000Z"),
            (with(false, Some("2027-01-15T21:00:00Z")), "awake HIBERNATE 2027-01-15T21:00:00.000Z"),
            (with(true, Some("2027-01-15T12:00:00Z")), "awake HIBERNATE 2027-01-15T20:00:00.000Z"),
        ];
        for (hibernation, expected) in table {
            assert_eq!(shown(&state(&hibernation, true, now)), expected, "{:?}", hibernation.override_);
        }
        assert_eq!(shown(&state(&with(true, None), false, now)), "awake", "only in development mode");
        assert_eq!(shown(&state(&Hibernation::default(), true, now)), "awake");
    }

    #[test]
    fn an_override_ends_in_the_future_or_never() {
        let now = at("2027-01-15T12:00:00Z");
        let ends =
            |until: Option<&str>| check_until("until", until.map(|it| at(it).into()).as_ref(), now).is_ok();
        assert!(ends(None) && ends(Some("2027-01-15T12:00:00.001Z")));
        assert!(!ends(Some("2027-01-15T12:00:00Z")) && !ends(Some("2020-01-01T00:00:00Z")));
    }

    #[test]
    fn schedules_are_checked() {
        let now = at("2027-01-15T12:00:00Z");
        let table = [
            (schedule("0 20 * * *", "0 6 * * *"), ""),
            (schedule("0 20 * * * *", "0 6 * * *"), "s.hibernateAtCron: format"),
            (schedule("@daily", "often"), "s.hibernateAtCron: format, s.wakeAtCron: format"),
            (schedule("0 20 30 2 *", "0 6 * * *"), "s.hibernateAtCron: format"),
            (schedule("0 6  * * *", "0 6 * * *"), "s.wakeAtCron: same"),
        ];
        for (schedule, expected) in table {
            let mut fields = Fields::new();
            check_schedule("s", &schedule, now, &mut fields);
            assert_eq!(wrong(fields.into_result()).join(", "), expected, "{schedule:?}");
        }
    }
}
