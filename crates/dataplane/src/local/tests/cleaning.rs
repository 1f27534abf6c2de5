//! The history of a running environment is cleaned up once for each id.

use std::fs;
use std::process::Command;

use podium_airflow::settings::marker;
use podium_api::{OperationId, Timestamp};

use super::fixture::{Fixture, eventually};
use crate::local::Local;
use crate::local::orphans::{COMPONENT, LOOK_AGAIN};
use crate::{CleanUp, CleanUpState, DataPlane as _};

fn clean_up(number: u64) -> CleanUp {
    let id = OperationId::from_raw(podium_api::Id::from_parts(number, 0, 0));
    CleanUp { id, before: Timestamp::from_millis(1_772_334_000_000) }
}

/// The times that helpers were given so far.
fn given(fixture: &Fixture) -> Vec<String> {
    let all = fs::read_to_string(fixture.path("cleaned_up")).unwrap_or_default();
    all.lines().map(str::to_owned).collect()
}

async fn ended(fixture: &Fixture, plane: &Local, clean_up: CleanUp) -> CleanUpState {
    loop {
        match plane.clean_up(&fixture.at(), clean_up).await.unwrap() {
            CleanUpState::Underway => tokio::time::sleep(LOOK_AGAIN).await,
            ended => return ended,
        }
    }
}

/// Until a helper was started so many times.
async fn begun(fixture: &Fixture, times: usize) {
    eventually(|| given(fixture).len() >= times).await;
}

fn tell(fixture: &Fixture, what: &str) {
    fs::write(fixture.path("told").join(what), "").unwrap();
}

fn untell(fixture: &Fixture, what: &str) {
    fs::remove_file(fixture.path("told").join(what)).unwrap();
}

#[tokio::test]
async fn history_is_cleaned_up_once_for_each_id() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    plane.clean_up(&fixture.at(), clean_up(1)).await.expect_err("there is no environment");
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let done = ended(&fixture, &plane, clean_up(1)).await;
    let CleanUpState::Done(summary) = &done else { panic!("{done:?}") };
    assert_eq!(*summary, "3 DAG runs and 7 log files from before 2026-03-01T03:00:00.000Z were removed.");
    assert_eq!(plane.clean_up(&fixture.at(), clean_up(1)).await.unwrap(), done);
    assert_eq!(given(&fixture), ["1772334000000"]);
    tell(&fixture, "unclean");
    let failed = ended(&fixture, &plane, clean_up(2)).await;
    let CleanUpState::Failed(why) = &failed else { panic!("{failed:?}") };
    assert_eq!(*why.user_text(), "the history could not be cleaned up");
    assert_eq!(given(&fixture).len(), 2);
}

#[tokio::test]
async fn a_clean_up_that_a_change_interrupts_begins_again_only_if_it_is_still_wanted() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    tell(&fixture, "cleaning");
    assert_eq!(plane.clean_up(&fixture.at(), clean_up(1)).await.unwrap(), CleanUpState::Underway);
    begun(&fixture, 1).await;
    fixture.bring_up(&plane, &fixture.environment(2)).await;
    untell(&fixture, "cleaning");
    assert!(matches!(ended(&fixture, &plane, clean_up(2)).await, CleanUpState::Done(_)));
    assert_eq!(given(&fixture).len(), 2, "the first one is superseded and does not come back");
}

#[tokio::test]
async fn a_clean_up_that_an_earlier_control_plane_left_behind_is_ended() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let (name, value) = marker(fixture.id);
    let mut left =
        Command::new("sleep").arg("100000").env(name, value).env(COMPONENT, "clean-up").spawn().unwrap();
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert!(left.wait().unwrap().code().is_none(), "it was killed");
}
