use super::*;
use podium_api::enums::OperationStepName::{
    Apply, Check, Database, Drain, Parse, Remove, Runtime, Start, Unpack,
};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn new(kind: OperationKind) -> Course {
    Course {
        kind,
        target_type: OperationTargetType::Deployment,
        cause: OperationCause::Call,
        state: OperationState::Pending,
        can_undo: kind != OperationKind::Create,
        details: Details::default(),
        started_at: None,
        ended_at: None,
    }
}

fn report(step: RolloutStep) -> RolloutProgress {
    RolloutProgress { step, done: None, message: None, waits_for: Vec::new() }
}

fn after(course: &Course, step: RolloutStep, millis: i64) -> Course {
    let empty = UserText::EMPTY;
    advance(course, &Seen::Underway(Some(&report(step)), &empty), at(millis))
        .unwrap_or_else(|| course.clone())
}

fn steps(course: &Course) -> Vec<(OperationStepName, i64, Option<i64>)> {
    let step =
        |step: &OperationStep| (step.name, step.started_at.millis(), step.ended_at.map(Timestamp::millis));
    course.details.steps.iter().map(step).collect()
}

#[test]
fn steps_follow_one_another_and_are_taken_again_after_a_restart() {
    let course = new(OperationKind::Deploy);
    let course = advance(&course, &Seen::Underway(None, &UserText::EMPTY), at(1)).unwrap();
    assert_eq!((course.state, course.started_at), (OperationState::Running, Some(at(1))));
    let course = after(&course, RolloutStep::Unpack, 2);
    let course = after(&course, RolloutStep::Drain, 3);
    assert_eq!(steps(&course), [(Apply, 1, Some(2)), (Unpack, 2, Some(3)), (Drain, 3, None)]);
    let again = after(&course, RolloutStep::Unpack, 5);
    assert_eq!(steps(&again), [(Apply, 1, Some(2)), (Unpack, 2, None), (Drain, 3, Some(5))]);
    let done = advance(&again, &Seen::Done, at(9)).unwrap();
    assert_eq!(steps(&done), [(Apply, 1, Some(2)), (Unpack, 2, Some(9)), (Drain, 3, Some(5))]);
    assert_eq!((done.state, done.ended_at), (OperationState::Succeeded, Some(at(9))));
    assert!(!done.can_undo);
}

#[test]
fn nothing_is_written_when_nothing_has_changed() {
    let why = UserText::new("Waiting for: scheduler.");
    let seen = Seen::Underway(None, &why);
    let course = advance(&new(OperationKind::Update), &seen, at(1)).unwrap();
    assert_eq!(advance(&course, &seen, at(2)), None);
    let done = advance(&course, &Seen::Done, at(3)).unwrap();
    for seen in [Seen::Done, Seen::Failed(&why), seen] {
        assert_eq!(advance(&done, &seen, at(4)), None, "what has ended stays as it is");
    }
}

#[test]
fn a_drain_names_at_most_twenty_tasks_on_one_line_each() {
    let mut drain = report(RolloutStep::Drain);
    drain.done = Some((2, 32));
    drain.waits_for = (0..30).map(|number| format!("dag/run\n/task{number}")).collect();
    drain.waits_for[0] = "x".repeat(1000);
    let course =
        advance(&new(OperationKind::Update), &Seen::Underway(Some(&drain), &UserText::EMPTY), at(1)).unwrap();
    let progress = course.details.progress.unwrap();
    assert_eq!((progress.done, progress.total, progress.waits_for.len()), (Some(2), Some(32), 20));
    assert_eq!((progress.waits_for[0].len(), progress.waits_for[1].as_str()), (500, "dag/run/task1"));
}

#[test]
fn a_failure_says_why_and_what_to_do() {
    let why = UserText::new("Not working: scheduler (it exited).");
    for kind in OperationKind::ALL {
        for target_type in OperationTargetType::ALL {
            let course = Course { target_type: *target_type, ..new(*kind) };
            let failed = advance(&course, &Seen::Failed(&why), at(1)).unwrap();
            let failure = failed.details.failure.unwrap();
            assert_eq!((failed.state, failure.reason.as_str()), (OperationState::Failed, why.as_str()));
            assert!(failure.hint.ends_with('.'), "{kind} {target_type}");
        }
    }
}

#[test]
fn each_kind_has_a_point_of_no_return() {
    use OperationKind as Kind;
    let kinds = [
        (Kind::Create, [true, true, true, true, true]),
        (Kind::Hibernate, [true, true, true, true, true]),
        (Kind::Wake, [true, true, true, true, true]),
        (Kind::Update, [true, true, true, true, false]),
        (Kind::Deploy, [true, true, true, true, false]),
        (Kind::Rollback, [true, false, true, false, false]),
        (Kind::RuntimeUpgrade, [true, false, true, false, false]),
        (Kind::Transfer, [false; 5]),
        (Kind::Failover, [false; 5]),
        (Kind::Failback, [false; 5]),
        (Kind::Delete, [false; 5]),
        (Kind::CleanUp, [false; 5]),
    ];
    assert_eq!(kinds.len(), Kind::ALL.len());
    for (kind, expected) in kinds {
        let pending = new(kind);
        let begun = advance(&pending, &Seen::Underway(None, &UserText::EMPTY), at(1)).unwrap();
        let early = after(&begun, RolloutStep::Runtime, 2);
        let migrating = after(&early, RolloutStep::Database, 3);
        let starting = after(&migrating, RolloutStep::Start, 4);
        let found =
            [&pending, &begun, &early, &migrating, &starting].map(|course| may_cancel(course).is_ok());
        assert_eq!(found, expected, "{kind}");
        let again = after(&starting, RolloutStep::Runtime, 5);
        assert_eq!(may_cancel(&again).is_ok(), expected[4], "{kind}: what has passed stays so");
        let of_cluster = Course { target_type: OperationTargetType::Cluster, ..pending };
        assert!(may_cancel(&of_cluster).is_err(), "{kind}");
    }
}

#[test]
fn what_cannot_be_cancelled_says_why() {
    let told = |course: &Course| refuse_unless_cancellable(course).unwrap_err().message();
    let done = advance(&new(OperationKind::Update), &Seen::Done, at(1)).unwrap();
    assert_eq!(told(&done), "The operation is SUCCEEDED: there is nothing left to cancel.");
    let scheduled = Course { cause: OperationCause::Schedule, ..new(OperationKind::Hibernate) };
    assert_eq!(
        told(&scheduled),
        "The operation follows a schedule: override the deployment's hibernation instead."
    );
    let of_object = Course { cause: OperationCause::EnvironmentObject, ..new(OperationKind::Update) };
    assert!(told(&of_object).contains("change the object back"));
    let of_loop = Course { cause: OperationCause::Loop, ..new(OperationKind::Update) };
    assert_eq!(told(&of_loop), "The server started the operation: it cannot be cancelled.");
    let undoing = Course { can_undo: false, ..new(OperationKind::Update) };
    assert_eq!(told(&undoing), "The operation undoes a cancelled one: repeat the change instead.");
    assert_eq!(
        told(&new(OperationKind::Delete)),
        "An operation of kind DELETE cannot be cancelled once it has begun: wait until it has ended."
    );
    assert_eq!(
        told(&after(&new(OperationKind::Deploy), RolloutStep::Parse, 1)),
        "The operation cannot be cancelled any more once changed components start: wait until it has ended, then change \
         the deployment back."
    );
}

#[test]
fn steps_of_a_data_plane_have_names() {
    let all = [
        (RolloutStep::Runtime, Runtime),
        (RolloutStep::Database, Database),
        (RolloutStep::Unpack, Unpack),
        (RolloutStep::Check, Check),
        (RolloutStep::Drain, Drain),
        (RolloutStep::Start, Start),
        (RolloutStep::Parse, Parse),
    ];
    for (step, expected) in all {
        assert_eq!(name(step), expected);
    }
    let removing = advance(&new(OperationKind::Delete), &Seen::Removing, at(1)).unwrap();
    assert_eq!(steps(&removing), [(Remove, 1, None)]);
}

#[test]
fn only_a_wait_for_tasks_can_be_ended() {
    let told = |course: &Course| refuse_unless_draining(course).map_err(|refusal| refusal.message());
    let pending = new(OperationKind::Update);
    assert!(told(&pending).unwrap_err().contains("not in its step DRAIN"));
    let draining = after(&pending, RolloutStep::Drain, 1);
    assert_eq!(told(&draining), Ok(()));
    let starting = after(&draining, RolloutStep::Start, 2);
    assert!(told(&starting).unwrap_err().contains("not in its step DRAIN"));
    let done = advance(&draining, &Seen::Done, at(3)).unwrap();
    assert_eq!(told(&done).unwrap_err(), "The operation is SUCCEEDED: it waits for nothing.");
    let superseded = Course { state: OperationState::Superseded, ..draining };
    assert!(told(&superseded).is_err());
}
