//! Nothing is left of what is removed.

use std::fs;
use std::net::TcpStream;
use std::time::Duration;

use podium_domain::deployments::plan::Observed;
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};

use super::bed::{Bed, detail, eventually, fresh_id, trouble, vitals};
use crate::DataPlane as _;
use crate::blocking::here;
use crate::local::cgroups::Cgroups;
use crate::local::identity::Identity;
use crate::local::trees::nest;

#[tokio::test]
async fn nothing_is_left_not_even_what_ran_away() {
    let bed = Bed::new().with_runtime("3.3.2");
    bed.tell("scheduler", "setsid sh -c 'echo $$ >\"$0/away\"; exec sleep 100000' \"$told\" &");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let away = || fs::read_to_string(bed.path("told").join("away")).ok()?.trim().parse::<i32>().ok();
    eventually(|| away().is_some()).await;
    let away = Identity::of(away().unwrap()).unwrap();
    let (processes, door) = (bed.processes(), plane.door(bed.id).await.unwrap().unwrap());
    let (root, groups) = (bed.place().root, here(Cgroups::find).groups(bed.id));
    assert!(groups.iter().all(|group| group.exists()));
    plane.remove(bed.id).await.unwrap();
    plane.apply(&bed.environment(2)).await.unwrap();
    bed.until_gone(&plane).await;
    assert!(!away.is_alive());
    assert!(processes.values().all(|identity| !identity.is_alive()));
    assert!(!root.exists());
    assert!(TcpStream::connect(door.address).is_err());
    assert_eq!(groups.iter().find(|group| group.exists()), None);
    assert_eq!(plane.door(bed.id).await, Ok(None));
    plane.remove(bed.id).await.unwrap();
    bed.bring_up(&plane, &bed.environment(3)).await;
}

#[tokio::test]
async fn a_removal_that_is_cut_off_goes_on_after_a_restart() {
    let bed = Bed::new().with_runtime("3.3.2");
    bed.tell("scheduler", "trap '' TERM; while :; do sleep 0.1; done");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    plane.remove(bed.id).await.unwrap();
    bed.until(&plane, |seen| trouble(seen, "removal").is_some()).await;
    plane.remove(bed.id).await.unwrap();
    drop(plane);
    assert!(bed.state().is_removed);
    let root = bed.place().root;
    let plane = bed.open_with(|_, pace| pace.short_grace = Duration::ZERO);
    plane.apply(&bed.environment(2)).await.unwrap();
    bed.until_gone(&plane).await;
    assert!(!root.exists());
}

#[tokio::test]
async fn directories_one_in_another_are_removed_however_deep() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    nest(&bed.place().user_home(), 15_000);
    plane.remove(bed.id).await.unwrap();
    bed.until_gone(&plane).await;
    assert!(!bed.place().root.exists());
}

#[tokio::test]
async fn what_cannot_be_removed_is_shown_and_tried_again_and_the_others_run() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let held = bed.place().user_home().join("held");
    fs::create_dir(&held).unwrap();
    let directory = fs::File::open(&held).unwrap();
    let flags = ioctl_getflags(&directory).unwrap();
    if ioctl_setflags(&directory, flags | IFlags::IMMUTABLE).is_err() {
        // Only root can make something that root cannot remove.
        return;
    }
    plane.remove(bed.id).await.unwrap();
    let is_said =
        |seen: &Observed| trouble(seen, "removal").is_some_and(|why| why.contains("cannot be removed"));
    bed.until(&plane, is_said).await;
    drop(plane);
    assert!(bed.state().is_removed, "what is known of it goes last");
    let plane = bed.open();
    bed.until(&plane, is_said).await;
    assert!(vitals(&plane).iter().any(|vitals| vitals.id == bed.id && !vitals.components[0].is_up));
    let mut other = bed.environment(1);
    other.id = fresh_id();
    plane.apply(&other).await.unwrap();
    let mut changes = plane.changes();
    while plane.door(other.id).await.unwrap().is_none() {
        changes.next().await;
    }
    plane.remove(other.id).await.unwrap();
    while plane.observe(other.id).await.unwrap().is_some() {
        changes.next().await;
    }
    ioctl_setflags(&directory, flags).unwrap();
    bed.until_gone(&plane).await;
    assert!(!bed.place().root.exists());
}

#[tokio::test]
async fn a_start_goes_on_where_nothing_can_be_read_of_an_environment() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let scheduler = bed.processes()["scheduler"].clone();
    drop(plane);
    let whole = fs::read(bed.place().state()).unwrap();
    fs::write(bed.place().state(), "{").unwrap();
    let plane = bed.open();
    let seen = plane.observe(bed.id).await.unwrap().unwrap();
    assert_eq!(trouble(&seen, "state").unwrap(), "it cannot be taken over: invalid data");
    assert!(detail(&seen, "state").unwrap().contains("state.json cannot be read"), "{seen:?}");
    assert_eq!(vitals(&plane)[0].components[0].name, "state");
    let refused = plane.apply(&bed.environment(2)).await.unwrap_err();
    assert!(refused.to_string().contains("cannot be read"), "{refused}");
    assert!(scheduler.is_alive(), "it runs on");
    fs::write(bed.place().state(), &whole).unwrap();
    bed.bring_up(&plane, &bed.environment(2)).await;
    assert_eq!(bed.processes()["scheduler"], scheduler, "it was taken over");
    drop(plane);
    // Nothing can be read, and nothing is wanted.
    fs::remove_file(bed.place().state()).unwrap();
    fs::create_dir_all(bed.place().state().join("below")).unwrap();
    let plane = bed.open();
    plane.remove(bed.id).await.unwrap();
    bed.until_gone(&plane).await;
    assert!(!scheduler.is_alive() && !bed.place().root.exists());
}
