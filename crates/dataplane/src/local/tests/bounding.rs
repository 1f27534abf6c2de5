//! Resources of an environment are limited, and one that exceeds a limit is stopped with a reason.

use std::fs;

use podium_domain::deployments::plan::{Observed, Rollout};

use super::fixture::{Fixture, eventually, fresh_id, metrics, trouble};
use crate::blocking::allow_blocking;
use crate::local::cgroups::Cgroups;
use crate::local::process::group_of;
use crate::{DataPlane as _, Location, Machine as _};

/// Starts others, each of which does the same, twice as many every few milliseconds. Those who can start no more wait a
/// little, so that other tests get on, and a broken bound does not take the machine down with it.
pub(crate) const BOMB: &str = "import os, time\n\
    while True:\n    \
        try:\n        \
            if len(os.listdir('/proc')) < 3000: os.fork() or os.setsid()\n    \
        except OSError: time.sleep(0.2)\n    \
        time.sleep(0.005)\n";

#[tokio::test]
async fn a_fork_bomb_is_limited_and_ends_with_its_environment() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    fs::write(fixture.path("bomb.py"), BOMB).unwrap();
    fixture.set_script("triggerer", "python3 \"$told/../bomb.py\" &");
    let plane = fixture.open_with(|options, _| options.environment_processes = Some(80));
    plane.apply(&fixture.environment(1)).await.unwrap();
    let cgroups = allow_blocking(Cgroups::find);
    if cgroups == Cgroups::None {
        // Nothing of this machine is ours to divide.
        plane.remove(&fixture.at()).await.unwrap();
        return fixture.until_gone(&plane).await;
    }
    let seen = fixture.until(&plane, |seen| trouble(seen, "processes").is_some()).await;
    let why = trouble(&seen, "processes").unwrap();
    assert_eq!(why, "it has reached its limit of 80 processes and threads and cannot start more");
    let members = cgroups.members(fixture.id);
    let alive = |pid: &&i32| group_of(**pid).is_some();
    let count = members.iter().filter(alive).collect::<std::collections::BTreeSet<_>>().len();
    assert!((40..=80).contains(&count), "{count}");
    // Others do not notice.
    let mut other = fixture.environment(1);
    other.id = fresh_id();
    fixture.clear_script("triggerer");
    plane.apply(&other).await.unwrap();
    let mut changes = plane.changes();
    while plane.web_server(&Location::unknown(other.id)).await.unwrap().is_none() {
        changes.next().await;
    }
    for id in [fixture.id, other.id] {
        plane.remove(&Location::unknown(id)).await.unwrap();
    }
    while !plane.environments().is_empty() {
        changes.next().await;
    }
    assert_eq!(members.iter().filter(alive).count(), 0);
}

#[tokio::test]
async fn an_environment_over_its_disk_quota_is_stopped_until_it_uses_less() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open_with(|options, _| options.environment_disk = Some(4 << 20));
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    let large = fixture.place().user_home().join("large");
    fs::write(fixture.place().temporary().join("also"), vec![1; 3 << 20]).unwrap();
    eventually(|| metrics(&plane)[0].disk.is_some_and(|bytes| bytes >= 3 << 20)).await;
    // In one step: nothing is measured before it is all there.
    let draft = fixture.path("large");
    fs::write(&draft, vec![1; 6 << 20]).unwrap();
    fs::rename(draft, &large).unwrap();
    let is_stopped = |seen: &Observed| trouble(seen, "disk").is_some();
    let seen = fixture.until(&plane, is_stopped).await;
    let why = trouble(&seen, "disk").unwrap();
    assert!(
        why.starts_with("it was stopped because it uses 9 MiB of disk space and may use 4 MiB ("),
        "{why}"
    );
    assert!(
        why.contains("6 MiB in user")
            && why.contains("3 MiB in tmp")
            && why.contains("--environment-disk-gib")
    );
    assert_eq!(seen.rollout, Rollout::Done, "it is not on its way up");
    assert!(before.values().all(|identity| !identity.is_alive()));
    assert_eq!(plane.web_server(&fixture.at()).await, Ok(None));
    assert_eq!(
        fs::read_dir(fixture.place().temporary()).unwrap().count(),
        0,
        "temporary files are nobody's any more"
    );
    // What is wanted meanwhile is known, and does not bring it back.
    plane.apply(&fixture.environment(2)).await.unwrap();
    fixture
        .until(&plane, |seen| seen.generation == 2 && seen.rollout == Rollout::Done && is_stopped(seen))
        .await;
    assert!(fixture.processes().is_empty());
    fs::remove_file(large).unwrap();
    fixture.until(&plane, |seen| !is_stopped(seen) && seen.rollout == Rollout::Done).await;
    eventually(|| fixture.processes().len() == before.len()).await;
    assert!(metrics(&plane)[0].disk.is_some_and(|bytes| bytes < 4 << 20));
}

#[tokio::test]
async fn an_environment_that_keeps_writing_to_a_full_disk_is_stopped() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    // All of this disk is to stay free.
    let plane = fixture.open_with(|options, _| options.disk_reserve = u64::MAX);
    let mut quiet = fixture.environment(1);
    quiet.id = fresh_id();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    plane.apply(&quiet).await.unwrap();
    let mut changes = plane.changes();
    while plane.web_server(&Location::unknown(quiet.id)).await.unwrap().is_none() {
        changes.next().await;
    }
    eventually(|| metrics(&plane).iter().all(|metrics| metrics.disk.is_some())).await;
    fs::write(fixture.place().user_home().join("large"), vec![1; 6 << 20]).unwrap();
    let seen = fixture.until(&plane, |seen| trouble(seen, "disk").is_some()).await;
    let why = trouble(&seen, "disk").unwrap();
    assert!(why.contains("the disk of its machine is full") && why.contains("6 MiB in user"), "{why}");
    let other = plane.observe(&Location::unknown(quiet.id)).await.unwrap().unwrap();
    assert_eq!(trouble(&other, "disk"), None);
    plane.remove(&Location::unknown(quiet.id)).await.unwrap();
    while plane.observe(&Location::unknown(quiet.id)).await.unwrap().is_some() {
        changes.next().await;
    }
}

#[tokio::test]
async fn code_is_not_unpacked_onto_a_full_disk() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open_with(|options, _| options.disk_reserve = u64::MAX);
    let mut environment = fixture.environment(1);
    environment.spec.release.dag_version = Some("first".into());
    plane.apply(&environment).await.unwrap();
    let seen = fixture.until(&plane, |seen| trouble(seen, "code").is_some()).await;
    let why = trouble(&seen, "code").unwrap();
    assert!(why.contains("the disk is full"), "{why}");
    assert!(!fixture.place().code().join("dags/versions/first").exists());
}
