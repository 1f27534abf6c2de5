//! Hanging processes are restarted, with the reason.

use std::fs;
use std::time::Duration;

use podium_domain::deployments::plan::Health;
use rustix::process::{Pid, Signal, kill_process};

use super::fixture::{Fixture, eventually, trouble};
use crate::DataPlane as _;
use crate::local::Local;

/// A plane that waits only so long for what does not answer.
fn impatient(fixture: &Fixture) -> Local {
    fixture.open_with(|_, timing| timing.hang_timeout = Duration::from_millis(100))
}

#[tokio::test]
async fn a_stopped_process_of_any_component_is_restarted() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = impatient(&fixture);
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    for (component, command) in [
        ("apiserver", "api-server"),
        ("scheduler", "scheduler"),
        ("dag-processor", "dag-processor"),
        ("triggerer", "triggerer"),
    ] {
        let before = fixture.processes()[component].clone();
        kill_process(Pid::from_raw(before.pid).unwrap(), Signal::STOP).unwrap();
        eventually(|| fixture.starts(command).len() == 2).await;
        assert!(!before.is_alive(), "{component}");
        fixture.until(&plane, |seen| seen.components.iter().all(|one| one.health == Health::Up)).await;
        assert_eq!(fixture.state().restarts[component], 1);
        let wrote =
            || {
                fixture.logs.texts().iter().any(|text| {
                    text.contains(&format!("podium.supervisor: {component}: it was killed after"))
                })
            };
        eventually(wrote).await;
    }
}

#[tokio::test]
async fn a_web_server_that_does_not_respond_is_restarted() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open_with(|_, timing| {
        (timing.hang_timeout, timing.response_timeout) =
            (Duration::from_millis(100), Duration::from_millis(200));
        // On a busy machine what it does for each question counts as work: then it is given as long as a start.
        timing.startup_timeout = Duration::from_secs(10);
    });
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    fs::write(fixture.path("told").join("hang"), "").unwrap();
    fixture.until(&plane, |seen| trouble(seen, "apiserver").is_some()).await;
    eventually(|| fixture.starts("api-server").len() >= 2).await;
    fixture.clear_script("hang");
    fixture.until(&plane, |seen| seen.components.iter().all(|one| one.health == Health::Up)).await;
    let scheduler = &fixture.starts("scheduler");
    assert_eq!(scheduler.len(), 1, "the others are not disturbed");
}

#[tokio::test]
async fn a_slow_start_is_given_time_while_it_gets_on() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    fixture.set_script(
        "api-server",
        "for line in $(seq 200); do echo \"line $line\"; sleep 0.01; done
         end=$(($(date +%s) + 3)); while [ \"$(date +%s)\" -lt \"$end\" ]; do :; done",
    );
    let plane = fixture.open_with(|_, timing| timing.startup_timeout = Duration::from_secs(1));
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert_eq!(fixture.starts("api-server").len(), 1);
}

#[tokio::test]
async fn a_start_that_does_not_get_on_is_restarted() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    fixture.set_script(
        "api-server",
        "if [ ! -e \"$told/hung\" ]; then touch \"$told/hung\"; exec sleep 100000; fi",
    );
    let plane = fixture.open_with(|_, timing| timing.startup_timeout = Duration::from_millis(300));
    plane.apply(&fixture.environment(1)).await.unwrap();
    eventually(|| fixture.starts("api-server").len() == 2).await;
    fixture.until(&plane, |seen| seen.components.iter().all(|one| one.health == Health::Up)).await;
}
