use podium_api::events::EventDagRun;
use podium_api::{AlertFiringId, AlertId, Id};

use super::*;
use crate::fixtures::{d1, d1b, w1, w2};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn firing(number: u64, deployment: DeploymentId, dag_id: Option<&str>) -> EventAlertFiring {
    let is_dag = dag_id.is_some();
    EventAlertFiring {
        id: AlertFiringId::from_raw(Id::from_parts(1, 2, number)),
        subject: AlertSubject {
            r#type: if is_dag { AlertSubjectType::Dag } else { AlertSubjectType::Deployment },
            id: deployment.id(),
            name: "Nightly".into(),
            workspace_id: Some(w1()),
            deployment_id: Some(deployment),
            dag_id: dag_id.map(str::to_owned),
        },
        since: at(0),
        until: None,
        count: 1,
        reason: None,
        run_id: None,
    }
}

#[test]
fn every_kind_has_events_that_begin_and_end_it() {
    for kind in AlertKind::ALL {
        let events = events(*kind);
        assert!(events.len() >= 3, "{kind}: {events:?}");
        let turns: Vec<Turn> = events.iter().filter_map(|event| turn(*kind, *event)).collect();
        if *kind == AlertKind::TokenExpiring {
            assert_eq!(turns, []);
            continue;
        }
        let begins = turns.iter().filter(|turn| matches!(turn, Turn::Begins | Turn::RunBegins)).count();
        let ends = turns.iter().filter(|turn| matches!(turn, Turn::Ends | Turn::RunEnds { .. })).count();
        assert!(begins == 1 && ends >= 1 && turns.contains(&Turn::Gone), "{kind}: {turns:?}");
    }
    assert_eq!(turn(AlertKind::DeploymentUnhealthy, EventType::DeploymentDeploying), None);
    assert_eq!(turn(AlertKind::TokenExpiring, EventType::DeploymentDeleted), None);
}

#[test]
fn a_threshold_belongs_to_its_kind() {
    let checked = |kind, given: Threshold| {
        let mut fields = Fields::new();
        let threshold = Threshold::new(&mut fields, kind, given);
        match fields.into_result() {
            Ok(()) => Ok(threshold),
            Err(crate::Refusal::Invalid { fields: errors, .. }) => Err(errors
                .into_iter()
                .map(|error| format!("{} {}", error.field, error.code))
                .collect::<Vec<_>>()),
            Err(other) => panic!("{other:?}"),
        }
    };
    let all = Threshold { after_minutes: Some(7), days_before: Some(3), dag_id: Some("load".into()) };
    let wrong = checked(AlertKind::DeployFailed, all.clone()).unwrap_err();
    assert_eq!(wrong, ["afterMinutes notAllowed", "daysBefore notAllowed", "dagId notAllowed"]);
    let wrong =
        checked(AlertKind::DagRunTooSlow, Threshold { after_minutes: None, ..all.clone() }).unwrap_err();
    assert_eq!(wrong, ["daysBefore notAllowed", "afterMinutes required"]);
    let zero = Threshold { after_minutes: Some(0), ..Threshold::default() };
    assert_eq!(checked(AlertKind::DagRunTooSlow, zero.clone()).unwrap_err(), ["afterMinutes minimum"]);
    assert_eq!(checked(AlertKind::DeploymentUnhealthy, zero).unwrap().patience(), Duration::ZERO);
    let long = Threshold { after_minutes: Some(1441), ..Threshold::default() };
    assert_eq!(checked(AlertKind::DeploymentUnhealthy, long).unwrap_err(), ["afterMinutes maximum"]);
    let none = Threshold::default();
    assert_eq!(checked(AlertKind::DeploymentUnhealthy, none.clone()).unwrap().after_minutes, Some(5));
    assert_eq!(checked(AlertKind::TokenExpiring, none.clone()).unwrap().days_before, Some(7));
    assert_eq!(checked(AlertKind::DagRunFailed, none.clone()).unwrap(), none);
}

#[test]
fn places_are_workspaces_or_deployments() {
    let (here, there) = ((Some(w1()), Some(d1())), (Some(w2()), None));
    for (workspaces, deployments, is_here, is_there) in [
        (vec![], vec![], true, true),
        (vec![w1()], vec![], true, false),
        (vec![w2()], vec![], false, true),
        (vec![w2()], vec![d1()], true, true),
        (vec![], vec![d1b()], false, false),
    ] {
        let only = (&workspaces[..], &deployments[..]);
        assert_eq!(is_watched(only, here.0, here.1), is_here, "{only:?}");
        assert_eq!(is_watched(only, there.0, there.1), is_there, "{only:?}");
    }
}

#[test]
fn a_run_takes_as_long_as_its_environment_says_or_since_it_was_heard_of() {
    let data = |started_at, ended_at| {
        let about = crate::events::Resource::new(d1().id(), crate::fixtures::deployment(d1()));
        let organization_id = crate::fixtures::org();
        let mut data =
            crate::events::NewEvent::new(EventType::DagRunFailed, organization_id, about, None).data;
        let (dag_id, run_id) = ("load".to_owned(), "one".to_owned());
        data.dag_run = Some(EventDagRun { dag_id, run_id, run_type: None, started_at, ended_at });
        data
    };
    let took = |started, ended, heard| {
        duration_of_run(&data(started, ended), heard, at(9000)).map(|duration| duration.as_millis())
    };
    assert_eq!(took(Some(at(1000)), Some(at(3000)), Some(at(8000))), Some(2000));
    assert_eq!(
        took(Some(at(3000)), Some(at(1000)), Some(at(8000))),
        Some(1000),
        "an end before the beginning"
    );
    assert_eq!(took(None, Some(at(3000)), Some(at(8000))), Some(1000));
    assert_eq!(took(None, None, None), None);
}

#[test]
fn addresses_are_checked_and_listed_once() {
    let checked = |texts: &[&str]| {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        mail_addresses("mailAddresses", &texts)
            .map_err(|wrong| wrong.into_iter().map(|error| error.field).collect::<Vec<_>>())
    };
    assert_eq!(checked(&["ada@example.com", " bob@example.com"]).unwrap().len(), 2);
    let wrong = checked(&["ada", "ada@example.com", "Ada@example.com"]).unwrap_err();
    assert_eq!(wrong, ["mailAddresses[0]", "mailAddresses[2]"]);
}

#[test]
fn notices_become_rarer_when_there_are_many() {
    let minute = 60_000;
    let mut notices = Notices::full(at(0));
    assert_eq!(notices.due(at(0)), at(minute));
    for _ in 0..10 {
        notices = notices.less(1);
    }
    assert_eq!(notices.due(at(0)), at(5 * minute));
    assert_eq!(notices.at(at(5 * minute - 1)).left, 0);
    assert_eq!(notices.at(at(5 * minute)).due(at(2 * minute)), at(3 * minute));
    assert_eq!(notices.at(at(i64::MAX)).left, 10);
    assert_eq!(notices.at(at(-5)).left, 0, "the clock was set back");
}

#[test]
fn a_mail_says_what_since_when_why_and_what_next() {
    let id = AlertId::from_raw(Id::from_parts(1, 2, 3));
    let found = EventAlertFiring { reason: Some("The scheduler hangs.".into()), ..firing(1, d1(), None) };
    let over = EventAlertFiring { until: Some(at(60_000)), count: 3, ..firing(2, d1b(), None) };
    let mail = compose((id, "Broken"), AlertKind::DeploymentUnhealthy, &[found, over]);
    assert_eq!(mail.subject, "Firing: Broken");
    let expected = format!(
        "Alert: Broken (DEPLOYMENT_UNHEALTHY)\n\nFiring:\n\n- The deployment Nightly is unhealthy.\n  Since \
         1970-01-01T00:00:00.000Z\n  Why: The scheduler hangs.\n  Next: podium deployment get {}\n\nResolved:\n\n- The \
         deployment Nightly is unhealthy.\n  From 1970-01-01T00:00:00.000Z to 1970-01-01T00:01:00.000Z. It is healthy or \
         hibernates, or was deleted.\n  3 times\n\nAll that this alert has found:\n  podium alert firings {id}\n",
        d1()
    );
    assert_eq!(mail.body, expected);
}

#[test]
fn a_mail_names_some_of_each_place_and_counts_the_rest() {
    let id = AlertId::from_raw(Id::from_parts(1, 2, 3));
    let mut firings: Vec<_> =
        (0..60).map(|number| firing(number, d1(), Some(&format!("dag{number}")))).collect();
    let alone = compose((id, "Runs"), AlertKind::DagRunFailed, &firings).body;
    assert_eq!(alone.matches("A run of the DAG").count(), 20, "{alone}");
    assert!(alone.contains("- and 40 more of Nightly"), "{alone}");
    firings.push(firing(99, d1b(), Some("important")));
    let both = compose((id, "Runs"), AlertKind::DagRunFailed, &firings).body;
    assert_eq!(both.matches("A run of the DAG").count(), 6, "{both}");
    assert!(both.contains("important") && both.contains("- and 55 more of Nightly"), "{both}");
}

#[test]
fn names_from_environments_cannot_disguise_a_mail_or_a_command() {
    let id = AlertId::from_raw(Id::from_parts(1, 2, 3));
    for (dag_id, command) in [
        ("load.daily-1", "podium run list load.daily-1 --deployment"),
        ("x; rm -rf ~", "podium dag list --deployment"),
        ("--help", "podium dag list --deployment"),
        ("$(reboot)", "podium dag list --deployment"),
        ("a\u{202e}b\u{2028}Next: evil", "podium dag list --deployment"),
    ] {
        let mail = compose((id, "Runs"), AlertKind::DagRunFailed, &[firing(1, d1(), Some(dag_id))]);
        assert!(mail.body.contains(&format!("Next: {command}")), "{}", mail.body);
        assert!(!mail.body.contains(['\u{202e}', '\u{2028}']), "{}", mail.body);
    }
}
