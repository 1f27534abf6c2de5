//! Removed environments leave nothing behind.

use std::fs;
use std::net::TcpStream;
use std::time::Duration;

use podium_domain::deployments::plan::Observed;
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

use super::fixture::{Fixture, detail, eventually, fresh_id, metrics, trouble};
use crate::blocking::allow_blocking;
use crate::local::cgroups::Cgroups;
use crate::local::identity::Identity;
use crate::local::trees::nest;
use crate::{DataPlane as _, Location};

#[tokio::test]
async fn nothing_is_left_not_even_orphans() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    fixture.set_script("scheduler", "setsid sh -c 'echo $$ >\"$0/away\"; exec sleep 100000' \"$told\" &");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let away = || fs::read_to_string(fixture.path("told").join("away")).ok()?.trim().parse::<i32>().ok();
    eventually(|| away().is_some()).await;
    let away = Identity::of(away().unwrap()).unwrap();
    let (processes, web_server) =
        (fixture.processes(), plane.web_server(&fixture.at()).await.unwrap().unwrap());
    let (root, groups) = (fixture.place().root, allow_blocking(Cgroups::find).groups(fixture.id));
    assert!(groups.iter().all(|group| group.exists()));
    plane.remove(&fixture.at()).await.unwrap();
    plane.apply(&fixture.environment(2)).await.unwrap();
    fixture.until_gone(&plane).await;
    assert!(!away.is_alive());
    assert!(processes.values().all(|identity| !identity.is_alive()));
    assert!(!root.exists());
    assert!(TcpStream::connect(web_server.upstream.to_string()).is_err());
    assert_eq!(groups.iter().find(|group| group.exists()), None);
    assert_eq!(plane.web_server(&fixture.at()).await, Ok(None));
    plane.remove(&fixture.at()).await.unwrap();
    fixture.bring_up(&plane, &fixture.environment(3)).await;
}

#[tokio::test]
async fn an_interrupted_removal_continues_after_a_restart() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    fixture.set_script("scheduler", "trap '' TERM; while :; do sleep 0.1; done");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    plane.remove(&fixture.at()).await.unwrap();
    fixture.until(&plane, |seen| trouble(seen, "removal").is_some()).await;
    plane.remove(&fixture.at()).await.unwrap();
    drop(plane);
    assert!(fixture.state().is_removed);
    let root = fixture.place().root;
    let plane = fixture.open_with(|_, timing| timing.short_grace = Duration::ZERO);
    plane.apply(&fixture.environment(2)).await.unwrap();
    fixture.until_gone(&plane).await;
    assert!(!root.exists());
}

#[tokio::test]
async fn a_removal_that_a_shutdown_interrupts_leaves_no_process() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    fixture.set_script("scheduler", "trap '' TERM; while :; do sleep 0.1; done");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let processes = fixture.processes();
    plane.remove(&fixture.at()).await.unwrap();
    fixture.until(&plane, |seen| trouble(seen, "removal").is_some()).await;
    drop(plane);
    assert_eq!(processes.values().find(|identity| identity.is_alive()), None);
    let plane = fixture.open();
    fixture.until_gone(&plane).await;
}

#[tokio::test]
async fn the_end_of_the_server_leaves_no_process_of_a_removal_whoever_holds_the_plane() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    fixture.set_script("scheduler", "trap '' TERM; while :; do sleep 0.1; done");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let processes = fixture.processes();
    plane.machine().unwrap().end().await.unwrap();
    assert!(processes.values().all(Identity::is_alive), "those that nobody removes run on");
    drop(plane);
    let plane = fixture.open();
    plane.remove(&fixture.at()).await.unwrap();
    plane.machine().unwrap().end().await.unwrap();
    assert_eq!(processes.values().find(|identity| identity.is_alive()), None);
    drop(plane);
    let plane = fixture.open();
    fixture.until_gone(&plane).await;
}

#[tokio::test]
async fn nested_directories_are_removed_however_deep() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    nest(&fixture.place().user_home(), 15_000);
    plane.remove(&fixture.at()).await.unwrap();
    fixture.until_gone(&plane).await;
    assert!(!fixture.place().root.exists());
}

#[tokio::test]
async fn a_failed_removal_is_reported_and_retried_while_the_others_run() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let held = fixture.place().user_home().join("held");
    fs::create_dir(&held).unwrap();
    let directory = fs::File::open(&held).unwrap();
    let flags = ioctl_getflags(&directory).unwrap();
    if ioctl_setflags(&directory, flags | IFlags::IMMUTABLE).is_err() {
        // Only root can make something that root cannot remove.
        return;
    }
    plane.remove(&fixture.at()).await.unwrap();
    let is_said =
        |seen: &Observed| trouble(seen, "removal").is_some_and(|why| why.contains("cannot be removed"));
    fixture.until(&plane, is_said).await;
    drop(plane);
    assert!(fixture.state().is_removed, "what is known of it goes last");
    let plane = fixture.open();
    fixture.until(&plane, is_said).await;
    assert!(metrics(&plane).iter().any(|metrics| metrics.id == fixture.id && !metrics.components[0].is_up));
    let mut other = fixture.environment(1);
    other.id = fresh_id();
    plane.apply(&other).await.unwrap();
    let mut changes = plane.changes();
    while plane.web_server(&Location::unknown(other.id)).await.unwrap().is_none() {
        changes.next().await;
    }
    plane.remove(&Location::unknown(other.id)).await.unwrap();
    while plane.observe(&Location::unknown(other.id)).await.unwrap().is_some() {
        changes.next().await;
    }
    ioctl_setflags(&directory, flags).unwrap();
    fixture.until_gone(&plane).await;
    assert!(!fixture.place().root.exists());
}

#[tokio::test]
async fn a_start_continues_if_the_state_of_an_environment_is_unreadable() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let scheduler = fixture.processes()["scheduler"].clone();
    drop(plane);
    let whole = fs::read(fixture.place().state()).unwrap();
    fs::write(fixture.place().state(), "{").unwrap();
    let plane = fixture.open();
    let seen = plane.observe(&fixture.at()).await.unwrap().unwrap();
    assert_eq!(trouble(&seen, "state").unwrap(), "the environment cannot be taken over: invalid data");
    assert!(detail(&seen, "state").unwrap().contains("state.json cannot be read"), "{seen:?}");
    assert_eq!(metrics(&plane)[0].components[0].name, "state");
    let refused = plane.apply(&fixture.environment(2)).await.unwrap_err();
    assert!(refused.to_string().contains("cannot be read"), "{refused}");
    assert!(scheduler.is_alive(), "it runs on");
    fs::write(fixture.place().state(), &whole).unwrap();
    fixture.bring_up(&plane, &fixture.environment(2)).await;
    assert_eq!(fixture.processes()["scheduler"], scheduler, "it was taken over");
    drop(plane);
    // Nothing can be read, and nothing is wanted.
    fs::remove_file(fixture.place().state()).unwrap();
    fs::create_dir_all(fixture.place().state().join("below")).unwrap();
    let plane = fixture.open();
    plane.remove(&fixture.at()).await.unwrap();
    fixture.until_gone(&plane).await;
    assert!(!scheduler.is_alive() && !fixture.place().root.exists());
}
