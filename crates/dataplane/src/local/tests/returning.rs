//! The control plane restarts; environments are not affected.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

use podium_domain::deployments::plan::Rollout;

use super::fixture::{Fixture, eventually, kill};
use crate::blocking::allow_blocking;
use crate::local::identity::Identity;
use crate::{DataPlane as _, Secret, Setting};

#[tokio::test]
async fn running_processes_are_taken_over_unchanged() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(7)).await;
    let (before, web_server) = (fixture.processes(), plane.web_server(&fixture.at()).await.unwrap());
    let supervisors = Arc::downgrade(&plane.plane);
    drop(plane);
    let followers = || Arc::strong_count(&fixture.logs) - 1;
    eventually(|| supervisors.strong_count() == 0 && followers() == 0).await;
    assert!(before.values().all(Identity::is_alive), "nobody ends them");
    let plane = fixture.open();
    let seen = plane.observe(&fixture.at()).await.unwrap().unwrap();
    assert_eq!((seen.generation, seen.rollout), (-1, Rollout::Underway));
    assert_eq!(seen.running.runtime_version.as_deref(), Some("3.3.2"));
    assert_eq!(plane.web_server(&fixture.at()).await.unwrap(), web_server);
    fixture.bring_up(&plane, &fixture.environment(7)).await;
    assert_eq!(fixture.processes(), before);
    assert_eq!(fixture.starts("scheduler").len(), 1);
}

#[tokio::test]
async fn processes_that_died_meanwhile_are_restarted_and_leave_no_orphans() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    fixture.set_script("scheduler", "sleep 100000 & echo $! >\"$told/child\"");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let (before, child) = (fixture.processes(), child(&fixture).await);
    drop(plane);
    kill(&before["scheduler"]);
    eventually(|| !before["scheduler"].is_alive()).await;
    assert!(child.is_alive());
    fixture.clear_script("scheduler");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert!(!child.is_alive(), "it was left behind by its leader");
    let now = fixture.processes();
    assert_ne!(now["scheduler"], before["scheduler"]);
    assert_eq!(now["apiserver"], before["apiserver"]);
    assert_eq!(now["triggerer"], before["triggerer"]);
}

#[tokio::test]
async fn a_process_whose_start_was_not_saved_is_killed_before_its_successor_runs() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    drop(plane);
    // As it is when the control plane ends between a start and its note of it.
    let mut state = fixture.state();
    state.processes.remove("triggerer");
    state.starting = Some("triggerer".into());
    allow_blocking(|| state.write(&fixture.place().state())).unwrap();
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert!(!before["triggerer"].is_alive());
    let now = fixture.processes();
    assert!(now["triggerer"].is_alive());
    assert_eq!((&now["scheduler"], &now["apiserver"]), (&before["scheduler"], &before["apiserver"]));
    assert_eq!(fixture.state().starting, None);
}

#[tokio::test]
async fn a_restart_at_any_moment_leaves_one_process_of_each_component() {
    for moment in 0..16 {
        let fixture = Fixture::new().with_runtime("3.3.2");
        let plane = fixture.open();
        let mut changes = plane.changes();
        plane.apply(&fixture.environment(1)).await.unwrap();
        for _ in 0..moment {
            if plane.observe(&fixture.at()).await.unwrap().unwrap().rollout == Rollout::Done {
                break;
            }
            changes.next().await;
        }
        drop(plane);
        let plane = fixture.open();
        fixture.bring_up(&plane, &fixture.environment(1)).await;
        for component in ["apiserver", "scheduler", "dag-processor", "triggerer"] {
            assert_eq!(fixture.leaders(component), 1, "{component} after a restart at moment {moment}");
        }
    }
}

#[tokio::test]
async fn after_a_reboot_everything_is_started_and_no_other_process_is_signalled() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    drop(plane);
    before.values().for_each(kill);
    eventually(|| !before.values().any(Identity::is_alive)).await;
    let mut stranger =
        Command::new("sleep").arg("100000").stdin(Stdio::null()).process_group(0).spawn().unwrap();
    let path = fixture.place().state();
    let mut state: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for process in state["processes"].as_object_mut().unwrap().values_mut() {
        process["identity"]["boot"] = "another start of the machine".into();
        process["identity"]["pid"] = stranger.id().into();
    }
    fs::write(&path, state.to_string()).unwrap();
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert!(fixture.processes().values().all(Identity::is_alive));
    assert_eq!(stranger.try_wait().unwrap(), None, "it lives");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn changes_made_while_the_control_plane_was_down_are_applied() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    drop(plane);
    let plane = fixture.open();
    let mut changed = fixture.environment(2);
    changed.variables =
        vec![Setting { key: "CITY".into(), value: Secret::new("Oslo".into()), is_secret: false }];
    fixture.bring_up(&plane, &changed).await;
    let now = fixture.processes();
    assert_ne!(now["scheduler"], before["scheduler"]);
    assert_eq!(now["apiserver"], before["apiserver"]);
}

async fn child(fixture: &Fixture) -> Identity {
    let path = fixture.path("told").join("child");
    let read = || fs::read_to_string(&path).ok()?.trim().parse().ok();
    eventually(|| read().is_some()).await;
    Identity::of(read().unwrap()).unwrap()
}

#[tokio::test]
async fn a_process_with_a_reused_pid_is_never_signalled() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let triggerer = fixture.processes()["triggerer"].clone();
    drop(plane);
    kill(&triggerer);
    let mut stranger =
        Command::new("sleep").arg("100000").stdin(Stdio::null()).process_group(0).spawn().unwrap();
    let path = fixture.place().state();
    let mut state: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    state["processes"]["triggerer"]["identity"]["pid"] = stranger.id().into();
    fs::write(&path, state.to_string()).unwrap();
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert_ne!(fixture.processes()["triggerer"].pid, stranger.id().cast_signed());
    plane.remove(&fixture.at()).await.unwrap();
    fixture.until_gone(&plane).await;
    assert_eq!(stranger.try_wait().unwrap(), None, "it lives");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[tokio::test]
async fn an_environment_interrupted_before_its_first_state_leaves_nothing() {
    let fixture = Fixture::new();
    drop(fixture.open());
    fs::create_dir(fixture.place().root).unwrap();
    let plane = fixture.open();
    fixture.until_gone(&plane).await;
    assert!(!fixture.place().root.exists());
}
