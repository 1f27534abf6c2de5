//! What runs and does nothing is started again, with the reason.

use std::fs;
use std::time::Duration;

use podium_domain::deployments::plan::Health;
use rustix::process::{Pid, Signal, kill_process};

use super::bed::{Bed, eventually, trouble};
use crate::local::Local;

/// A plane that waits only so long for what does not answer.
fn impatient(bed: &Bed) -> Local {
    bed.open_with(|_, pace| pace.hung = Duration::from_millis(100))
}

#[tokio::test]
async fn a_stopped_process_of_any_component_is_started_again() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = impatient(&bed);
    bed.bring_up(&plane, &bed.environment(1)).await;
    for (component, command) in [
        ("apiserver", "api-server"),
        ("scheduler", "scheduler"),
        ("dag-processor", "dag-processor"),
        ("triggerer", "triggerer"),
    ] {
        let before = bed.processes()[component].clone();
        kill_process(Pid::from_raw(before.pid).unwrap(), Signal::STOP).unwrap();
        eventually(|| bed.starts(command).len() == 2).await;
        assert!(!before.is_alive(), "{component}");
        bed.until(&plane, |seen| seen.components.iter().all(|one| one.health == Health::Up)).await;
        assert_eq!(bed.state().restarts[component], 1);
        let wrote = || {
            bed.logs
                .texts()
                .iter()
                .any(|text| text.contains(&format!("podium.supervisor: {component}: it was killed after")))
        };
        eventually(wrote).await;
    }
}

#[tokio::test]
async fn a_web_server_that_does_not_answer_is_started_again() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open_with(|_, pace| {
        (pace.hung, pace.answer) = (Duration::from_millis(100), Duration::from_millis(200));
    });
    bed.bring_up(&plane, &bed.environment(1)).await;
    fs::write(bed.path("told").join("hang"), "").unwrap();
    bed.until(&plane, |seen| trouble(seen, "apiserver").is_some()).await;
    eventually(|| bed.starts("api-server").len() >= 2).await;
    bed.untell("hang");
    bed.until(&plane, |seen| seen.components.iter().all(|one| one.health == Health::Up)).await;
    let scheduler = &bed.starts("scheduler");
    assert_eq!(scheduler.len(), 1, "the others are not disturbed");
}
