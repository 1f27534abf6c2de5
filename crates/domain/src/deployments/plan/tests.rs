//! Every status, desired awake, hibernating or deleted, against everything that a data plane can report.

use super::*;

const WANTED: i64 = 2;

fn desired(status: DeploymentStatus, is_hibernating: bool) -> Desired {
    Desired { generation: WANTED, is_hibernating, status }
}

fn running() -> Running {
    Running { image_tag: Some("deploy-1".into()), ..Running::default() }
}

fn component(name: &str, health: Health) -> Component {
    Component { name: name.into(), health }
}

fn present(
    generation: i64,
    is_hibernating: bool,
    rollout: Rollout,
    components: Vec<Component>,
) -> Observation {
    let (running, note, look_again_at) = (running(), None, None);
    Observation::Present(Observed {
        generation,
        is_hibernating,
        rollout,
        components,
        running,
        note,
        look_again_at,
        progress: None,
    })
}

fn up() -> Vec<Component> {
    vec![component("scheduler", Health::Up), component("triggerer", Health::Up)]
}

fn down() -> Vec<Component> {
    vec![
        component("scheduler", Health::Up),
        component("triggerer", Health::Down("it ran out of memory".into())),
    ]
}

/// Every kind of observation, by name.
fn observations() -> [(&'static str, Observation); 11] {
    use Rollout::{Done, Refused, Underway};
    [
        ("absent", Observation::Absent),
        ("unreachable", Observation::Unreachable("no route to host".into())),
        ("behind", present(WANTED - 1, false, Done, up())),
        ("ahead", present(WANTED + 1, false, Done, up())),
        ("starting", present(WANTED, false, Underway, down())),
        ("up", present(WANTED, false, Done, up())),
        ("down", present(WANTED, false, Done, down())),
        ("empty", present(WANTED, false, Done, Vec::new())),
        ("stopping", present(WANTED, true, Underway, up())),
        ("asleep", present(WANTED, true, Done, Vec::new())),
        ("refused", present(WANTED, false, Refused("its packages do not resolve".into()), up())),
    ]
}

/// A step as a word: `=` records and rests, `~` records and watches.
fn word(step: &Step) -> String {
    match step {
        Step::Apply(cause) => format!("{cause:?}").to_lowercase(),
        Step::RaiseGeneration(generation) => format!("raise to {generation}"),
        Step::Remove => "remove".into(),
        Step::Forget => "forget".into(),
        Step::Revert(_) => "revert".into(),
        Step::Record(verdict) => format!("={}", verdict.status),
        Step::Watch(verdict) => format!("~{}", verdict.status),
    }
}

/// What is wanted, and the step for each observation in their order.
const TABLE: &str = "\
gone        | forget | remove    | remove | remove     | remove     | remove    | remove     | remove     | remove     | remove | remove
awake CREATING    | create | ~CREATING | update | raise to 3 | ~CREATING  | =HEALTHY  | ~UNHEALTHY | ~UNHEALTHY | wake       | wake | revert
awake DEPLOYING   | create | ~UNKNOWN  | update | raise to 3 | ~DEPLOYING | =HEALTHY  | ~UNHEALTHY | ~UNHEALTHY | wake       | wake | revert
awake HEALTHY     | create | ~UNKNOWN  | update | raise to 3 | ~DEPLOYING | =HEALTHY  | ~UNHEALTHY | ~UNHEALTHY | wake       | wake | revert
awake UNHEALTHY   | create | ~UNKNOWN  | update | raise to 3 | ~DEPLOYING | =HEALTHY  | ~UNHEALTHY | ~UNHEALTHY | wake       | wake | revert
awake UNKNOWN     | create | ~UNKNOWN  | update | raise to 3 | ~DEPLOYING | =HEALTHY  | ~UNHEALTHY | ~UNHEALTHY | wake       | wake | revert
awake HIBERNATING | create | ~UNKNOWN  | update | raise to 3 | ~DEPLOYING | =HEALTHY  | ~UNHEALTHY | ~UNHEALTHY | wake       | wake | revert
asleep CREATING    | create | ~CREATING | update | raise to 3 | hibernate  | hibernate | hibernate  | hibernate  | ~CREATING  | =HIBERNATING | hibernate
asleep DEPLOYING   | create | ~UNKNOWN  | update | raise to 3 | hibernate  | hibernate | hibernate  | hibernate  | ~DEPLOYING | =HIBERNATING | hibernate
asleep HEALTHY     | create | ~UNKNOWN  | update | raise to 3 | hibernate  | hibernate | hibernate  | hibernate  | ~HEALTHY   | =HIBERNATING | hibernate
asleep UNHEALTHY   | create | ~UNKNOWN  | update | raise to 3 | hibernate  | hibernate | hibernate  | hibernate  | ~UNHEALTHY | =HIBERNATING | hibernate
asleep UNKNOWN     | create | ~UNKNOWN  | update | raise to 3 | hibernate  | hibernate | hibernate  | hibernate  | ~DEPLOYING | =HIBERNATING | hibernate
asleep HIBERNATING | create | ~UNKNOWN  | update | raise to 3 | hibernate  | hibernate | hibernate  | hibernate  | ~DEPLOYING | =HIBERNATING | hibernate
";

#[test]
fn every_status_against_every_observation() {
    let mut rows: Vec<(String, Option<Desired>)> = vec![("gone".into(), None)];
    for (mood, is_hibernating) in [("awake", false), ("asleep", true)] {
        for status in DeploymentStatus::ALL {
            rows.push((format!("{mood} {status}"), Some(desired(*status, is_hibernating))));
        }
    }
    let table: Vec<&str> = TABLE.lines().collect();
    assert_eq!(table.len(), rows.len(), "every row is in the table");
    for ((name, desired), line) in rows.into_iter().zip(table) {
        let mut cells = line.split('|').map(str::trim);
        assert_eq!(cells.next(), Some(name.as_str()));
        let steps: Vec<&str> = cells.collect();
        assert_eq!(steps.len(), observations().len(), "{name}");
        for ((sight_name, observation), expected) in observations().iter().zip(steps) {
            let step = plan(desired.as_ref(), observation);
            assert_eq!(word(&step), expected, "{name}, {sight_name}");
        }
    }
}

#[test]
fn a_step_that_was_recorded_leads_to_the_same_step() {
    for is_hibernating in [false, true] {
        for status in DeploymentStatus::ALL {
            for (name, observation) in observations() {
                let step = plan(Some(&desired(*status, is_hibernating)), &observation);
                if let Step::Record(verdict) | Step::Watch(verdict) = &step {
                    let after = desired(verdict.status, is_hibernating);
                    assert_eq!(plan(Some(&after), &observation), step, "{status} {name}");
                }
            }
        }
    }
}

#[test]
fn a_verdict_has_the_reason_and_what_runs() {
    let verdict = |name: &str, status: DeploymentStatus| {
        let (_, observation) =
            observations().into_iter().find(|(observation, _)| *observation == name).unwrap();
        match plan(Some(&desired(status, false)), &observation) {
            Step::Record(verdict) | Step::Watch(verdict) => verdict,
            step => panic!("{step:?}"),
        }
    };
    let seen = |name: &str| {
        let verdict = verdict(name, DeploymentStatus::Deploying);
        (verdict.reason.user_text().clone(), verdict.running)
    };
    assert_eq!(seen("up"), (UserText::EMPTY, Some(running())));
    assert_eq!(seen("down"), ("Not working: triggerer (it ran out of memory).".into(), Some(running())));
    assert_eq!(seen("empty").0, "No component is running.");
    assert_eq!(seen("starting").0, "Waiting for: triggerer (it ran out of memory).");
    assert_eq!(seen("unreachable"), ("The data plane does not respond: no route to host.".into(), None));
}

#[test]
fn a_failed_apply_keeps_the_observed_state() {
    use DeploymentStatus::{Creating, Deploying, Healthy, Hibernating, Unhealthy, Unknown};
    let table = [
        (Cause::Create, [Creating, Deploying, Unhealthy, Unhealthy, Unhealthy, Unhealthy]),
        (Cause::Update, [Creating, Deploying, Deploying, Deploying, Deploying, Deploying]),
        (Cause::Hibernate, [Creating, Deploying, Healthy, Unhealthy, Unknown, Hibernating]),
        (Cause::Wake, [Creating, Deploying, Deploying, Deploying, Deploying, Deploying]),
    ];
    for (cause, expected) in table {
        for (status, expected) in DeploymentStatus::ALL.iter().zip(expected) {
            let verdict = not_applied(&desired(*status, false), cause, &"no room.".into());
            assert_eq!((verdict.status, verdict.running), (expected, None), "{cause:?} {status}");
        }
    }
    let said =
        |cause| not_applied(&desired(Creating, false), cause, &"no room".into()).reason.user_text().clone();
    assert_eq!(said(Cause::Create), "Creating the environment failed and will be retried: no room.");
    assert_eq!(said(Cause::Update), "Rolling out the change failed and will be retried: no room.");
    assert_eq!(said(Cause::Hibernate), "Hibernating failed and will be retried: no room.");
    assert_eq!(said(Cause::Wake), "Waking up failed and will be retried: no room.");
}
