//! The control plane goes and comes back; environments do not notice.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use podium_domain::deployments::plan::Rollout;

use super::bed::{Bed, eventually, kill};
use crate::blocking::here;
use crate::local::identity::Identity;
use crate::{DataPlane as _, Hidden, Setting};

#[tokio::test]
async fn what_runs_is_taken_over_as_it_is() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(7)).await;
    let (before, door) = (bed.processes(), plane.door(bed.id).await.unwrap());
    let keepers = Arc::downgrade(&plane.plane);
    drop(plane);
    let followers = || Arc::strong_count(&bed.logs) - 1;
    eventually(|| keepers.strong_count() == 0 && followers() == 0).await;
    assert!(before.values().all(Identity::is_alive), "nobody ends them");
    let plane = bed.open();
    let seen = plane.observe(bed.id).await.unwrap().unwrap();
    assert_eq!((seen.generation, seen.rollout), (-1, Rollout::Underway));
    assert_eq!(seen.running.runtime_version.as_deref(), Some("3.3.2"));
    assert_eq!(plane.door(bed.id).await.unwrap(), door);
    bed.bring_up(&plane, &bed.environment(7)).await;
    assert_eq!(bed.processes(), before);
    assert_eq!(bed.starts("scheduler").len(), 1);
}

#[tokio::test]
async fn what_died_meanwhile_is_started_again_and_leaves_nobody_behind() {
    let bed = Bed::new().with_runtime("3.3.2");
    bed.tell("scheduler", "sleep 100000 & echo $! >\"$told/child\"");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let (before, child) = (bed.processes(), child(&bed).await);
    drop(plane);
    kill(&before["scheduler"]);
    eventually(|| !before["scheduler"].is_alive()).await;
    assert!(child.is_alive());
    bed.untell("scheduler");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    assert!(!child.is_alive(), "it was left behind by its leader");
    let now = bed.processes();
    assert_ne!(now["scheduler"], before["scheduler"]);
    assert_eq!(now["apiserver"], before["apiserver"]);
    assert_eq!(now["triggerer"], before["triggerer"]);
}

#[tokio::test]
async fn a_process_that_was_started_and_not_remembered_is_not_left_beside_its_successor() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let before = bed.processes();
    drop(plane);
    // As it is when the control plane ends between a start and its note of it.
    let mut state = bed.state();
    state.processes.remove("triggerer");
    state.starting = Some("triggerer".into());
    here(|| state.write(&bed.place().state())).unwrap();
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    assert!(!before["triggerer"].is_alive());
    let now = bed.processes();
    assert!(now["triggerer"].is_alive());
    assert_eq!((&now["scheduler"], &now["apiserver"]), (&before["scheduler"], &before["apiserver"]));
    assert_eq!(bed.state().starting, None);
}

#[tokio::test]
async fn a_restart_at_any_moment_leaves_one_process_of_each_component() {
    for moment in 0..16 {
        let bed = Bed::new().with_runtime("3.3.2");
        let plane = bed.open();
        let mut changes = plane.changes();
        plane.apply(&bed.environment(1)).await.unwrap();
        for _ in 0..moment {
            if plane.observe(bed.id).await.unwrap().unwrap().rollout == Rollout::Done {
                break;
            }
            changes.next().await;
        }
        drop(plane);
        let plane = bed.open();
        bed.bring_up(&plane, &bed.environment(1)).await;
        for component in ["apiserver", "scheduler", "dag-processor", "triggerer"] {
            assert_eq!(bed.leaders(component), 1, "{component} after a restart at moment {moment}");
        }
    }
}

#[tokio::test]
async fn after_a_reboot_everything_is_started_and_nobody_else_is_signalled() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let before = bed.processes();
    drop(plane);
    before.values().for_each(kill);
    eventually(|| !before.values().any(Identity::is_alive)).await;
    let mut stranger =
        Command::new("sleep").arg("100000").stdin(Stdio::null()).process_group(0).spawn().unwrap();
    let path = bed.place().state();
    let mut state: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for process in state["processes"].as_object_mut().unwrap().values_mut() {
        process["identity"]["boot"] = "another start of the machine".into();
        process["identity"]["pid"] = stranger.id().into();
    }
    fs::write(&path, state.to_string()).unwrap();
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    assert!(bed.processes().values().all(Identity::is_alive));
    assert_eq!(stranger.try_wait().unwrap(), None, "it lives");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn what_changed_while_the_control_plane_was_away_is_applied() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let before = bed.processes();
    drop(plane);
    let plane = bed.open();
    let mut changed = bed.environment(2);
    changed.variables =
        vec![Setting { key: "CITY".into(), value: Hidden::new("Oslo".into()), is_secret: false }];
    bed.bring_up(&plane, &changed).await;
    let now = bed.processes();
    assert_ne!(now["scheduler"], before["scheduler"]);
    assert_eq!(now["apiserver"], before["apiserver"]);
}

async fn child(bed: &Bed) -> Identity {
    let path = bed.path("told").join("child");
    let read = || fs::read_to_string(&path).ok()?.trim().parse().ok();
    eventually(|| read().is_some()).await;
    Identity::of(read().unwrap()).unwrap()
}

#[tokio::test]
async fn a_stranger_who_got_the_number_of_a_process_is_never_signalled() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let triggerer = bed.processes()["triggerer"].clone();
    drop(plane);
    kill(&triggerer);
    let mut stranger =
        Command::new("sleep").arg("100000").stdin(Stdio::null()).process_group(0).spawn().unwrap();
    let path = bed.place().state();
    let mut state: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    state["processes"]["triggerer"]["identity"]["pid"] = stranger.id().into();
    fs::write(&path, state.to_string()).unwrap();
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    assert_ne!(bed.processes()["triggerer"].pid, stranger.id().cast_signed());
    plane.remove(bed.id).await.unwrap();
    bed.until_gone(&plane).await;
    assert_eq!(stranger.try_wait().unwrap(), None, "it lives");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn what_was_cut_off_before_anything_was_remembered_leaves_nothing() {
    let bed = Bed::new();
    drop(bed.open());
    fs::create_dir(bed.place().root).unwrap();
    let plane = bed.open();
    bed.until_gone(&plane).await;
    assert!(!bed.place().root.exists());
}
