//! Exited processes are restarted with growing pauses, and the reason is reported.

use std::fs;

use podium_domain::deployments::plan::{Health, Rollout};
use rustix::process::{Pid, Signal, kill_process};

use super::fixture::{Fixture, detail, eventually, eventually_some, kill, trouble};
use crate::DataPlane as _;

#[tokio::test]
async fn exited_processes_are_restarted_and_their_last_error_is_for_operators() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    fixture.set_script("scheduler", "echo no such pool >&2; exit 3");
    let plane = fixture.open();
    plane.apply(&fixture.environment(1)).await.unwrap();
    let mut longest = 0.0;
    for times in [1, 2, 3] {
        // Whoever looks later sees more of them.
        let seen = fixture.until(&plane, |seen| ends(seen).is_some_and(|(ended, _)| ended >= times)).await;
        let why = trouble(&seen, "scheduler").unwrap();
        assert!(why.starts_with("it exited, see its log; happened "), "{why}");
        assert_eq!(detail(&seen, "scheduler").as_deref(), Some("no such pool"));
        let (ended, pause) = ends(&seen).unwrap();
        let expected = (0.01 * f64::from(1 << (ended - 1).min(16))).min(0.1);
        assert!((pause - expected).abs() < 1e-6 && pause >= longest, "{why}");
        longest = pause;
    }
    fixture.clear_script("scheduler");
    eventually(|| fixture.starts("scheduler").len() > 3).await;
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert!(fixture.starts("triggerer").len() <= 1, "the others are not disturbed");
}

/// How often the scheduler ended, and how long it waits.
fn ends(seen: &podium_domain::deployments::plan::Observed) -> Option<(u32, f64)> {
    let why = trouble(seen, "scheduler")?;
    let (_, rest) = why.split_once("; happened ")?;
    let (times, rest) = rest.split_once(", restarting after ")?;
    let times = if times == "once" { 1 } else { times.strip_suffix(" times")?.parse().ok()? };
    Some((times, rest.strip_suffix(" s")?.parse().ok()?))
}

#[tokio::test]
async fn a_failed_start_reports_its_reason() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    fs::remove_file(fixture.airflow("3.3.2").with_file_name("python")).unwrap();
    let plane = fixture.open();
    plane.apply(&fixture.environment(1)).await.unwrap();
    let seen = fixture.until(&plane, |seen| trouble(seen, "triggerer").is_some()).await;
    let why = trouble(&seen, "triggerer").unwrap();
    assert!(!why.contains("bin/python"), "users are not told where things are: {why}");
    let why = detail(&seen, "triggerer").unwrap();
    assert!(why.contains("bin/python") && why.contains("not found"), "{why}");
}

#[tokio::test]
async fn an_exit_is_noticed_while_the_web_server_is_slow_to_respond() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    fs::write(fixture.path("told").join("hang"), "").unwrap();
    eventually(|| fixture.path("told").join("hanging").exists()).await;
    let scheduler = fixture.processes()["scheduler"].clone();
    kill_process(Pid::from_raw(scheduler.pid).unwrap(), Signal::KILL).unwrap();
    let seen = fixture.until(&plane, |seen| trouble(seen, "scheduler").is_some()).await;
    let web = seen.components.iter().find(|component| component.name == "apiserver").unwrap();
    assert_eq!(web.health, Health::Up, "nobody has given up on it yet");
    eventually(|| fixture.starts("scheduler").len() == 2).await;
    fixture.clear_script("hang");
    let seen = fixture.until(&plane, |seen| trouble(seen, "scheduler").is_none()).await;
    assert_eq!(seen.rollout, Rollout::Done);
}

#[tokio::test]
async fn an_exited_web_server_is_not_published() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    fixture.set_script("api-server", "echo later; exit 1");
    let web = fixture.processes()["apiserver"].clone();
    kill_process(Pid::from_raw(web.pid).unwrap(), Signal::TERM).unwrap();
    fixture.until(&plane, |seen| trouble(seen, "apiserver").is_some()).await;
    assert_eq!(plane.web_server(&fixture.at()).await, Ok(None));
}

#[tokio::test]
async fn exited_processes_are_restarted_even_while_the_next_state_cannot_be_prepared() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    // What is in the way of any other code.
    let in_the_way = fixture.place().code().join("dags/current.draft");
    fs::create_dir(&in_the_way).unwrap();
    let mut environment = fixture.environment(2);
    environment.spec.release.dag_version = Some("second".into());
    plane.apply(&environment).await.unwrap();
    fixture.until(&plane, |seen| trouble(seen, "code").is_some()).await;
    for times in 2..4 {
        // One that has noted its start may not be remembered yet.
        kill(&eventually_some(|| fixture.processes().get("scheduler").cloned()).await);
        eventually(|| fixture.starts("scheduler").len() == times).await;
    }
    let seen = plane.observe(&fixture.at()).await.unwrap().unwrap();
    assert_eq!((seen.generation, seen.rollout), (2, Rollout::Underway), "it still waits");
    fs::remove_dir(in_the_way).unwrap();
    fixture.bring_up(&plane, &environment).await;
}

#[tokio::test]
async fn nothing_starts_that_could_not_be_found_again() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let in_the_way = fixture.place().state().with_extension("draft");
    fs::create_dir(&in_the_way).unwrap();
    kill(&fixture.processes()["scheduler"]);
    let is_said = |why: String| why.starts_with("it cannot be started: is a directory");
    let seen = fixture.until(&plane, |seen| trouble(seen, "scheduler").is_some_and(is_said)).await;
    assert!(detail(&seen, "scheduler").unwrap().starts_with("Is a directory"), "{seen:?}");
    assert_eq!((fixture.starts("scheduler").len(), fixture.leaders("scheduler")), (1, 0));
    fs::remove_dir(in_the_way).unwrap();
    eventually(|| fixture.starts("scheduler").len() == 2).await;
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert_eq!(fixture.leaders("scheduler"), 1);
}

#[tokio::test]
async fn an_environment_that_is_woken_while_it_hibernates_comes_back_completely() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    fixture.set_script("scheduler", "trap 'touch \"$told/asked\"' TERM");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let scheduler = fixture.processes()["scheduler"].clone();
    let mut asleep = fixture.environment(2);
    asleep.is_hibernating = true;
    plane.apply(&asleep).await.unwrap();
    eventually(|| fixture.path("told").join("asked").exists()).await;
    let seen = fixture.bring_up(&plane, &fixture.environment(3)).await;
    assert!(!seen.is_hibernating && !fixture.state().is_hibernating);
    assert_eq!(fixture.processes()["scheduler"], scheduler, "it did not end, so it is not started again");
    assert_eq!(fixture.leaders("scheduler"), 1);
    assert!(plane.web_server(&fixture.at()).await.unwrap().is_some());
}
