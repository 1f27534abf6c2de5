//! Metrics for operators, and unused runtimes.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use super::fixture::{Fixture, eventually, metrics};
use crate::ComponentMetrics;
use crate::local::{Local, unused_runtimes};

fn vital(plane: &Local, name: &str) -> ComponentMetrics {
    let metrics = metrics(plane);
    metrics[0].components.iter().find(|vital| vital.name == name).cloned().unwrap()
}

#[tokio::test]
async fn restarts_memory_and_health_of_each_component_are_reported() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    assert_eq!(metrics(&plane), []);
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = vital(&plane, "scheduler");
    assert!(before.is_up && before.restarts == Some(0), "{before:?}");
    assert!(before.memory.is_some_and(|bytes| bytes > 100_000), "{before:?}");
    assert!(before.heartbeat_at.is_some(), "{before:?}");
    let pid = rustix::process::Pid::from_raw(fixture.processes()["scheduler"].pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    eventually(|| vital(&plane, "scheduler").restarts == Some(1)).await;
    assert_eq!(vital(&plane, "triggerer").restarts, Some(0));
}

#[tokio::test]
async fn an_unused_runtime_is_removed_after_the_retention_period() {
    let fixture = Fixture::new().with_runtime("3.3.2").with_runtime("3.2.2").with_runtime("3.1.8");
    let plane = fixture.open_with(|options, _| options.runtime_retention_days = Some(7));
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let runtimes = fixture.plane().join("runtimes");
    let age = |version: &str, days: u64| {
        #[expect(clippy::disallowed_methods, reason = "times of files are the machine's")]
        let then = SystemTime::now() - Duration::from_hours(24 * days);
        for name in ["podium-ready", "podium-used"] {
            let file = File::options()
                .write(true)
                .create(true)
                .truncate(false)
                .open(runtimes.join(version).join(name));
            file.unwrap().set_modified(then).unwrap();
        }
    };
    ["3.3.2", "3.2.2"].into_iter().for_each(|version| age(version, 8));
    age("3.1.8", 6);
    unused_runtimes::once(&plane.plane).await;
    let left = |version: &str| runtimes.join(version).exists();
    assert!(left("3.3.2"), "an environment runs on it");
    assert!(!left("3.2.2"));
    assert!(left("3.1.8"), "somebody may go back to it");
    let used = fs::metadata(runtimes.join("3.3.2/podium-used")).unwrap().modified().unwrap();
    assert!(used.elapsed().unwrap() < Duration::from_hours(1), "what is in use is used now");
    drop(plane);
    age("3.3.2", 8);
    let forever = fixture.open();
    unused_runtimes::once(&forever.plane).await;
    assert!(left("3.3.2"));
}

#[test]
fn nothing_is_installed_on_a_full_disk() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(unused_runtimes::check_space_for_runtime(directory.path(), 0), Ok(()));
    let full = unused_runtimes::check_space_for_runtime(directory.path(), u64::MAX).unwrap_err();
    assert!(full.user_text().as_str().starts_with("the disk is full"), "{full}");
}
