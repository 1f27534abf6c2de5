//! What an environment takes of the machine is bounded, and who takes more is stopped and told why.

use std::fs;

use podium_domain::deployments::plan::{Observed, Rollout};

use super::bed::{Bed, eventually, fresh_id, trouble, vitals};
use crate::DataPlane as _;
use crate::blocking::here;
use crate::local::cgroups::Cgroups;
use crate::local::process::group_of;

/// Starts others, each of which does the same, twice as many every few milliseconds. Those who can start no more wait a
/// little, so that other tests get on, and a broken bound does not take the machine down with it.
pub(crate) const BOMB: &str = "import os, time\n\
    while True:\n    \
        try:\n        \
            if len(os.listdir('/proc')) < 3000: os.fork() or os.setsid()\n    \
        except OSError: time.sleep(0.2)\n    \
        time.sleep(0.005)\n";

#[tokio::test]
async fn a_fork_bomb_has_so_many_processes_and_ends_with_its_environment() {
    let bed = Bed::new().with_runtime("3.3.2");
    fs::write(bed.path("bomb.py"), BOMB).unwrap();
    bed.tell("triggerer", "python3 \"$told/../bomb.py\" &");
    let plane = bed.open_with(|options, _| options.environment_processes = Some(80));
    plane.apply(&bed.environment(1)).await.unwrap();
    let cgroups = here(Cgroups::find);
    if cgroups == Cgroups::None {
        // Nothing of this machine is ours to divide.
        plane.remove(bed.id).await.unwrap();
        return bed.until_gone(&plane).await;
    }
    let seen = bed.until(&plane, |seen| trouble(seen, "processes").is_some()).await;
    let why = trouble(&seen, "processes").unwrap();
    assert_eq!(why, "it has all the 80 processes and threads that it may have, and can start no others");
    let members = cgroups.members(bed.id);
    let alive = |pid: &&i32| group_of(**pid).is_some();
    let count = members.iter().filter(alive).collect::<std::collections::BTreeSet<_>>().len();
    assert!((40..=80).contains(&count), "{count}");
    // Others do not notice.
    let mut other = bed.environment(1);
    other.id = fresh_id();
    bed.untell("triggerer");
    plane.apply(&other).await.unwrap();
    let mut changes = plane.changes();
    while plane.door(other.id).await.unwrap().is_none() {
        changes.next().await;
    }
    for id in [bed.id, other.id] {
        plane.remove(id).await.unwrap();
    }
    while !plane.kept().is_empty() {
        changes.next().await;
    }
    assert_eq!(members.iter().filter(alive).count(), 0);
}

#[tokio::test]
async fn an_environment_with_too_much_on_disk_is_stopped_until_it_has_less() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open_with(|options, _| options.environment_disk = Some(4 << 20));
    bed.bring_up(&plane, &bed.environment(1)).await;
    let before = bed.processes();
    let large = bed.place().user_home().join("large");
    fs::write(bed.place().temporary().join("also"), vec![1; 3 << 20]).unwrap();
    eventually(|| vitals(&plane)[0].disk.is_some_and(|bytes| bytes >= 3 << 20)).await;
    // In one step: nothing is measured before it is all there.
    let draft = bed.path("large");
    fs::write(&draft, vec![1; 6 << 20]).unwrap();
    fs::rename(draft, &large).unwrap();
    let is_stopped = |seen: &Observed| trouble(seen, "disk").is_some();
    let seen = bed.until(&plane, is_stopped).await;
    let why = trouble(&seen, "disk").unwrap();
    assert!(why.starts_with("it was stopped, because it has 9 MiB on disk and may have 4 MiB ("), "{why}");
    assert!(
        why.contains("6 MiB in user")
            && why.contains("3 MiB in tmp")
            && why.contains("--environment-disk-gib")
    );
    assert_eq!(seen.rollout, Rollout::Done, "it is not on its way up");
    assert!(before.values().all(|identity| !identity.is_alive()));
    assert_eq!(plane.door(bed.id).await, Ok(None));
    assert_eq!(
        fs::read_dir(bed.place().temporary()).unwrap().count(),
        0,
        "temporary files are nobody's any more"
    );
    // What is wanted meanwhile is known, and does not bring it back.
    plane.apply(&bed.environment(2)).await.unwrap();
    bed.until(&plane, |seen| seen.generation == 2 && seen.rollout == Rollout::Done && is_stopped(seen)).await;
    assert!(bed.processes().is_empty());
    fs::remove_file(large).unwrap();
    bed.until(&plane, |seen| !is_stopped(seen) && seen.rollout == Rollout::Done).await;
    eventually(|| bed.processes().len() == before.len()).await;
    assert!(vitals(&plane)[0].disk.is_some_and(|bytes| bytes < 4 << 20));
}

#[tokio::test]
async fn who_goes_on_writing_to_a_full_disk_is_stopped() {
    let bed = Bed::new().with_runtime("3.3.2");
    // All of this disk is to stay free.
    let plane = bed.open_with(|options, _| options.disk_reserve = u64::MAX);
    let mut quiet = bed.environment(1);
    quiet.id = fresh_id();
    bed.bring_up(&plane, &bed.environment(1)).await;
    plane.apply(&quiet).await.unwrap();
    let mut changes = plane.changes();
    while plane.door(quiet.id).await.unwrap().is_none() {
        changes.next().await;
    }
    eventually(|| vitals(&plane).iter().all(|vitals| vitals.disk.is_some())).await;
    fs::write(bed.place().user_home().join("large"), vec![1; 6 << 20]).unwrap();
    let seen = bed.until(&plane, |seen| trouble(seen, "disk").is_some()).await;
    let why = trouble(&seen, "disk").unwrap();
    assert!(why.contains("the disk of its machine is full") && why.contains("6 MiB in user"), "{why}");
    let other = plane.observe(quiet.id).await.unwrap().unwrap();
    assert_eq!(trouble(&other, "disk"), None);
    plane.remove(quiet.id).await.unwrap();
    while plane.observe(quiet.id).await.unwrap().is_some() {
        changes.next().await;
    }
}

#[tokio::test]
async fn code_is_not_unpacked_onto_a_full_disk() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open_with(|options, _| options.disk_reserve = u64::MAX);
    let mut environment = bed.environment(1);
    environment.release.dag_version = Some("first".into());
    plane.apply(&environment).await.unwrap();
    let seen = bed.until(&plane, |seen| trouble(seen, "code").is_some()).await;
    let why = trouble(&seen, "code").unwrap();
    assert!(why.contains("the disk is full"), "{why}");
    assert!(!bed.place().code().join("dags/versions/first").exists());
}
