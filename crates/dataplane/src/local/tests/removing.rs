//! Nothing is left of what is removed.

use std::fs;
use std::net::TcpStream;
use std::time::Duration;

use super::bed::{Bed, eventually, trouble};
use crate::DataPlane as _;
use crate::local::cgroups::Cgroups;
use crate::local::identity::Identity;

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
    let (root, groups) = (bed.place().root, Cgroups::find().groups(bed.id));
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
